package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Image is what a machine's file system begins with. Its paths are absolute.
type Image struct {
	entries map[string]entry
}

// entry is a folder, a link (target), a host's file, or bytes.
type entry struct {
	mode   uint32 // type and permission bits
	target string
	host   string
	data   []byte
}

// NewImage is an empty file system.
func NewImage() *Image { return &Image{entries: map[string]entry{}} }

// Has says whether there is something at a path.
func (m *Image) Has(name string) bool { _, ok := m.entries[path.Clean(name)]; return ok }

// folders makes the folders above a path, where nothing else leads there.
func (m *Image) folders(name string) {
	for dir := path.Dir(name); dir != "/" && !m.Has(dir); dir = path.Dir(dir) {
		m.entries[dir] = entry{mode: typeFolder | 0o755}
	}
}

func (m *Image) put(name string, e entry) {
	name = path.Clean("/" + name)
	m.folders(name)
	m.entries[name] = e
}

// AddFolder makes a folder.
func (m *Image) AddFolder(name string) {
	if !m.Has(name) {
		m.put(name, entry{mode: typeFolder | 0o755})
	}
}

// AddLink makes a symbolic link.
func (m *Image) AddLink(name, target string) { m.put(name, entry{mode: typeLink, target: target}) }

// AddData makes a file of bytes.
func (m *Image) AddData(name string, perm fs.FileMode, data []byte) {
	m.put(name, entry{mode: typeFile | uint32(perm.Perm()), data: data})
}

// AddFile copies a file of the host to a path of its own.
func (m *Image) AddFile(name, host string) error {
	info, err := os.Stat(host)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", host)
	}
	m.put(name, entry{mode: typeFile | uint32(info.Mode().Perm()), host: host})
	return nil
}

// maxLinks is how many symbolic links a path may lead over, as in a kernel.
const maxLinks = 40

// AddHost copies a file or folder of the host to the same path, with everything in it, and makes the links that lead there.
func (m *Image) AddHost(name string) error {
	name, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	rest, at := strings.Split(strings.TrimPrefix(name, "/"), "/"), "/"
	for links := 0; len(rest) > 0; {
		at, rest = path.Join(at, rest[0]), rest[1:]
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links++; links > maxLinks {
			return fmt.Errorf("%s: more than %d symbolic links", name, maxLinks)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		m.AddLink(at, target)
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(at), target)
		}
		rest = append(strings.Split(strings.TrimPrefix(path.Clean(target), "/"), "/"), rest...)
		at = "/"
	}
	return m.AddTree(at, at)
}

// AddTree copies a file of the host, or a folder with all that is below it, to a path of its own: what a link that is
// named leads to, and links below it as links. Sockets and devices are left out.
func (m *Image) AddTree(name, host string) error {
	host, err := filepath.EvalSymlinks(host)
	if err != nil {
		return err
	}
	return filepath.WalkDir(host, func(from string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := path.Join(name, strings.TrimPrefix(from, host))
		switch {
		case d.IsDir():
			m.AddFolder(to)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			m.AddLink(to, target)
		case d.Type().IsRegular():
			return m.AddFile(to, from)
		}
		return nil
	})
}

// AddProgram is AddHost for a program, with the loader and the libraries that it needs.
func (m *Image) AddProgram(name string) error {
	if err := m.AddHost(name); err != nil {
		return err
	}
	needed, err := libraries(name)
	for _, lib := range needed {
		err = errors.Join(err, m.AddHost(lib))
	}
	return err
}

// Write writes the initramfs.
func (m *Image) Write(w io.Writer) error {
	a := newArchive(w)
	for _, name := range slices.Sorted(maps.Keys(m.entries)) { // a folder comes before what is in it
		e := m.entries[name]
		switch e.mode &^ 0o7777 {
		case typeFolder:
			a.folder(name, e.mode&0o7777)
		case typeLink:
			a.link(name, e.target)
		default:
			if err := a.entry(name, &e); err != nil {
				return fmt.Errorf("initramfs: %w", err)
			}
		}
	}
	if err := a.close(); err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	return nil
}

func (a *archive) entry(name string, e *entry) error {
	if e.host == "" {
		a.file(name, e.mode&0o7777, int64(len(e.data)), bytes.NewReader(e.data))
		return nil
	}
	f, err := os.Open(e.host)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	a.file(name, e.mode&0o7777, info.Size(), f)
	return nil
}
