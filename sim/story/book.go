package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Book is what was done to each subject, in its order: the mutations of each ENI and of each attachment, and how each ended. Two
// worlds in which the same happened have equal books, whatever their names, their times and the order between subjects. The same again
// counts once: how often something was tried is a matter of time.
type Book struct {
	pages map[name]*page
	died  map[int32]time.Duration // when a node's daemon died last
}

type name struct {
	node    int32
	subject string
}

// page is one subject's.
type page struct {
	lines []string
	last  time.Duration // of an attachment: when it was written to last
	torn  bool          // its daemon died meanwhile
}

// NewBook is an empty one.
func NewBook() *Book { return &Book{map[name]*page{}, map[int32]time.Duration{}} }

func (b *Book) page(node int32, subject string) *page {
	p := b.pages[name{node, subject}]
	if p == nil {
		p = &page{}
		b.pages[name{node, subject}] = p
	}
	return p
}

func (p *page) write(what string) {
	if n := len(p.lines); n == 0 || p.lines[n-1] != what {
		p.lines = append(p.lines, what)
	}
}

// How long before its daemon's death an answer counts as one that the death might have cut off, and how long after it as one that had to
// wait for the next daemon: how far a burst of pods has come by then is a matter of milliseconds.
const (
	beforeDeath = 5 * time.Second
	afterDeath  = 8 * time.Second
)

// Died says that a node's daemon was killed, with these requests unanswered. Whether an attachment of that moment was made or not is no part of
// the story.
func (b *Book) Died(at time.Duration, node int32, open []ipam.Attachment) {
	b.died[node] = at
	for _, a := range open {
		b.page(node, a.ContainerID).torn = true
	}
	for n, p := range b.pages {
		if n.node == node && p.last > 0 && p.last >= at-beforeDeath {
			p.torn = true
		}
	}
}

// Call is a mutation at EC2. One that was refused, or that names no ENI because it made none, is not written: nothing was done, and
// whether an ENI can be seen, attached or deleted yet is a matter of a millisecond. Nor are addresses that were assigned or unassigned
// as they should: how many an ENI holds for a while depends on which of two pods asked first, and how many there are in the end is
// judged by the warm targets (I11) and the books (I12).
func (b *Book) Call(node int32, q *ec2.Request, r *ec2.Response) {
	id, result := q.ENI, "ok"
	switch {
	case r.Lost:
		result = "lost"
	case r.Code != "":
		return
	case r.ENI.ID != "":
		id = r.ENI.ID
	}
	routine := result == "ok" && (q.Action == ec2.AssignPrivateIpAddresses || q.Action == ec2.UnassignPrivateIpAddresses)
	if id != "" && !routine {
		b.page(node, string(id)).write(q.Action.String() + " " + result)
	}
}

// Reply is an answer to a plugin; had says whether the attachment had an address before. "Try again" and a DEL of something unknown
// are not written: nothing was done, and how often they come is a matter of time.
func (b *Book) Reply(at time.Duration, node int32, r *ipam.Reply, had bool) {
	result := "ok"
	switch {
	case r.Verb != ipam.VerbAdd && r.Verb != ipam.VerbDel:
		return
	case r.Err != nil && r.Err.Code == ipam.CodeTryAgain, r.Err == nil && r.Verb == ipam.VerbDel && !had:
		return
	case r.Err != nil:
		result = fmt.Sprintf("code %d", r.Err.Code)
	}
	p := b.page(node, r.Att.ContainerID)
	p.write(r.Verb.String() + " " + result)
	p.last = at
	if d, ok := b.died[node]; ok && at < d+afterDeath {
		p.torn = true
	}
}

// Diff is what only one of two books has, a line each: "-" b, "+" o.
func (b *Book) Diff(o *Book) []string {
	var out []string
	mine, others := b.Lines(), o.Lines()
	for _, l := range mine {
		if !slices.Contains(others, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range others {
		if !slices.Contains(mine, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

// Lines are the pages without names, sorted, and how often each is there.
func (b *Book) Lines() []string {
	count := map[string]int{}
	for n, p := range b.pages { // sorted below
		if p.torn {
			continue
		}
		what := strings.Join(p.lines, ", ")
		who, kind := fmt.Sprintf("node-%d", n.node), "attachment"
		if strings.HasPrefix(n.subject, "eni-") {
			kind = "ENI"
		}
		if what == "DeleteNetworkInterface ok" { // a leaked one: which neighbour sweeps it first is a matter of time
			who = "somebody"
		}
		count[fmt.Sprintf("%s %s: %s", who, kind, what)]++
	}
	var out []string
	for l, n := range count {
		out = append(out, fmt.Sprintf("%s (%d)", l, n))
	}
	slices.Sort(out)
	return out
}
