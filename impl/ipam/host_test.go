package ipam

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

func newHost() *host {
	ev := newEvidence()
	return &host{life: ev.life, ledger: ev.ledger, evidence: ev}
}

// TestHostRulesAreTriedAgain: after pauses that double, and what fails is a trouble until it does not.
func TestHostRulesAreTriedAgain(t *testing.T) {
	h := newHost()
	for try := range 3 {
		h.apply(dataplane.Plan{})
		h.applied(0, Applied{Err: &dataplane.Error{}})
		if h.Busy || h.Done || h.At != time.Second<<try || h.Troubles[troubleHost] == "" {
			t.Errorf("after failure %d: %+v", try+1, h)
		}
	}
	h.apply(dataplane.Plan{})
	h.applied(0, Applied{})
	if !h.Done || h.Tries != 0 || h.Troubles[troubleHost] != "" {
		t.Errorf("it is set up, and %d tries and %q are left", h.Tries, h.Troubles[troubleHost])
	}
}

// TestRecoveryNamesWhatItWaitsFor: the first source that has not answered, and why, if it has said so.
func TestRecoveryNamesWhatItWaitsFor(t *testing.T) {
	h := newHost()
	for _, c := range []struct {
		then func()
		want string
	}{
		{func() {}, "instance metadata has not answered yet"},
		{func() { h.trouble(troubleIMDS, "404") }, "instance metadata has not answered: 404"},
		{func() { h.Known = true }, "the kernel has not been read yet"},
		{func() { h.evidence.Kernel = &dataplane.Observation{} }, "the host's rules are not set up yet"},
		{func() { h.Done = true }, "the runtime has not answered yet"},
	} {
		if c.then(); !strings.Contains(h.waitsFor(), c.want) {
			t.Errorf("%q, expected %q", h.waitsFor(), c.want)
		}
	}
}
