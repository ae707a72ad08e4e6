package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Kinds of subjects that tracks follow.
const (
	KindDaemon = "daemon"
	KindENI    = "eni"
	KindPod    = "pod"
)

// Bounds of what is kept: a world of 500 nodes has some 20,000 subjects, and one that never comes to rest would fill the memory.
const (
	maxSubjects = 100_000
	maxSpans    = 1_000  // of a subject
	maxPoints   = 10_000 // of a curve
)

// Tracks follow subjects and numbers through a run. A caller reports all that is there at that instant: Look, then Is
// and Counts, then Seen. What was not said has ended.
type Tracks struct {
	Subjects []Subject
	Curves   []Curve

	at     time.Duration
	look   int
	index  map[subjectKey]int
	open   []int // of Subjects: those that were there at the last look
	curves map[curveKey]int
}

// Subject is one thing over time: a daemon, an ENI, a pod's sandbox.
type Subject struct {
	Node  int32
	Kind  string
	Name  string
	Spans []Span

	seen int // the last look at which it was there
}

// Span is a while in which a subject was in one state.
type Span struct {
	From, To time.Duration
	State    string
	Text     string
}

// Curve is a number over time, of a node or of the Cluster. Each point holds until the next.
type Curve struct {
	Node   int32
	Name   string
	Points []Point
}

// Point of a curve.
type Point struct {
	At    time.Duration
	Value int64
}

type subjectKey struct {
	node     int32
	kind, id string
}

type curveKey struct {
	node int32
	name string
}

// Look begins a look.
func (t *Tracks) Look(at time.Duration) {
	if t.index == nil {
		t.index, t.curves = map[subjectKey]int{}, map[curveKey]int{}
	}
	t.at = at
	t.look++
}

// Is says that a subject is there, and how. The id tells it from others of one name.
func (t *Tracks) Is(node int32, kind, id, name, state, text string) {
	key := subjectKey{node, kind, id}
	i, known := t.index[key]
	if !known {
		if len(t.Subjects) == maxSubjects {
			return
		}
		i = len(t.Subjects)
		t.index[key] = i
		t.Subjects = append(t.Subjects, Subject{Node: node, Kind: kind, Name: name})
	}
	s := &t.Subjects[i]
	if s.seen == t.look {
		return
	}
	there := known && s.seen == t.look-1
	if !there {
		t.open = append(t.open, i)
	}
	s.seen = t.look
	if n := len(s.Spans); n > 0 && there {
		l := &s.Spans[n-1]
		l.To = t.at
		if l.State == state && l.Text == text {
			return
		}
	}
	if len(s.Spans) < maxSpans {
		s.Spans = append(s.Spans, Span{t.at, t.at, state, text})
	}
}

// Counts says what a number is.
func (t *Tracks) Counts(node int32, name string, v int64) {
	key := curveKey{node, name}
	i, known := t.curves[key]
	if !known {
		i = len(t.Curves)
		t.curves[key] = i
		t.Curves = append(t.Curves, Curve{Node: node, Name: name})
	}
	c := &t.Curves[i]
	if n := len(c.Points); n > 0 && c.Points[n-1].Value == v || n == maxPoints {
		return
	}
	c.Points = append(c.Points, Point{t.at, v})
}

// Seen ends a look: whatever was there before and is not now has ended at this instant.
func (t *Tracks) Seen() {
	t.open = slices.DeleteFunc(t.open, func(i int) bool {
		s := &t.Subjects[i]
		if s.seen == t.look {
			return false
		}
		if n := len(s.Spans); n > 0 {
			s.Spans[n-1].To = t.at
		}
		return true
	})
}

// Sort orders the subjects by node, kind (the daemon, its ENIs, its pods) and first instant.
func (t *Tracks) Sort() {
	rank := map[string]int{KindDaemon: 0, KindENI: 1, KindPod: 2}
	slices.SortStableFunc(t.Subjects, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(rank[a.Kind], rank[b.Kind]))
	})
	slices.SortStableFunc(t.Curves, func(a, b Curve) int { return cmp.Compare(a.Node, b.Node) })
	t.index, t.curves, t.open = nil, nil, nil
}
