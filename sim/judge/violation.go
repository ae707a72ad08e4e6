package judge

import (
	"strconv"
	"time"
)

// Violation is one break of an invariant. Text names the subject, what was expected and what was found.
type Violation struct {
	Invariant ID
	At        time.Duration
	Node      int // 1-based; 0 is the cluster
	Text      string
}

func (v Violation) String() string {
	return v.Invariant.String() + " at " + v.At.String() + " on node-" + strconv.Itoa(v.Node) + ": " + v.Text
}

// keep bounds the violations that are kept of one invariant: a broken world breaks the same one at every event.
const keep = 100

// record is the list of what was broken. Its entries are never changed, so clones share them.
type record struct {
	list  []Violation
	total [ids]int64
}

func (r *record) add(v Violation) {
	r.total[v.Invariant]++
	if r.total[v.Invariant] <= keep {
		r.list = append(r.list, v)
	}
}

// clone shares what is there. The clone's capacity ends with its length, so that neither appends into the other.
func (r *record) clone() record {
	return record{list: r.list[:len(r.list):len(r.list)], total: r.total}
}

// Violations in the order in which they were seen: at most the first hundred of each invariant.
func (a *Auditor) Violations() []Violation { return a.seen.list[:len(a.seen.list):len(a.seen.list)] }

// Total counts all violations of an invariant, also those that were not kept.
func (a *Auditor) Total(id ID) int64 {
	if int(id) >= ids {
		return 0
	}
	return a.seen.total[id]
}

// First is the earliest violation.
func (a *Auditor) First() (Violation, bool) {
	if len(a.seen.list) == 0 {
		return Violation{}, false
	}
	return a.seen.list[0], true
}
