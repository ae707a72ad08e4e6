package ec2

import (
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// mix32 is a bijection of 32 bits.
func mix32(z uint32) uint32 {
	z = (z ^ z>>16) * 0x85ebca6b
	z = (z ^ z>>13) * 0xc2b2ae35
	return z ^ z>>16
}

// stream is a splitmix64 generator: eight bytes of state, copied with the value that holds it.
type stream uint64

func (s *stream) next() uint64 { return splitmix.Next(s) }

// draw picks a duration from a span: half of the draws lie evenly between Min and Median, the other half
// between Median and Max, thinning out cubically towards Max.
func (s *stream) draw(p Span) time.Duration {
	if p.Max <= p.Min {
		return p.Min
	}
	z := s.next()
	u := int64(z >> 44) // 20 bits
	if z&1 == 0 {
		return p.Min + scale(p.Median-p.Min, u)
	}
	return p.Median + scale(p.Max-p.Median, u*u>>20*u>>20)
}

// scale is d × u / 2^20, with d split so that the product fits for any duration below 290 years.
func scale(d time.Duration, u int64) time.Duration {
	return d>>20*time.Duration(u) + d&(1<<20-1)*time.Duration(u)>>20
}
