package judge

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Config of an Auditor.
type Config struct {
	Nodes  int
	Budget int64 // EC2 calls that the whole cluster may make; 0 is no budget
	Bounds Bounds
	// Without are the sources that the world lacks: what needs them is not judged.
	Without Source
}

// Bounds are how long a repaired invariant may be broken, and the tolerances of the others. Zero is the default.
type Bounds struct {
	Attached  time.Duration // I3: default as in the catalogue
	Reachable time.Duration // I10: default as in the catalogue
	Serves    time.Duration // I16: default as in the catalogue
	Reply     time.Duration // I13: how late after its deadline a reply may leave; 0 is exact, for worlds with virtual time
	CoolDown  time.Duration // I7: how much too early a reuse may be; 0 is exact
	Band      int           // I11: addresses kept above the targets that are tolerated
}

func (b Bounds) withDefaults() Bounds {
	all := Catalogue()
	b.Attached = cmp.Or(b.Attached, all[I3-1].Bound)
	b.Reachable = cmp.Or(b.Reachable, all[I10-1].Bound)
	b.Serves = cmp.Or(b.Serves, all[I16-1].Bound)
	return b
}

// Auditor judges one world. It is a value without locks: one goroutine uses it, clones may run beside it.
type Auditor struct {
	bounds  Bounds
	without Source
	budget  int64
	calls   int64
	calm    time.Duration // when the faults ended; 0: they have not
	seen    record
	looks   [ids]int64         // how often an invariant was looked at
	nodes   []*node            // by number; 0 takes what names no node
	last    map[netip.Addr]int // the node on which an address was configured last (I1)
	mine    *owner
}

// owner is an identity. A node with another owner is shared with a clone and copied before it is changed.
type owner struct{ _ byte }

// node is what the auditor remembers of one node.
type node struct {
	owner    *owner
	running  bool // between Started and Died
	contract Contract
	coolDown time.Duration
	gate     map[netip.Addr]tenure
	failing  map[ipam.Attachment]string // DELs whose last answer was an error
	made     []string                   // client tokens of the ENIs that its daemons have asked for
	asked    []string                   // and of those that EC2 was asked for
	up       clock
	faults   []fault
	busy     busy
	tally    tally
	foreign  []string // things of third parties that were told as gone or changed (I18)
}

// New makes an auditor for cfg.Nodes nodes, numbered from 1.
func New(cfg Config) *Auditor {
	a := &Auditor{bounds: cfg.Bounds.withDefaults(), without: cfg.Without, budget: cfg.Budget, mine: new(owner)}
	a.grow(cfg.Nodes)
	return a
}

// maxNodes bounds what a wrong node number can make the auditor allocate.
const maxNodes = 100_000

func (a *Auditor) grow(n int) {
	for n = min(n, maxNodes); len(a.nodes) <= n; {
		a.nodes = append(a.nodes, &node{owner: a.mine, busy: busy{never, never, never}})
	}
}

// Lacks says whether there is nothing of a source.
func (a *Auditor) Lacks(s Source) bool { return a.without&s != 0 }

// NotJudged are the invariants that it cannot judge, for want of a source.
func (a *Auditor) NotJudged() []ID { return NotJudged(a.without) }

// Clone copies the auditor. Nodes are copied when one of the two next changes them, so that a fork of a world costs
// little; neither ever sees what the other does.
func (a *Auditor) Clone() *Auditor {
	b := *a
	b.seen = a.seen.clone()
	b.nodes = slices.Clone(a.nodes)
	b.last = maps.Clone(a.last)
	a.mine, b.mine = new(owner), new(owner)
	return &b
}

// node gives the node to be changed.
func (a *Auditor) node(i int) *node {
	if i < 0 || i > maxNodes {
		i = 0
	}
	if i >= len(a.nodes) {
		a.grow(i)
	}
	n := a.nodes[i]
	if n.owner != a.mine {
		n = n.clone(a.mine)
		a.nodes[i] = n
	}
	return n
}

func (n *node) clone(by *owner) *node {
	m := *n
	m.owner = by
	m.contract = *n.contract.Clone()
	m.gate = maps.Clone(n.gate)
	m.failing = maps.Clone(n.failing)
	m.faults = slices.Clone(n.faults)
	m.made, m.asked = slices.Clone(n.made), slices.Clone(n.asked)
	m.foreign = slices.Clone(n.foreign)
	return &m
}

// breaks records a violation. It formats, so it is called when something is broken and only then.
func (a *Auditor) breaks(id ID, now time.Duration, node int, format string, args ...any) {
	a.seen.add(Violation{Invariant: id, At: now, Node: node, Text: fmt.Sprintf(format, args...)})
}
