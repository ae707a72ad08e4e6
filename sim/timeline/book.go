package timeline

import (
	"cmp"
	"fmt"
	"maps"
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
	met   bool                    // a fault that callers meet was met
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
	late  bool          // the time of an ADD ended while its address was being set up
}

// NewBook is an empty one.
func NewBook() *Book { return &Book{pages: map[name]*page{}, died: map[int32]time.Duration{}} }

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

// expected are what EC2 answers by itself to a caller that asks too early: no faults.
var expected = map[string]bool{"InvalidNetworkInterfaceID.NotFound": true, "InvalidAttachmentID.NotFound": true, "InvalidParameterValue": true,
	"IncorrectState": true, "RequestLimitExceeded": true}

// Call is a mutation at EC2. One that was refused, or that names no ENI because it made none, is not written: nothing was done, and
// whether an ENI can be seen, attached or deleted yet is a matter of a millisecond. Nor are addresses that were assigned or unassigned
// as they should: how many an ENI holds for a while depends on which of two pods asked first, and how many there are in the end is
// judged by the warm targets (I11) and the books (I12).
func (b *Book) Call(node int32, q *ec2.Request, r *ec2.Response) {
	id, result := q.ENI, "ok"
	b.met = b.met || r.Lost || r.Code != "" && !expected[r.Code]
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

// Reply is an answer to a plugin; had says whether the daemon has an address for the attachment: before a DEL, and after an ADD. "Try again" and a
// DEL of something unknown are not written: nothing was done, and how often they come is a matter of time. An ADD whose time ended while its address
// was being set up is undone, and whether before or by its DEL is a matter of milliseconds.
func (b *Book) Reply(at time.Duration, node int32, r *ipam.Reply, had bool) {
	result := "ok"
	switch {
	case r.Verb != ipam.VerbAdd && r.Verb != ipam.VerbDel:
		return
	case r.Err != nil && r.Err.Code == ipam.CodeTryAgain:
		if had && r.Verb == ipam.VerbAdd {
			b.page(node, r.Att.ContainerID).late = true
		}
		return
	case r.Err == nil && r.Verb == ipam.VerbDel && !had:
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

// Diff is what only one of two books has, a line each: "-" b, "+" o. Four things are a matter of milliseconds, and no difference:
//
//   - Which of a node's ENIs are given back in the end: which pod of a burst got which address decides which of them falls empty. How many it is.
//   - How far before or after a death something happened: a page that a death may have cut off need not be in the other book, and may be.
//   - Which ENI the pods of that moment got: how many ENIs are emptied later follows from it. On such a node each ENI's page has to be one
//     of the other book's, or its beginning, however often it is there and however many are given back in the end.
//   - Who met a fault that is for the first caller: another ENI, or another node's. Then ENIs may have changed places,
//     as long as in the whole cluster the same was done as often.
func (b *Book) Diff(o *Book) []string {
	mine, others := b.sheets(), o.sheets()
	names := map[sheetName]bool{}
	for _, sheets := range []map[sheetName]*sheet{mine, others} {
		for n := range sheets {
			names[n] = true
		}
	}
	var attachments, enis []string
	anyCut := false
	for _, n := range slices.SortedFunc(maps.Keys(names), sheetName.compare) {
		s, t := or(mine[n]), or(others[n])
		if n.kind == attachment {
			attachments = append(attachments, s.diff(t, n)...)
			continue
		}
		pods := sheetName{n.who, attachment}
		if cut := len(or(mine[pods]).unknown)+len(or(others[pods]).unknown) > 0; cut {
			anyCut = true
			enis = append(enis, s.shapes(t, n)...)
		} else {
			enis = append(enis, s.diff(t, n)...)
		}
	}
	if len(enis) > 0 && (b.met || o.met) {
		cluster := sheetName{"the cluster", eni}
		if anyCut {
			enis = b.deeds().shapes(o.deeds(), cluster)
		} else {
			enis = b.deeds().diff(o.deeds(), cluster)
		}
	}
	out := append(attachments, enis...)
	slices.Sort(out)
	return out
}

// Lines are the pages without names, sorted, and how often each is there; those that are unknown are left out.
func (b *Book) Lines() []string {
	var out []string
	sheets := b.sheets()
	for _, n := range slices.SortedFunc(maps.Keys(sheets), sheetName.compare) {
		for _, l := range inOrder(sheets[n].known) {
			out = append(out, n.line(l, sheets[n].known[l]))
		}
		if back := sheets[n].back; back > 0 {
			out = append(out, n.line(givenBack, back))
		}
	}
	slices.Sort(out)
	return out
}

// Kinds of subjects.
const eni, attachment = "ENI", "attachment"

// sheetName is whose pages a sheet counts.
type sheetName struct{ who, kind string }

func (n sheetName) compare(o sheetName) int {
	return cmp.Or(strings.Compare(n.who, o.who), strings.Compare(n.kind, o.kind))
}

// inOrder are the texts that are counted.
func inOrder(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

// subjects are those that have a page.
func (b *Book) subjects() []name {
	return slices.SortedFunc(maps.Keys(b.pages), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.node, b.node), strings.Compare(a.subject, b.subject))
	})
}

func (n sheetName) line(what string, count int) string {
	return fmt.Sprintf("%s %s: %s (%d)", n.who, n.kind, what, count)
}

// sheet counts pages that say the same: those that are known, and those that a death may have cut off. Of an ENI's page the end with which it is
// given back is counted by itself.
type sheet struct {
	known, unknown map[string]int
	back           int
}

func newSheet() *sheet { return &sheet{known: map[string]int{}, unknown: map[string]int{}} }

// or is a sheet, or an empty one.
func or(s *sheet) *sheet {
	if s == nil {
		return newSheet()
	}
	return s
}

// shapes are the pages of each sheet that are neither a page of the other nor the beginning of one.
func (s *sheet) shapes(o *sheet, name sheetName) []string {
	var out []string
	for _, l := range inOrder(s.known) {
		n := s.known[l]
		if !o.continues(l) {
			out = append(out, "- "+name.line(l, n))
		}
	}
	for _, l := range inOrder(o.known) {
		n := o.known[l]
		if !s.continues(l) {
			out = append(out, "+ "+name.line(l, n))
		}
	}
	return out
}

// continues says whether a page begins like this.
func (s *sheet) continues(what string) bool {
	for _, l := range inOrder(s.known) {
		if strings.HasPrefix(l+",", what+",") {
			return true
		}
	}
	return false
}

// givenBack is how a page ends whose ENI was wanted no more.
const givenBack = "DetachNetworkInterface ok, DeleteNetworkInterface ok"

// diff is what only one of two sheets has, and what is no unknown page of the other either.
func (s *sheet) diff(o *sheet, name sheetName) []string {
	var out []string
	for _, l := range inOrder(s.known) {
		n := s.known[l]
		if n > o.known[l]+o.unknown[l] {
			out = append(out, "- "+name.line(l, n))
		}
	}
	for _, l := range inOrder(o.known) {
		n := o.known[l]
		if n > s.known[l]+s.unknown[l] {
			out = append(out, "+ "+name.line(l, n))
		}
	}
	switch d := o.back - s.back; {
	case d > 0:
		out = append(out, "+ "+name.line(givenBack, d))
	case d < 0:
		out = append(out, "- "+name.line(givenBack, -d))
	}
	return out
}

func (b *Book) sheets() map[sheetName]*sheet {
	out := map[sheetName]*sheet{}
	for _, n := range b.subjects() {
		p := b.pages[n]
		what := strings.Join(p.lines, ", ")
		if p.late && (what == "" || what == "DEL ok") {
			continue
		}
		as := sheetName{fmt.Sprintf("node-%d", n.node), n.kind()}
		if what == "DeleteNetworkInterface ok" { // a leaked one: which neighbour sweeps it first is a matter of time
			as.who = "somebody"
		}
		s := out[as]
		if s == nil {
			s = newSheet()
			out[as] = s
		}
		if rest, back := strings.CutSuffix(what, ", "+givenBack); back {
			what = rest
			s.back++
		}
		if p.torn {
			s.unknown[what]++
		} else {
			s.known[what]++
		}
	}
	return out
}

func (n name) kind() string {
	if strings.HasPrefix(n.subject, "eni-") {
		return eni
	}
	return attachment
}

// deeds count what was done to ENIs, by any caller to any of them.
func (b *Book) deeds() *sheet {
	s := newSheet()
	for _, n := range b.subjects() {
		if n.kind() == eni {
			for _, l := range b.pages[n].lines {
				s.known[l]++
			}
		}
	}
	return s
}
