package systems

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fromGit is a commit or a tag of the repository that the working folder is in; "." is what lies beside this program, or else the working tree.
func (f *finder) fromGit(rev string) (located, error) {
	if rev == "." {
		return f.own()
	}
	hash, err := f.git("rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		top, topErr := f.git("rev-parse", "--show-toplevel")
		if topErr != nil {
			return located{}, fmt.Errorf("%s is a commit of %s's repository, and the working folder is in none: %w (go to a clone of it, or name a folder with %s)",
				rev, f.d.Name, topErr, f.packages())
		}
		return located{}, fmt.Errorf("%s has no commit or tag %s (git -C %s tag lists tags; a folder is written with a slash, such as ./bin)", top, rev, top)
	}
	at := located{version: hash[:min(len(hash), 12)], folder: filepath.Join(f.o.Cache, "builds", f.d.Name+"-"+hash+"-"+f.o.Arch)}
	err = f.cached(at.folder, func(dir string) error {
		src, err := os.MkdirTemp("", "enilab-source-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(src)
		f.o.Tell(fmt.Sprintf("building %s of commit %s", f.packages(), at.version))
		data, err := f.run(f.o.Folder, nil, "git", "archive", "--format=tar", hash)
		if err != nil {
			return err
		}
		if err := unpackSource(data, src); err != nil {
			return err
		}
		return f.build(src, dir)
	})
	return at, err
}

// own are the binaries beside this program, as make build leaves them, or else those of the working tree.
func (f *finder) own() (located, error) {
	self, err := os.Executable()
	if err != nil {
		return located{}, err
	}
	beside := filepath.Dir(self)
	if !slices.ContainsFunc(slices.Collect(maps.Keys(f.d.Build.Packages)), func(file string) bool {
		_, err := os.Stat(filepath.Join(beside, file))
		return err != nil
	}) {
		return located{folder: beside, version: "beside"}, nil
	}
	top, err := f.git("rev-parse", "--show-toplevel")
	if err != nil {
		return located{}, fmt.Errorf("%s are neither beside %s nor in a working tree: %w (make build makes them)", f.packages(), self, err)
	}
	at := located{version: "working-tree", folder: filepath.Join(f.o.Cache, "builds", f.d.Name+"-working-tree-"+f.o.Arch)}
	if err := os.MkdirAll(at.folder, 0o755); err != nil {
		return located{}, err
	}
	f.o.Tell(fmt.Sprintf("building %s of %s", f.packages(), top))
	return at, f.build(top, at.folder)
}

// packages are the files that are built, in words.
func (f *finder) packages() string {
	return strings.Join(slices.Sorted(maps.Keys(f.d.Build.Packages)), " and ")
}

// fromModule is a version of a Go module.
func (f *finder) fromModule(v string) (located, error) {
	out, err := f.run("", nil, "go", "mod", "download", "-json", f.d.Build.Module+"@v"+v)
	var m struct{ Version, Dir, Error string }
	if bad := json.Unmarshal(out, &m); bad == nil && m.Error != "" {
		err = errors.New(m.Error)
	} else if bad != nil && err == nil {
		err = bad
	}
	if err != nil {
		return located{}, fmt.Errorf("%s in version %s: %w (%s)", f.d.Build.Module, v, err, f.atHand())
	}
	version := strings.TrimPrefix(m.Version, "v")
	at := located{version: version, folder: filepath.Join(f.o.Cache, "builds", f.d.Name+"-"+version+"-"+f.o.Arch)}
	return at, f.cached(at.folder, func(dir string) error {
		f.o.Tell(fmt.Sprintf("building %s of %s %s", f.packages(), f.d.Build.Module, m.Version))
		return f.build(m.Dir, dir)
	})
}

// build makes the description's packages of a source tree, without C, as they run in any node.
func (f *finder) build(src, dir string) error {
	mod, err := readBounded(filepath.Join(src, "go.mod"), 1<<20)
	if err != nil {
		return err
	}
	if found := moduleOf(mod); found != f.d.Build.Module {
		return fmt.Errorf("%s: expected the module %s, found %s (go to a clone of it)", src, f.d.Build.Module, found)
	}
	for _, file := range slices.Sorted(maps.Keys(f.d.Build.Packages)) {
		_, err := f.run(src, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + f.o.Arch, "GOWORK=off"},
			"go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", filepath.Join(dir, file), "./"+f.d.Build.Packages[file])
		if err != nil {
			return err
		}
	}
	return nil
}

// moduleOf is the module that a go.mod declares.
func moduleOf(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if m, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(m), `"`)
		}
	}
	return "none"
}

func (f *finder) git(args ...string) (string, error) {
	out, err := f.run(f.o.Folder, nil, append([]string{"git"}, args...)...)
	return strings.TrimSpace(string(out)), err
}

// run is a program's output; the error has its last words.
func (f *finder) run(dir string, env []string, argv ...string) ([]byte, error) {
	c := exec.CommandContext(f.ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		words := strings.TrimSpace(said.String())
		const most = 2000
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv[:2], " "), err, words[max(0, len(words)-most):])
	}
	return out, err
}

// unpackSource writes git's archive of a commit. Symbolic links are made as they are: what reads through them is the go command, which
// keeps to its module.
func unpackSource(data []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(p, 0o755)
		case tar.TypeReg:
			if err = root.MkdirAll(path.Dir(p), 0o755); err == nil {
				err = writeTo(root, p, fs.FileMode(h.Mode)&0o777|0o600, r)
			}
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, p)
		}
		if err != nil {
			return err
		}
	}
}
