package plugin_test

import (
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// open opens the datapath of a namespace.
func open(t *testing.T, ns netns.NsHandle) *linux.Kernel {
	t.Helper()
	runtime.LockOSThread()
	home := must.Get(netns.Get())(t)
	defer home.Close()
	must.Do(t, netns.Set(ns))
	k, err := linux.Open(linux.Options{})
	if back := netns.Set(home); back != nil {
		t.Fatal(back) // the thread stays locked
	}
	runtime.UnlockOSThread()
	must.Do(t, err)
	t.Cleanup(func() { k.Close() })
	return k
}

// TestDatapath: what the plugin passes is enough for the daemon's own datapath, and what that makes is what CHECK expects.
func TestDatapath(t *testing.T) {
	n := newNode(t)
	k := open(t, n.host)
	spec := dataplane.PodSpec{
		HostVeth: dataplane.HostVethName("eni", "default", "web-0"), Address: netip.MustParseAddr("10.0.0.10"),
		Table: dataplane.MainTable, MTU: 9001, IfName: "eth0",
	}
	spec.Alias = dataplane.Alias("aws-cni", "c1", "eth0", spec.Address)
	n.daemon.set(func(d *daemon) {
		d.make = func(r *ipc.Request, w *row, files []*os.File) error {
			w.addr, w.veth = spec.Address, spec.HostVeth
			pod, err := linux.NewPod(files[0], files[1])
			if err != nil {
				return err
			}
			plan := spec
			plan.Netns = r.Inode
			if _, err := k.Apply(dataplane.PodPlan(plan), pod); err != nil {
				return err
			}
			return nil
		}
	})
	ns := newNamespace(t)
	for range 2 {
		out := n.ok(of("ADD", pathOf(ns)))
		if again := n.ok(of("ADD", pathOf(ns))); again != out {
			t.Errorf("again: %s, before %s", again, out)
		}
		n.ok(checked(pathOf(ns), out))
		n.ok(of("DEL", pathOf(ns)))
		if l := links(t, ns); !slices.Equal(l, []string{"lo"}) {
			t.Errorf("links %v after DEL", l)
		}
	}
}
