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
