package virtual

import (
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/scn"
)

// brief is an instant or a duration for people, to a tenth of a second: most crash points are no further apart than that.
func brief(d time.Duration) string { return scn.FormatDuration(d.Round(100 * time.Millisecond)) }

// effectName says what an effect in flight is.
func effectName(e *event) string {
	switch d := e.data.(type) {
	case *ipam.Save:
		return recordName(d.Store)
	case *ipam.Apply:
		return laneName(d.Lane)
	case *inFlight:
		return "the " + d.req.Action.String()
	case *outcome:
		return "the answer to the " + d.verb.String() + " of " + d.att.String()
	}
	return "something unnamed"
}

func recordName(s ipam.Store) string {
	if s == ipam.LibStore {
		return "the record of an intent"
	}
	return "the record of an address"
}

func laneName(l ipam.Lane) string {
	switch l.Kind {
	case ipam.PodLane:
		return "the kernel's change for " + l.Att.String()
	case ipam.ENILane:
		return "the kernel's change for " + l.ENI
	case ipam.FlowLane:
		return "the forgetting of flows"
	}
	return "the kernel's change for the host"
}

// eventName says what had happened, as a sentence.
func eventName(e *event) string {
	switch d := e.data.(type) {
	case *ipam.Save:
		return recordName(d.Store) + " was written"
	case *ipam.Apply:
		return laneName(d.Lane) + " was made"
	case *outcome:
		return "the plugin had its answer to the " + d.verb.String() + " of " + d.att.String()
	case *inFlight:
		return "EC2 executed " + d.req.Action.String()
	case *cri.Action:
		return "the plugin was called"
	case *ipam.Look:
		return lookName(d.What) + " was read"
	case ipam.Seen:
		return "the daemon saw " + lookName(d.What)
	case ipam.Called:
		return "the daemon had EC2's answer"
	case ipam.Gone:
		return "the plugin hung up"
	case ipam.Saved:
		return "the daemon was told that " + recordName(d.Store) + " is written"
	}
	return kindNames[e.kind]
}

var lookNames = [...]string{ipam.LookKernel: "the kernel", ipam.LookRuntime: "the runtime's list", ipam.LookIMDS: "instance metadata", ipam.LookENI: "an ENI",
	ipam.LookLeaked: "the list of leaked ENIs", ipam.LookPods: "the list of pods", ipam.LookAttached: "the list of attached ENIs",
	ipam.LookSubnets: "the list of subnets", ipam.LookConfig: "the ENIConfig"}

func lookName(w ipam.What) string {
	if int(w) < len(lookNames) && lookNames[w] != "" {
		return lookNames[w]
	}
	return "the node"
}

// kindNames are events that their kind alone explains.
var kindNames = [...]string{evTick: "a tick of the daemon", evInput: "the daemon heard of a change", evSaved: "a record was written", evApply: "the kernel was changed",
	evLook: "the daemon looked around", evServe: "EC2 executed a call", evPlugin: "the plugin was called", evResult: "the plugin had its answer",
	evKubelet: "kubelet or the runtime went on", evCloud: "EC2 went on by itself", evStart: "the daemon started", evSnapshot: "the laboratory looked",
	evStale: "a DEL on disk was repeated"}
