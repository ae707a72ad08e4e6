package daemon

import "time"

// Reasons of Events.
const (
	unknownSetting  = "UnknownSetting"
	invalidSettings = "InvalidSettings"
	networkImpaired = "NetworkImpaired"
)

// news is what people are told of the node, as Events of it.
type news struct {
	d     *daemon
	told  string        // why the node is impaired, as they were told; empty once it is well
	pause time.Duration // over then: they are told at most once in eventPause
}

// health tells why the node is impaired. What comes within the pause is told once it is over, if it is so by then: the node looks around every minute.
func (n *news) health(now time.Duration) {
	switch why := n.d.reasons; {
	case why == "":
		n.told = ""
	case why != n.told && now >= n.pause:
		n.told, n.pause = why, now+eventPause
		n.tell(networkImpaired, why, func() bool { return n.told == why }, eventTries)
	}
}

// tell has an Event made. An API server that does not take it changes nothing else, and is asked again, a few times, while it is so.
func (n *news) tell(reason, message string, so func() bool, tries int) {
	d := n.d
	if d.c.Tell == nil || tries == 0 || !so() {
		return
	}
	d.go_(func() {
		err := d.c.Tell(d.ctx, reason, message)
		if err == nil || d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("no Event could be made about the node", "reason", reason, "err", err)
			d.after(d.clock.Now()+eventRetry, func() { n.tell(reason, message, so, tries-1) })
		})
	})
}

// settings tells of those that are not as somebody believes; they stay so as long as this daemon lives.
func (n *news) settings(reason, message string) {
	n.tell(reason, message, func() bool { return true }, eventTries)
}
