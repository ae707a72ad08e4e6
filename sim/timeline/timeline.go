// Package timeline tells what happened in a world, a line each, for people and for golden files. Names that the seed makes (ENIs)
// appear as ordinals, so that a story says what happened and not what it was called.
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// maxLines bounds what String tells: it is for people, and a broken world says the same thing a thousand times.
	maxLines = 400
	// maxKept bounds what is kept for Whole and Until: some 20 MB of a world that never comes to rest.
	maxKept = 200_000
)

// Cluster and Scenario are told of beside the nodes, which count from 1.
const (
	Cluster  = -1
	Scenario = 0
)

// Timeline is a value: Clone forks it. The zero Timeline is empty.
type Timeline struct {
	lines   []line
	enis    []known
	lives   []life // by node: of its daemon
	dropped int
}

type line struct {
	at   time.Duration // when first
	last time.Duration
	node int32
	text string
	many string // text when it happened several times, with a %d; "": text, and how many times behind it
	n    int    // how often in a row
}

// Clear forgets the lines and keeps the ordinals.
func (s *Timeline) Clear() { s.lines, s.dropped = nil, 0 }

// Keep forgets all but the last n lines.
func (s *Timeline) Keep(n int) {
	s.lines, s.dropped = slices.Clone(s.lines[max(0, len(s.lines)-n):]), 0
}

// Clone forks the story.
func (s *Timeline) Clone() Timeline {
	c := *s
	c.lines, c.enis, c.lives = slices.Clone(s.lines), slices.Clone(s.enis), slices.Clone(s.lives)
	return c
}

// Add tells a line about a node, Cluster or Scenario at an instant of the scenario. The same again within a minute is counted.
func (s *Timeline) Add(at time.Duration, node int32, text string) { s.add(at, node, text, "") }

// add is Add for a line whose number stands inside of it when it happened several times.
func (s *Timeline) add(at time.Duration, node int32, text, many string) {
	for i := len(s.lines) - 1; i >= 0 && i >= len(s.lines)-3; i-- { // the same again
		if l := &s.lines[i]; l.node == node && l.text == text && at-l.at < time.Minute {
			l.n, l.last = l.n+1, at
			return
		}
	}
	if len(s.lines) >= maxKept {
		s.dropped++
		return
	}
	s.lines = append(s.lines, line{at, at, node, text, many, 1})
}

// Last is the last line's text, "" of an empty story.
func (s *Timeline) Last() string {
	if len(s.lines) == 0 {
		return ""
	}
	return s.lines[len(s.lines)-1].text
}

// String is the story for people and golden files: its first lines, and how many more there are. It is ended by a newline unless it is empty.
func (s *Timeline) String() string {
	shown := min(len(s.lines), maxLines)
	return text(s.lines[:shown], len(s.lines)-shown+s.dropped)
}

// Whole is all of it.
func (s *Timeline) Whole() string { return text(s.lines, s.dropped) }

// Until is what had happened by an instant, that one included. How often something has happened that went on afterwards is not said.
func (s *Timeline) Until(at time.Duration) string {
	var past []line
	for _, l := range s.lines { // worlds in real time hear of some things a little late, so they are not in order
		if l.at > at {
			continue
		}
		if l.last > at {
			l.n = 1
		}
		past = append(past, l)
	}
	return text(past, 0)
}

// text is a line each, and how many more there are.
func text(lines []line, more int) string {
	var b strings.Builder
	for i := range lines {
		l := &lines[i]
		fmt.Fprintf(&b, "%8s  %-8s  %s\n", round(l.at), who(l.node), l.String())
	}
	if more > 0 {
		fmt.Fprintf(&b, "          and %d lines more\n", more)
	}
	return b.String()
}

func (l *line) String() string {
	switch {
	case l.n == 1:
		return l.text
	case l.many != "":
		return fmt.Sprintf(l.many, l.n)
	}
	return fmt.Sprintf("%s (%d times)", l.text, l.n)
}

// who did it: a node, the scenario itself, or the cluster as a whole.
func who(node int32) string {
	switch node {
	case Scenario:
		return "scenario"
	case Cluster:
		return "cluster"
	}
	return fmt.Sprintf("node-%d", node)
}

func round(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d/time.Minute), (d % time.Minute).Seconds())
}
