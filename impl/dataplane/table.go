package dataplane

import (
	"encoding/binary"
	"net/netip"
)

// table finds positions in a list by the hash of what stands there: open addressing, at most half full. An index is made for every
// observation and asked a few times, which Go's maps are too dear for.
type table []int32 // position + 1; 0 is empty

func makeTable(n int) table {
	size := 8
	for size < 2*n {
		size *= 2
	}
	return make(table, size)
}

// step is the slot after i; a hash is followed slot by slot to an empty one.
func (t table) step(i uint32) uint32 { return (i + 1) & uint32(len(t)-1) }

func (t table) slot(hash uint32) uint32 { return hash & uint32(len(t)-1) }

// hashString looks at the end alone: aliases, names and MACs differ there.
func hashString(s string) uint32 {
	x := uint64(len(s))
	for i := max(0, len(s)-8); i < len(s); i++ {
		x = x<<8 | uint64(s[i])
	}
	return mix(x)
}

func hashAddr(a netip.Addr) uint32 {
	b := a.As16()
	return mix(binary.BigEndian.Uint64(b[:8]) ^ binary.BigEndian.Uint64(b[8:]))
}

// mix is Fibonacci hashing (Knuth, volume 3, section 6.4).
func mix(x uint64) uint32 { return uint32(x * 0x9e3779b97f4a7c15 >> 32) }
