package judge

import (
	"slices"

	"github.com/enilab/enilab/impl/ipam"
)

// idSet is all IDs that were used, as the highest one and the gaps below it. A counter makes no gaps, or few for a
// moment (an effect that waits for its lane may get its ID before one that does not).
type idSet struct {
	top  ipam.ID
	gaps []gap // ascending
}

// gap is the unused IDs first..last.
type gap struct{ first, last ipam.ID }

// maxGaps bounds the memory. Beyond it the lowest gap is forgotten, and its IDs count as used.
const maxGaps = 1024

func (s *idSet) clone() idSet { return idSet{s.top, slices.Clone(s.gaps)} }

// add says whether the ID is new, and remembers it.
func (s *idSet) add(id ipam.ID) bool {
	if id == s.top+1 {
		s.top = id
		return true
	}
	if id > s.top {
		s.gaps = append(s.gaps, gap{s.top + 1, id - 1})
		if len(s.gaps) > maxGaps {
			s.gaps = slices.Delete(s.gaps, 0, 1)
		}
		s.top = id
		return true
	}
	return s.fill(id)
}

func (s *idSet) fill(id ipam.ID) bool {
	for i := len(s.gaps) - 1; i >= 0; i-- {
		g := s.gaps[i]
		if id > g.last {
			return false
		}
		if id < g.first {
			continue
		}
		switch {
		case g.first == g.last:
			s.gaps = slices.Delete(s.gaps, i, i+1)
		case id == g.first:
			s.gaps[i].first++
		case id == g.last:
			s.gaps[i].last--
		default:
			s.gaps[i].last = id - 1
			s.gaps = slices.Insert(s.gaps, i+1, gap{id + 1, g.last})
		}
		return true
	}
	return false
}
