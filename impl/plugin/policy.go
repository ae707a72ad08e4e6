package plugin

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
)

// enforce has the network policy agent, where there is one, put the pod's policies in force before the pod runs.
func (v *verb) enforce(r *ipc.Response) error {
	if r.PolicyMode == "" || v.pod.Name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.conf.Timeout)
	defer cancel()
	began := time.Now()
	err := netpolicy.Enforce(ctx, v.agent(), r.PolicyMode, v.pod)
	v.log.Debug("policies", "mode", r.PolicyMode, "took", time.Since(began).String(), "error", err)
	switch {
	case errors.Is(err, netpolicy.ErrAbsent) && r.PolicyMode == netpolicy.Strict: // fail closed: default deny is what strict is for
		return errorf(ipam.CodeTryAgain, "%s: NETWORK_POLICY_ENFORCING_MODE is strict, and no network policy agent listens at %s: the pod would run without its policies; start the agent, or choose standard", v, v.agent())
	case errors.Is(err, netpolicy.ErrAbsent):
		return nil
	case errors.Is(err, netpolicy.ErrNotListening):
		return errorf(ipam.CodeTryAgain, "%s: %v: it starts again, or it is gone and has left its socket, which then has to be removed; try again", v, err)
	case err != nil:
		return errorf(ipam.CodeTryAgain, "%s: %v; try again", v, err)
	}
	return nil
}

// forget tells the agent that the pod is gone. Where it cannot be told now, the daemon does it: the DEL has succeeded (rule F).
func (v *verb) forget(r *ipc.Response) error {
	if r.PolicyMode == "" || v.pod.Name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.conf.Timeout)
	defer cancel()
	err := netpolicy.Forget(ctx, v.agent(), v.pod)
	if err == nil || errors.Is(err, netpolicy.ErrAbsent) {
		return nil
	}
	if noted := ipc.WriteIntent(v.intents(), v.intent()); noted != nil {
		return errorf(ipam.CodeTryAgain, "%s: %v, and ipamd could not be left a note to say that the pod is gone: %v; try again", v, err, noted)
	}
	v.log.Warn("noted for ipamd: the network policy agent has to hear that the pod is gone", "folder", v.intents(), "error", err.Error())
	return nil
}

// agent is the network policy agent's socket, beside the daemon's.
func (v *verb) agent() string { return filepath.Join(v.conf.StateDir, netpolicy.Name) }
