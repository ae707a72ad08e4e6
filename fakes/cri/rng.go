package cri

import (
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// rng is a generator that is cloned with its owner.
type rng uint64

func (r *rng) next() uint64 { return splitmix.Next(r) }

// between draws from [lo, hi); lo when the range is empty.
func (r *rng) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(r.next()%uint64(hi-lo))
}

// containerID draws 64 hexadecimal digits.
func (r *rng) containerID() string {
	const digits = "0123456789abcdef"
	var b [64]byte
	for i := 0; i < len(b); i += 16 {
		v := r.next()
		for j := range 16 {
			b[i+j] = digits[v>>60]
			v <<= 4
		}
	}
	return string(b[:])
}
