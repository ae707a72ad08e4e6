package daemon

import (
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// core is the Node: stepped, and recorded.
type core struct {
	*life
	node    *ipam.Node // nil: the settings cannot be
	steps   uint64
	pause   time.Duration       // no tick before
	perform func([]ipam.Effect) // starts what a step wants
}

// step steps the Node with an input, records that, and starts what it wants.
func (co *core) step(in ipam.Input) {
	if co.c.Parts.Input != nil && in != nil {
		in = co.c.Parts.Input(in)
	}
	co.recorder.turn(co.node)
	now := co.clock.Now()
	effs := co.survive(now, in)
	co.steps++
	co.recorder.line(now, in, effs)
	if co.c.Parts.Effects != nil {
		effs = co.c.Parts.Effects(effs)
	}
	co.perform(effs)
}

// survive steps the Node. An input that makes it panic is recorded nevertheless: it is the one that matters.
func (co *core) survive(now time.Duration, in ipam.Input) []ipam.Effect {
	survived := false
	defer func() {
		if !survived {
			co.recorder.fatal(now, in)
		}
	}()
	effs := co.node.Step(now, in)
	survived = true
	return effs
}

// tick steps the Node when it wanted that.
func (co *core) tick(now time.Duration) bool {
	if now < co.pause || co.next() > now {
		return false
	}
	co.step(nil)
	if co.next() <= now {
		co.pause = now + tickPause
	}
	return true
}

// next is when the Node wants to be stepped again.
func (co *core) next() time.Duration {
	if co.node != nil {
		if at, ok := co.node.Next(); ok {
			return at
		}
	}
	return never
}
