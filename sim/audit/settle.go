package audit

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Settle judges what has to hold once faults have ended and the world is quiet, and records what does not.
func (a *Auditor) Settle(now time.Duration, c *Cut) {
	for _, v := range a.Unsettled(now, c) {
		a.seen.add(v)
	}
}

// Unsettled is what Settle would record. A world that waits for a node to converge asks it and records nothing.
func (a *Auditor) Unsettled(now time.Duration, c *Cut) []Violation {
	var out []Violation
	say := func(id ID, format string, args ...any) {
		out = append(out, Violation{Invariant: id, At: now, Node: c.Node, Text: fmt.Sprintf(format, args...)})
	}
	for _, leak := range c.Leaks {
		say(I5, "node-%d leaks: %s", c.Node, leak)
	}
	orphans(c, say)
	a.dels(c, say)
	if c.Up && c.View != nil {
		if text := warm(c, a.bounds.Band); text != "" {
			say(I11, "node-%d %s", c.Node, text)
		}
		balance(c, say)
	}
	return out
}

type sayer func(id ID, format string, args ...any)

// orphans are assigned rows whose pod is gone.
func orphans(c *Cut, say sayer) {
	live := make(map[ipam.Attachment]bool, len(c.Pods))
	for i := range c.Pods {
		live[c.Pods[i].Att] = true
	}
	for i := range c.Rows {
		if r := &c.Rows[i]; r.State == ipam.Assigned && !live[r.Att] {
			say(I5, "address %v on node-%d is still assigned to %v (%v), whose pod is gone: expected no row", r.Address, c.Node, r.Att, r.Pod)
		}
	}
}

// dels that have not ended in success.
func (a *Auditor) dels(c *Cut, say sayer) {
	if c.PendingDELs > 0 {
		say(I6, "%d DELs on node-%d still have to be repeated: expected success of all", c.PendingDELs, c.Node)
	}
	if c.Node < 0 || c.Node >= len(a.nodes) {
		return
	}
	failing := a.nodes[c.Node].failing
	for _, att := range slices.SortedFunc(maps.Keys(failing), compareAttachments) {
		say(I6, "the last DEL of %v on node-%d failed with %q: expected success in the end", att, c.Node, failing[att])
	}
}

func compareAttachments(a, b ipam.Attachment) int {
	if d := strings.Compare(a.Network, b.Network); d != 0 {
		return d
	}
	if d := strings.Compare(a.ContainerID, b.ContainerID); d != 0 {
		return d
	}
	return strings.Compare(a.IfName, b.IfName)
}

// balance compares the node's books with what the cloud has given it.
func balance(c *Cut, say sayer) {
	v, given := c.View, 0
	on := map[netip.Addr]bool{}
	for i := range c.Cloud {
		given += len(c.Cloud[i].Secondaries)
		for _, addr := range c.Cloud[i].Secondaries {
			on[addr] = true
		}
	}
	if sum := v.Free + v.Assigned + v.Cooling + v.Quarantined + v.Covered; sum != given {
		say(I12, "node-%d counts %d addresses (%d free, %d assigned, %d cooling, %d quarantined, %d covered by intents): EC2 has given it %d",
			c.Node, sum, v.Free, v.Assigned, v.Cooling, v.Quarantined, v.Covered, given)
	}
	rows := 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.State != ipam.Assigned {
			continue
		}
		rows++
		if !on[r.Address] {
			say(I12, "address %v of %v is assigned on node-%d: expected it on one of the node's ENIs, found it on none", r.Address, r.Att, c.Node)
		}
	}
	if rows != v.Assigned {
		say(I12, "node-%d has %d assigned rows and counts %d assigned addresses: expected the same", c.Node, rows, v.Assigned)
	}
}
