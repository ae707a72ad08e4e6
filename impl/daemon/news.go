package daemon

import "time"

// Reasons of Events.
const (
	unknownSetting  = "UnknownSetting"
	invalidSettings = "InvalidSettings"
	networkImpaired = "NetworkImpaired"
	noPolicyAgent   = "NoNetworkPolicyAgent"
)

// news is what people are told of the node, as Events of it.
type news struct {
	*life
	agent *agent

	told  string        // why the node is impaired, as they were told; empty once it is well
	pause time.Duration // over then: they are told at most once in eventPause

	unenforced bool // the cluster has network policies, and no agent hears of this node's pods
}

// health tells why the node is impaired. What comes within the pause is told once it is over, if it is so by then: the node looks around every minute.
func (n *news) health(now time.Duration, why string) {
	switch {
	case why == "":
		n.told = ""
	case why != n.told && now >= n.pause:
		n.told, n.pause = why, now+eventPause
		n.tell(networkImpaired, why, func() bool { return n.told == why }, eventTries)
	}
}

// tell has an Event made. An API server that does not take it changes nothing else, and is asked again, a few times, while it is so.
func (n *news) tell(reason, message string, so func() bool, tries int) {
	if n.c.Tell == nil || tries == 0 || !so() {
		return
	}
	n.go_(func() {
		err := n.c.Tell(n.ctx, reason, message)
		if err == nil || n.ctx.Err() != nil {
			return
		}
		n.post(func() {
			n.log.Warn("no Event could be made about the node", "reason", reason, "err", err)
			n.after(n.clock.Now()+eventRetry, func() { n.tell(reason, message, so, tries-1) })
		})
	})
}

// settings reports those that differ from what an operator may believe; they stay so as long as this daemon lives.
func (n *news) settings(reason, message string) {
	n.tell(reason, message, func() bool { return true }, eventTries)
}

// policies tells that the cluster has network policies which nothing that hears of pods here enforces, once for as long
// as that is so. A role that lacks the right to list them, and an API server that is away, say nothing.
func (n *news) policies() {
	if n.c.HasPolicies == nil {
		return
	}
	n.go_(func() {
		some, err := false, error(nil)
		if !n.agent.listening() {
			some, err = n.c.HasPolicies(n.ctx)
		}
		n.post(func() {
			n.after(n.clock.Now()+policiesAgain, n.policies)
			if err != nil {
				n.log.Debug("whether the cluster has network policies is not known", "err", err)
				return
			}
			before := n.unenforced
			if n.unenforced = some; some && !before {
				n.log.Warn("nobody enforces network policies", "why", n.policyless())
				n.tell(noPolicyAgent, n.policyless(), func() bool { return n.unenforced }, eventTries)
			}
		})
	})
}

// policyless says why network policies are not put in force, as far as this daemon knows: an engine of another kind, such
// as Calico's, watches pods by itself.
func (n *news) policyless() string {
	why := "NETWORK_POLICY_ENFORCING_MODE is not set"
	if n.c.PolicyMode != "" {
		why = "no network policy agent listens at " + n.agent.socket()
	}
	return "the cluster has NetworkPolicies, and this CNI tells nobody of pods who would enforce them: " + why +
		"; unless another engine does, all traffic is allowed"
}
