package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// accept serves callers until the listener is closed.
func (d *daemon) accept(l *ipc.Listener) {
	for {
		p, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Warn("a caller cannot be taken; ipamd tries again", "err", err)
			d.silent.hurry(0)       // a silent connection holds a file descriptor that others need
			time.Sleep(acceptPause) // it passes when callers leave
			continue
		}
		d.silent.add(p)
		d.silent.hurry(maxSilent)
		d.go_(func() { d.serve(p) })
	}
}

// silent are the callers who have not said what they want, in the order in which they came. They hold no place of those that are served: where
// there are too many, the first goes.
type silent struct {
	mu    sync.Mutex
	peers []*ipc.Peer
}

func (s *silent) add(p *ipc.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = append(s.peers, p)
}

func (s *silent) remove(p *ipc.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.peers, p); i >= 0 {
		s.peers = slices.Delete(s.peers, i, i+1)
	}
}

// hurry ends the first of them if there are more than most.
func (s *silent) hurry(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) > most {
		s.peers[0].Abandon()
		s.peers = slices.Delete(s.peers, 0, 1)
	}
}

// hearAgain listens anew where the socket's file is gone: plugins find no daemon, and would write intents and errors for ever.
func (d *daemon) hearAgain() {
	if d.closed || d.listener.Shown() {
		return
	}
	l, err := ipc.Listen(d.c.Socket)
	if err != nil {
		d.log.Error("the socket is gone and cannot be made again; ipamd tries again", "err", err)
		d.after(d.clock.Now()+retryMost, d.hearAgain)
		return
	}
	d.log.Warn("somebody has removed the socket; ipamd listens on a new one", "path", d.c.Socket)
	old := d.listener
	d.listener = l
	_ = old.Close() // its file is gone, and the loop that accepts from it ends
	d.go_(func() { d.accept(l) })
}

// closeListeners ends the accepting of connections.
func (d *daemon) closeListeners() {
	if !d.closed {
		d.closed = true
		_ = d.listener.Close() // the socket is gone or will be replaced
		if d.older != nil {
			_ = d.older.Close()
		}
	}
}

// refuse answers without reading.
func (d *daemon) refuse(p *ipc.Peer, code int, why string) {
	d.log.Warn("a caller is refused", "who", p.String(), "why", why)
	_ = p.Write(&ipc.Response{Version: d.c.Version, Code: code, Text: "ipamd refuses " + p.String() + ": " + why}) // it may not listen
	p.Close()
}

// serve is one caller's goroutine: it reads, waits and writes, and the loop does the rest.
func (d *daemon) serve(p *ipc.Peer) {
	if p.UID != 0 {
		d.silent.remove(p) // what it says is not read
		d.refuse(p, ipam.CodeConfig, "only root may ask")
		return
	}
	defer p.Close()
	q, files, err := p.Read()
	defer p.Release() // before Close
	d.silent.remove(p)
	if err == io.EOF {
		return // a probe whether a daemon is here
	}
	var other *ipc.Foreign
	if err != nil && !errors.As(err, &other) {
		d.refuse(p, codeOf(err), err.Error())
		return
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		closeAll(files)
		d.refuse(p, ipam.CodeTryAgain, fmt.Sprintf("%d callers are served already, try again", maxPeers))
		return
	}
	if other != nil {
		d.serveForeign(p.Conn(), other.Said, p.String())
		return
	}
	pod, err := podOf(q, files)
	if err != nil {
		d.refuse(p, codeOf(err), "cni "+q.Verb+" "+q.Attachment().String()+": "+err.Error())
		return
	}
	c := &caller{q: q, who: p.String(), answer: make(chan *ipc.Response, 1)}
	if !d.begun(func() { d.take(c, pod) }) {
		if pod != nil {
			pod.Close()
		}
		return
	}
	d.answer(p, c)
}

// codeOf tells what passes, as the want of files and memory does, from what is wrong with the request.
func codeOf(err error) int {
	for _, passes := range []error{ipc.ErrNoFiles, ipc.ErrCrowded, os.ErrDeadlineExceeded, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS} {
		if errors.Is(err, passes) {
			return ipam.CodeTryAgain
		}
	}
	return ipam.CodeConfig
}

// answer waits for the answer and writes it.
func (d *daemon) answer(p *ipc.Peer, c *caller) {
	var patience <-chan time.Time
	if c.q.Verb == ipc.Status {
		t := time.NewTimer(statusBound)
		defer t.Stop()
		patience = t.C
	}
	select {
	case out := <-c.answer:
		if err := p.Write(out); err != nil {
			d.log.Info("an answer did not arrive", "verb", c.q.Verb, "who", c.who, "err", err)
		}
		d.post(d.written)
	case <-p.Gone():
		d.post(func() { d.hungUp(c) })
	case <-patience: // the loop is held up; a health check has to hear that in time
		_ = p.Write(&ipc.Response{Version: d.c.Version, Ready: d.wasReady.Load(), Busy: true, Reasons: []string{"ipamd is busy and has not answered within " + statusBound.String()}})
		d.post(func() { d.hungUp(c) })
	case <-d.done:
	}
}

// begun is post that says whether the loop will do it.
func (d *daemon) begun(f func()) bool {
	select {
	case d.in <- f:
		return true
	case <-d.done:
		return false
	}
}

// podOf is the namespace that came with an ADD. Further files are closed.
func podOf(q *ipc.Request, files []*os.File) (*linux.Pod, error) {
	if q.Verb == ipc.Add && len(files) == 2 {
		pod, err := linux.NewPod(files[0], files[1])
		if err != nil {
			closeAll(files)
		}
		return pod, err
	}
	closeAll(files)
	if q.Verb == ipc.Add {
		return nil, fmt.Errorf("expected the pod's namespace and an rtnetlink socket inside it, found %d files", len(files))
	}
	return nil, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// watchSocket hears when the socket's file goes. Where that cannot be heard, it is looked at now and then.
func (d *daemon) watchSocket() {
	d.go_(func() {
		err := d.hearSocket()
		if d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("the socket's folder is not watched; it is looked at now and then", "err", err)
			d.hearAgain()
			d.after(d.clock.Now()+intentScan, d.watchSocket)
		})
	})
}

func (d *daemon) hearSocket() error {
	return watchFolder(d.ctx, filepath.Dir(d.c.Socket), func() { d.post(d.hearAgain) }, func(e fsnotify.Event) (bool, error) {
		return filepath.Clean(e.Name) == filepath.Clean(d.c.Socket), nil
	})
}
