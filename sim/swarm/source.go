package swarm

import (
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// source is where a draw comes from.
type source struct{ state uint64 }

func newSource(seed uint64) source {
	s := source{seed}
	s.state = s.next() // neighbouring seeds begin far apart
	return s
}

func (s *source) next() uint64 { return splitmix.Next(&s.state) }

// between is a number from lo to hi, both included; lo when hi is less.
func (s *source) between(lo, hi int) int {
	if hi <= lo {
		return lo
	}
	return lo + int(s.next()%uint64(hi-lo+1))
}

// chance is true percent times out of a hundred.
func (s *source) chance(percent int) bool { return s.between(1, 100) <= percent }

func pick[T any](s *source, of ...T) T { return of[s.between(0, len(of)-1)] }

// span is a duration between two, in steps of a step: what a person would write.
func (s *source) span(lo, hi, step time.Duration) time.Duration {
	return time.Duration(s.between(int(lo/step), int(hi/step))) * step
}
