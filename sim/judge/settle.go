package judge

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Settle judges what has to hold once settled, records what does not, and names what is still under way on the node. Until that has ended
// nothing is leaked, missing or out of balance. What has been under way since before the faults ended is not acted on.
func (a *Auditor) Settle(now time.Duration, c *Snapshot) (underWay []string) {
	a.thirdParty(now, c)
	broken, underWay := a.Unsettled(now, c)
	for _, v := range broken {
		a.seen.add(v)
	}
	a.looked(c, len(underWay) == 0)
	return underWay
}

// Leaked records what has no owner in the cloud as a whole (I5).
func (a *Auditor) Leaked(now time.Duration, leaks []string) {
	if len(leaks) > 0 {
		a.Settle(now, &Snapshot{Leaks: leaks})
	}
}

// FaultsEnded says that nothing is broken any more but what daemons have to put right.
func (a *Auditor) FaultsEnded(now time.Duration) { a.calm = now }

// Unsettled is what Settle would record and name. A world that waits until a node converges asks it and records nothing.
func (a *Auditor) Unsettled(now time.Duration, c *Snapshot) (broken []Violation, underWay []string) {
	say := func(id ID, format string, args ...any) {
		broken = append(broken, Violation{Invariant: id, At: now, Node: c.Node, Text: fmt.Sprintf(format, args...)})
	}
	old := a.stuck(now, c)
	if old.intents {
		say(I5, "node-%d leaks: %s open since before the faults ended", c.Node, count(c.View.Intents, "EC2 intent"))
	}
	if old.cooling {
		say(I5, "node-%d leaks: it has %s, not all since the faults ended", c.Node, count(c.View.Cooling, "cooling address"))
	}
	a.dels(c, old.dels, say)
	if underWay = c.underWay(&old); len(underWay) > 0 {
		return broken, underWay
	}
	for _, leak := range c.Leaks {
		say(I5, "node-%d leaks: %s", c.Node, leak)
	}
	orphans(c, say)
	for _, e := range c.OtherGroups {
		say(I20, "%s of node-%d has the security groups %s: expected those of %s", e.ID, c.Node, strings.Join(e.SecurityGroups, "/"), c.grouper())
	}
	if c.Up && c.View != nil {
		if text := warm(c, a.bounds.Band); text != "" {
			say(I11, "node-%d %s", c.Node, text)
		}
		balance(c, say)
	}
	return broken, nil
}

// grouper is whose security groups the node's ENIs should have.
func (c *Snapshot) grouper() string {
	if c.Settings.CustomNetwork {
		return "its ENIConfig"
	}
	return "the primary ENI"
}

// busy is since when a node has had something to do without a pause; never is that it has nothing.
type busy struct{ intents, cooling, dels time.Duration }

// mark notes what a snapshot shows.
func (b *busy) mark(now time.Duration, c *Snapshot) {
	since := func(t *time.Duration, yes bool) {
		switch {
		case !yes:
			*t = never
		case *t == never:
			*t = now
		}
	}
	since(&b.intents, c.View != nil && c.View.Intents > 0)
	since(&b.cooling, c.View != nil && c.View.Cooling > 0)
	since(&b.dels, c.PendingDELs > 0)
}

// stuck says what a node has had to do since before the faults ended.
type stuck struct{ intents, cooling, dels bool }

func (a *Auditor) stuck(now time.Duration, c *Snapshot) stuck {
	if c.Node < 1 || c.Node >= len(a.nodes) {
		return stuck{}
	}
	b := a.nodes[c.Node].busy
	b.mark(now, c)
	return stuck{b.intents < a.calm, b.cooling < a.calm, b.dels < a.calm}
}

// underWay is what is still acted on.
func (c *Snapshot) underWay(old *stuck) (out []string) {
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, fmt.Sprintf("node-%d: 1 %s", c.Node, one))
		case n > 1:
			out = append(out, fmt.Sprintf("node-%d: %d %s", c.Node, n, many))
		}
	}
	switch {
	case c.Node < 1: // the cloud as a whole
		return nil
	case !c.Up:
		return []string{fmt.Sprintf("node-%d: no daemon runs", c.Node)}
	case c.View != nil:
		if !c.View.Serving {
			out = append(out, fmt.Sprintf("node-%d: the daemon does not serve yet", c.Node))
		}
		say(c.View.Waiting, "ADD waits for an address", "ADDs wait for an address")
		if !old.cooling {
			say(c.View.Cooling, "address cools down", "addresses cool down")
		}
		if !old.intents {
			say(c.View.Intents, "EC2 intent is open", "EC2 intents are open")
		}
	}
	if !old.dels {
		say(c.PendingDELs, "DEL still has to be repeated", "DELs still have to be repeated")
	}
	return out
}

type sayer func(id ID, format string, args ...any)

// orphans are assigned rows whose pod is gone.
func orphans(c *Snapshot, say sayer) {
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
func (a *Auditor) dels(c *Snapshot, stuck bool, say sayer) {
	if stuck {
		say(I6, "node-%d had to repeat %s since before the faults ended: expected success of all", c.Node, count(c.PendingDELs, "DEL"))
	}
	if c.Node < 0 || c.Node >= len(a.nodes) {
		return
	}
	failing := a.nodes[c.Node].failing
	for _, att := range slices.SortedFunc(maps.Keys(failing), compareAttachments) {
		say(I6, "the last DEL of %v on node-%d failed with %q: expected success in the end", att, c.Node, failing[att])
	}
}

// count is a number and its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
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
func balance(c *Snapshot, say sayer) {
	v, given := c.View, 0
	on := map[netip.Addr]*CloudENI{}
	for i := range c.Cloud {
		e := &c.Cloud[i]
		if !e.NotOurs && !c.leftAlone(e.ID) {
			given += len(e.Secondaries)
		}
		for _, addr := range e.Secondaries {
			on[addr] = e
		}
	}
	for i := range c.Rows { // of a pod that was there before the ENI was another owner's
		if e := on[c.Rows[i].Address]; c.Rows[i].State == ipam.Assigned && e != nil && (e.NotOurs || c.leftAlone(e.ID)) {
			given++
		}
	}
	if sum := v.Free + v.Assigned + v.Cooling + v.Quarantined - v.Taken + v.Covered; sum != given {
		say(I12, "node-%d counts %d addresses (%d free, %d assigned, %d cooling, %d quarantined of which EC2 has taken %d back, %d covered by intents): EC2 has given it %d",
			c.Node, sum, v.Free, v.Assigned, v.Cooling, v.Quarantined, v.Taken, v.Covered, given)
	}
	rows := 0
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.State != ipam.Assigned {
			continue
		}
		rows++
		if on[r.Address] == nil {
			say(I12, "address %v of %v is assigned on node-%d: expected it on one of the node's ENIs, found it on none", r.Address, r.Att, c.Node)
		}
	}
	if rows != v.Assigned {
		say(I12, "node-%d has %d assigned rows and counts %d assigned addresses: expected the same", c.Node, rows, v.Assigned)
	}
}

// leftAlone says whether a daemon that may not ask EC2 (ENABLE_IMDS_ONLY_MODE) says of an ENI that it leaves it alone:
// it cannot know that no other owner claims it. What it gives to pods of such an ENI is in its rows, and counted.
func (c *Snapshot) leftAlone(id string) bool {
	return c.Settings.IMDSOnly && slices.ContainsFunc(c.View.Others, func(o ipam.ViewOther) bool { return o.ID == id })
}
