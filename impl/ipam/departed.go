package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// departed is an address or an ENI that this node has given back. Metadata, and EC2's own replicas, go on listing it for a while
// (amazon-vpc-cni-k8s #1967): such a view must not bring it back into the books, where a pod would get it. Addresses are durable,
// since the next daemon reads the same stale metadata.
type departed struct {
	IP  netip.Addr
	ENI string
	At  time.Duration
}

// departuresKept is the key of the record that says that departures are on record: written once EC2 has been asked, and gone with the
// tmpfs. Without it a daemon does not know what an earlier one gave back.
var departuresKept = netip.IPv4Unspecified()

// depart remembers an address that EC2 has taken back.
func (n *Node) depart(now time.Duration, ip netip.Addr) {
	n.Departures = append(n.Departures, departed{IP: ip, At: now})
	n.putRow(RunStore, Row{Address: ip, State: Departed, ReleasedAt: now})
}

// departENI remembers an ENI that was deleted.
func (n *Node) departENI(now time.Duration, id string) {
	if id != "" {
		n.Departures = append(n.Departures, departed{ENI: id, At: now})
	}
}

// hasDeparted says whether a view that lists the address, or the ENI, is a stale one.
func (n *Node) hasDeparted(now time.Duration, ip netip.Addr, id string) bool {
	for i := range n.Departures {
		d := &n.Departures[i]
		if d.IP.IsValid() && d.IP == ip || d.ENI != "" && d.ENI == id {
			return n.policy.Stale != nil && n.policy.Stale(now-d.At)
		}
	}
	return false
}

// returned takes an address that EC2 has assigned, by its own answer. One that departed a moment ago is held back for a while: an
// unassignment is named by ENI and address, so one of a lost call or a dead daemon that lands late takes it away again (contract 5).
func (n *Node) returned(now time.Duration, ip netip.Addr, ix int32) {
	until := now
	for i := range n.Departures {
		if d := &n.Departures[i]; d.IP == ip {
			until = max(until, d.At+landing)
		}
	}
	n.Departures = slices.DeleteFunc(n.Departures, func(d departed) bool { return d.IP == ip })
	n.adopt(now, ip, ix)
	if a := n.byAddress[ip]; until > now {
		n.hold(a, until)
	}
}

// hold keeps a new address back until an instant.
func (n *Node) hold(ix int32, until time.Duration) {
	if a := &n.Addrs[ix]; a.State == Cooling && a.Att == (Attachment{}) {
		a.ReleasedAt = until - n.coolDown()
		n.CoolAt = min(n.CoolAt, until)
	}
}

// forgetDepartures drops what no view can list any more.
func (n *Node) forgetDepartures(now time.Duration) {
	n.Departures = slices.DeleteFunc(n.Departures, func(d departed) bool {
		if now-d.At < consistency {
			return false
		}
		if _, back := n.byAddress[d.IP]; d.IP.IsValid() && !back {
			n.dropRow(RunStore, Key{Address: d.IP})
		}
		return true
	})
}
