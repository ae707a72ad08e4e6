package systems

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/enilab/enilab/internal/spelling"
)

// Options say where Find looks. The zero value is this process's: its environment, its working folder, its machine.
type Options struct {
	// Systems is a folder of folders NAME/VERSION; empty: $ENILAB_SYSTEMS, or systems in Cache.
	Systems string
	// Folder is the working folder; empty: the process's.
	Folder string
	// Cache keeps what was built and extracted; empty: enilab in the user's cache folder.
	Cache string
	// Arch is a GOARCH, that of the machine which runs the binaries; empty: this one's.
	Arch string
	// Tell is told what takes long, such as a build; nil: it is not reported.
	Tell func(string)
}

func (o Options) filled() (Options, error) {
	o.Systems = cmp.Or(o.Systems, os.Getenv("ENILAB_SYSTEMS"))
	o.Folder = cmp.Or(o.Folder, ".")
	o.Arch = cmp.Or(o.Arch, runtime.GOARCH)
	if _, ok := machines[o.Arch]; !ok {
		return o, fmt.Errorf("there is no architecture %q (expected amd64 or arm64)", o.Arch)
	}
	if o.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("the user's cache folder: %w (set XDG_CACHE_HOME)", err)
		}
		o.Cache = filepath.Join(dir, "enilab")
	}
	o.Systems = cmp.Or(o.Systems, filepath.Join(o.Cache, "systems"))
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	return o, nil
}

// Find is the system that NAME@WHERE means, with its files on this machine. NAME is that of a description (see Describe), WHERE one of
//
//	1.5.3, v1.5.3, 1.5   a version in NAME of $ENILAB_SYSTEMS, the newest one of 1.5; where the description says how, it is built
//	. COMMIT TAG         of the repository that the working folder is in, for what is built from it, such as enilab
//	FOLDER               with the binaries
//	FILE.tar             an image: an OCI layout, or what docker save writes
//	HOST/NAME:TAG        an image of a registry, also HOST/NAME@sha256:…
//	1.23.0=WHERE         any of the last three, when it does not say its version itself
//
// Its errors are bad input: they say what was expected, what was found and what to do.
func Find(ctx context.Context, text string, o Options) (*System, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	name, where, _ := strings.Cut(text, "@")
	d, err := Describe(name, o)
	if err != nil {
		return nil, err
	}
	f := finder{ctx, d, o}
	at, err := f.locate(where)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	s, err := f.resolve(at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return s, nil
}

// Describe is the description of that name: ./systems/NAME.yaml, a path to a file that ends in .yaml, NAME.yaml in $ENILAB_SYSTEMS, or one that
// comes with enilab.
func Describe(name string, o Options) (*Description, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".yaml") {
		return describeFile(inFolder(o.Folder, name))
	}
	if !isName(name) {
		return nil, fmt.Errorf("expected NAME@WHERE, found the name %q (there are %s; a description of your own is PATH.yaml@WHERE)", short(name), strings.Join(Embedded(), ", "))
	}
	places := []string{filepath.Join(o.Folder, "systems", name+".yaml"), filepath.Join(o.Systems, name+".yaml")}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return named(p, name)
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotFolder) {
			return nil, err
		}
	}
	data, err := embedded.ReadFile(name + ".yaml")
	if err != nil {
		known, err := names(o)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("there is no system %q (%s)", name, hint(name, known, "; for a description of your own, make systems/"+name+".yaml"))
	}
	return Parse(name+".yaml", data)
}

// hint is the nearest word that is known, or all of them.
func hint(word string, known []string, more string) string {
	if s := spelling.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	return "there are " + strings.Join(known, ", ") + more
}

func named(file, name string) (*Description, error) {
	d, err := describeFile(file)
	if err == nil && d.Name != name {
		return nil, fmt.Errorf("%s: expected the name %s, as the file's, found %s (rename one of them)", file, name, d.Name)
	}
	return d, err
}

func describeFile(file string) (*Description, error) {
	data, err := readBounded(file, MaxFile)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// inFolder is a path as seen from a folder.
func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// finder looks for one system.
type finder struct {
	ctx context.Context
	d   *Description
	o   Options
}

// located is a folder with the files of a version.
type located struct {
	folder, version string
	notes           []string
}

var versionLike = regexp.MustCompile(`^v?\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?$`)

// locate finds the folder and the version.
func (f *finder) locate(where string) (located, error) {
	if where == "" {
		if f.d.Build != nil && f.d.Build.Git {
			where = "."
		} else {
			return located{}, fmt.Errorf("it does not say which one: NAME@VERSION, NAME@FOLDER or NAME@IMAGE (%s)", f.atHand())
		}
	}
	if said, rest, ok := strings.Cut(where, "="); ok && versionLike.MatchString(said) {
		return f.there(rest, strings.TrimPrefix(said, "v"))
	}
	switch {
	case f.d.Build != nil && f.d.Build.Git:
		if at, found, err := f.fromFolder(where); found || err != nil {
			return at, err
		}
		return f.fromGit(where)
	case versionLike.MatchString(where):
		return f.version(strings.TrimPrefix(where, "v"))
	}
	return f.there(where, "")
}

// fromFolder is a version of what is built from git, where a folder has it: others' builds of ours.
func (f *finder) fromFolder(where string) (at located, found bool, err error) {
	if strings.Contains(where, "/") || strings.HasSuffix(where, ".tar") {
		at, err = f.there(where, "")
		return at, true, err
	}
	if where == "." {
		return located{}, false, nil
	}
	folder := filepath.Join(f.o.Systems, f.d.Name, where)
	if !isFolder(folder) || !filepath.IsLocal(where) {
		return located{}, false, nil
	}
	return located{folder: folder, version: where}, true, nil
}

// there is a folder, an archive or an image.
func (f *finder) there(where, said string) (located, error) {
	p := inFolder(f.o.Folder, where)
	info, err := os.Stat(p)
	switch {
	case err == nil && info.IsDir():
		return f.folder(p, said)
	case err == nil:
		return f.archive(p, said)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotFolder):
		return located{}, err
	case strings.HasPrefix(where, ".") || strings.HasPrefix(where, "/") || strings.HasSuffix(where, ".tar") || !strings.Contains(where, "/"):
		return located{}, fmt.Errorf("there is no folder or file %s, and it is no version such as 1.2.3 (%s)", where, f.atHand())
	}
	return f.remote(where, said)
}

