package netns

import (
	"time"

	"github.com/enilab/enilab/sim/judge"
)

// unserved is a daemon that has not served within its bound (I16). Before t=0 nothing more is waited for.
func (w *World) unserved(n *instance, within time.Duration, said string) {
	w.tell(n, n.daemon()+" does not serve: "+said)
	w.Auditor.Unserved(w.now(), int(n.No), within, said)
	w.doomed = w.doomed || !w.begun
}

// neverBegan is why there is no t=0: what broke before.
type neverBegan struct{ broken []judge.Violation }

func (e *neverBegan) Error() string { return e.broken[0].Text }

// Violations are those before t=0.
func (e *neverBegan) Violations() []judge.Violation { return e.broken }
