package vm

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ulikunitz/xz"
)

// maxUnpacked bounds what a package may hold: Debian's largest kernels have 500 MB.
const maxUnpacked = 2 << 30

// isKernel says whether a file of a package is a kernel or a module.
func isKernel(name string) bool {
	return strings.HasPrefix(name, "/boot/vmlinu") || strings.HasPrefix(name, "/lib/modules/")
}

func isBusybox(name string) bool { return name == "/bin/busybox" }

// unpack writes some files of a Debian package (deb(5)) below a folder. Links and everything else are left out.
func unpack(name, folder string, wanted func(string) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := dataMember(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return err
	}
	left := int64(maxUnpacked)
	for t := tar.NewReader(data); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		to := path.Clean("/" + h.Name) // nothing leads out of the folder
		to = strings.TrimPrefix(to, "/usr")
		if h.Typeflag != tar.TypeReg || !wanted(to) {
			continue
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("unpack: more than %d bytes", int64(maxUnpacked))
		}
		if err := writeTo(filepath.Join(folder, to), fs.FileMode(h.Mode)&0o755, t); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

func writeTo(name string, perm fs.FileMode, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// dataMember is the content of a package's data.tar, decompressed.
func dataMember(r *bufio.Reader) (io.Reader, error) {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return nil, errors.New("it is no Debian package: expected an ar archive")
	}
	for {
		head := make([]byte, 60) // name 16, time 12, owner 6, group 6, mode 8, size 10, end 2
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, errors.New("it is no Debian package: there is no data.tar in it")
		}
		member := strings.TrimRight(string(head[:16]), " /")
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		if err != nil || size < 0 || string(head[58:]) != "`\n" {
			return nil, fmt.Errorf("it is no Debian package: the header of its part %q is damaged", member)
		}
		body := io.LimitReader(r, size)
		switch member {
		case "data.tar":
			return body, nil
		case "data.tar.gz":
			return gzip.NewReader(body)
		case "data.tar.xz":
			return xz.NewReader(body)
		}
		if strings.HasPrefix(member, "data.tar") {
			return nil, fmt.Errorf("its %s is compressed as nobody here reads it: unpack it with dpkg -x and name the vmlinuz", member)
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return nil, fmt.Errorf("it is no whole Debian package: %w", err)
		}
	}
}
