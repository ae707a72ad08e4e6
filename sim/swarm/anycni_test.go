package swarm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/verb"
)

// old is a CNI that knows little: no settings, no runtime API, no GC.
func old() *swarm.CNI { return &swarm.CNI{Runtimes: swarm.Older(), Daemon: true, Cloud: true} }

// bare is a CNI without a daemon.
func bare() *swarm.CNI { return &swarm.CNI{Runtimes: swarm.Newer()} }

// TestDrawnForAnybody: a seed gives a scenario that parses, asks for no more than any CNI owes, knows only settings and runtimes that the CNI
// has, and takes a quarter of an hour at most; twice the same text.
func TestDrawnForAnybody(t *testing.T) {
	for _, c := range []*swarm.CNI{swarm.Ours(), old(), bare()} {
		drawn := map[string]bool{}
		for seed := uint64(1); seed <= 500; seed++ {
			text := c.Draw(seed)
			if again := c.Draw(seed); again != text {
				t.Fatalf("seed %d: twice, and not the same", seed)
			}
			f, cl, err := swarm.ReadFor("netns", swarm.Name(seed), []byte(text))
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			if err := c.Feasible(f, cl); err != nil {
				t.Errorf("seed %d: %v\n%s", seed, err, text)
			}
			if cl.Nodes > 2 || !slices.Contains(c.Runtimes, runtimeOf(f)) {
				t.Errorf("seed %d: %d nodes with %s", seed, cl.Nodes, runtimeOf(f))
			}
			last := lastOf(f)
			if last.Minutes() > 15 {
				t.Errorf("seed %d: it takes %v", seed, last)
			}
			for _, l := range f.Lines {
				if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
					v := verb.Verb{Name: at.Action.Verb, On: []scn.SubjectKind{at.Action.Subject.Kind}}
					drawn[v.Key()] = true
				}
			}
		}
		for key := range drawn {
			if !slices.Contains(c.Drawn(), key) {
				t.Errorf("%s is drawn, and not said to be", key)
			}
		}
		for _, key := range c.Drawn() {
			if !drawn[key] {
				t.Errorf("%s is in none of 500 seeds", key)
			}
		}
	}
}

func runtimeOf(f *scn.File) string {
	for _, l := range f.Lines {
		if s, ok := l.Stmt.(*scn.Cluster); ok {
			for _, kv := range s.Args {
				if kv.Key == "runtime" {
					return kv.Value
				}
			}
		}
	}
	return ""
}

// lastOf is how long the scenario takes at most.
func lastOf(f *scn.File) (last time.Duration) {
	var settle time.Duration
	for _, l := range f.Lines {
		switch s := l.Stmt.(type) {
		case *scn.At:
			last = max(last, s.When, s.Until)
			if s.Check != nil {
				last = max(last, s.When+s.Check.Within)
			}
		case *scn.Finally:
			settle = s.Within
		}
	}
	return last + settle
}

// TestEveryVerbIsForAnybodyOrNot: a new verb is drawn for any CNI, or somebody says why it is not.
func TestEveryVerbIsForAnybodyOrNot(t *testing.T) {
	drawn := swarm.Ours().Drawn()
	var keys []string
	for _, v := range verb.All() {
		keys = append(keys, v.Key())
		if drawn := slices.Contains(drawn, v.Key()); drawn == v.ForAnyCNI().Never {
			t.Errorf("%s: drawn %v, and not for any CNI: %v (%s)", v.Key(), drawn, v.ForAnyCNI().Never, v.ForAnyCNI().Why)
		}
	}
	for _, key := range drawn {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is drawn, and no verb has that key", key)
		}
	}
}

// TestAnybodysHold: what any CNI survives ours does.
func TestAnybodysHold(t *testing.T) {
	c := swarm.Ours()
	tally := swarm.TallyFor(c)
	for seed := uint64(1); seed <= seeds(50, swarm.Enough); seed++ {
		o, err := swarm.Play(swarm.Name(seed), c.Draw(seed), seed, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tally.Add(seed, o)
		if o.Broken != nil {
			t.Errorf("seed %d: %q broke at %v: %s\n%s", seed, o.Broken.Invariant, o.Broken.At, o.Broken.Text, c.Draw(seed))
		}
	}
	if tally.Runs >= swarm.Enough && len(tally.Unstruck()) > 0 {
		t.Errorf("struck in no seed of %d: %v", tally.Runs, tally.Unstruck())
	}
}

// TestOwedByAnybody: a scenario that asks too much of some CNIs is told from one that does not.
func TestOwedByAnybody(t *testing.T) {
	const head = "cluster nodes=1 type=m5.large subnet=10.0.0.0/24 runtime=dockershim\nstart pods web 2 on node-1\n"
	for lines, says := range map[string]string{
		"at 1m node-1 kill\n":         "",
		"at 1m node-1 flush-rules\n":  "only some CNIs",
		"at 1m node-1 gc valid=all\n": "means nothing to this one",
		"at 1m node-1 socket cri=absent\nat 2m node-1 socket cri=right\n": "means nothing to this one",
		"at 1m node-1 kill-at CreateNetworkInterface when=after\n":        "swept within hours",
		"at 1m node-1 kill-at AttachNetworkInterface when=after\n":        "",
		"at 1m ec2 lose any\n":                                   "makes an ENI",
		"at 1m ec2 slow CreateNetworkInterface by=5s\n":          "",
		"at 1m ec2 slow CreateNetworkInterface by=5s way=back\n": "ask again",
		"at 1m ec2 slow AttachNetworkInterface by=20s\n":         "ask again",
		"at 1m ec2 down for=2m\n":                                "it lasts longer than 1m",
		"at 1m node-1 restart WARM_IP_TARGET=2\n":                "settings that the CNI knows",
		"at 1m ec2 unassign web-0\n":                             "no CNI survives",
		"config WARM_IP_TARGET=2\nat 1m node-1 kill\n":           "does not know the setting WARM_IP_TARGET",
	} {
		f, c, err := swarm.ReadFor("netns", "owed.scn", []byte(head+lines+"finally converges within 20m\n"))
		must.Do(t, err)
		err = old().Feasible(f, c)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: expected %q, found %v", lines, says, err)
		}
	}
}
