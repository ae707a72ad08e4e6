package kube

import "github.com/enilab/enilab/internal/splitmix"

// rng is a generator that is cloned with its owner.
type rng uint64

func (r *rng) next() uint64 { return splitmix.Next(r) }

// suffix is a generated name's end: ten characters of the alphabet that Kubernetes uses, without
// vowels and without digits that look like letters.
func (r *rng) suffix() string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	var b [10]byte
	v := r.next()
	for i := range b {
		b[i] = alphabet[v%uint64(len(alphabet))]
		v /= uint64(len(alphabet))
	}
	return string(b[:])
}

// uid is a version 4 UUID; the serial in its last digits makes it unique in its cluster.
func (r *rng) uid(serial uint64) string {
	const digits = "0123456789abcdef"
	hi, lo := r.next()&^0xf000|0x4000, r.next()>>2<<32|1<<63
	lo = lo&^(1<<62) | serial&0xffffffff
	var b [36]byte
	nibble := func(i int) byte {
		if i < 16 {
			return digits[hi>>(60-4*i)&15]
		}
		return digits[lo>>(124-4*i)&15]
	}
	for i, j := 0, 0; j < len(b); j++ {
		if j == 8 || j == 13 || j == 18 || j == 23 {
			b[j] = '-'
			continue
		}
		b[j] = nibble(i)
		i++
	}
	return string(b[:])
}
