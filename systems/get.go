package systems

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/mod/semver"
)

// Get is where a version's files can be fetched from, for a folder of their own: an image, or sources of which they are built. Nothing is fetched
// unless it is asked for.
type Get struct {
	// Image is the reference of its image, with ${VERSION} in it; empty: it has none.
	Image string
	// Module is the Go module of its sources, which the Go module proxy has; empty: they cannot be had.
	Module string
	// Packages are the files that are built, each with its package below the module. One that a version lacks is passed over.
	Packages map[string]string
	// Makefile is a file of the sources of which the line LDFLAGS says the linker flags of a release; empty: there are none.
	Makefile string
	// Files are copied out of the sources.
	Files []Source
}

// Source is a file of the sources. The first one there that goes to a name is taken.
type Source struct {
	From string // below the module; ${MINOR} stands for 1.23 of 1.23.1
	To   string // in the folder
	// Optional: a version may lack it.
	Optional bool
}

// Origin is where a version is fetched from.
type Origin string

// Origins. By default a version is built from source where the module proxy has that version, and else taken out of
// the image.
const (
	FromAny    Origin = ""
	FromImage  Origin = "image"
	FromSource Origin = "source"
)

// Unavailable is an error of what a version is fetched with: a registry, a proxy, the go command, a disk. The same request may succeed later.
type Unavailable struct{ Err error }

func (e *Unavailable) Error() string { return e.Err.Error() }
func (e *Unavailable) Unwrap() error { return e.Err }

// Fetch is the system that NAME@VERSION means, and whether its files were fetched. What is at hand is as Find finds it; a version that is not goes
// into NAME/VERSION of the folder for systems, whole or not at all. image, if not empty, takes the place of the description's reference.
func Fetch(ctx context.Context, text string, from Origin, image string, o Options) (s *System, fetched bool, err error) {
	o, err = o.filled()
	if err != nil {
		return nil, false, err
	}
	name, where, _ := strings.Cut(text, "@")
	d, err := Describe(name, o)
	if err != nil {
		return nil, false, err
	}
	f := finder{ctx, d, o}
	version := strings.TrimPrefix(where, "v")
	if where == "" || !versionLike.MatchString(where) || d.Build != nil && d.Build.Git {
		s, err = Find(ctx, text, o)
		return s, false, err
	}
	if !isVersion(version) {
		if version, err = f.newest(version); err != nil {
			return nil, false, fmt.Errorf("%s: %w", text, err)
		}
	}
	described, err := d.Of(version)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", text, err)
	}
	folder := filepath.Join(o.Systems, d.Name, version)
	if isFolder(folder) {
		return f.whole(text, version, folder)
	}
	if described.Get == nil {
		s, err = Find(ctx, text, o)
		return s, false, err
	}
	g := getter{f, described, described.Get, version, folder}
	if image != "" {
		own := *g.Get
		own.Image, g.Get = image, &own
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, false, &Unavailable{fmt.Errorf("%s: %w", text, err)}
	}
	unlock, err := g.lock()
	if err != nil {
		return nil, false, &Unavailable{fmt.Errorf("%s: %w", text, err)}
	}
	defer unlock()
	if isFolder(folder) { // another get was faster
		return f.whole(text, version, folder)
	}
	if err := g.get(from); err != nil {
		return nil, false, fmt.Errorf("%s: %w", text, err)
	}
	s, err = f.resolve(located{folder: folder, version: version})
	return s, true, err
}

// whole is a version that is at hand.
func (f *finder) whole(text, version, folder string) (*System, bool, error) {
	s, err := f.resolve(located{folder: folder, version: version})
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w (it was there before: remove %s, and get it again)", text, err, folder)
	}
	return s, false, nil
}

// newest is the newest version of 1.23 that the module proxy has.
func (f *finder) newest(part string) (string, error) {
	for _, v := range f.versions() { // the newest comes first
		if strings.HasPrefix(v, part+".") && semver.Prerelease("v"+v) == "" {
			return v, nil
		}
	}
	module := ""
	for _, g := range f.d.Ranges {
		if g.System.Get != nil {
			module = g.System.Get.Module
		}
	}
	if module == "" {
		return "", fmt.Errorf("%s is no whole version such as 1.2.3", part)
	}
	list, err := f.released(module)
	if err != nil {
		return "", err
	}
	for _, v := range list {
		if strings.HasPrefix(v, part+".") && semver.Prerelease("v"+v) == "" {
			return v, nil
		}
	}
	return "", fmt.Errorf("the Go module proxy lists no version of %s (there are %s)", part, strings.Join(list, ", "))
}

// released are the versions of a module that the Go module proxy has, the newest first.
func (f *finder) released(module string) ([]string, error) {
	out, err := f.run("/", []string{"GOWORK=off"}, "go", "list", "-m", "-versions", "-json", module)
	var m struct{ Versions []string }
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return nil, &Unavailable{fmt.Errorf("the versions of the Go module %s: %w", module, err)}
	}
	list := make([]string, len(m.Versions))
	for i, v := range m.Versions {
		list[i] = strings.TrimPrefix(v, "v")
	}
	slices.Reverse(list) // the go command sorts them
	return list, nil
}

