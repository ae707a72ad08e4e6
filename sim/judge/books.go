package judge

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// Books puts into a snapshot what the daemon believes, by its core; nil is a node whose daemon is down. The View is written to v.
func (s *Snapshot) Books(n *ipam.Node, v *ipam.View) {
	s.Up = n != nil
	if n == nil {
		return
	}
	n.View(v)
	s.View, s.Limits = v, v.Limits
	n.Rows(func(r ipam.Row) {
		if r.State == ipam.Assigned {
			s.Rows = append(s.Rows, r)
		}
	})
}

// Asked is something that a plugin, or a file that one left, asks the daemon.
type Asked struct {
	Verb    ipam.Verb
	Att     ipam.Attachment
	Address netip.Addr // DEL: the address the attachment had
	Intent  bool       // DEL: read from disk
}

// Answered judges a daemon's answer when it leaves (I2, I6, I7). used says what else uses an address in the kernel; ""
// is nothing. It is true of an ADD that got an address.
func (a *Auditor) Answered(now time.Duration, node int, q *Asked, r *ipam.Reply, used func(netip.Addr) string) (given bool) {
	switch {
	case q.Verb == ipam.VerbAdd && r.Err == nil:
		a.Given(now, node, r.Att, r.Address, used(r.Address))
		return true
	case q.Verb == ipam.VerbDel && r.Err == nil:
		a.DelResult(now, node, q.Att, true, "")
		if q.Address.IsValid() {
			a.Released(now, node, q.Att, q.Address)
		}
	case q.Verb == ipam.VerbDel && !q.Intent: // an intent has been answered; that it waits on disk is what a snapshot shows
		a.DelResult(now, node, q.Att, false, r.Err.Text)
	}
	return false
}

// Holding is how many live namespaces have an address, and where the other one is.
type Holding struct {
	Count     int
	Otherwise string
}

// Ran judges the operations of a pod's plan that have run (I1, I7). held looks for the namespaces that have an address.
func (a *Auditor) Ran(now time.Duration, node int, att ipam.Attachment, ops []dataplane.Op, held func(netip.Addr) Holding) {
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case dataplane.PodAddress:
			h := held(op.Addr)
			a.Configured(now, node, op.Addr, att, h.Count, h.Otherwise)
		case dataplane.DeleteVeth:
			if network, id, ifName, addr, ok := dataplane.ParseAlias(op.Alias); ok {
				a.Released(now, node, ipam.Attachment{Network: network, ContainerID: id, IfName: ifName}, addr)
			}
		}
	}
}

// Holders counts the live namespaces that have an address which was just configured on a node: there, and on the node that had it before. on
// counts those of one node.
func (a *Auditor) Holders(node int, addr netip.Addr, on func(node int) int) Holding {
	h := Holding{on(node), "the same node"}
	if last, ok := a.last[addr]; ok && last != node {
		if elsewhere := on(last); elsewhere > 0 {
			h.Count, h.Otherwise = h.Count+elsewhere, "node-"+strconv.Itoa(last)
		}
	}
	if a.last == nil {
		a.last = map[netip.Addr]int{}
	}
	a.last[addr] = node
	return h
}
