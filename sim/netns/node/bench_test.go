//go:build linux

package node_test

import (
	"strconv"
	"testing"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

func started(b *testing.B) *node.Node {
	b.Helper()
	if err := node.Privileged(); err != nil {
		b.Skip(err)
	}
	s := spec("node-1")
	s.Plugin = "/bin/true" // what is left is libcni, the helper and an exec
	n := must.Get(node.Start(s))(b)
	b.Cleanup(func() { _ = n.Close() })
	return n
}

func BenchmarkStart(b *testing.B) {
	started(b) // or skipped
	for b.Loop() {
		n := must.Get(node.Start(spec("node-1")))(b)
		_ = n.Close()
	}
}

func BenchmarkNetns(b *testing.B) {
	n := started(b)
	for b.Loop() {
		inode, err := n.MakeNetns("cni-1")
		if err == nil {
			err = n.RemoveNetns(inode)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlugin(b *testing.B) {
	n := started(b)
	r := run("web-0", 0)
	r.Verb = cri.DEL
	op := uint64(0)
	for b.Loop() {
		op++
		must.Do(b, n.RunPlugin(op, r))
		if e := <-n.Events(); e.Code != 0 {
			b.Fatalf("%+v", e)
		}
	}
}

func BenchmarkAddresses(b *testing.B) {
	n := started(b)
	for k := range 110 {
		must.Get(n.MakeNetns("cni-" + strconv.Itoa(k)))(b)
	}
	for b.Loop() {
		must.Get(n.Addresses())(b)
	}
}