// Available says in a sentence each how versions of a description can be had.
func Available(ctx context.Context, d *Description, o Options) ([]string, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	f := finder{ctx, d, o}
	var out []string
	said := map[string]bool{}
	for i := range d.Ranges {
		g := d.Ranges[i].System.Get
		if g == nil {
			continue
		}
		if g.Module != "" && !said[g.Module] {
			said[g.Module] = true
			list, err := f.released(g.Module)
			if err != nil {
				return nil, err
			}
			list = slices.DeleteFunc(list, func(v string) bool { _, err := d.Of(v); return err != nil })
			out = append(out, fmt.Sprintf("built from the Go module %s, of which the module proxy lists %s; it may have others when asked for them", g.Module, strings.Join(list, ", ")))
		}
		if g.Image != "" && !said[g.Image] {
			said[g.Image] = true
			out = append(out, "out of the image "+g.Image)
		}
	}
	if have := f.versions(); len(have) > 0 {
		out = append(out, "at hand in "+filepath.Join(o.Systems, d.Name)+": "+strings.Join(have, ", "))
	}
	return out, nil
}

// getter fetches one version.
type getter struct {
	finder
	system *System
	*Get
	version, folder string
}

// staging is how folders begin that are being filled, beside the one that they become. No version has a + in it.
func (g *getter) staging() string { return ".get-" + g.version + "+" }

// get fills a folder beside the one that is wanted, and renames it once it is whole.
func (g *getter) get(from Origin) error {
	beside := filepath.Dir(g.folder)
	// With the lock held, what another get has left was killed.
	left, err := filepath.Glob(filepath.Join(beside, g.staging()+"*"))
	for _, l := range left {
		err = errors.Join(err, os.RemoveAll(l))
	}
	if err != nil {
		return &Unavailable{err}
	}
	dir, err := os.MkdirTemp(beside, g.staging())
	if err != nil {
		return &Unavailable{err}
	}
	defer os.RemoveAll(dir)
	if err := g.fill(from, dir); err != nil {
		text := strings.ReplaceAll(err.Error(), dir, g.folder) // its folder is temporary
		if _, ok := errors.AsType[*Unavailable](err); ok {
			return &Unavailable{errors.New(text)}
		}
		return errors.New(text)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return &Unavailable{err}
	}
	if _, err := g.resolve(located{folder: dir, version: g.version}); err != nil {
		return fmt.Errorf("what was fetched is not whole, and was thrown away: %s", strings.NewReplacer(dir+"/", "", dir, "the folder").Replace(err.Error()))
	}
	if err := os.Rename(dir, g.folder); err != nil {
		return &Unavailable{err}
	}
	return nil
}

func (g *getter) fill(from Origin, dir string) error {
	switch {
	case from == FromImage && g.Image == "":
		return fmt.Errorf("%s names no image: the key get.image", g.d.File)
	case from == FromSource && g.Module == "":
		return fmt.Errorf("%s names no sources: the key get.module", g.d.File)
	case from == FromImage || g.Module == "":
		return g.fromImage(dir)
	}
	src, err := g.sources()
	if err == nil {
		return g.fromSource(src, dir)
	}
	if from == FromSource || g.Image == "" {
		return err
	}
	if _, lacking := errors.AsType[*Unavailable](err); lacking && g.ctx.Err() != nil {
		return err
	}
	g.o.Tell(err.Error())
	if second := g.fromImage(dir); second != nil {
		return &either{err, second}
	}
	return nil
}

// either is that neither of two ways led anywhere. It is Unavailable if the second one was.
type either struct{ source, image error }

func (e *either) Error() string { return e.source.Error() + "; and " + e.image.Error() }
func (e *either) Unwrap() error { return e.image }

// sources is the folder of the version's sources, which the module cache keeps.
func (g *getter) sources() (string, error) {
	g.o.Tell(fmt.Sprintf("asking the Go module proxy for %s v%s", g.Module, g.version))
	out, err := g.run("/", []string{"GOWORK=off"}, "go", "mod", "download", "-json", g.Module+"@v"+g.version)
	var m struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &m); bad == nil && m.Error != "" {
		err = errors.New(m.Error)
	} else if bad != nil && err == nil {
		err = bad
	}
	if err == nil {
		if _, err := os.Stat(filepath.Join(m.Dir, "go.mod")); err != nil {
			return "", fmt.Errorf("%s %s is older than Go modules: it has no go.mod, and cannot be built from the module proxy", g.Module, g.version)
		}
		return m.Dir, nil
	}
	list, failed := g.released(g.Module)
	if failed != nil {
		return "", &Unavailable{fmt.Errorf("the sources of %s %s: %w (is the Go module proxy there, and go in PATH?)", g.Module, g.version, err)}
	}
	if slices.Contains(list, g.version) {
		return "", &Unavailable{fmt.Errorf("the sources of %s %s: %w", g.Module, g.version, err)}
	}
	return "", fmt.Errorf("the Go module proxy has no %s %s (it lists %s): %w", g.Module, g.version, strings.Join(list, ", "), err)
}

