package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"unsafe"
)

// An errand is the other part of the memory that a machine shares with its host: what somebody wants who looks around
// in a machine that has paused, or what a branch brings. The machine does not look at it before, so that it changes
// nothing of what happens until then.
//
//	0   bytes of input that are there
//	8   no more will come: 1
//	16  the machine has paused: 1
//	24  the machine waits for more input than so many bytes; 0: it does not wait
//	32  length of the order
//	40  length of the tools
//	48  a branch is there: 1
//	56  the machine has looked for a branch: 1
//	64  the order, as JSON; behind it the input's room, and the tools as a tar archive
type errand struct{ mem []byte }

const (
	givenAt       = 0
	overAt        = 8
	pausedAt      = 16
	asksAt        = 24
	orderLengthAt = 32
	toolsLengthAt = 40
	branchedAt    = 48
	lookedAt      = 56
	orderAt       = 64
	inputAt       = 64 << 10
	inputRoom     = 1 << 20
	toolsAt       = inputAt + inputRoom
)

// order says how the shell is to be.
type order struct {
	Terminal   bool
	Term       string
	Rows, Cols uint16
}

func (e *errand) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&e.mem[at])) }

func (e *errand) get(at int) uint64 { return atomic.LoadUint64(e.word(at)) }

func (e *errand) set(at int, x uint64) { atomic.StoreUint64(e.word(at), x) }

func (e *errand) begun() bool { return len(e.mem) > 0 && e.get(pausedAt) != 0 }

// prepare writes down what is wanted.
func (e *errand) prepare(p *Pause) error {
	o := order{Term: p.Term}
	if p.Terminal != nil {
		o.Terminal = true
		o.Rows, o.Cols = windowSize(p.Terminal)
	} else if p.Input != nil {
		data, err := io.ReadAll(io.LimitReader(p.Input, inputRoom+1))
		if err != nil {
			return fmt.Errorf("read the commands for the machine that pauses: %w", err)
		}
		if !e.give(data) {
			return fmt.Errorf("the commands for the machine that pauses: expected at most %d bytes, found more", inputRoom)
		}
	}
	if !o.Terminal {
		e.set(overAt, 1)
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	copy(e.mem[orderAt:inputAt], data)
	e.set(orderLengthAt, uint64(len(data)))
	return e.bring(p.Tools)
}

// bring puts files there.
func (e *errand) bring(files *Image) error {
	w := &room{e.mem[toolsAt:], 0}
	if err := files.WriteTar(w); err != nil {
		return fmt.Errorf("hand files to a machine that runs: %w", err)
	}
	e.set(toolsLengthAt, uint64(w.used))
	return nil
}

// room is memory that is written from its begin on.
type room struct {
	mem  []byte
	used int
}

func (r *room) Write(data []byte) (int, error) {
	if len(data) > len(r.mem)-r.used {
		return 0, fmt.Errorf("they have more than the %d bytes that there is room for", len(r.mem))
	}
	r.used += copy(r.mem[r.used:], data)
	return len(data), nil
}

// give adds input. False: there is no room for it.
func (e *errand) give(data []byte) bool {
	n := int(e.get(givenAt))
	if n+len(data) > inputRoom {
		return false
	}
	copy(e.mem[inputAt+n:], data)
	e.set(givenAt, uint64(n+len(data)))
	return true
}

// input is what there is from a place on.
func (e *errand) input(from int) []byte { return e.mem[inputAt+from : inputAt+int(e.get(givenAt))] }

func (e *errand) order() (*order, error) {
	n := e.get(orderLengthAt)
	if n > inputAt-orderAt {
		return nil, fmt.Errorf("the errand has %d bytes", n)
	}
	o := &order{}
	return o, json.Unmarshal(e.mem[orderAt:orderAt+n], o)
}

func (e *errand) tools() io.Reader { return bytes.NewReader(e.mem[toolsAt:][:e.get(toolsLengthAt)]) }
