package runner

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
)

// ignorant is a world of a system that knows no MAX_ENI.
type ignorant struct{ World }

func (i ignorant) Capabilities() sim.Capabilities { return sim.Capabilities{Unknown: i.unknown} }

func (ignorant) unknown(l *scn.Line) (string, []string) {
	if strings.Contains(l.Raw, "MAX_ENI") {
		return "cni 1.0.0", []string{"MAX_ENI"}
	}
	return "", nil
}

// What a setting was to bring about is not expected of a system that does not know it, from the line on that sets it; invariants are.
func TestUnknownSettings(t *testing.T) {
	place := Sim()
	open := place.Open
	place.Open = func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
		w, err := open(c, seed, m)
		return ignorant{w}, err
	}
	place.System = "cni 1.0.0"
	const head = "# A test.\n# Source: a test.\ncluster nodes=1 type=m5.large subnet=10.0.10.0/24\n"
	const warning, failed = "warning  line 4: cni 1.0.0 does not know MAX_ENI\n", "at 1m expect node-1 addresses.assigned == 14\n"
	noRepair, _ := mutants.ByName("no-repair")
	for name, c := range map[string]struct {
		lines  string
		mutant *mutants.Mutant
		status Status
		judged int
		says   []string
		not    string
	}{
		"what fails is not judged": {"config MAX_ENI=2\nstart pods web 3 on node-1\n" + failed + "at 2m expect node-1 addresses.assigned == 3\n", nil, Held, 1,
			[]string{warning, "not judged  line 6, at 1m: expected node-1 addresses.assigned == 14; found 3: MAX_ENI is unknown to cni 1.0.0\n"}, "violated"},
		"within, too": {"config MAX_ENI=2\nstart pods web 3 on node-1\nat 1m within 10s expect node-1 addresses.assigned == 14\nat 2m expect node-1 addresses.assigned == 3\n",
			nil, Held, 1, []string{warning, "not judged  line 6, at 1m10s"}, "violated"},
		"without it, it is judged": {"config WARM_IP_TARGET=2\nstart pods web 3 on node-1\n" + failed, nil, Violated, 1, []string{"line 6, at 1m: expected"}, "warning"},
		"before it is set, it is judged": {"start pods web 3 on node-1\n" + failed + "at 2m node-1 restart MAX_ENI=2\n", nil, Violated, 1,
			[]string{"line 5, at 1m: expected", "warning  line 6"}, "not judged"},
		"invariants are judged": {"config MAX_ENI=2\nstart pods web 14 on node-1\nalways \"every live pod is reachable\"\nat 1m node-1 flush-rules\nat 90s expect node-1 addresses.assigned == 99\nat 6m expect node-1 addresses.assigned == 14\n",
			&noRepair, Violated, 0, []string{`"every live pod is reachable" broke`, warning, "not judged  line 8"}, ""},
		"nothing else is, nothing is held": {"config MAX_ENI=2\nstart pods web 3 on node-1\n" + failed, nil, Skipped, 0, []string{warning}, "held"},
	} {
		t.Run(name, func(t *testing.T) {
			file := must.Get(Load(place, "test.scn", []byte(head+c.lines)))(t)
			r := file.Run(Options{Seed: DefaultSeed, Against: c.mutant})
			report := r.Report()
			if r.Status != c.status || r.Judged != c.judged {
				t.Errorf("expected %v and %d judged, found %v and %d: %s", c.status, c.judged, r.Status, r.Judged, report)
			}
			for _, s := range c.says {
				if !strings.Contains(report, s) {
					t.Errorf("expected %q in\n%s", s, report)
				}
			}
			if c.not != "" && strings.Contains(report, c.not) {
				t.Errorf("expected no %q in\n%s", c.not, report)
			}
		})
	}
}
