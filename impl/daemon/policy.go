package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
)

// Network policies. An agent on the node is told of pods: by the plugin, which is there when a pod comes and goes, and by the daemon for the DELs
// that a plugin could not finish. It knows pods by name, which is no key (rule E): a pod of a StatefulSet comes back under its name while the runtime
// still deletes its old sandbox. So a pod is not said to be gone as long as another attachment has its name; the last one's DEL says it.

// agentGone is how often in a row a connection to an agent's socket was refused before it is taken for a leftover: for
// five minutes, with growing pauses.
const agentGone = 12

func (d *daemon) agentSocket() string { return filepath.Join(d.c.RunDir, netpolicy.Name) }

// agentMode is what the agent is told of itself when it starts. It knows the setting's words, and would not start with none.
func (d *daemon) agentMode() string { return cmp.Or(d.c.PolicyMode, netpolicy.None) }

// policyMode is what the agent has to hear of a pod after that verb; "" is nothing.
func (d *daemon) policyMode(verb ipam.Verb, att ipam.Attachment, p ipam.Pod) string {
	if d.c.PolicyMode == "" || p.Name == "" || verb != ipam.VerbAdd && verb != ipam.VerbDel || verb == ipam.VerbDel && d.another(att, p) {
		return ""
	}
	return d.c.PolicyMode
}

// another says whether a second attachment has the pod's name.
func (d *daemon) another(att ipam.Attachment, p ipam.Pod) (found bool) {
	d.node.Rows(func(r ipam.Row) {
		found = found || r.State == ipam.Assigned && r.Att != att && r.Pod.Namespace == p.Namespace && r.Pod.Name == p.Name
	})
	return found
}

// forget tells the agent that a pod of a DEL intent is gone, and ends the intent when that has been said, or no agent
// is there to hear it.
func (d *daemon) forget(e *ipc.IntentFile, again func()) {
	d.go_(func() {
		err := netpolicy.Forget(d.ctx, d.agentSocket(), e.Pod)
		d.post(func() {
			switch {
			case err == nil, errors.Is(err, netpolicy.ErrAbsent):
			case errors.Is(err, netpolicy.ErrNotListening) && d.intents.tries[e.Attachment] >= agentGone:
				d.log.Warn("the network policy agent is gone, and was not told of a pod's end", "pod", e.Pod, "err", err)
			default:
				d.log.Warn("the network policy agent was not told of a pod's end; ipamd tries again", "pod", e.Pod, "err", err)
				again()
				return
			}
			d.removeIntent(e, again)
		})
	})
}

// unprotected says that no pod starts, since no agent would enforce its policies and they have to be enforced.
func (d *daemon) unprotected() string {
	if d.c.PolicyMode != netpolicy.Strict || exists(d.agentSocket()) {
		return ""
	}
	return fmt.Sprintf("NETWORK_POLICY_ENFORCING_MODE is strict, and no network policy agent listens at %s: no pod can start", d.agentSocket())
}
