package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/local"
)

// accept serves callers until the listener is closed.
func (d *daemon) accept() {
	for {
		p, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.Warn("a caller cannot be taken; ipamd tries again", "err", err)
			time.Sleep(acceptPause) // it passes when callers leave
			continue
		}
		select {
		case d.slots <- struct{}{}:
			d.go_(func() {
				defer func() { <-d.slots }()
				d.serve(p)
			})
		default:
			d.go_(func() {
				d.refuse(p, ipam.CodeTryAgain, fmt.Sprintf("%d callers are served already, try again", maxPeers))
			})
		}
	}
}

// deaf takes no further callers.
func (d *daemon) deaf() {
	if !d.closed {
		d.closed = true
		_ = d.listener.Close() // the socket is gone or will be replaced
	}
}

// refuse answers without reading.
func (d *daemon) refuse(p *local.Peer, code int, why string) {
	d.log.Warn("a caller is refused", "who", p.String(), "why", why)
	_ = p.Write(&local.Response{Version: d.c.Version, Code: code, Text: "ipamd refuses " + p.String() + ": " + why}) // it may not listen
	p.Close()
}

// serve is one caller's goroutine: it reads, waits and writes, and the loop does the rest.
func (d *daemon) serve(p *local.Peer) {
	if p.UID != 0 {
		d.refuse(p, ipam.CodeConfig, "only root may ask")
		return
	}
	defer p.Close()
	q, files, err := p.Read()
	if err == io.EOF {
		return // somebody looked whether a daemon is here
	}
	if err != nil {
		d.refuse(p, ipam.CodeConfig, err.Error())
		return
	}
	pod, err := podOf(q, files)
	if err != nil {
		d.refuse(p, ipam.CodeConfig, "cni "+q.Verb+" "+q.Attachment().String()+": "+err.Error())
		return
	}
	c := &caller{q: q, who: p.String(), answer: make(chan *local.Response, 1)}
	if !d.begun(func() { d.take(c, pod) }) {
		if pod != nil {
			pod.Close()
		}
		return
	}
	d.answer(p, c)
}

// answer waits for the answer and writes it.
func (d *daemon) answer(p *local.Peer, c *caller) {
	var patience <-chan time.Time
	if c.q.Verb == local.Status {
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
	case <-patience: // the loop is held up; whoever asks for health has to hear that in time
		_ = p.Write(&local.Response{Version: d.c.Version, Ready: d.wasReady.Load(), Busy: true, Reasons: []string{"ipamd is busy and has not answered within " + statusBound.String()}})
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

// podOf is the namespace that came with an ADD. Files that nobody asked for are closed.
func podOf(q *local.Request, files []*os.File) (*linux.Pod, error) {
	if q.Verb == local.Add && len(files) == 2 {
		pod, err := linux.NewPod(files[0], files[1])
		if err != nil {
			closeAll(files)
		}
		return pod, err
	}
	closeAll(files)
	if q.Verb == local.Add {
		return nil, fmt.Errorf("expected the pod's namespace and an rtnetlink socket inside it, found %d files", len(files))
	}
	return nil, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
