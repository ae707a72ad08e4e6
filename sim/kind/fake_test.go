package kind

import (
	"context"
	"net/netip"

	fake "github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
)

// oneSandbox is a runtime with one pod.
type oneSandbox struct{}

func (oneSandbox) Sandboxes(context.Context) ([]fake.Sandbox, error) {
	return []fake.Sandbox{{ID: "0123456789abcdef", Namespace: "default", Name: "web-0", UID: "u", Ready: true, IP: netip.MustParseAddr("10.0.0.9")}}, nil
}

func (oneSandbox) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "2"}, nil
}

func newFakeRuntime() *criserver.Server { return criserver.New(oneSandbox{}) }
