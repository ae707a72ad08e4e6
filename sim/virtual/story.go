package virtual

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/timeline"
)

// tell writes a line about a node.
func (w *World) tell(n *node, text string) {
	if !w.cfg.Quiet {
		w.story.Add(w.Now(), n.no, text)
	}
}

func (w *World) noted(n *node, e *ipam.Note) {
	if !w.cfg.Quiet {
		w.story.Note(w.Now(), n.no, e)
	}
}

// figures tell of a fleet, which has too many nodes for a story: a line a minute, until nothing changes.
func (w *World) figures() {
	waiting, attached := int64(0), w.cloud.CountENIs(ec2.InUse)
	for _, n := range w.nodes[1:] {
		if v, ok := w.measureNode(n, "waiting"); ok {
			waiting += v
		}
	}
	throttled, _ := actions.MeasureEC2(w.cloud, w.base, "calls.throttled")
	text := fmt.Sprintf("%d pods ready, %d wait in their ADD; %d ENIs attached, %d calls throttled so far", w.kube.Ready(), waiting, attached, throttled)
	if w.story.Last() != text {
		w.story.Add(w.Now(), timeline.Cluster, text)
	}
}

// refused tells how an ADD or DEL was answered, if it was turned down.
func (w *World) refused(n *node, q *request, r *ipam.Reply) {
	if w.cfg.Book != nil && w.base != nil {
		w.cfg.Book.Reply(w.now, n.no, r, q.addr.IsValid())
	}
	if !w.cfg.Quiet {
		w.story.Refused(w.Now(), n.no, r)
	}
}

// cloudSaid tells of mutations at EC2.
func (w *World) cloudSaid(n *node, f *inFlight, r *ec2.Response) {
	if w.cfg.Book != nil && w.base != nil {
		w.cfg.Book.Call(n.no, &f.req, r)
	}
	if !w.cfg.Quiet {
		w.story.Call(w.Now(), n.no, &f.req, r)
	}
}

// Story is what happened since t=0.
func (w *World) Story() string { return w.story.String() }

// Timeline is all of the story.
func (w *World) Timeline() string { return w.story.Whole() }

// TimelineUntil is the story up to an instant of the scenario.
func (w *World) TimelineUntil(at time.Duration) string { return w.story.Until(at) }

// Named is a text with the timeline's names of ENIs.
func (w *World) Named(text string) string { return w.story.Named(text) }

// tornPages tells the book that a daemon died, and what nobody answers any more.
func (w *World) tornPages(n *node) {
	if w.cfg.Book == nil || w.base == nil || n.core == nil {
		return
	}
	var open []ipam.Attachment
	for i := range n.run {
		open = append(open, n.run[i].att)
	}
	w.cfg.Book.Died(w.now, n.no, open)
}
