package local_test

import (
	"testing"

	"github.com/enilab/enilab/impl/local"
)

// BenchmarkCall is what a plugin pays for its one call of a daemon that answers at once.
func BenchmarkCall(b *testing.B) {
	path := b.TempDir() + "/s"
	l, err := local.Listen(path)
	if err != nil {
		b.Fatal(err)
	}
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
					p.Write(&local.Response{})
				}
			}()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		c, err := local.Dial(path, moment)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Call(&local.Request{Verb: local.Del, ContainerID: "c", IfName: "eth0"}, moment); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
