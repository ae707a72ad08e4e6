package systems

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// remote is an image of a registry.
func (f *finder) remote(ref, said string) (located, error) {
	host, _, _ := strings.Cut(ref, "/")
	if host != "localhost" && !strings.ContainsAny(host, ".:") {
		return located{}, fmt.Errorf("there is no folder %s; an image's reference begins with its registry's host, such as docker.io/%s", ref, ref)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return located{}, fmt.Errorf("expected an image's reference such as HOST/NAME:TAG or HOST/NAME@sha256:DIGEST: %w", err)
	}
	f.o.Tell("asking " + parsed.Context().RegistryStr() + " for " + ref)
	image, err := remote.Image(parsed, remote.WithContext(f.ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: f.o.Arch}))
	if err != nil {
		return located{}, fmt.Errorf("image %s for linux/%s: %w", ref, f.o.Arch, err)
	}
	return f.fromImage(image, ref, said)
}

// archive is an image in a file: an OCI layout or what docker save writes.
func (f *finder) archive(file, said string) (located, error) {
	isLayout, err := tarHas(file, "index.json", "manifest.json")
	if err != nil {
		return located{}, fmt.Errorf("%s: expected an image as OCI layout or as docker save writes it: %w", file, err)
	}
	if isLayout {
		dir, err := os.MkdirTemp("", "enilab-layout-")
		if err != nil {
			return located{}, err
		}
		defer os.RemoveAll(dir)
		if err := unpackLayout(file, dir); err != nil {
			return located{}, fmt.Errorf("%s: %w", file, err)
		}
		image, ref, err := f.fromLayout(dir)
		if err != nil {
			return located{}, fmt.Errorf("%s: %w", file, err)
		}
		return f.fromImage(image, ref, said)
	}
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	m, err := tarball.LoadManifest(open)
	if err != nil {
		return located{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(m) != 1 {
		return located{}, fmt.Errorf("%s: expected one image, found %d (docker save them one by one)", file, len(m))
	}
	image, err := tarball.Image(open, nil)
	if err != nil {
		return located{}, fmt.Errorf("%s: %w", file, err)
	}
	ref := ""
	if len(m[0].RepoTags) > 0 {
		ref = m[0].RepoTags[0]
	}
	return f.fromImage(image, ref, said)
}

// tarHas says whether an archive has the one file and not the other.
func tarHas(file, want, not string) (bool, error) {
	r, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer r.Close()
	has := map[string]bool{}
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		if n > maxEntries {
			return false, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		has[path.Clean(h.Name)] = true
	}
	if !has[want] && !has[not] {
		return false, fmt.Errorf("found neither %s nor %s", want, not)
	}
	return has[want] && !has[not], nil
}

// Bounds of what is read of an image: a CNI's image has a few thousand entries, and no binary beyond 200 MB.
const (
	maxEntries  = 1 << 18
	maxBinary   = 1 << 30
	maxUnpacked = 8 << 30
	maxLinks    = 40 // as the kernel's limit on symbolic links
)

// unpackLayout writes an OCI layout's files, which are plain and known by name.
func unpackLayout(file, dir string) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t, left := tar.NewReader(r), int64(maxUnpacked)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || p != "index.json" && p != "oci-layout" && !strings.HasPrefix(p, "blobs/") {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("it unpacks to more than %d bytes", int64(maxUnpacked))
		}
		if err := root.MkdirAll(path.Dir(p), 0o700); err != nil {
			return err
		}
		if err := writeTo(root, p, 0o600, t); err != nil {
			return err
		}
	}
}

func writeTo(root *os.Root, name string, mode fs.FileMode, r io.Reader) error {
	w, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// refName is what tools write the tag to.
const refName = "org.opencontainers.image.ref.name"

// fromLayout is the image of a layout for this platform, and its tag where the layout says it.
func (f *finder) fromLayout(dir string) (v1.Image, string, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, "", err
	}
	return f.ofIndex(index, "", 0)
}

// deepest is how many indexes may lie in each other: a layout, an image of several platforms, and one for who exaggerates.
const deepest = 3

