package netns

import (
	"net/http"
	"time"

	"github.com/enilab/enilab/sim/netns/node"
)

// keeper is how a world's daemons are started and heard of: ours by the clock that it is told and by its recording,
// any other by what it answers.
type keeper interface {
	// spec is what a node is made of.
	spec(n *instance) node.Spec
	// listen opens what the daemon talks to beside the models.
	listen(n *instance) error
	// kubernetes is the API server that the daemon asks.
	kubernetes(n *instance) *http.Server
	// runtime is which API of a container runtime the daemon asks, and where it looks for it.
	runtime(n *instance) (api, socket string)
	// begin starts a node's next daemon, which is starting from now on. It lives once it is heard of.
	begin(n *instance)
	// stop tells the daemon to end.
	stop(n *instance) error
	// ended is told that the daemon's process has ended. Once all is known that it had to say, it has died.
	ended(n *instance)
	// pause is how long kubelet waits before it starts the next one.
	pause(n *instance) time.Duration
	// toil names what a daemon that lives has to do; "" is nothing.
	toil(n *instance, now time.Duration) string
	// installed is told that the node's plugin is of another of our versions.
	installed(n *instance) error
}
