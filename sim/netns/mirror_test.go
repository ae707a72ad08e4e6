package netns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// web is an attachment of the pod web-1: each has its own key and address, and all the same host veth.
func web(netns uint64, alias, address string) *ipam.Apply {
	return &ipam.Apply{Plan: dataplane.PodPlan(dataplane.PodSpec{Alias: alias, HostVeth: "eniweb1", Netns: netns,
		Address: netip.MustParseAddr(address), Table: dataplane.MainTable})}
}

// The real kernel takes the veths of a namespace away a while after its end. What the daemon meets until then is not held against it.
func TestAVethMayOutliveItsNamespace(t *testing.T) {
	const first, second = 1001, 1002
	exists := &ipam.Applied{Err: &dataplane.Error{Kind: dataplane.Exists, Text: "another link has that name"}}
	for _, c := range []struct {
		name  string
		story func(m *mirror)
		want  string // of the disagreement; "" is none
	}{
		{"the namespace lives, and both kernels say it", func(*mirror) {}, ""},
		{"it has ended", func(m *mirror) { m.closeNamespace(first) }, ""},
		{"a process held it, and has ended", func(m *mirror) { m.hold(first); m.closeNamespace(first); m.release(first) }, ""},
		{"it has ended, and a look saw nothing of it any more", func(m *mirror) {
			m.closeNamespace(first)
			o := m.Observe()
			if diff := m.agree(&o); diff != "" {
				t.Error(diff)
			}
		}, "the model: 2, <nil>"},
		{"it has ended, and a look still saw it", func(m *mirror) {
			o := m.Observe()
			m.closeNamespace(first)
			if diff := m.agree(&o); !strings.Contains(diff, "only in the kernel: link") {
				t.Errorf("the model and a kernel with a veth more differ in %q", diff)
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMirror(1)
			m.newNamespace(first)
			m.newNamespace(second)
			one := web(first, "one", "10.0.0.7")
			if diff := m.follow(one, &ipam.Applied{Done: len(one.Plan.Ops)}); diff != "" {
				t.Fatal(diff)
			}
			c.story(m)
			got := m.follow(web(second, "two", "10.0.0.8"), exists)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, expected %q", got, c.want)
			}
			if o := m.Observe(); c.want == "" && len(o.Links) > 1 {
				t.Errorf("the model made the veth that the real kernel refused: %+v", o.Links)
			}
		})
	}
}

// The veth that a dead daemon made in a namespace that has ended since then is on its way out too.
func TestAVethOfADeadDaemonMayOutliveItsNamespace(t *testing.T) {
	const first, second = 1001, 1002
	m := newMirror(1)
	m.newNamespace(first)
	m.newNamespace(second)
	m.broken = []*ipam.Apply{web(first, "one", "10.0.0.7")}
	m.closeNamespace(first)
	o := m.Observe()
	m.explain(&o)
	if diff := m.follow(web(second, "two", "10.0.0.8"), &ipam.Applied{Err: &dataplane.Error{Kind: dataplane.Exists}}); diff != "" {
		t.Error(diff)
	}
	if diff := m.follow(web(second, "two", "10.0.0.8"), &ipam.Applied{Err: &dataplane.Error{Kind: dataplane.NoLink}}); diff == "" {
		t.Error("a kernel that finds no link for a veth that it is to make is believed")
	}
}
