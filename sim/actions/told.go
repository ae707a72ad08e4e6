package actions

import (
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/verb"
)

// NoPod is a pod that is not there, or not on a node.
func NoPod(name string, known bool) verb.Strike {
	if known {
		return verb.Miss("pod %s is on no node", name)
	}
	return verb.Miss("there is no pod %s", name)
}

// Sprung is a trap that a daemon's request has met.
func Sprung(a ec2.Action, after bool) string {
	if after {
		return "the daemon dies after its " + a.String()
	}
	return "the daemon dies before its " + a.String()
}

// Listed is what a daemon met behind a runtime socket that an action has changed.
func Listed(in *ipam.Seen) string {
	if !in.Complete {
		return "the daemon is given no complete list: " + in.Err
	}
	return "the daemon is given a list of " + verb.Number(len(in.Sandboxes), "sandbox")
}
