package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/internal/must"
)

// TestUnknownSettingIsTold: a variable that looks like a setting and is none stops nothing, and is told where somebody
// looks: in the daemon's status, and by an Event, which is made again a minute later where the API server refuses it.
func TestUnknownSettingIsTold(t *testing.T) {
	r := newRig(t, 3)
	seat, reports := laboratory(t, r)
	told := make(chan time.Duration, eventTries)
	r.c.Unread = []string{"WARM_IP_TARGT: it is no setting; did you mean WARM_IP_TARGET?"}
	r.c.Tell = func(_ context.Context, reason, message string) error {
		if reason == networkImpaired { // the clock leapt before its rules were there
			return nil
		}
		if reason != unknownSetting || message != r.c.Unread[0] {
			t.Errorf("found the Event %s %q", reason, message)
		}
		told <- r.c.Clock.Now()
		if len(told) == 1 {
			return errors.New("the API server is away")
		}
		return nil
	}
	r.start()
	jump := leaps(t, r, seat, reports)
	jump(func() bool { return len(told) == 2 })
	if s := r.status(); !s.Ready || !slices.Contains(s.Reasons, r.c.Unread[0]) {
		t.Errorf("expected a node that is ready, and a word on the setting, found %+v", s)
	}
	now := r.c.Clock.Now()
	jump(func() bool { return r.c.Clock.Now() > now+2*eventRetry })
	if first, second := <-told, <-told; second < first+eventRetry || len(told) > 0 {
		t.Errorf("it was told at %v, %v and %d times more", first, second, len(told))
	}
}

// TestInvalidSettingsAreTold: a daemon whose settings cannot be says all of them on the node.
func TestInvalidSettingsAreTold(t *testing.T) {
	r := newRig(t, 3)
	r.c.Problems = []string{"A: this cannot be", "B: nor can that"}
	told := make(chan string, 1)
	r.c.Tell = func(_ context.Context, reason, message string) error { told <- reason + " " + message; return nil }
	r.start()
	if got := <-told; got != "InvalidSettings this node takes no pods: A: this cannot be; B: nor can that" {
		t.Errorf("found %q", got)
	}
}

// TestSilentMetadataIsTold: a daemon whose node is impaired says so on it, by itself.
func TestSilentMetadataIsTold(t *testing.T) {
	r := newRig(t, 2)
	seat, reports := laboratory(t, r)
	r.cloud.silent = make(chan struct{})
	defer close(r.cloud.silent)
	told := make(chan string, 10)
	r.c.Tell = func(_ context.Context, reason, message string) error { told <- reason + " " + message; return nil }
	r.start()
	await(t, r, "it waits for metadata", reports, func(p clock.Report) bool { return p.Remote == 1 })
	for offset := time.Duration(0); len(told) == 0; { // each request is given up by the clock
		offset += 10 * time.Second
		must.Do(t, seat.Tell(offset))
		await(t, r, "it has seen the jump", reports, func(p clock.Report) bool { return p.Offset == offset })
		if offset > time.Hour {
			t.Fatalf("nothing was told in an hour\n%s", r.log)
		}
	}
	if got := <-told; !strings.HasPrefix(got, networkImpaired+" ") || !strings.Contains(got, "metadata") {
		t.Errorf("expected that metadata does not answer, found %q", got)
	}
}

// TestImpairedNodeIsTold: why a node is impaired is told at once, then once in ten minutes at most: what is so at their
// end, also where it came before, and nothing where that was told. What is refused is not told once it is over.
func TestImpairedNodeIsTold(t *testing.T) {
	told := make(chan string, 10)
	tell := func(_ context.Context, _, message string) error { told <- message; return nil }
	n := &news{life: &life{c: Config{Tell: tell}}}
	for _, c := range []struct {
		at        time.Duration
		why, told string
	}{
		{0, "a", "a"},
		{time.Minute, "b", ""},
		{2 * time.Minute, "c", ""},
		{eventPause, "c", "c"},
		{3 * eventPause, "c", ""},
		{3*eventPause + 1, "", ""},
		{3*eventPause + 2, "c", "c"},
		{3*eventPause + 3, "", ""},
		{3*eventPause + 4, "a", ""},
	} {
		n.health(c.at, c.why)
		n.running.Wait()
		got := ""
		if len(told) > 0 {
			got = <-told
		}
		if got != c.told {
			t.Errorf("at %v, impaired by %q: told %q, expected %q", c.at, c.why, got, c.told)
		}
	}
	n.tell(networkImpaired, "over", func() bool { return false }, eventTries)
	n.running.Wait()
	if len(told) > 0 {
		t.Errorf("it is over, and %q was told", <-told)
	}
}

