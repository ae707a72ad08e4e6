package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/judge"
)

// socketMismatch is scenarios/socket-mismatch.scn in its worst variant. The node has all addresses that it can have, 15, so that most of them
// are too many for a daemon that believes none to be used.
var socketMismatch = incident{
	name: "socket-mismatch",
	text: "aws-node is re-rolled with the socket of a runtime that answers an empty list: nothing is given back",
	env:  map[string]string{"WARM_ENI_TARGET": "1"},
	run: func(ctx context.Context, s *scene) error {
		const pods = 7
		if _, err := s.start(ctx, "web", pods); err != nil {
			return err
		}
		if err := s.pass(ctx, time.Minute); err != nil { // until it has its warm ENI
			return err
		}
		r, err := s.emptyRuntime()
		if err != nil {
			return err
		}
		before := s.givenBack()
		wrong := s.daemon(map[string]string{"ENILAB_RUNTIME_SOCKET": "unix://" + labDir + "/" + runtimeFile, "AWS_VPC_K8S_CNI_EXTERNALSNAT": "true"})
		if err := s.roll(ctx, wrong); err != nil {
			return err
		}
		if err := s.impaired(ctx, true); err != nil {
			return err
		}
		if err := s.pass(ctx, 6*time.Minute); err != nil { // 1.5.3 detached an ENI after one to nineteen
			return err
		}
		if err := s.churn(ctx, 36, 6); err != nil {
			return err
		}
		if err := s.pass(ctx, 2*time.Minute); err != nil {
			return err
		}
		if r.lists.Load() < 6 {
			return errors.New("the daemon has hardly asked the wrong runtime")
		}
		if n := s.givenBack() - before; n > 0 {
			return broken(judge.I4, "%d times something was given back to EC2 while nobody knew what is used", n)
		}
		if err := s.roll(ctx, s.daemon(nil)); err != nil {
			return err
		}
		return s.impaired(ctx, false)
	},
}

// runtimeFile is the wrong runtime's socket, in labDir.
const runtimeFile = "cri.sock"

// emptyRuntime is a runtime that runs and has no sandboxes.
type emptyRuntime struct{ lists atomic.Int64 }

func (r *emptyRuntime) Sandboxes(context.Context) ([]cri.Sandbox, error) {
	r.lists.Add(1)
	return nil, nil
}

func (r *emptyRuntime) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "2.1.5"}, nil
}

// emptyRuntime serves one on the node until the incident's end.
func (s *scene) emptyRuntime() (*emptyRuntime, error) {
	path := filepath.Join(s.path(labDir), runtimeFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	r := &emptyRuntime{}
	server := criserver.New(r)
	s.later(func() error { server.Stop(); return nil })
	go func() { _ = server.Serve(l) }()
	return r, nil
}

// givenBack counts what the node has given back to EC2.
func (s *scene) givenBack() (n int) {
	s.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		for _, a := range []ec2.Action{ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface, ec2.UnassignPrivateIpAddresses} {
			n += m.CallsBy(s.node.Instance, a).Total
		}
	})
	return n
}

// impaired waits until the daemon says that it is, or that it is not any more.
func (s *scene) impaired(ctx context.Context, is bool) error {
	what := "the daemon to say that all is well"
	if is {
		what = "the daemon to say why it does not believe the runtime"
	}
	return awaited(ctx, startLimit, what, func(context.Context) (string, error) {
		v, err := s.view()
		if err != nil || is == (len(v.View.Reasons) > 0) {
			return "", err
		}
		if len(v.View.Reasons) > 0 {
			return v.View.Reasons[0], nil
		}
		return "it says that all is well", nil
	})
}
