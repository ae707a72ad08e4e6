package judge

import "strings"

// Source is a set of what an invariant is judged from.
type Source uint8

// The sources. Of a daemon that is only seen from outside, Books alone is missing.
const (
	Kernel  Source = 1 << iota // a node's kernel, what of it has no owner included
	EC2                        // what EC2's model did and knows: its truth
	Runtime                    // what the runtime called the CNI with and was told, and which sandboxes live
	Packets                    // whether a packet gets to a pod and back
	Books                      // what the daemon believes and does: its core, or a recording of it
)

var sourceNames = [...]string{"kernel", "EC2", "runtime", "packets", "books"}

// Names of the set's members.
func (s Source) Names() (out []string) {
	for i, name := range sourceNames {
		if s&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (s Source) String() string { return strings.Join(s.Names(), ", ") }

// Judged says whether a world that lacks these sources judges an invariant.
func (id ID) Judged(without Source) bool {
	for _, i := range Catalogue() {
		if i.ID == id {
			return i.Needs&without == 0
		}
	}
	return false
}

// NotJudged are the invariants that a world without these sources cannot judge, I1 first.
func NotJudged(without Source) (out []ID) {
	for _, i := range Catalogue() {
		if i.Needs&without != 0 {
			out = append(out, i.ID)
		}
	}
	return out
}
