package timeline

import (
	"slices"
	"strings"
	"time"
)

// known is an ENI that was heard of. Its ordinal is its place in the list.
type known struct {
	id      string
	created bool  // EC2 was heard to make it
	resumed bool  // an intent of an earlier daemon spoke of it
	node    int32 // whose daemon put it into service last
	served  int32 // in which life that was
}

// life is a daemon's: which of its node's it is, from 1, and how many ENIs had been heard of when it began.
type life struct {
	no    int32
	known int
}

// Started tells that a node's daemon begins a life.
func (s *Timeline) Started(at time.Duration, node int32) {
	for int(node) >= len(s.lives) {
		s.lives = append(s.lives, life{})
	}
	s.lives[node] = life{s.lives[node].no + 1, len(s.enis)}
	s.Add(at, node, "ipamd starts")
}

// index is an ENI's place. It gets one when it is heard of first.
func (s *Timeline) index(id string) int {
	i := slices.IndexFunc(s.enis, func(e known) bool { return e.id == id })
	if i < 0 {
		i = len(s.enis)
		s.enis = append(s.enis, known{id: id})
	}
	return i
}

// ENI is the ordinal name of an ENI: eni-A, eni-B, and after eni-Z eni-AA.
func (s *Timeline) ENI(id string) string { return ordinal(s.index(id)) }

func ordinal(i int) string {
	name := ""
	for i++; i > 0; i = (i - 1) / 26 {
		name = string(rune('A'+(i-1)%26)) + name
	}
	return "eni-" + name
}

// inService says what it means that a daemon has an ENI in service now: it made it, or found it.
func (s *Timeline) inService(node int32, id string) string {
	i := s.index(id)
	e, l := &s.enis[i], life{}
	if int(node) < len(s.lives) {
		l = s.lives[node]
	}
	again := e.node == node && e.served == l.no && l.no > 0
	e.node, e.served = node, l.no
	switch name := ordinal(i); {
	case again:
		return name + " is in service again"
	case i < l.known || e.resumed:
		return name + " taken over from the record"
	case e.created:
		return name + " made"
	default: // the instance's first one, or one that another owner attached
		return name + " taken into service"
	}
}

// ordinals replaces the ENIs' IDs in a text by their ordinals.
func (s *Timeline) ordinals(text string) string {
	return replaceIDs(text, func(id string) string { return s.ENI(id) })
}

// Named is a text in which the ENIs have the names that the story tells them by; their IDs stand behind the first mention. Of what the story has
// not heard the ID stays.
func (s *Timeline) Named(text string) string {
	told := map[string]bool{}
	return replaceIDs(text, func(id string) string {
		i := slices.IndexFunc(s.enis, func(e known) bool { return e.id == id })
		switch {
		case i < 0:
			return id
		case told[id]:
			return ordinal(i)
		}
		told[id] = true
		return ordinal(i) + " (" + id + ")"
	})
}

// idLength is that of EC2's IDs: a prefix and 17 hexadecimal digits.
const idLength = len("eni-") + 17

func replaceIDs(text string, by func(id string) string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "eni-")
		if i < 0 {
			return b.String() + text
		}
		b.WriteString(text[:i])
		end := i + len("eni-")
		for end < len(text) && strings.IndexByte("0123456789abcdef", text[end]) >= 0 {
			end++
		}
		if end-i == idLength {
			b.WriteString(by(text[i:end]))
		} else {
			b.WriteString(text[i:end])
		}
		text = text[end:]
	}
}
