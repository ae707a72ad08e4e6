package ipc_test

import (
	"testing"

	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// BenchmarkCall is what a plugin pays for its one call of a daemon that answers at once.
func BenchmarkCall(b *testing.B) {
	path := b.TempDir() + "/s"
	l := must.Get(ipc.Listen(path))(b)
	defer l.Close()
	go func() {
		for {
			p, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer p.Close()
				if _, _, err := p.Read(); err == nil {
					p.Write(&ipc.Response{})
				}
			}()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		c := must.Get(ipc.Dial(path, moment))(b)
		if _, err := c.Call(&ipc.Request{Verb: ipc.Del, ContainerID: "c", IfName: "eth0"}, moment); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
