package judge

import "github.com/enilab/enilab/impl/ipam"

// tally is what a node's daemons did since time began, all lives together.
type tally struct {
	starts int
	marks  [pointLimit]uint32
}

// pointLimit bounds the coverage points that are counted: more than there are.
const pointLimit = 64

// Begin says that it is t=0 of the scenario: nothing that happened before is counted.
func (a *Auditor) Begin() {
	for i := range a.nodes {
		a.node(i).tally = tally{}
	}
}

// Starts counts the daemons of a node that have started since t=0.
func (a *Auditor) Starts(node int) int {
	if node < 0 || node >= len(a.nodes) {
		return 0
	}
	return a.nodes[node].tally.starts
}

// Reached counts how often a node's daemons came through a coverage point since t=0.
func (a *Auditor) Reached(node int, m ipam.Point) int {
	if node < 0 || node >= len(a.nodes) || m >= pointLimit {
		return 0
	}
	return int(a.nodes[node].tally.marks[m])
}

// count takes the notes of a step.
func (t *tally) count(effs []ipam.Effect) {
	for _, e := range effs {
		if note, ok := e.(*ipam.Note); ok && note.Point < pointLimit {
			t.marks[note.Point]++
		}
	}
}
