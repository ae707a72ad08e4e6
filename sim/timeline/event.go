package timeline

import "time"

// Event is a line of the timeline, as data.
type Event struct {
	At, Last time.Duration // Last is when it happened last, of several times
	Node     int32         // or Cluster, or Scenario
	Text     string
}

// Events are all lines, in the order in which they were told.
func (s *Timeline) Events() []Event {
	out := make([]Event, len(s.lines))
	for i := range s.lines {
		l := &s.lines[i]
		out[i] = Event{l.at, l.last, l.node, l.String()}
	}
	return out
}

// Told is how many lines there are.
func (s *Timeline) Told() int { return len(s.lines) }
