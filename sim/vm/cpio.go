package vm

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// archive writes an initramfs: cpio's "newc" format, in the few lines that a kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst).
// Libraries for it bring reading, devices and compression, none of which is needed. Every field that could differ between two
// computers is constant: owners, times, inode numbers by position.
type archive struct {
	w     *bufio.Writer
	size  int64
	inode uint32
	err   error
}

// Types of entries, as in st_mode.
const (
	typeFolder = 0o040000
	typeFile   = 0o100000
	typeLink   = 0o120000
)

func newArchive(w io.Writer) *archive { return &archive{w: bufio.NewWriterSize(w, 1<<20)} }

// header begins an entry. The name has no slash at its begin.
func (a *archive) header(name string, mode uint32, size int64) {
	name = strings.TrimPrefix(name, "/")
	if size > 0xffff_fff0 && a.err == nil {
		a.err = fmt.Errorf("%s has %d bytes, and an initramfs takes files of less than 4 GiB", name, size)
	}
	a.inode++
	// magic, ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check
	a.text(fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", a.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0))
	a.text(name + "\x00")
	a.pad()
}

func (a *archive) text(s string) {
	if a.err == nil {
		_, a.err = a.w.WriteString(s)
		a.size += int64(len(s))
	}
}

// pad: headers and contents begin at multiples of four bytes.
func (a *archive) pad() {
	a.text("\x00\x00\x00"[:(4-a.size%4)%4])
}

func (a *archive) folder(name string, perm uint32) { a.header(name, typeFolder|perm, 0) }

func (a *archive) link(name, target string) {
	a.header(name, typeLink|0o777, int64(len(target)))
	a.text(target)
	a.pad()
}

// file takes exactly size bytes of r.
func (a *archive) file(name string, perm uint32, size int64, r io.Reader) {
	a.header(name, typeFile|perm, size)
	if a.err == nil {
		var n int64
		n, a.err = io.Copy(a.w, io.LimitReader(r, size))
		a.size += n
		if a.err == nil && n != size {
			a.err = fmt.Errorf("%s has changed while it was read: expected %d bytes, found %d", name, size, n)
		}
	}
	a.pad()
}

// close ends the archive.
func (a *archive) close() error {
	a.header("TRAILER!!!", 0, 0)
	if a.err == nil {
		a.err = a.w.Flush()
	}
	return a.err
}
