package verb_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/virtual"
)

// head is two nodes with room on their first interface for seven pods more.
const head = `
cluster nodes=2 type=m5.large subnet=10.0.50.0/24 runtime=containerd
config  WARM_IP_TARGET=2 MINIMUM_IP_TARGET=2
start   pods web 2 on node-*
always  "the address books balance"
always  "nothing is leaked"
finally converges within 30m
`

// troubles are scenarios of every fault: without the lines of faults, what they expect is not so.
var troubles = []struct{ verb, faults, rest string }{
	{"throttle", "at 0s ec2 throttle AssignPrivateIpAddresses times=2", `
at 1s  kube create burst 6 node=1
at 1m  expect ec2 calls.throttled == 2
at 1m  expect node-1 pods.ready == 8`},
	{"lose", "at 0s ec2 lose AssignPrivateIpAddresses", `
at 1s  kube create burst 6 node=1
at 1m  expect ec2 calls.lost == 1
at 1m  expect node-1 pods.ready == 8`},
	{"lose", "at 0s ec2 lose CreateNetworkInterface after=dropped node=2", `
at 1s  kube create burst 12 node=2
at 1m  expect node-2 calls.lost == 1
at 1m  expect node-2 pods.ready == 14`},
	{"duplicate", "at 0s ec2 duplicate AssignPrivateIpAddresses", `
at 1s  kube create burst 3 node=1
at 1m  expect ec2 calls.AssignPrivateIpAddresses == 3`},
	{"fail", "at 0s ec2 fail CreateNetworkInterface InternalError times=3", `
at 1s  kube create burst 12 node=1
at 2m  expect ec2 calls.failed >= 3
at 2m  expect node-1 pods.ready == 14`},
	{"fail", "at 0s ec2 fail CreateNetworkInterface InternalError after=executed", `
at 1s  kube create burst 12 node=1
at 2m  expect ec2 calls.failed == 1
at 2m  expect ec2 enis.total == 3
at 2m  expect node-1 pods.ready == 14`},
	{"slow", "at 0s ec2 slow AssignPrivateIpAddresses by=9s", `
at 1s  kube create burst 6 node=1
at 8s  expect node-1 waiting >= 1`},
	{"slow", "at 0s ec2 slow AssignPrivateIpAddresses by=9s way=back", `
at 1s  kube create burst 6 node=1
at 8s  expect node-1 waiting >= 1`},
	{"deny", "at 0s ec2 deny AssignPrivateIpAddresses for=30s node=1", `
at 1s  kube create burst 12
at 20s expect node-1 calls.failed >= 1
at 20s expect node-2 calls.failed == 0
at 3m  expect kube pods.ready == 16`},
	{"down", "at 0s ec2 down for=30s", `
at 1s  kube create burst 12
at 20s expect ec2 calls.failed >= 2
at 3m  expect kube pods.ready == 16`},
	{"allow", "at 0s ec2 allow DescribeNetworkInterfaces,AssignPrivateIpAddresses,UnassignPrivateIpAddresses node=1", `
at 1s  kube create burst 12 node=1
at 1m  expect node-1 pods.ready == 9
at 1m  expect node-1 impaired
at 1m  expect ec2 failed.CreateNetworkInterface >= 1`},
	{"skew", "at 0s ec2 skew by=6m for=30s node=1", `
at 1s  kube create burst 12
at 20s expect node-1 calls.failed >= 1
at 3m  expect kube pods.ready == 16`},
	{"skew", "at 0s ec2 skew by=6m clock=ahead for=30s", `
at 1s  kube create burst 12
at 20s expect node-2 calls.failed >= 1
at 3m  expect kube pods.ready == 16`},
	{"stale", "at 0s ec2 stale by=1m for=2m", `
at 1s  kube create burst 12 node=1
at 20s ec2 detach node=1
at 1m  expect node-1 reached.eni-restored == 0`},
	{"hang", "at 0s ec2 hang attach for=1m", `
at 1s  kube create burst 12 node=1
at 30s expect node-1 pods.ready < 14
at 2m  expect node-1 pods.ready == 14`},
	{"hang", "at 0s ec2 hang detach for=10m node=1", `
at 1s  kube create burst 12 node=1
at 1m  kube scale burst 0
at 8m  expect ec2 enis.total == 3
at 15m expect ec2 enis.total == 2`},
	{"in-use", "at 0s ec2 in-use times=4", `
at 1s  kube create burst 12 node=1
at 1m  kube scale burst 0
at 20m expect ec2 calls.DeleteNetworkInterface >= 5
at 20m expect ec2 enis.total == 2`},
	{"detach", "at 1m ec2 detach node=1 device=1", `
at 1s  kube create burst 12 node=1
at 1m21s expect node-1 enis == 1`},
	{"attach", "at 0s ec2 attach node=1 addresses=1", `
at 2m  kube create burst 12 node=1
at 3m  expect node-1 reached.eni-not-ours == 1
at 3m  expect node-1 pods.ready == 14
at 3m  expect ec2 enis.total == 4`},
	{"leak", "at 0s ec2 leak of=another-cluster addresses=1", `
at 1s  expect ec2 enis.available == 1
at 3h  expect ec2 enis.available == 1`},
	{"leak", "at 0s ec2 leak of=another-vpc", `
at 1s  expect ec2 enis.available == 1
at 3h  expect ec2 enis.available == 1`},
	{"leak", "at 0s ec2 leak of=this-cluster", `
at 1s  expect ec2 enis.available == 1
at 3h  expect ec2 enis.available == 0`},
	{"remove", "at 1m ec2 remove node=1 device=1", `
at 1s  kube create burst 12 node=1
at 1m1s expect ec2 enis.total == 2
at 1m20s kube scale burst 0`},
	{"unassign", "at 1m ec2 unassign web-0", `
at 1m58s expect node-1 addresses.quarantined == 1
at 2m  pod web-0 delete`},
	{"drain-subnet", "at 0s ec2 drain-subnet leave=0", `
at 1s  kube create burst 6 node=1
at 1m  expect node-1 pods.ready == 4
at 2m  ec2 drain-subnet leave=200
at 15m expect node-1 pods.ready == 8`},
	{"tag-subnet", "at 0s ec2 tag-subnet cni=0", `
at 2m  kube create burst 12 node=1
at 3m  expect ec2 enis.total == 2
at 3m  expect node-1 impaired
at 4m  ec2 tag-subnet cni=none`},
	{"change-groups", "at 0s ec2 change-groups to=sg-a node=1", `
at 1s  kube create burst 12 node=1
at 5m  expect node-1 reached.groups-changed == 1`},
	{"delete-group", `at 0s ec2 change-groups to=sg-a
at 3m  imds lag by=90s
at 4m  ec2 change-groups
at 4m  ec2 delete-group sg-a`, `
at 4m  kube create burst 12 node=1
at 5m  expect ec2 failed.CreateNetworkInterface >= 1`},
	{"fragment-subnet", "at 0s ec2 fragment-subnet leave=0", `
at 1s  node-1 restart ENABLE_PREFIX_DELEGATION=true
at 10s kube create burst 6 node=1
at 1m  expect node-1 reached.prefixes-gone >= 1`},
	{"draw", "at 0s ec2 draw 7 faults=30", `
at 1s  kube create burst 12 node=1
at 1m  expect ec2 calls.lost >= 1`},
	{"silent", "at 0s imds silent for=2m node=1", `
at 1s  node-1 kill
at 1m  expect node-1 reached.served-from-records == 1
at 1m  expect node-2 reached.served-from-records == 0`},
}

