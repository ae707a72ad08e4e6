package ipc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Conn is a caller's connection, for one Call.
type Conn struct {
	unix *net.UnixConn
	path string
}

// crowded is the pause before another try when the daemon's queue of connections is full.
const crowded = 5 * time.Millisecond

// ErrNotRunning means that no daemon listens on the socket.
var ErrNotRunning = errors.New("ipamd does not run")

// Dial connects to the daemon at that path. It fails with ErrNotRunning at once where there is none; the timeout bounds the wait
// for one that is there and accepts nothing.
func Dial(path string, timeout time.Duration) (*Conn, error) {
	until := time.Now().Add(timeout)
	for {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		switch {
		case err == nil:
			return &Conn{c, path}, nil
		case errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("ipamd's socket %s does not exist: %w", path, ErrNotRunning)
		case errors.Is(err, syscall.ECONNREFUSED):
			return nil, fmt.Errorf("nobody listens on ipamd's socket %s: %w", path, ErrNotRunning)
		case errors.Is(err, syscall.EAGAIN) && time.Now().Before(until): // connect(2): the backlog is full
			time.Sleep(crowded)
		default:
			return nil, fmt.Errorf("connect to ipamd at %s: %w", path, err)
		}
	}
}

// Call sends the request with its files, which stay the caller's, and waits for the answer. An error means that there
// is none: whether the daemon acted on the request is unknown. A refusal is no error but a Response with a Code.
func (c *Conn) Call(r *Request, timeout time.Duration, files ...*os.File) (*Response, error) {
	q := *r
	q.Version = cmp.Or(q.Version, ipam.Version)
	body, _ := json.Marshal(&q)                     // texts and numbers can always be encoded
	_ = c.unix.SetDeadline(time.Now().Add(timeout)) // of a closed connection: sending says so
	sent := writeFrame(c.unix, MaxRequest, body, files)
	if sent != nil && !errors.Is(sent, syscall.EPIPE) {
		return nil, c.failed(r, "send", sent)
	}
	// A daemon that refuses without reading has answered before it closed.
	body, _, err := readFrame(c.unix, MaxResponse, 0, nil)
	if err != nil {
		return nil, c.failed(r, "wait for the answer", errors.Join(sent, explained(err, timeout)))
	}
	out := &Response{}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, c.failed(r, "read the answer", err)
	}
	return out, nil
}

// explained says in a person's words what the two ways of getting no answer are.
func explained(err error, timeout time.Duration) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("ipamd did not answer within %v: %w", timeout, err)
	case hungUp(err):
		return fmt.Errorf("ipamd hung up before it answered: %w", err)
	}
	return err
}

func (c *Conn) failed(r *Request, what string, err error) error {
	return fmt.Errorf("%s to ipamd at %s: %s: %w", r.Verb, c.path, what, err)
}

// Close ends the connection.
func (c *Conn) Close() error { return c.unix.Close() }
