package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
)

// header is the length of the body in bytes, big-endian.
const header = 4

// firstRead is enough for every message but GC's and the flight recorder's, so that most are one system call.
const firstRead = 4096

// writeFrame sends a message. Files travel with its first byte.
func writeFrame(c *net.UnixConn, limit int, body []byte, files []*os.File) error {
	if len(body) > limit {
		return fmt.Errorf("expected a message of at most %d bytes, found %d", limit, len(body))
	}
	if len(files) > MaxFiles {
		return fmt.Errorf("expected at most %d files, found %d", MaxFiles, len(files))
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, header+len(body)), uint32(len(body)))
	msg = append(msg, body...)
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = syscall.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(msg, oob, nil)
	runtime.KeepAlive(files)
	if err == nil && n < len(msg) {
		_, err = c.Write(msg[n:])
	}
	return err
}

// readFrame reads a message. large, unless it is nil, is asked before a long one is read. io.EOF means that the other end hung up before its first byte. With an error there are
// no files: what came is closed.
func readFrame(c *net.UnixConn, limit, maxFiles int, large func() error) (body []byte, files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	buf := make([]byte, firstRead)
	n := 0
	for n < header {
		var m int
		var more []*os.File
		m, more, err = readSome(c, buf[n:], maxFiles-len(files))
		files = append(files, more...)
		n += m
		if err != nil {
			return nil, files, cut(err, n)
		}
	}
	if string(buf[:header]) == foreign { // more than any limit
		return nil, files, &Foreign{Said: buf[:n]}
	}
	size := int(binary.BigEndian.Uint32(buf))
	if size > limit {
		return nil, files, fmt.Errorf("expected a message of at most %d bytes, found one that says %d", limit, size)
	}
	if n-header > size {
		return nil, files, fmt.Errorf("expected %d bytes, found %d more", size, n-header-size)
	}
	if size > largeRequest && large != nil {
		if err := large(); err != nil {
			return nil, files, err
		}
	}
	// The buffer grows with what comes, not with what was announced.
	b := bytes.NewBuffer(buf[header:n])
	if _, err := io.CopyN(b, c, int64(size-(n-header))); err != nil {
		return nil, files, cut(err, n)
	}
	return b.Bytes(), files, nil
}

// cut tells a caller that hung up from a message that ended too early.
func cut(err error, had int) error {
	if errors.Is(err, io.EOF) && had > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// foreign is how a client of HTTP/2 begins, whatever it wants.
const foreign = "PRI "

// Foreign is a message of a client that speaks HTTP/2: the plugin of amazon-vpc-cni-k8s has the same socket.
type Foreign struct{ Said []byte }

func (*Foreign) Error() string { return "expected the local protocol, found HTTP/2" }

// errFiles is a message with more files than may be.
var errFiles = errors.New("too many files came with the message")

// ErrNoFiles is a message whose files this process cannot take: it has as many open as it may (RLIMIT_NOFILE). That passes.
var ErrNoFiles = errors.New("the files that came with the message cannot be taken: this process has too many open; raise RLIMIT_NOFILE, or try again")

// readSome is one recvmsg.
func readSome(c *net.UnixConn, buf []byte, maxFiles int) (n int, files []*os.File, err error) {
	oob := make([]byte, syscall.CmsgSpace(MaxFiles*4))
	n, oobn, flags, _, err := c.ReadMsgUnix(buf, oob)
	files = rights(oob[:oobn])
	switch {
	case errors.Is(err, io.EOF):
		err = io.EOF // which package net wraps
	case err != nil:
	case flags&syscall.MSG_CTRUNC != 0 && len(files) < maxFiles:
		err = ErrNoFiles
	case flags&syscall.MSG_CTRUNC != 0 || len(files) > maxFiles:
		err = errFiles
	}
	return n, files, err
}

// rights are the files in control messages; anything else in them is none of ours.
func rights(oob []byte) (files []*os.File) {
	msgs, _ := syscall.ParseSocketControlMessage(oob) // the kernel wrote them
	for i := range msgs {
		fds, _ := syscall.ParseUnixRights(&msgs[i])
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
