package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestWhatAStartMakesOfWhatCools: what the kernel shows in use is set aside, by a daemon that believes the kernel;
// and what is left of a pod is taken out.
func TestWhatAStartMakesOfWhatCools(t *testing.T) {
	const now = time.Hour
	ip, stranger := netip.MustParseAddr("10.0.0.20"), dataplane.Link{Name: "veth9", Veth: true, PeerLive: true}
	att := Attachment{network, "c1", "eth0"}
	stranger.PeerAddresses = []netip.Addr{ip}
	routed := []dataplane.Route{{Dst: netip.PrefixFrom(ip, 32), Link: "veth9", Table: dataplane.MainTable}}
	leftRule := dataplane.Observation{Rules: []dataplane.Rule{{Priority: dataplane.PriorityToPod,
		To: netip.PrefixFrom(ip, 32), Table: dataplane.MainTable}}}
	for _, c := range []struct {
		name   string
		att    Attachment
		kernel bool
		o      dataplane.Observation
		state  State
		out    bool // it is being taken out of its pod
	}{
		{"nobody has it", Attachment{}, true, dataplane.Observation{}, Cooling, false},
		{"somebody has it", Attachment{}, true, dataplane.Observation{Links: []dataplane.Link{stranger},
			Routes: routed}, Quarantined, false},
		{"somebody has it, by a kernel that is not believed", Attachment{}, false,
			dataplane.Observation{Links: []dataplane.Link{stranger}, Routes: routed}, Cooling, false},
		{"a rule of a pod's is left", att, true, leftRule, Cooling, true},
		{"a rule of nobody's is left", Attachment{}, true, leftRule, Cooling, false},
		{"nothing of the pod's is left", att, true, dataplane.Observation{}, Cooling, false},
		{"the pod's link is left", att, true, dataplane.Observation{Links: []dataplane.Link{{Name: "eni1",
			Veth: true, Alias: alias(att, ip)}}}, Cooling, true},
	} {
		n := newborn(t)
		n.Phase, n.Set.CoolDown, n.Witness.Kernel = recovering, time.Minute, c.kernel
		n.Steps = 7
		n.enis.newENI(eni{ENI: ENI{ID: "eni-0"}, Stage: Ready})
		n.pool.restore(now, &Row{Address: ip, State: Cooling, Att: c.att, ENI: "eni-0", ReleasedAt: now})
		n.pool.placeRecorded()
		n.recovery.settleRecall(now, c.o.Index())
		a := &n.pool.Addrs[0]
		if out := a.Op == releasing && a.Keyed && a.Tag == 7; a.State != c.state || out != c.out {
			t.Errorf("%s: it is %v, and taken out %v; expected %v, %v", c.name, a.State, out, c.state, c.out)
		}
		if told, plans := noted(n, IntentResumed), len(applies(n)); (told == 1) != c.out || (plans == 1) != c.out {
			t.Errorf("%s: told %d times, %d plans", c.name, told, plans)
		}
		if left := a.Cooling == inKernel; a.State == Cooling && left != c.out {
			t.Errorf("%s: it is %v", c.name, a.Cooling)
		}
	}
}

// TestAPodsLinkIsFoundAtAStart: by its alias, whatever it is called; or, where it has none, as the veth behind which
// its address is.
func TestAPodsLinkIsFoundAtAStart(t *testing.T) {
	ip, att := netip.MustParseAddr("10.0.0.20"), Attachment{network, "c1", "eth0"}
	routed := []dataplane.Route{{Dst: netip.PrefixFrom(ip, 32), Link: "now", Table: dataplane.MainTable}}
	link := dataplane.Link{Name: "now", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{ip},
		MAC: "0a:00:00:00:00:01"}
	ours, theirs, hosts := link, link, link
	ours.Alias, theirs.Alias, hosts.Veth = alias(att, ip), "theirs", false
	hosts.Addresses = []netip.Prefix{netip.PrefixFrom(ip, 24)}
	for _, c := range []struct {
		name  string
		links []dataplane.Link
		veth  string
	}{
		{"by its alias", []dataplane.Link{ours}, "now"},
		{"without an alias", []dataplane.Link{link}, "now"},
		{"with somebody's alias", []dataplane.Link{theirs}, "before"},
		{"the host itself", []dataplane.Link{hosts}, "before"},
		{"none", nil, "before"},
	} {
		n := newborn(t)
		n.Phase, n.Witness.Kernel = recovering, true
		n.pool.restore(0, &Row{Address: ip, State: Assigned, Att: att, Veth: "before"})
		n.recovery.settleRecall(time.Minute, (&dataplane.Observation{Links: c.links, Routes: routed}).Index())
		if got := n.pool.Addrs[0].Veth; got != c.veth {
			t.Errorf("%s: its link is %q, expected %q", c.name, got, c.veth)
		}
	}
}
