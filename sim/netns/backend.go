package netns

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
)

// backend carries a node's requests to the models.
type backend struct{ n *instance }

func (b *backend) clock() time.Duration {
	var t time.Duration
	b.n.w.mail.Ask(func() { t = b.n.w.now() })
	return t
}

// Do makes a request to EC2 travel, as the model says.
func (b *backend) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	request := *r
	return b.n.w.mail.Await(ctx, func(answer func(*ec2.Response)) { b.send(&request, answer) })
}

// send is a request that leaves its node, which counts as held back until it is answered.
func (b *backend) send(r *ec2.Request, answer func(*ec2.Response)) {
	n, w := b.n, b.n.w
	r.Caller = n.Instance
	release := n.keep()
	if !strings.HasPrefix(r.Action.String(), "Describe") {
		n.mutated = time.Now()
	}
	sender := machine.Sender{EC2: w.EC2, Now: w.now, After: w.after,
		Trap:  func(a ec2.Action, after bool) bool { return !(after && n.dying()) && w.Trapped(&n.Node, a, after) },
		Asked: func(r *ec2.Request) { w.witness.Asked(w.Whose(&n.Node), n.No, r) },
		Served: func(r *ec2.Request, answer *ec2.Response) {
			w.witness.Served(w.EC2, n.No, r, answer)
			w.record.served(w.Now(), int32(n.No), r, answer)
		}}
	sender.Send(r, func(resp *ec2.Response) {
		release()
		answer(resp)
	})
}

// hold keeps a request back for a while.
func (b *backend) hold(d time.Duration) {
	done := make(chan struct{})
	b.n.w.mail.Post(func() {
		release := b.n.keep()
		b.n.w.after(d, func() { release(); close(done) })
	})
	select {
	case <-done:
	case <-b.n.w.mail.Closed():
	}
}

// metadata is the instance's view; a silent service hangs for as long as a caller waits.
func (b *backend) metadata(context.Context) (view ec2.IMDS, ok bool) {
	b.n.w.mail.Ask(func() {
		if view, ok = b.n.w.EC2.IMDS(b.n.w.now(), b.n.Instance); ok {
			view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
		}
	})
	if !ok {
		b.hold(models.HangTimeout)
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	return view, ok
}

// criBackend is the runtime.
type criBackend struct{ *backend }

func (b criBackend) Sandboxes(context.Context) (out []cri.Sandbox, err error) {
	down, partial := false, false
	ok := b.n.w.mail.Ask(func() {
		if b.n.w.parts.WithoutBooks {
			b.n.w.SocketMet(&b.n.Node, "the daemon asks for the list, and the runtime socket is "+b.n.Socket.String())
		}
		if b.n.Socket == models.Empty {
			return
		}
		list, whole := b.n.CRI.ListSandboxes()
		b.n.w.BoxesMet(&b.n.Node)
		out, down, partial = append(out, list...), !whole, b.n.Socket == models.Partial
	})
	switch {
	case !ok:
		return nil, machine.ErrClosed
	case down:
		b.hold(models.HangTimeout)
		return nil, status.Error(codes.Unavailable, "the runtime is restarting")
	case partial:
		return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	return out, nil
}

func (b criBackend) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: b.n.w.Cluster.Runtime.String(), Version: "1"}, nil
}
