package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestWhoseAHostVethIs: the pod's that has the address, by the records, behind a link of that name.
func TestWhoseAHostVethIs(t *testing.T) {
	n := quiet(t, "10.0.0.20", "10.0.0.21")
	assign(n, 0, "c1")
	n.pool.Addrs[0].Veth, n.pool.Addrs[1].Veth = "eni1", "eni2"
	for _, c := range []struct {
		link, ip string
		want     bool
	}{
		{"eni1", "10.0.0.20", true}, {"eni9", "10.0.0.20", false}, {"eni2", "10.0.0.21", false}, // no pod has it
		{"eni1", "10.0.0.99", false}, {"eni1", "10.0.0.21", false},
	} {
		if got := n.pool.named(c.link, netip.MustParseAddr(c.ip)); got != c.want {
			t.Errorf("%s with %s: %v", c.link, c.ip, got)
		}
	}
}

// TestEachQuarantineEndsByItself: one address that is in use, of a pod or of nobody, keeps no other set aside.
func TestEachQuarantineEndsByItself(t *testing.T) {
	n := quiet(t, "10.0.0.20", "10.0.0.21", "10.0.0.22")
	user := dataplane.Link{Name: "veth1", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{n.pool.Addrs[0].IP}}
	att := assign(n, 1, "c1")
	pods := dataplane.Link{Name: "eni1", Veth: true, PeerLive: true, Alias: dataplane.Alias(att.Network, att.ContainerID, att.IfName, n.pool.Addrs[1].IP)}
	for i := range n.pool.Addrs {
		n.pool.quarantine(int32(i), "a test")
	}
	n.Steps = 9
	for range 10 {
		n.pods.unquarantine(time.Minute, indexOf(user, pods), 9)
	}
	for i, want := range []State{Quarantined, Quarantined, Cooling} {
		if a := &n.pool.Addrs[i]; a.State != want {
			t.Errorf("%v is %v, expected %v", a.IP, a.State, want)
		}
	}
}

// TestAnENIThatGivesNothingBackIsAtRest: nothing of the trim that did not come about is left.
func TestAnENIThatGivesNothingBackIsAtRest(t *testing.T) {
	n := quiet(t, "10.0.0.20")
	n.warm.giveBack(time.Minute, 0, 0, true)
	if e := &n.ENIs[0]; e.Prefixed || e.Trimming || e.busy() || n.pool.Addrs[0].Leaving {
		t.Errorf("it is %+v", e.mutation)
	}
}
