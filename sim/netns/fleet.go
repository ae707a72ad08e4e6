package netns

import (
	"iter"
	"time"
)

// fleet are a world's nodes by their numbers, from 1.
type fleet []*instance

// living are those whose instance is not terminated.
func (f fleet) living() iter.Seq[*instance] {
	return func(yield func(*instance) bool) {
		for _, n := range f[1:] {
			if !n.Gone && !yield(n) {
				return
			}
		}
	}
}

// tell lets every daemon know how far the clock is ahead of the machine's.
func (f fleet) tell(offset time.Duration) {
	for _, n := range f[1:] {
		if n.seat != nil {
			_ = n.seat.Tell(offset) // a daemon that died says so by itself
		}
	}
}

// behind names a daemon that has not said yet that its clock shows the last jump; "" is none. Nothing may happen before: what a daemon
// began at the old time would have lasted for the whole jump at once.
func (f fleet) behind(offset time.Duration) string {
	for n := range f.living() {
		if n.Runs() && !n.life.ended && n.report != nil && n.report.Offset != offset {
			return n.Name()
		}
	}
	return ""
}

// busy names what still has something to do; "" is nothing.
func (f fleet) busy(now time.Duration) string {
	for n := range f.living() {
		if why := n.busy(now); why != "" {
			return n.Name() + ": " + why
		}
	}
	return ""
}

// look is when what is busy may have come to rest unreported: a change of a kernel that needed no reaction.
func (f fleet) look() time.Duration {
	d := lookEvery
	for _, n := range f[1:] {
		if left := time.Until(n.stirred); left > 0 {
			d = min(d, left)
		}
		if !n.doubt.since.IsZero() {
			d = min(d, doubtPause)
		}
	}
	return d
}

// next is the earliest instant that a daemon waits for.
func (f fleet) next() time.Duration {
	at := never
	for n := range f.living() {
		if n.life != nil && n.report != nil && n.report.Next >= 0 {
			at = min(at, n.report.Next)
		}
	}
	return at
}

// compareAgain looks once more at the kernels that are doubted.
func (f fleet) compareAgain(now time.Duration) {
	for n := range f.living() {
		if !n.doubt.since.IsZero() && time.Since(n.compared) >= doubtPause && n.works(now) == "" {
			n.compare()
		}
	}
}

func (f fleet) doubted() bool {
	for n := range f.living() {
		if !n.doubt.since.IsZero() {
			return true
		}
	}
	return false
}
