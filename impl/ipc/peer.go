package ipc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Peer is a caller as the daemon sees it: Read once, Write once, Release once, Close.
type Peer struct {
	PID int    // of the process that connected, in the daemon's PID namespace; 0 when it has no name there
	UID uint32 // its effective user

	unix *net.UnixConn
	bulk chan struct{} // the Listener's, for large requests
	held bool          // one of its places is this peer's
	once sync.Once
	gone chan struct{}
}

// Read waits for the request, until a few seconds after Accept. The files are the reader's to close; with an error there are none. io.EOF
// means that the caller said nothing at all (a probe whether a daemon is there).
func (p *Peer) Read() (*Request, []*os.File, error) {
	body, files, err := readFrame(p.unix, MaxRequest, MaxFiles, p.large)
	if err == io.EOF {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read from %s: %w", p, err)
	}
	r, err := parseRequest(body)
	if err != nil {
		closeAll(files)
		return nil, nil, fmt.Errorf("read from %s: %w", p, err)
	}
	p.watch()
	return r, files, nil
}

// Write sends the answer. A caller that does not take it within a few seconds is given up.
func (p *Peer) Write(r *Response) error {
	q := *r
	q.Version = cmp.Or(q.Version, ipam.Version)
	body, err := json.Marshal(&q)
	if err == nil {
		_ = p.unix.SetWriteDeadline(time.Now().Add(patience)) // of a closed connection: writing says so
		err = writeFrame(p.unix, MaxResponse, body, nil)
	}
	if err != nil {
		return fmt.Errorf("answer %s: %w", p, err)
	}
	return nil
}

// Gone is closed when the caller has hung up after its request (a runtime kills its plugin when its own time is up),
// and by Close.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// large waits for one of the few places that large requests have.
func (p *Peer) large() error {
	select {
	case p.bulk <- struct{}{}:
		p.held = true
		return p.unix.SetReadDeadline(time.Now().Add(patience))
	case <-time.After(patience):
		return ErrCrowded
	}
}

// Conn is the connection itself, for who does not speak the local protocol; how long that may take is the reader's to say.
func (p *Peer) Conn() net.Conn { return p.unix }

// Release ends, once, the request's claim on memory.
func (p *Peer) Release() {
	if p.held {
		<-p.bulk
	}
}

// Close ends the connection.
func (p *Peer) Close() error {
	p.leave()
	return p.unix.Close()
}

// Abandon ends the connection under a Read that waits, or is yet to come; Close has to follow.
func (p *Peer) Abandon() { _ = p.unix.SetReadDeadline(time.Unix(1, 0)) }

func (p *Peer) leave() { p.once.Do(func() { close(p.gone) }) }

// watch notices that the caller hung up. It looks and does not take: a byte that comes out of turn ends the watch, and
// its sender counts as gone.
func (p *Peer) watch() {
	raw, err := p.unix.SyscallConn()
	if err != nil || p.unix.SetReadDeadline(time.Time{}) != nil {
		p.leave()
		return
	}
	go func() {
		defer p.leave()
		raw.Read(func(fd uintptr) bool {
			var b [1]byte
			for {
				_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
				if err == syscall.EINTR {
					continue
				}
				return err != syscall.EAGAIN
			}
		})
	}()
}

// String names the caller.
func (p *Peer) String() string { return fmt.Sprintf("process %d of user %d", p.PID, p.UID) }

// hungUp says whether the other end closed.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
