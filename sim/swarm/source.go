package swarm

import "time"

// source is where a draw comes from: splitmix64, as everywhere in the laboratory.
type source struct{ state uint64 }

func newSource(seed uint64) source {
	s := source{seed}
	s.state = s.next() // neighbouring seeds begin far apart
	return s
}

func (s *source) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

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