// TestPoliciesThatNobodyEnforcesAreTold: the cluster has network policies, and no agent hears of pods: that is an Event,
// once, and a line of STATUS on a node that is ready, until an agent is there or the policies are gone. An API server
// that does not say leaves all as it is.
func TestPoliciesThatNobodyEnforcesAreTold(t *testing.T) {
	r := newRig(t, 3)
	seat, reports := laboratory(t, r)
	var some, fails atomic.Bool
	var asked, told atomic.Int32
	var first atomic.Int64
	r.c.PolicyMode = netpolicy.Standard
	r.c.HasPolicies = func(context.Context) (bool, error) {
		first.CompareAndSwap(0, int64(r.c.Clock.Now()))
		asked.Add(1)
		if fails.Load() {
			return false, errors.New("forbidden")
		}
		return some.Load(), nil
	}
	r.c.Tell = func(_ context.Context, reason, message string) error {
		if reason != noPolicyAgent { // hours that pass at once are told, too
			return nil
		}
		if !strings.Contains(message, "no network policy agent listens") {
			t.Errorf("found %q", message)
		}
		told.Add(1)
		return nil
	}
	began := r.c.Clock.Now()
	r.start().serves()
	go func() {
		for range reports {
		}
	}()
	offset := time.Duration(0)
	hours := func(what string, until func() bool) { // an hour passes, until something is so
		t.Helper()
		r.eventually(what, func() bool {
			if until() {
				return true
			}
			offset += policiesAgain
			must.Do(t, seat.Tell(offset))
			return false
		})
	}
	said := func() bool {
		s := r.status()
		return s.Ready && slices.ContainsFunc(s.Reasons, func(why string) bool { return strings.Contains(why, "NetworkPolicies") })
	}
	next := func() { // the next question, and what it leads to
		t.Helper()
		n := asked.Load()
		hours("the API server is asked", func() bool { return asked.Load() > n })
	}
	next()
	if after := time.Duration(first.Load()) - began; said() || told.Load() > 0 || after < policiesFirst {
		t.Errorf("a cluster without policies, asked %v after the start: told %d times", after, told.Load())
	}
	some.Store(true)
	next()
	r.eventually("it is told", func() bool { return said() && told.Load() == 1 })
	fails.Store(true)
	next()
	fails.Store(false)
	next()
	if !said() || told.Load() != 1 {
		t.Errorf("it is so still: in STATUS %t, told %d times", said(), told.Load())
	}
	agent := must.Get(net.Listen("unix", filepath.Join(r.c.RunDir, netpolicy.Name)))(t)
	defer agent.Close()
	n := asked.Load()
	hours("an agent is there", func() bool { return !said() })
	if asked.Load() != n || told.Load() != 1 {
		t.Errorf("with an agent the API server was asked %d times, and it was told %d times", asked.Load()-n, told.Load())
	}
}

// TestAnAgentHearsOfPodsWhereTheModeIsSet: the socket of one is not enough.
func TestAnAgentHearsOfPodsWhereTheModeIsSet(t *testing.T) {
	for mode, want := range map[string]string{"": "NETWORK_POLICY_ENFORCING_MODE is not set", netpolicy.Standard: ""} {
		l := &life{c: Config{RunDir: t.TempDir(), PolicyMode: mode}}
		n := &news{life: l, agent: &agent{&core{life: l}}}
		must.Do(t, os.WriteFile(n.agent.socket(), nil, 0o600))
		if told := n.agent.listening(); told != (want == "") || !told && !strings.Contains(n.policyless(), want) {
			t.Errorf("mode %q: an agent hears of pods: %t; %s", mode, told, n.policyless())
		}
	}
}
