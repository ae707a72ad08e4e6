package ipc

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// FuzzRequest: what is read is what was written, and nothing that is read could not stand in an alias.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"version":2,"verb":"add","network":"aws-cni","containerID":"c","ifName":"eth0","podNamespace":"d","podName":"p","podUID":"u","inode":7,"timeoutMS":30000}`,
		`{"verb":"gc","network":"n","valid":[{"ContainerID":"a","IfName":"b"}],"validAbsent":true,"more":null}`,
		`{"verb":"del","inode":-1}`, `{"verb":"x","timeoutMS":1e400}`, `null`, `[]`, `{"verb":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parseRequest(body)
		if err != nil {
			return
		}
		if r.Timeout() < 0 || r.Timeout() > MaxTimeout {
			t.Fatalf("a patience of %v was accepted", r.Timeout())
		}
		out := must.Get(json.Marshal(r))(t)
		again, err := parseRequest(out)
		if err != nil || len(r.Valid) > 0 && !reflect.DeepEqual(r, again) || len(r.Valid) == 0 && again.Attachment() != r.Attachment() {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
	})
}

// FuzzFrame: any bytes, with any number of files, are a message or an error, and no file stays open.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, '{', '}'}, uint8(0))
	f.Add([]byte{0, 0, 0, 2, '{', '}'}, uint8(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, uint8(9))
	f.Add([]byte{0, 0, 0, 0}, uint8(4))
	f.Add([]byte{0}, uint8(5))
	null := must.Get(os.Open(os.DevNull))(f)
	f.Cleanup(func() { null.Close() })
	f.Fuzz(func(t *testing.T, wire []byte, files uint8) {
		a, b := pair(t)
		defer a.Close()
		defer b.Close()
		if len(wire) > 1<<16 {
			return // more than a socket holds would need a second goroutine
		}
		fds := make([]int, files%12)
		for i := range fds {
			fds[i] = int(null.Fd())
		}
		var oob []byte
		if len(fds) > 0 {
			oob = syscall.UnixRights(fds...)
		}
		if _, _, err := a.WriteMsgUnix(wire, oob, nil); err != nil {
			t.Skip(err)
		}
		a.Close()
		body, got, err := readFrame(b, MaxRequest, MaxFiles, nil)
		defer closeAll(got)
		switch {
		case err != nil && (body != nil || got != nil):
			t.Fatalf("an error and a message: %v, %q, %d files", err, body, len(got))
		case err == nil && !bytes.Equal(body, wire[header:]):
			t.Fatalf("wrote %q, read %q", wire, body)
		case err == nil && len(got) != len(fds):
			t.Fatalf("sent %d files, read %d", len(fds), len(got))
		}
	})
}

func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds := must.Get(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	var out [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		must.Do(t, err)
		out[i] = c.(*net.UnixConn)
	}
	return out[0], out[1]
}
