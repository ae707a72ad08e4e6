package actions

import (
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
)

// The strikes of verbs that every world carries out in its own way. What was changed is told by the kernel, or by its model.

// Count is a number and its noun, which is given in the singular.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"):
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Some is Count with a verb that agrees.
func Some(n int, noun, is, are string) string {
	if n == 1 {
		are = is
	}
	return Count(n, noun) + " " + are
}

// Flushed is a table or the rules without what somebody removed.
func Flushed(count int, what string) sim.Strike {
	if count == 0 {
		return sim.Miss("there are no %s to remove", what)
	}
	return sim.Hit("%s", Some(count, strings.TrimSuffix(what, "s"), "is gone", "are gone"))
}

// FlushedNAT is nftables without its tables.
func FlushedNAT(had bool) sim.Strike {
	if !had {
		return sim.Miss("there are no tables of nftables")
	}
	return sim.Hit("the tables of nftables are gone")
}

// LostGateway is a pod without its permanent neighbour entry.
func LostGateway(pod string, had bool) sim.Strike {
	if !had {
		return sim.Miss("pod %s has no permanent entry of its gateway", pod)
	}
	return sim.Hit("the pod has no entry of its gateway")
}

// ChangedMAC is a pod's host veth with another MAC.
func ChangedMAC(pod string, changed bool) sim.Strike {
	if !changed {
		return sim.Miss("pod %s has no host veth with another MAC", pod)
	}
	return sim.Hit("the host veth has another MAC")
}

// LostAlias is a pod's host veth without its alias.
func LostAlias(pod string, had bool) sim.Strike {
	if !had {
		return sim.Miss("pod %s has no host veth with an alias", pod)
	}
	return sim.Hit("the host veth has no alias")
}

// AddedAddresses is a pod that has given its interface more addresses.
func AddedAddresses(pod string, count int) sim.Strike {
	if count == 0 {
		return sim.Miss("pod %s has no interface, or all addresses that there are", pod)
	}
	return sim.Hit("the pod gives itself %s", Count(count, "address"))
}

// NoPod is a pod that is not there, or not on a node.
func NoPod(name string, known bool) sim.Strike {
	if known {
		return sim.Miss("pod %s is on no node", name)
	}
	return sim.Miss("there is no pod %s", name)
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
	return "the daemon is given a list of " + Count(len(in.Sandboxes), "sandbox")
}
