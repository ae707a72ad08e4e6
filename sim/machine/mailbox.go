package machine

import (
	"context"
	"errors"

	"github.com/enilab/enilab/fakes/ec2"
)

// Mailbox hands what happens elsewhere to a world's loop, which owns the world.
type Mailbox struct {
	in            chan func()
	closed, ended chan struct{}
}

// NewMailbox is an open one.
func NewMailbox() *Mailbox {
	return &Mailbox{in: make(chan func(), 256), closed: make(chan struct{}), ended: make(chan struct{})}
}

// In is what the loop does, one after the other.
func (m *Mailbox) In() <-chan func() { return m.in }

// Closed ends with Close.
func (m *Mailbox) Closed() <-chan struct{} { return m.closed }

// Close refuses what comes from now on; false: it was closed before. The world's owner calls it.
func (m *Mailbox) Close() bool {
	select {
	case <-m.closed:
		return false
	default:
		close(m.closed)
		return true
	}
}

// End says that the loop does nothing more.
func (m *Mailbox) End() { close(m.ended) }

// Ended ends with End.
func (m *Mailbox) Ended() <-chan struct{} { return m.ended }

// Post hands f to the loop; false: it is closed.
func (m *Mailbox) Post(f func()) bool {
	select {
	case <-m.closed:
		return false
	default:
	}
	select {
	case m.in <- f:
		return true
	case <-m.closed:
		return false
	}
}

// Ask posts f and waits until it has run; false: the loop has ended. The loop itself must not call it.
func (m *Mailbox) Ask(f func()) bool {
	done := make(chan struct{})
	if !m.Post(func() { f(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-m.ended:
		return false
	}
}

// ErrClosed is what callers get when the world ends.
var ErrClosed = errors.New("the laboratory is closed")

// Await is the caller's side of a request, which send sends in the loop. A caller who goes takes no request back.
func (m *Mailbox) Await(ctx context.Context, send func(answer func(*ec2.Response))) (ec2.Response, error) {
	answer := make(chan *ec2.Response, 1)
	if !m.Post(func() { send(func(resp *ec2.Response) { answer <- resp }) }) {
		return ec2.Response{}, ErrClosed
	}
	select {
	case resp := <-answer:
		if resp == nil {
			return ec2.Response{}, errors.New("nobody answers")
		}
		return *resp, nil
	case <-ctx.Done():
		return ec2.Response{}, ctx.Err()
	case <-m.closed:
		return ec2.Response{}, ErrClosed
	}
}
