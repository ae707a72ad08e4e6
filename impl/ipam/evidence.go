package ipam

import (
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Periods of the looks that nothing asks for. A source that fails is asked again after a second, then up to
// maxLookRetry.
const (
	kernelPeriod  = time.Minute
	runtimePeriod = time.Minute
	imdsPeriod    = time.Minute
	podsPeriod    = 5 * time.Minute
	leakedPeriod  = time.Hour
	leakedAgain   = leakedPeriod / 6 // where one was found that may be
	// leakedFirst is the earliest look for leaked ENIs; as much again by chance, so that a fleet that starts together
	// does not ask together (the answer is as long as there are ENIs on their way).
	leakedFirst   = 10 * time.Minute
	maxLookRetry  = 15 * time.Second
	maxLocalRetry = 4 * time.Second // of the kernel, and of all that a daemon that starts has to hear first
	// coolBatch is the least time between observations made for ends of cool-downs, so that a node that stops fifty
	// pods dumps its kernel a few times and not fifty.
	coolBatch = time.Second
	// hintDelay lets a burst of kernel events end before one look. Where pods wait for an ENI's link it is between two
	// looks.
	hintDelay = 200 * time.Millisecond
)

var periods = [looks]time.Duration{LookKernel: kernelPeriod, LookRuntime: runtimePeriod, LookIMDS: imdsPeriod,
	LookENI: 0, LookLeaked: leakedPeriod, LookPods: podsPeriod}

// evidence is what the sources were asked and have said, as far as it is of use later.
type evidence struct {
	*life  `json:"-"`
	ledger *ledger

	Kernel     *dataplane.Observation // kept until recovery ends
	Looks      [looks]look
	Departures []departed
	Others     []other  // attached, and not ours
	Found      []string // see Facts

	// An observation that left nothing to do, and nothing has changed since: the same one again says nothing new. This
	// saves time and decides nothing, so it is not encoded.
	last *dataplane.Observation
	calm bool
}

// look is the standing of one source.
type look struct {
	ID    ID            // under way; 0 none
	Asked uint64        // step in which it was asked
	At    time.Duration // when it was last asked
	Want  time.Duration // when to ask next; never
	Fails int           // in a row
	Good  uint64        // step in which the last whole answer had been asked
	ENIs  []string      // LookENI: asked about
}

// want asks for a look at the latest by at.
func (ev *evidence) want(w What, at time.Duration) {
	ev.Looks[w].Want = min(ev.Looks[w].Want, at)
}

func (ev *evidence) configured(w What) bool {
	switch w {
	case LookRuntime:
		return ev.Set.Runtime
	case LookPods:
		return ev.Set.API
	case LookENI, LookAttached:
		return !ev.Set.IMDSOnly
	case LookSubnets:
		return (ev.Set.Discovery || ev.Set.CustomNetwork) && !ev.Set.IMDSOnly
	case LookConfig:
		return ev.Set.CustomNetwork && !ev.Set.IMDSOnly && ev.Set.API
	case LookLeaked:
		return !ev.Set.NoSweep && !ev.Set.NoProvisioning && !ev.Set.IMDSOnly
	}
	return true
}

// whole says whether an answer may be read as "there is nothing else" (rule A).
func (ev *evidence) whole(in *Seen) bool {
	a := Answer{What: in.What, Complete: in.Complete, Sandboxed: ev.Daemon != "", Configured: ev.configured(in.What)}
	switch in.What {
	case LookKernel:
		a.Complete = a.Complete && in.Kernel != nil && in.Kernel.Complete
	case LookIMDS:
		a.Complete = a.Complete && in.IMDS != nil
	case LookConfig:
		a.Complete = a.Complete && in.Config != nil
	case LookRuntime:
		for i := range in.Sandboxes {
			if in.Sandboxes[i].ID == ev.Daemon {
				a.HoldsSelf = true
				break
			}
		}
	}
	return ev.policy.Complete(a)
}
