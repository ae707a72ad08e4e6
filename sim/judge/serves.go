package judge

import (
	"strings"
	"time"
)

// starts says whether a snapshot shows a daemon that runs and does not serve yet. One that is being ended does not any more.
func (c *Snapshot) starts() bool {
	return c.Up && c.View != nil && !c.View.Serving && !c.View.Stopping
}

func describeStart(c *Snapshot) string {
	if len(c.View.Reasons) == 0 {
		return "the daemon has not served, and does not say why,"
	}
	return "the daemon has not served (" + strings.Join(c.View.Reasons, "; ") + ")"
}

// Unserved says that a daemon of which only the outside is known has not served within its bound since it was started (I16). said is the end
// of what it printed, or how its start failed.
func (a *Auditor) Unserved(now time.Duration, node int, within time.Duration, said string) {
	a.look(I16)
	a.breaks(I16, now, node, "the daemon of node-%d did not serve within %v of its start; its last lines: %s", node, within, said)
}

// Podless says that a system of which only the outside is known has started no pod since its first ADD failed (I16). plugin is the last answer of the
// plugin, daemon the end of what the daemon printed; empty: there is none.
func (a *Auditor) Podless(now time.Duration, node int, since time.Duration, failed int, plugin, daemon string) {
	a.look(I16)
	if daemon != "" {
		daemon = "; the daemon's last line: " + daemon
	}
	a.breaks(I16, now, node, "no pod starts on node-%d: each of %d ADDs in %v failed; the plugin said: %s%s", node, failed, since.Round(time.Second), plugin, daemon)
}
