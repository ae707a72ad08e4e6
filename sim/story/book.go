package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Book is what was done to each subject, in its order: the mutations of each ENI and of each attachment, and how each ended. Two
// worlds in which the same happened have equal books, whatever their names, their times and the order between subjects. The same again
// counts once: how often something was tried is a matter of time.
type Book struct{ pages map[page][]string }

type page struct {
	node    int32
	subject string
}

// NewBook is an empty one.
func NewBook() *Book { return &Book{map[page][]string{}} }

func (b *Book) write(node int32, subject, what string) {
	p := page{node, subject}
	if l := b.pages[p]; len(l) == 0 || l[len(l)-1] != what {
		b.pages[p] = append(l, what)
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
		b.write(node, string(id), q.Action.String()+" "+result)
	}
}

// Reply is an answer to a plugin; had says whether the attachment had an address before. "Try again" and a DEL of something unknown
// are not written: nothing was done, and how often they come is a matter of time.
func (b *Book) Reply(node int32, r *ipam.Reply, had bool) {
	result := "ok"
	switch {
	case r.Verb != ipam.VerbAdd && r.Verb != ipam.VerbDel:
		return
	case r.Err != nil && r.Err.Code == ipam.CodeTryAgain, r.Err == nil && r.Verb == ipam.VerbDel && !had:
		return
	case r.Err != nil:
		result = fmt.Sprintf("code %d", r.Err.Code)
	}
	b.write(node, r.Att.ContainerID, r.Verb.String()+" "+result)
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
	for p, l := range b.pages { // sorted below
		what := strings.Join(l, ", ")
		who, kind := fmt.Sprintf("node-%d", p.node), "attachment"
		if strings.HasPrefix(p.subject, "eni-") {
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