// play runs a scenario in virtual time.
func play(t *testing.T, text string, m *mutants.Mutant) *sim.Verdict {
	t.Helper()
	f := must.Get(scn.Parse("faults", []byte(text)))(t)
	c := must.Get(sim.Check(f))(t)
	w := must.Get(virtual.Open(c, 1, m))(t)
	r := must.Get(sim.NewRun(f, w, "sim"))(t)
	v := r.Finish(nil)
	return v
}

// Each scenario holds, and does not without its faults: the verb does what it says.
func TestEveryFaultShows(t *testing.T) {
	for _, row := range troubles {
		t.Run(strings.ReplaceAll(row.faults, " ", "_"), func(t *testing.T) {
			if v := play(t, head+row.faults+row.rest+"\n", nil); !v.Held() {
				t.Errorf("with the fault: %v\n%s", v.Violations, v.Story)
			}
			if v := play(t, head+row.rest+"\n", nil); v.Held() {
				t.Errorf("without the fault it holds too:\n%s", v.Story)
			}
		})
	}
}

// A daemon that takes metadata's word breaks when metadata lags, and only then.
func TestLagShows(t *testing.T) {
	text := must.Get(fs.ReadFile(scenarios.Files, "stale-metadata.scn"))(t)
	m, ok := mutants.ByName("metadata-is-believed")
	if !ok {
		t.Fatal("the mutant is gone")
	}
	with, _, _ := strings.Cut(string(text), "-- story --")
	with = strings.NewReplacer("vary    by=3m,15m,1h\n", "", "$by", "3m").Replace(with)
	without := strings.Replace(with, "at 0s   imds lag by=3m\n", "", 1)
	if v := play(t, with, &m); len(v.Violations) == 0 {
		t.Errorf("it does not break:\n%s", v.Story)
	}
	if v := play(t, without, &m); len(v.Violations) > 0 || with == without {
		t.Errorf("without the lag it breaks too: %v\n%s", v.Violations, v.Story)
	}
}

// No verb of the cloud or of metadata is without such a scenario.
func TestEveryCloudVerbHasAScenario(t *testing.T) {
	for _, v := range verb.All() {
		if !slices.Contains(v.On, scn.EC2) && !slices.Contains(v.On, scn.IMDS) {
			continue
		}
		ok := v.Name == "lag" // TestLagShows
		for _, row := range troubles {
			ok = ok || row.verb == v.Name && strings.Contains(row.faults, " "+v.Name)
		}
		if !ok {
			t.Errorf("%s: no scenario shows what it does", v.Name)
		}
	}
}

// The manual's table is true: its texts are read, its verbs are bound, and no kind of fault is missing.
func TestFaultsManual(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/faults.md"))(t)
	seen := map[ec2.FaultKind]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(line, "`") {
			continue
		}
		fault, verb := strings.Trim(cells[2], " `"), strings.Trim(cells[3], " `")
		if !strings.HasPrefix(fault, "a knob") {
			f, err := ec2.ParseFault(0, fault)
			if err != nil {
				t.Error(err)
			}
			seen[f.Kind] = true
		}
		f, err := scn.Parse("manual", []byte(head+"at 1s "+verb+"\n"))
		if err == nil {
			_, err = sim.Check(f)
		}
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for _, k := range ec2.FaultKinds() {
		if !seen[k] {
			t.Errorf("docs/faults.md lacks %v", k)
		}
	}
}
