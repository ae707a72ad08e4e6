package audit

import (
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Outcome is what a settled node has come to: what I9 compares between a run with a crash and the same run without.
type Outcome struct {
	Served    int // live pods that a packet reaches
	ENIs      int // attached
	Addresses int // secondaries on attached ENIs
	Assigned  int // rows
	Intents   int // open ones
	Leaks     int
}

// Outcome of a settled cut.
func (c *Cut) Outcome() Outcome {
	o := Outcome{Leaks: len(c.Leaks)}
	for i := range c.Pods {
		if c.Pods[i].Fault == "" {
			o.Served++
		}
	}
	for i := range c.Cloud {
		if c.Cloud[i].Attached {
			o.ENIs++
			o.Addresses += len(c.Cloud[i].Secondaries)
		}
	}
	for i := range c.Rows {
		if c.Rows[i].State == ipam.Assigned {
			o.Assigned++
		}
	}
	if c.View != nil {
		o.Intents = c.View.Intents
	}
	return o
}

// Recovered judges I9: a node that settled after a crash against the same node without one. where says what was in
// flight when the daemon died.
func (a *Auditor) Recovered(now time.Duration, node int, where string, without, with Outcome) {
	if without != with {
		a.breaks(I9, now, node, "after a crash %s node-%d settled with %+v: expected %+v as without the crash", where, node, with, without)
	}
	if with.Intents > 0 || with.Leaks > 0 {
		a.breaks(I9, now, node, "after a crash %s node-%d settled with %d open intents and %d leaks: expected none", where, node, with.Intents, with.Leaks)
	}
}
