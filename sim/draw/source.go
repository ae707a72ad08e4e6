package draw

import (
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// source is where a draw comes from.
type Source struct{ State uint64 }

func NewSource(seed uint64) Source {
	s := Source{seed}
	s.State = s.Next() // neighbouring seeds begin far apart
	return s
}

func (s *Source) Next() uint64 { return splitmix.Next(&s.State) }

// between is a number from lo to hi, both included; lo when hi is less.
func (s *Source) Between(lo, hi int) int {
	if hi <= lo {
		return lo
	}
	return lo + int(s.Next()%uint64(hi-lo+1))
}

// chance is true percent times out of a hundred.
func (s *Source) Chance(percent int) bool { return s.Between(1, 100) <= percent }

func Pick[T any](s *Source, of ...T) T { return of[s.Between(0, len(of)-1)] }

// span is a duration between two, in steps of a step: what a person would write.
func (s *Source) Span(lo, hi, step time.Duration) time.Duration {
	return time.Duration(s.Between(int(lo/step), int(hi/step))) * step
}
