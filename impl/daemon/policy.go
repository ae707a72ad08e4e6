package daemon

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/netpolicy"
)

// Network policies. An agent on the node is told of pods: by the plugin, which is there when a pod comes and goes, and by the daemon for the DELs
// that a plugin could not finish. It knows pods by name, which is no key (rule E): a pod of a StatefulSet comes back under its name while the runtime
// still deletes its old sandbox. So a pod is not said to be gone as long as another attachment has its name; the last one's DEL says it.

// agentGone is how often in a row a connection to an agent's socket was refused before it is taken for a leftover: for
// five minutes, with growing pauses.
const agentGone = 12

// agent is the node's network policy agent, as far as the daemon knows it.
type agent struct{ *core }

func (a *agent) socket() string { return filepath.Join(a.c.RunDir, netpolicy.Name) }

// mode is what the agent is told of itself when it starts. It knows the setting's words, and would not start with none.
func (a *agent) mode() string { return cmp.Or(a.c.PolicyMode, netpolicy.None) }

// hears is what the agent has to hear of a pod after that verb; "" is nothing.
func (a *agent) hears(verb ipam.Verb, att ipam.Attachment, p ipam.Pod) string {
	if a.c.PolicyMode == "" || p.Name == "" || verb != ipam.VerbAdd && verb != ipam.VerbDel || verb == ipam.VerbDel && a.another(att, p) {
		return ""
	}
	return a.c.PolicyMode
}

// another says whether a second attachment has the pod's name.
func (a *agent) another(att ipam.Attachment, p ipam.Pod) (found bool) {
	a.node.Rows(func(r ipam.Row) {
		found = found || r.State == ipam.Assigned && r.Att != att && r.Pod.Namespace == p.Namespace && r.Pod.Name == p.Name
	})
	return found
}

// listening says whether an agent hears of pods.
func (a *agent) listening() bool { return a.c.PolicyMode != "" && exists(a.socket()) }

// unprotected says that no pod starts, since no agent would enforce its policies and they have to be enforced.
func (a *agent) unprotected() string {
	if a.c.PolicyMode != netpolicy.Strict || exists(a.socket()) {
		return ""
	}
	return fmt.Sprintf("NETWORK_POLICY_ENFORCING_MODE is strict, and no network policy agent listens at %s: no pod can start", a.socket())
}