func (f *finder) ofIndex(index v1.ImageIndex, ref string, depth int) (v1.Image, string, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, "", err
	}
	var found []string
	var match []v1.Descriptor
	for _, d := range m.Manifests {
		switch {
		case d.MediaType.IsIndex() && depth < deepest:
			match = append(match, d)
		case !d.MediaType.IsImage():
		case d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == f.o.Arch:
			match = append(match, d)
		default:
			found = append(found, d.Platform.String())
		}
	}
	if len(match) == 0 {
		return nil, "", fmt.Errorf("expected an image for linux/%s, found %s", f.o.Arch, strings.Join(append(found, "nothing else"), ", "))
	}
	if len(match) > 1 {
		return nil, "", fmt.Errorf("expected one image for linux/%s, found %d", f.o.Arch, len(match))
	}
	if t := match[0].Annotations[refName]; t != "" {
		ref = "layout:" + t
	}
	if match[0].MediaType.IsIndex() {
		inner, err := index.ImageIndex(match[0].Digest)
		if err != nil {
			return nil, "", err
		}
		return f.ofIndex(inner, ref, depth+1)
	}
	image, err := index.Image(match[0].Digest)
	return image, ref, err
}

// versionLabel is where images say which version they are of.
const versionLabel = "org.opencontainers.image.version"

// fromImage unpacks an image into a folder that the cache keeps, with links to what the description names.
func (f *finder) fromImage(image v1.Image, ref, said string) (located, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return located{}, err
	}
	if config.OS != "linux" || config.Architecture != f.o.Arch {
		return located{}, fmt.Errorf("expected an image for linux/%s, found one for %s/%s", f.o.Arch, config.OS, config.Architecture)
	}
	version := said
	if version == "" {
		version = tagVersion(ref)
	}
	version = cmp.Or(version, strings.TrimPrefix(config.Config.Labels[versionLabel], "v"))
	if version == "" {
		return located{}, fmt.Errorf("the image does not say its version: its tag is none, and it has no label %s (say it: %s@1.2.3=IMAGE)", versionLabel, f.d.Name)
	}
	s, err := f.d.Of(version)
	if err != nil {
		return located{}, err
	}
	want := s.inImage()
	if len(want) == 0 {
		return located{}, fmt.Errorf("%s does not say where in an image its files are: the key image of its files", f.d.File)
	}
	digest, err := image.Digest()
	if err != nil {
		return located{}, err
	}
	at := located{version: version, notes: []string{"its files are those of the image " + digest.String()}}
	tools := s.imageTools()
	wanted, err := json.Marshal([]any{want, tools, imageRoot}) // maps are sorted
	if err != nil {
		return located{}, err
	}
	sum := sha256.Sum256(wanted)
	at.folder = filepath.Join(f.o.Cache, "images", digest.Algorithm+"-"+digest.Hex+"-"+hex.EncodeToString(sum[:6]))
	err = f.cached(at.folder, func(dir string) error {
		f.o.Tell("extracting " + digest.String())
		return extract(image, want, tools, dir)
	})
	return at, err
}

// inImage is which file of the folder lies where in the image.
func (s *System) inImage() map[string]string {
	out := map[string]string{}
	for _, f := range s.Files {
		if f.Image != "" {
			out[f.From] = f.Image
		}
	}
	if s.Conflist.From != "" && s.Conflist.Image != "" {
		out[s.Conflist.From] = s.Conflist.Image
	}
	return out
}

// imageTools are the programs that the version's image has to have, for it executes them.
func (s *System) imageTools() []string {
	out := slices.Clone(s.Executes)
	if s.Enters() {
		out = append(out, s.Daemon.Entrypoint.Executes...)
	}
	return out
}

// searchFolders are those of a container's PATH.
var searchFolders = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// missing are those tools that are in none of the image's folders for programs.
func (t tree) missing(tools []string) (out []string) {
	for _, tool := range tools {
		there := slices.ContainsFunc(searchFolders, func(dir string) bool { _, err := t.resolve(dir + "/" + tool); return err == nil })
		if !there {
			out = append(out, tool)
		}
	}
	return out
}

// cached makes a folder once: it is there whole, or not at all.
func (f *finder) cached(folder string, fill func(dir string) error) error {
	if isFolder(folder) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(folder), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(fill(dir), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	if err := os.Rename(dir, folder); err != nil && !isFolder(folder) { // another process may have been faster
		return err
	}
	return nil
}

// entry is a file of an image's file system.
type entry struct {
	link string // of a symbolic or hard link
	kind byte
	size int64
}

// tree is an image's file system: cleaned path without a slash in front, to what is there.
type tree map[string]entry

// imageRoot is the folder, in that of a version, with all files of its image: a container's root.
const imageRoot = "root"

// extract writes the image's files below dir/root, and links in dir: name to path in the image. A path that is not there is passed over; an
// image without one of the tools is refused, for what executes it fails there. Files are the user's own; devices are left out, a node has its own.
func extract(image v1.Image, want map[string]string, tools []string, dir string) error {
	w := unpacker{tree: tree{}, modes: map[string]fs.FileMode{}}
	if err := os.Mkdir(filepath.Join(dir, imageRoot), 0o755); err != nil {
		return err
	}
	var err error
	if w.root, err = os.OpenRoot(filepath.Join(dir, imageRoot)); err != nil {
		return err
	}
	defer w.root.Close()
	if err := errors.Join(each(image, w.put), w.finish()); err != nil {
		return err
	}
	if lacks := w.missing(tools); len(lacks) > 0 {
		return fmt.Errorf("the description says that it executes %s, which its image has in none of %s: correct executes, or take the right image",
			joined(lacks), strings.Join(searchFolders, ", "))
	}
	for to, from := range want {
		name, err := w.resolve(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s in the image: %w", from, err)
		}
		link := filepath.Join(dir, filepath.FromSlash(to))
		target, err := filepath.Rel(filepath.Dir(link), filepath.Join(dir, imageRoot, filepath.FromSlash(name)))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link)); err != nil {
			return err
		}
	}
	return nil
}

