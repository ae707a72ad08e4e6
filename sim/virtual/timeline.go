package virtual

import (
	"fmt"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/timeline"
)

// tell writes a line about a node.
func (n *node) tell(text string) {
	if w := n.w; !w.hushed {
		w.Lines.Add(w.Now(), n.No, text)
	}
}

// figures tell of a fleet, which has too many nodes for a story: a line a minute, until nothing changes.
func (w *World) figures() {
	waiting, attached := int64(0), w.EC2.CountENIs(ec2.InUse)
	for _, n := range w.nodes[1:] {
		if v, ok := w.MeasureNode(&n.Node, "waiting"); ok {
			waiting += v
		}
	}
	throttled, _ := actions.MeasureEC2(w.EC2, w.Base, "calls.throttled")
	text := fmt.Sprintf("%d pods ready, %d wait in their ADD; %d ENIs attached, %d calls throttled so far", w.Kube.Ready(), waiting, attached, throttled)
	if w.Lines.Last() != text {
		w.Lines.Add(w.Now(), timeline.Cluster, text)
	}
}

// refused tells how an ADD or DEL was answered, if it was turned down.
func (n *node) refused(q *request, r *ipam.Reply) {
	w := n.w
	if w.book != nil {
		had := q.addr.IsValid()
		if r.Verb == ipam.VerbAdd {
			_, had = n.core.Find(r.Att)
		}
		w.book.Reply(w.now, n.No, r, had)
	}
	if !w.hushed {
		w.Lines.Refused(w.Now(), n.No, r)
	}
}

// cloudSaid tells of mutations at EC2.
func (n *node) cloudSaid(f *inFlight, r *ec2.Response) {
	w := n.w
	if w.book != nil {
		w.book.Call(n.No, &f.req, r)
	}
	if !w.hushed {
		w.Lines.Call(w.Now(), n.No, &f.req, r)
	}
}

// tornPages tells the book that a daemon died, and which requests it will not answer.
func (n *node) tornPages() {
	w := n.w
	if w.book == nil || n.core == nil {
		return
	}
	var open []ipam.Attachment
	for i := range n.waiting {
		open = append(open, n.waiting[i].att)
	}
	w.book.Died(w.now, n.No, open)
}
