package ipam

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestAnADDSaysWhatEC2Said: beside what it says of the node's addresses.
func TestAnADDSaysWhatEC2Said(t *testing.T) {
	n := newborn(t)
	n.Phase = serving
	n.Troubles[troubleEC2] = "EC2 refuses AttachNetworkInterface: AttachmentLimitExceeded"
	if text := n.noAddress(0, &Add{}); !strings.HasSuffix(text, n.Troubles[troubleEC2]) {
		t.Errorf("%s", text)
	}
}

// freeOn is a Node that serves, with one ENI and these addresses free on it.
func freeOn(t *testing.T, list ...string) *Node {
	t.Helper()
	n := newborn(t)
	n.Phase = serving
	n.enis.newENI(eni{ENI: ENI{ID: "eni-0"}, Stage: Ready})
	for i, ip := range list {
		n.pool.adopt(0, netip.MustParseAddr(ip), 0, false)
		n.pool.free(int32(i))
	}
	return n
}

// TestALinkOfAnAddressThatIsNotTheNodesIsNobodysRow: no other address is taken for its pod's.
func TestALinkOfAnAddressThatIsNotTheNodesIsNobodysRow(t *testing.T) {
	for ip, want := range map[string]State{"10.0.0.20": Assigned, "10.0.9.9": Free} {
		n := freeOn(t, "10.0.0.20")
		a := netip.MustParseAddr(ip)
		l := dataplane.Link{Name: "eni1", Alias: alias(Attachment{network, "c1", "eth0"}, a),
			Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{a}}
		n.pods.adoptLinks((&dataplane.Observation{Links: []dataplane.Link{l}}).Index(), n.Steps)
		if got := n.pool.Addrs[0].State; got != want {
			t.Errorf("a link is %s's, and 10.0.0.20 is %v, expected %v", ip, got, want)
		}
	}
}

// TestAddedAddressesOfAnUnknownPodAreNoOtherPods: no operator is sent to a pod that has done nothing.
func TestAddedAddressesOfAnUnknownPodAreNoOtherPods(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21")
	n.pool.become(0, Assigned)
	n.pool.Addrs[0].Pod = Pod{Namespace: "default", Name: "web"}
	own, added := netip.MustParseAddr("10.0.9.9"), netip.MustParseAddr("10.0.0.21")
	l := dataplane.Link{Name: "veth9", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{own, added}}
	o := dataplane.Observation{Links: []dataplane.Link{l},
		Routes: []dataplane.Route{{Dst: netip.PrefixFrom(own, 32), Link: "veth9", Table: dataplane.MainTable}}}
	n.pods.added(o.Index())
	if text := n.Troubles[troubleAdded]; !strings.HasPrefix(text, "the pod behind veth9 has 1 ") {
		t.Errorf("it is told as %q", text)
	}
}

// TestTheRuntimeNamesAPodThatHasNoName: the kernel, by which it was recovered, does not know names. A name that is
// known stays.
func TestTheRuntimeNamesAPodThatHasNoName(t *testing.T) {
	listed := map[string]*Sandbox{"c1": {ID: "c1", Ready: true, Pod: Pod{Namespace: "default", Name: "listed"}}}
	for had, want := range map[string]string{"": "listed", "known": "known"} {
		n := freeOn(t, "10.0.0.20")
		n.pool.become(0, Assigned)
		a := &n.pool.Addrs[0]
		a.Att, a.Pod.Name = Attachment{network, "c1", "eth0"}, had
		if missing := n.pods.heard(listed, n.Steps); missing || a.Pod.Name != want {
			t.Errorf("a pod called %q is called %q by now, expected %q; missing: %v", had, a.Pod.Name, want, missing)
		}
	}
}

// TestAPodThatAddsAddressesIsNamed, once: by its name, where it is known.
func TestAPodThatAddsAddressesIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, alias, want string
	}{
		{"web", "c1", "pod default/web has 2 of"},
		{"", "c1", "the pod behind eni1 has 2 of"},
		{"web", "c9", "the pod behind eni1 has 2 of"},
		{"web", "", "the pod behind eni1 has 2 of"},
	} {
		n := freeOn(t, "10.0.0.19", "10.0.0.20", "10.0.0.21", "10.0.0.22")
		n.pool.forget(0)
		n.pool.become(1, Assigned)
		a := &n.pool.Addrs[1]
		a.Att, a.Pod = Attachment{network, "c1", "eth0"}, Pod{Namespace: "default", Name: c.name}
		n.pool.key(1)
		l := dataplane.Link{Name: "eni1", Veth: true, PeerLive: true,
			PeerAddresses: []netip.Addr{a.IP, n.pool.Addrs[2].IP, n.pool.Addrs[3].IP}}
		if c.alias != "" {
			l.Alias = alias(Attachment{network, c.alias, "eth0"}, a.IP)
		}
		o := dataplane.Observation{Links: []dataplane.Link{l},
			Routes: []dataplane.Route{{Dst: netip.PrefixFrom(a.IP, 32), Link: "eni1", Table: dataplane.MainTable}}}
		for range 2 {
			n.pods.added(o.Index())
		}
		if text := n.Troubles[troubleAdded]; !strings.HasPrefix(text, c.want) || !strings.Contains(text,
			"as 10.0.0.21") || noted(n, AddressesAdded) != 1 {
			t.Errorf("a pod called %q, by the link's alias %s: told %d times, %q", c.name, c.alias, noted(n,
				AddressesAdded), text)
		}
		n.pods.added((&dataplane.Observation{}).Index())
		if text := n.Troubles[troubleAdded]; text != "" || noted(n, AddressesAdded) != 1 {
			t.Errorf("nothing is added any more: told %d times, %q", noted(n, AddressesAdded), text)
		}
	}
}