// unpacker writes an image's file system to a folder.
type unpacker struct {
	tree
	root  *os.Root
	hard  [][2]string            // links to files that may come later: name and target
	modes map[string]fs.FileMode // of folders, which are written to until the end
}

// put writes one entry. Upper layers come first, so what is there already, or is hidden by a file where a folder should be, stays as it is.
func (w *unpacker) put(name string, h *tar.Header, r io.Reader) error {
	if name == "" {
		return nil
	}
	if _, err := w.root.Lstat(name); err == nil && h.Typeflag != tar.TypeDir {
		return nil
	}
	w.tree[name] = entry{h.Linkname, h.Typeflag, h.Size}
	if h.Typeflag == tar.TypeDir {
		w.modes[name] = fs.FileMode(h.Mode)&0o777 | 0o700
		return w.folder(name)
	}
	if err := w.folder(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return writeTo(w.root, name, fs.FileMode(h.Mode)&0o777|0o600, r)
	case tar.TypeSymlink:
		return w.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		w.hard = append(w.hard, [2]string{name, strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")})
	}
	return nil
}

func (w *unpacker) folder(name string) error {
	if err := w.root.MkdirAll(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// finish makes what waits for all entries to be there. A hard link to nothing is left out.
func (w *unpacker) finish() error {
	var errs []error
	for _, l := range w.hard {
		if err := w.root.Link(l[1], l[0]); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for name, mode := range w.modes {
		if info, err := w.root.Lstat(name); err == nil && info.IsDir() {
			errs = append(errs, w.root.Chmod(name, mode))
		}
	}
	return errors.Join(errs...)
}

// each calls for every entry of an image's file system, once its layers lie over each other.
func each(image v1.Image, do func(name string, h *tar.Header, r io.Reader) error) error {
	rc := mutate.Extract(image)
	defer rc.Close()
	bounded := &io.LimitedReader{R: rc, N: maxUnpacked}
	r := tar.NewReader(bounded)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case bounded.N <= 0:
			return fmt.Errorf("it unpacks to more than %d bytes", int64(maxUnpacked))
		case errors.Is(err, io.EOF):
			// The archive is ended in order also where a layer broke off, or is not what its digest says: the error comes behind it.
			_, err = io.Copy(io.Discard, bounded)
			return err
		case n > maxEntries:
			return fmt.Errorf("it has more than %d entries", maxEntries)
		case err != nil:
			return err
		}
		if err := do(strings.TrimPrefix(path.Clean("/"+h.Name), "/"), h, r); err != nil {
			return err
		}
	}
}

// resolve is the name of a file once links are followed, none of which leads out of the image.
func (t tree) resolve(p string) (string, error) {
	rest, at := strings.Split(strings.Trim(p, "/"), "/"), ""
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			if at = path.Dir(at); at == "." {
				at = ""
			}
			continue
		}
		if part == "" || part == "." {
			continue
		}
		at = path.Join(at, part)
		e := t[at]
		hard := e.kind == tar.TypeLink
		if e.kind != tar.TypeSymlink && !hard {
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("more than %d symbolic links, perhaps in a circle", maxLinks)
		}
		rest = append(strings.Split(strings.Trim(e.link, "/"), "/"), rest...)
		if at = path.Dir(at); at == "." || hard || strings.HasPrefix(e.link, "/") { // a hard link names its file from the root
			at = ""
		}
	}
	e, ok := t[at]
	switch {
	case !ok:
		return "", fs.ErrNotExist
	case e.kind != tar.TypeReg:
		return "", errors.New("expected a file, found a folder or a device")
	case e.size > maxBinary:
		return "", fmt.Errorf("expected a file of at most %d bytes, found one of %d", int64(maxBinary), e.size)
	}
	return at, nil
}