// version is one that a folder of $ENILAB_SYSTEMS has, or that can be built.
func (f *finder) version(v string) (located, error) {
	if isVersion(v) {
		if _, err := f.d.Of(v); err != nil {
			return located{}, err
		}
	}
	have := f.versions()
	if slices.Contains(have, v) {
		return located{folder: filepath.Join(f.o.Systems, f.d.Name, v), version: v}, nil
	}
	if i := slices.IndexFunc(have, func(h string) bool { return strings.HasPrefix(h, v+".") && semver.Prerelease("v"+h) == "" }); i >= 0 { // the newest comes first
		return located{folder: filepath.Join(f.o.Systems, f.d.Name, have[i]), version: have[i]}, nil
	}
	if f.d.Build != nil {
		return f.fromModule(v)
	}
	return located{}, fmt.Errorf("version %s is not there%s (%s)", v, f.howToGet(v), f.atHand())
}

// versions are those in $ENILAB_SYSTEMS/NAME, the newest first.
func (f *finder) versions() []string {
	entries, err := os.ReadDir(filepath.Join(f.o.Systems, f.d.Name))
	if err != nil {
		return nil // there is no such folder: nothing is at hand
	}
	var out []string
	for _, e := range entries {
		if isVersion(e.Name()) && isFolder(filepath.Join(f.o.Systems, f.d.Name, e.Name())) {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int { return semver.Compare("v"+b, "v"+a) })
	return out
}

// atHand says what there is, and how to get what there is not.
func (f *finder) atHand() string {
	if f.d.Build != nil && !f.d.Build.Git {
		return fmt.Sprintf("a version such as 1.2.3 is built from the Go module %s", f.d.Build.Module)
	}
	folder := filepath.Join(f.o.Systems, f.d.Name)
	if have := f.versions(); len(have) > 0 {
		return fmt.Sprintf("%s has %s", folder, strings.Join(have, ", "))
	}
	return fmt.Sprintf("%s has no folder VERSION of binaries; ENILAB_SYSTEMS names another place than %s, and a folder or an image reference can stand in the version's place",
		folder, f.o.Systems)
}

// howToGet is the command that fetches a version, in words to follow a sentence; empty where the description does not know how.
func (f *finder) howToGet(v string) string {
	if !slices.ContainsFunc(f.d.Ranges, func(g Range) bool { return g.System.Get != nil && (!isVersion(v) || g.Has(v)) }) {
		return ""
	}
	return fmt.Sprintf("; to fetch it: enilab systems get %s@%s", f.d.Name, v)
}

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// folder is a user's: its version is said, or written in it.
func (f *finder) folder(p, said string) (located, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return located{}, err
	}
	at := located{folder: abs, version: said}
	if said == "" {
		if at.version, err = f.versionOf(abs); err != nil {
			return located{}, err
		}
	}
	return at, nil
}

// maxVersion bounds the file VERSION.
const maxVersion = 1 << 10

// versionOf is what a folder says of itself: its file VERSION, the tag in its manifest, its own name.
func (f *finder) versionOf(folder string) (string, error) {
	if data, err := readBounded(filepath.Join(folder, "VERSION"), maxVersion); err == nil {
		v := strings.TrimPrefix(strings.TrimSpace(string(data)), "v")
		if !isVersion(v) && !f.anyVersion() {
			return "", fmt.Errorf("%s: expected a version such as 1.2.3, found %q", filepath.Join(folder, "VERSION"), short(v))
		}
		return v, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if v := f.manifestTag(folder); v != "" {
		return v, nil
	}
	if v := strings.TrimPrefix(filepath.Base(folder), "v"); isVersion(v) || f.anyVersion() {
		return v, nil
	}
	return "", fmt.Errorf("the folder %s does not say its version: it has no file VERSION, and its name is none (say it: %s@1.2.3=%s)", folder, f.d.Name, folder)
}

// anyVersion: the description is of every version, so that any word will do.
func (f *finder) anyVersion() bool {
	return len(f.d.Ranges) == 1 && f.d.Ranges[0].From == "" && f.d.Ranges[0].Before == ""
}

// manifestTag is the tag of the image in the folder's manifest; empty when there is none, or it is no version.
func (f *finder) manifestTag(folder string) string {
	for _, g := range f.d.Ranges {
		d := g.System.Daemon
		if d == nil || d.Manifest == "" {
			continue
		}
		data, err := readBounded(filepath.Join(folder, filepath.FromSlash(d.Manifest)), maxManifest)
		if err != nil {
			continue
		}
		m, err := parseManifest(d.Manifest, data, d.Container)
		if err != nil {
			continue
		}
		if v := tagVersion(m.Image); v != "" {
			return v
		}
	}
	return ""
}

// tagVersion is the version that an image's tag is, empty if it is none.
func tagVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	tag := image[strings.LastIndexAny(image, ":/")+1:]
	if v := strings.TrimPrefix(tag, "v"); isVersion(v) {
		return v
	}
	return ""
}