// fromSource builds the packages as a release is, and copies the other files.
func (g *getter) fromSource(src, dir string) error {
	flags, err := g.flags(src)
	if err != nil {
		return err
	}
	// A copy, for the module cache cannot be written to: older releases lack lines of go.sum, which the go command adds.
	work, err := os.MkdirTemp("", "enilab-source-")
	if err != nil {
		return &Unavailable{err}
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, os.DirFS(src)); err != nil {
		return &Unavailable{fmt.Errorf("copy the sources of %s %s: %w", g.Module, g.version, err)}
	}
	for _, file := range slices.Sorted(maps.Keys(g.Packages)) {
		pkg := g.Packages[file]
		if !isFolder(filepath.Join(work, filepath.FromSlash(pkg))) {
			continue // this version has none; what it may not lack is looked for in the end
		}
		g.o.Tell(fmt.Sprintf("building %s of %s %s", file, g.Module, g.version))
		_, err := g.run(work, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + g.o.Arch, "GOWORK=off"},
			"go", "build", "-mod=mod", "-buildvcs=false", "-trimpath", "-ldflags", strings.TrimSpace("-s -w "+flags), "-o", filepath.Join(dir, filepath.FromSlash(file)), "./"+pkg)
		if err != nil {
			return &Unavailable{fmt.Errorf("build %s of %s %s: %w", file, g.Module, g.version, err)}
		}
	}
	return g.copyFiles(work, dir)
}

// linkerFlags is where a Makefile says with which a release is linked, unanswered is what it then leaves to make.
var (
	linkerFlags = regexp.MustCompile(`(?m)^LDFLAGS[ \t]*[?:]?=[ \t]*(.*)$`)
	unanswered  = regexp.MustCompile(`\$[({]\w*[)}]?`)
)

// flags are the linker flags of a release. A daemon and a plugin that were linked with others than theirs may refuse each other.
func (g *getter) flags(src string) (string, error) {
	if g.Makefile == "" {
		return "", nil
	}
	file := filepath.Join(src, filepath.FromSlash(g.Makefile))
	data, err := readBounded(file, maxManifest)
	if err != nil {
		return "", fmt.Errorf("the linker flags of %s %s: %w", g.Module, g.version, err)
	}
	m := linkerFlags.FindSubmatch(data)
	if m == nil {
		return "", fmt.Errorf("%s: expected a line LDFLAGS = …, found none", file)
	}
	flags := strings.NewReplacer("$(VERSION)", "v"+g.version, "${VERSION}", "v"+g.version).Replace(strings.TrimSpace(string(m[1])))
	if left := unanswered.FindString(flags); left != "" {
		return "", fmt.Errorf("%s: expected linker flags of which only the version is left open, found %s in %q", file, left, flags)
	}
	return flags, nil
}

// copyFiles copies what is no binary out of the sources.
func (g *getter) copyFiles(src, dir string) error {
	root, err := os.OpenRoot(src)
	if err != nil {
		return &Unavailable{err}
	}
	defer root.Close()
	done, missing := map[string]bool{}, map[string][]string{}
	for _, f := range g.Files {
		if done[f.To] {
			continue
		}
		from := strings.ReplaceAll(f.From, "${MINOR}", strings.TrimPrefix(semver.MajorMinor("v"+g.version), "v"))
		in, err := root.Open(from)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder) {
			if !f.Optional {
				missing[f.To] = append(missing[f.To], from)
			}
			continue
		}
		if err == nil {
			err = copyTo(filepath.Join(dir, filepath.FromSlash(f.To)), in)
		}
		if err != nil {
			return &Unavailable{fmt.Errorf("copy %s of %s %s: %w", from, g.Module, g.version, err)}
		}
		done[f.To] = true
	}
	for _, to := range slices.Sorted(maps.Keys(missing)) {
		if !done[to] {
			return fmt.Errorf("%s %s has no %s for %s", g.Module, g.version, strings.Join(missing[to], " and no "), to)
		}
	}
	return nil
}

// copyTo writes a file of that content and those permissions, readable by all.
func copyTo(file string, in fs.File) error {
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBinary {
		return fmt.Errorf("expected a file of at most %d bytes, found %s of %d", int64(maxBinary), kindOf(info), info.Size())
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()&0o755|0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// fromImage takes the files out of the version's image, as a reference in place of the version does.
func (g *getter) fromImage(dir string) error {
	ref := strings.ReplaceAll(g.Image, "${VERSION}", g.version)
	at, err := g.remote(ref, g.version)
	if answer, ok := errors.AsType[*transport.Error](err); ok && answer.StatusCode == http.StatusNotFound {
		return fmt.Errorf("the registry has no such image: %w", err)
	} else if err != nil {
		return &Unavailable{fmt.Errorf("%w (docker login leaves the credentials of a registry that asks for them)", err)}
	}
	if err := os.CopyFS(dir, os.DirFS(at.folder)); err != nil {
		return &Unavailable{fmt.Errorf("copy the files of the image %s: %w", ref, err)}
	}
	return nil
}
