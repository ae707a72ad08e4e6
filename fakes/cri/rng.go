package cri

import "time"

// rng is splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014):
// eight bytes of state that are cloned with their owner.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

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
