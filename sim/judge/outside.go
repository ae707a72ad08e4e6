package judge

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// What a world sees of a daemon of which only the outside is known. What happened inside has happened at some instant between a call and its
// answer, so a release counts from the call and a use from the answer: no daemon is accused for what took long.

// Runs says that a life of the node's daemon begins, and what cool-down it was told to keep. It replaces Started where
// the daemon's inputs are unknown.
func (a *Auditor) Runs(now time.Duration, node int, coolDown time.Duration) {
	a.Started(now, node)
	a.node(node).setCoolDown(coolDown)
}

// Added judges an ADD that ended in success, as the runtime heard of it (I1, I2, I7).
func (a *Auditor) Added(now time.Duration, node int, att ipam.Attachment, addr netip.Addr, held Holding) {
	a.Configured(now, node, addr, att, held.Count, held.Otherwise)
	a.Given(now, node, att, addr, held.user())
}

// Removes says that the runtime calls a DEL: from now on the attachment may have given up what it has (I7).
func (a *Auditor) Removes(now time.Duration, node int, att ipam.Attachment) {
	a.node(node).releaseAll(now, func(of ipam.Attachment) bool { return of == att })
}

// Boots says that the node's machine restarts: whatever its sandboxes had, no namespace has any more (I7).
func (a *Auditor) Boots(now time.Duration, node int) {
	a.node(node).releaseAll(now, func(ipam.Attachment) bool { return true })
}

// Runs says that a daemon without a recording begins a life, with these settings.
func (w *Witness) Runs(node int32, s *ipam.Settings) {
	w.leave(node, s)
	w.Audit.Runs(w.Eyes.Now(), int(node), s.CoolDown)
	w.Story.Started(w.Now(), node)
}

// Added judges what the runtime was told of an ADD of a daemon without a recording (I1, I2, I7, I14).
func (w *Witness) Added(node int32, att ipam.Attachment, addr netip.Addr) {
	held := w.Audit.Holders(int(node), addr, func(node int) int { return w.Eyes.Held(int32(node), addr) })
	w.Audit.Added(w.Eyes.Now(), int(node), att, addr, held)
	w.given(node, addr)
}

// user names what else has the address; "" is nothing.
func (h Holding) user() string {
	if h.Count > 1 {
		return "another namespace, on " + h.Otherwise
	}
	return ""
}
