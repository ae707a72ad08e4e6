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

// server is the daemon's sockets and who has connected to them. Each caller has a goroutine, which reads, waits and
// writes.
type server struct {
	*life
	agent    *agent
	requests *requests
	health   *health
	take     func(*caller, *linux.Pod) // begins a request, on the loop

	listener *ipc.Listener
	older    net.Listener  // for older plugins of another CNI; nil: there is none
	slots    chan struct{} // one per caller that is served; any goroutine
	silent   silent        // any goroutine
}

// open takes callers.
func (s *server) open() {
	l := s.listener
	s.go_(func() { s.accept(l) })
	s.hearOlder()
	s.watchSocket()
}

// watchSocket hears when the socket's file goes. Where that cannot be heard, it is looked at now and then.
func (s *server) watchSocket() {
	s.watch(intentScan, func() error {
		ours := func(e fsnotify.Event) (bool, error) { return filepath.Clean(e.Name) == filepath.Clean(s.c.Socket), nil }
		return watchFolder(s.ctx, filepath.Dir(s.c.Socket), func() { s.post(s.hearAgain) }, ours)
	}, func(err error) {
		s.log.Warn("the socket's folder is not watched; it is looked at now and then", "err", err)
		s.hearAgain()
	})
}

// accept serves callers until the listener is closed.
func (s *server) accept(l *ipc.Listener) {
	for {
		p, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("a caller cannot be taken; ipamd tries again", "err", err)
			s.silent.hurry(0)       // a silent connection holds a file descriptor that others need
			time.Sleep(acceptPause) // it passes when callers leave
			continue
		}
		s.silent.add(p)
		s.silent.hurry(maxSilent)
		s.go_(func() { s.serve(p) })
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
	s.peers = slices.DeleteFunc(s.peers, func(o *ipc.Peer) bool { return o == p })
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
func (s *server) hearAgain() {
	if s.stopping || s.listener.Shown() {
		return
	}
	l, err := ipc.Listen(s.c.Socket)
	if err != nil {
		s.log.Error("the socket is gone and cannot be made again; ipamd tries again", "err", err)
		s.after(s.clock.Now()+retryMost, s.hearAgain)
		return
	}
	s.log.Warn("somebody has removed the socket; ipamd listens on a new one", "path", s.c.Socket)
	old := s.listener
	s.listener = l
	_ = old.Close() // its file is gone, and the loop that accepts from it ends
	s.go_(func() { s.accept(l) })
}

// close ends the accepting of connections.
func (s *server) close() {
	_ = s.listener.Close() // the socket is gone or will be replaced
	if s.older != nil {
		_ = s.older.Close()
	}
}

// refuse answers without reading.
func (s *server) refuse(p *ipc.Peer, code int, why string) {
	s.log.Warn("a caller is refused", "who", p.String(), "why", why)
	_ = p.Write(&ipc.Response{Version: s.c.Version, Code: code, Text: "ipamd refuses " + p.String() + ": " + why}) // it may not listen
	p.Close()
}

// serve is one caller's goroutine: it reads, waits and writes, and the loop does the rest.
func (s *server) serve(p *ipc.Peer) {
	if p.UID != 0 {
		s.silent.remove(p) // what it says is not read
		s.refuse(p, ipam.CodeConfig, "only root may ask")
		return
	}
	defer p.Close()
	q, files, err := p.Read()
	defer p.Release() // before Close
	s.silent.remove(p)
	if err == io.EOF {
		return // a probe whether a daemon is here
	}
	var other *ipc.Foreign
	if err != nil && !errors.As(err, &other) {
		s.refuse(p, codeOf(err), err.Error())
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		closeAll(files)
		s.refuse(p, ipam.CodeTryAgain, fmt.Sprintf("%d callers are served already, try again", maxPeers))
		return
	}
	if other != nil {
		s.serveForeign(p.Conn(), other.Said, p.String())
		return
	}
	pod, err := podOf(q, files)
	if err != nil {
		s.refuse(p, codeOf(err), "cni "+q.Verb+" "+q.Attachment().String()+": "+err.Error())
		return
	}
	c := &caller{q: q, who: p.String(), answer: make(chan *ipc.Response, 1)}
	if !s.post(func() { s.take(c, pod) }) {
		if pod != nil {
			pod.Close()
		}
		return
	}
	s.answer(p, c)
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
func (s *server) answer(p *ipc.Peer, c *caller) {
	var patience <-chan time.Time
	if c.q.Verb == ipc.Status {
		patience = time.After(statusBound)
	}
	select {
	case out := <-c.answer:
		if err := p.Write(out); err != nil {
			s.log.Info("an answer did not arrive", "verb", c.q.Verb, "who", c.who, "err", err)
		}
		s.post(s.requests.written)
	case <-p.Gone():
		s.post(func() { s.requests.hungUp(c) })
	case <-patience: // the loop is held up; a health check has to hear that in time
		_ = p.Write(&ipc.Response{Version: s.c.Version, Ready: s.health.wasReady.Load(), Busy: true, Reasons: []string{"ipamd is busy and has not answered within " + statusBound.String()}})
		s.post(func() { s.requests.hungUp(c) })
	case <-s.done:
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
