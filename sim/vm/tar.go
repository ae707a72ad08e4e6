package vm

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// WriteTar writes the image as a tar archive.
func (m *Image) WriteTar(w io.Writer) error {
	t := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(m.entries)) { // a folder comes before what is in it
		e := m.entries[name]
		h := &tar.Header{Name: name[1:], Mode: int64(e.mode & 0o7777), Typeflag: tar.TypeReg, Linkname: e.target}
		data := e.data
		switch e.mode &^ 0o7777 {
		case typeFolder:
			h.Typeflag = tar.TypeDir
		case typeLink:
			h.Typeflag = tar.TypeSymlink
		default:
			if e.host != "" {
				var err error
				if data, err = os.ReadFile(e.host); err != nil {
					return err
				}
			}
			h.Size = int64(len(data))
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := t.Write(data); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return t.Close()
}

// unpackTar adds to a root what WriteTar wrote. What is there already stays.
func unpackTar(root string, r io.Reader) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(root, filepath.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.Mkdir(name, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		default:
			err = newFile(name, fs.FileMode(h.Mode).Perm(), t)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func newFile(name string, perm fs.FileMode, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
