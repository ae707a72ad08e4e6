package judge

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// What a world sees of a daemon of which only the outside is known. What happened inside has happened at some instant between a call and its
// answer, so a release counts from the call and a use from the answer: nobody is accused for what took long.

// Runs says that a life of the node's daemon begins, and what cool-down it was told to keep. It is Started where nobody tells its inputs.
func (a *Auditor) Runs(now time.Duration, node int, coolDown time.Duration) {
	a.Started(now, node)
	a.node(node).setCoolDown(coolDown)
}

// Added judges an ADD that ended in success, as the runtime heard of it (I1, I2, I7).
func (a *Auditor) Added(now time.Duration, node int, att ipam.Attachment, addr netip.Addr, held Holding) {
	a.Configured(now, node, addr, att, held.Count, held.Otherwise)
	a.Given(now, node, att, addr, held.user())
}

// user names who else has the address; "" is nobody.
func (h Holding) user() string {
	if h.Count > 1 {
		return "another namespace, on " + h.Otherwise
	}
	return ""
}
