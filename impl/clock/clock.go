package clock

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a source of instants.
type Clock struct {
	offset atomic.Int64
	moved  chan struct{}

	conn net.Conn // nil: the kernel's own clock
	send sync.Mutex
}

// Boot is the kernel's own clock.
func Boot() *Clock { return &Clock{} }

// dialTimeout is how long the first offset may take: the laboratory serves its clock before it starts a daemon.
const dialTimeout = 10 * time.Second

// Dial connects to a laboratory's clock, a unix socket, and waits for its first word. When the laboratory goes away the clock runs
// on in real time.
func Dial(path string) (*Clock, error) {
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("clock %s: %w; start the laboratory first, or leave --clock out", path, err)
	}
	c := &Clock{moved: make(chan struct{}, 1), conn: conn}
	_ = conn.SetReadDeadline(time.Now().Add(dialTimeout))
	first, err := readOffset(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("clock %s: it connected and did not say the time within %v: %w", path, dialTimeout, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	c.offset.Store(int64(first))
	go c.listen()
	return c, nil
}

func readOffset(r io.Reader) (time.Duration, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return time.Duration(binary.BigEndian.Uint64(b[:])), nil
}

// listen takes jumps until the laboratory is gone.
func (c *Clock) listen() {
	for {
		offset, err := readOffset(c.conn)
		if err != nil {
			return
		}
		if int64(offset) > c.offset.Load() { // it never runs backwards
			c.offset.Store(int64(offset))
		}
		select {
		case c.moved <- struct{}{}:
		default: // the reader has not looked since the last one
		}
	}
}

// Now is the instant: time since boot, or what the laboratory says it is.
func (c *Clock) Now() time.Duration { return boottime() + time.Duration(c.offset.Load()) }

// Moved receives after a jump: what waits for an instant looks again. It never does for the kernel's clock.
func (c *Clock) Moved() <-chan struct{} { return c.moved }

// State is what a daemon that waits is waiting for.
type State struct {
	Next     time.Duration // when it wants to work by itself; negative is never
	Remote   int           // requests to IMDS, EC2, the runtime and the API server that are under way
	Requests int           // requests of plugins that have no answer yet
	Steps    uint64        // inputs so far: what a recording must hold to be up to date
}

// Idle tells the laboratory that nothing is to be done before s.Next, unless something comes in. For the kernel's clock it does
// nothing.
func (c *Clock) Idle(s State) {
	if c.conn == nil {
		return
	}
	c.send.Lock()
	defer c.send.Unlock()
	var b [reportSize]byte
	encode(&b, Report{State: s, Offset: time.Duration(c.offset.Load())})
	_, _ = c.conn.Write(b[:]) // a laboratory that is gone needs no report
}

// Close ends the connection to a laboratory.
func (c *Clock) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

const reportSize = 40

// Report is a State as it arrives: Offset is the newest that the daemon knew. A report that is older than the last jump says nothing.
type Report struct {
	State
	Offset time.Duration
}

func encode(b *[reportSize]byte, r Report) {
	for i, v := range [...]uint64{uint64(r.Next), uint64(r.Remote), uint64(r.Requests), r.Steps, uint64(r.Offset)} {
		binary.BigEndian.PutUint64(b[8*i:], v)
	}
}

func decode(b *[reportSize]byte) Report {
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Report{State{time.Duration(at(0)), int(at(1)), int(at(2)), at(3)}, time.Duration(at(4))}
}
