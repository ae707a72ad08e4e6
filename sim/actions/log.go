package actions

import (
	"slices"

	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Log is what became of each action of a run. An action's number is what models call its faults by, so that what meets one can be
// found here. It is a value; Clone forks it.
type Log struct{ entries []entry }

type entry struct {
	what   string // the action, for people
	strike verb.Strike
	parts  []int // of an action on several nodes: one each
	void   bool  // a part whose node is gone
	told   int   // lines about it
}

// tellMost bounds how many lines a timeline has of one action that is met again and again: a lag of every read, an outage of every call.
const tellMost = 5

// Clone is an independent copy.
func (l *Log) Clone() Log {
	c := Log{slices.Clone(l.entries)}
	for i := range c.entries {
		c.entries[i].parts = slices.Clip(c.entries[i].parts) // parts are written once
	}
	return c
}

// Begin enters an action and gives its number, from 1. Until something is told of it, it has missed.
func (l *Log) Begin(what string) (id int) {
	l.entries = append(l.entries, entry{what: what, strike: verb.Miss("the world does not know the verb")})
	return len(l.entries)
}

// Terminated is why an action misses on a node whose instance is gone.
const Terminated = "the instance is terminated"

// Part enters what an action on all nodes does to one of them, and gives that as an action. One that is gone has no
// part in it.
func (l *Log) Part(id int, all *verb.Act, node int, gone bool) (one *verb.Act, part int) {
	a := *all
	a.Subject = scn.Subject{Kind: scn.Node, Node: node}
	part = l.Begin(Describe(&a))
	e := &l.entries[id-1]
	e.parts = append(e.parts, part)
	if gone {
		l.entries[part-1].void, l.entries[part-1].strike = true, verb.Miss(Terminated)
	}
	return &a, part
}

// Means says which pod an action is about, when the file calls it otherwise: web-0 is the oldest pod of web, whatever its name.
func (l *Log) Means(id int, called, pod string) {
	if pod != called {
		l.entries[id-1].what += " (" + pod + ")"
	}
}

// Took says how an action was taken at once. What the timeline says of it is empty while the action is armed: nothing has happened yet.
func (l *Log) Took(id int, s verb.Strike) (line string) {
	e := &l.entries[id-1]
	if e.strike.Fate == verb.Struck {
		return "" // it was met while it was taken
	}
	e.strike = s
	switch s.Fate {
	case verb.Struck:
		return e.what + ": " + s.Text
	case verb.Missed:
		return e.what + ": missed, " + s.Text
	}
	return ""
}

// Met says that something met an armed action, and gives what the timeline says of it; nothing after the first few times.
func (l *Log) Met(id int, did string) (line string) {
	if id < 1 || id > len(l.entries) {
		return ""
	}
	e := &l.entries[id-1]
	e.strike = verb.Strike{Fate: verb.Struck, Text: did}
	if e.told++; e.told > tellMost {
		return ""
	}
	return e.what + ": " + did
}

// Of is what has become of an action by now. One on several nodes has struck when it has on each that is there.
func (l *Log) Of(id int) verb.Strike {
	if id < 1 || id > len(l.entries) {
		return verb.Miss("it was never begun")
	}
	e := &l.entries[id-1]
	if len(e.parts) == 0 {
		return e.strike
	}
	worst, there := verb.Strike{Fate: verb.Struck}, false
	for _, p := range e.parts {
		x := &l.entries[p-1]
		if x.void {
			continue
		}
		there = true
		if x.strike.Fate < worst.Fate {
			worst = verb.Strike{Fate: x.strike.Fate, Text: x.what + ": " + x.strike.Text}
		}
	}
	if !there {
		return verb.Miss("all its nodes are gone")
	}
	return worst
}
