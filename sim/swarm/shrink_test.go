package swarm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/swarm"
)

// bulky breaks "every live pod is reachable": a third party takes the ENI of two pods while nobody may ask EC2 for it.
const bulky = `# Too much of everything.
cluster nodes=2 type=m5.large subnet=10.0.0.0/22 runtime=containerd
config  WARM_IP_TARGET=2 IP_COOLDOWN_PERIOD=20
start   pods web 7 on node-*
vary    code=InternalError,Unavailable
always  "every live pod is reachable"
maybe at 10s pod web-3 delete
at 20s  kube create more 4
maybe at 30s every 10s until 1m kube roll web 2
at 1m12s  kube scale web 9
at 2m7s  node-1 flush-routes table=254     # the machine's own
maybe at 3m  node-2 restart
maybe at 3m ec2 fail any $code times=3
finally converges within 20m
against no-repair breaks "nothing is leaked"
`

func TestShrink(t *testing.T) {
	a := must.Get(swarm.Shrink("bulky.scn", bulky, 1, swarm.Options{}))(t)
	b, _ := swarm.Shrink("bulky.scn", bulky, 1, swarm.Options{})
	if a.Text != b.Text || a.Tried != b.Tried {
		t.Errorf("twice, and not the same:\n%s\n%s", a.Text, b.Text)
	}
	want := "cluster runtime=containerd\nstart pods web 1 on node-1\nat 0s node-1 flush-routes\nfinally converges within 20m\n"
	if a.Text != want || a.Broken.Invariant != "every live pod is reachable" || a.Lines != 4 || a.From != 14 {
		t.Errorf("%d lines of %d, %q by %s:\n%s", a.Lines, a.From, a.Broken.Invariant, a.Broken.Cause, a.Text)
	}
	o, err := swarm.Play("small.scn", a.Text, a.Seed, nil)
	if err != nil || o.Broken == nil || !o.Broken.Same(&a.Broken) {
		t.Errorf("the small one: %+v, %v", o, err)
	}
}

// TestShrinkKeepsPromises: a line that counts is not made false by taking out what it counts, a fault that is ended stays ended, and
// there is not less time to settle.
func TestShrinkKeepsPromises(t *testing.T) {
	const text = `cluster nodes=1 type=m5.large subnet=10.0.0.0/24
start pods web 3 on node-1
at 1m node-1 kill
at 2m expect node-1 pods.ready == 4
finally converges within 20m
`
	s := must.Get(swarm.Shrink("count.scn", text, 1, swarm.Options{}))(t)
	if !strings.Contains(s.Text, "web 3") || !strings.Contains(s.Text, "within 20m") || strings.Contains(s.Text, "kill") {
		t.Errorf("got\n%s", s.Text)
	}
}

func TestShrinkRefuses(t *testing.T) {
	const holds = "cluster nodes=1\nstart pods web 2 on node-1\nfinally converges within 20m\n"
	if _, err := swarm.Shrink("holds.scn", holds, 1, swarm.Options{}); !errors.Is(err, swarm.ErrHolds) {
		t.Errorf("what holds: %v", err)
	}
	const full = "cluster nodes=1 subnet=10.0.0.0/28\nstart pods web 40 on node-1\nfinally converges within 20m\n"
	if _, err := swarm.Shrink("full.scn", full, 1, swarm.Options{}); !errors.Is(err, swarm.ErrStart) {
		t.Errorf("what does not start: %v", err)
	}
}

// TestOwed: a scenario that asks for the impossible is told from one that does not.
func TestOwed(t *testing.T) {
	const head = "cluster nodes=1 type=m5.large vpc=10.0.0.0/16 subnet=10.0.0.0/24 subnets=10.0.1.0/24:cni\nstart pods web 2 on node-1\n"
	const ready = "at 10m within 15m expect kube pods.unready == 0\n"
	for lines, says := range map[string]string{
		"at 1m node-1 hold\nat 2m node-1 unhold\n" + ready:                                    "",
		"at 1m node-1 hold\n" + ready:                                                         "nobody has ended hold of node-1",
		"at 1m ec2 tag-subnet subnet=2 cni=0\n" + ready:                                       "nobody has ended the exclusion of subnet 2",
		"at 1m ec2 tag-subnet subnet=2 cni=0\nat 2m ec2 tag-subnet subnet=2 cni=1\n" + ready:  "",
		"at 1m node-* hold\nat 2m node-1 unhold\n" + ready:                                    "",
		"at 1m node-1 socket cri=absent\n" + ready:                                            "nobody has ended socket of node-1",
		"at 1m ec2 drain-subnet leave=0\n" + ready:                                            "nobody has ended drain-subnet",
		"at 1m ec2 drain-subnet leave=0\n":                                                    "strangers keep the subnet's addresses",
		"at 9m ec2 down for=2m\n" + ready:                                                     "a fault lasts until 11m",
		"at 1m pod web-0 hang\nat 2m pod web-0 unhang\n" + ready:                              "nobody has ended the hang",
		"at 1m node-1 hold\n":                                                                 "",
		"at 1m kube scale web 28\n":                                                           "there is no room for all pods",
		"at 1m kube scale web 27\n":                                                           "",
		"at 1m node-1 flush-routes\n":                                                         "no CNI survives node flush-routes",
		"at 1m node-1 flush-routes table=2\n":                                                 "",
		"at 1m ec2 unassign web-0\n":                                                          "no CNI survives ec2 unassign",
		"at 3m ec2 detach\nat 4m ec2 down\n":                                                  "nobody can attach it again in time",
		"at 3m ec2 detach\nat 4m node-1 kill\n":                                               "nobody can attach it again in time",
		"at 1m kube roll web 1\nat 4m ec2 detach\n":                                           "",
		"at 1m kube roll web 1\nat 2m ec2 detach\n":                                           "too new to be missed",
		"at 1m node-1 lose-records\nat 1m pod web-0 change-mac\nat 2m pod web-0 lose-alias\n": "only the pod knows",
		"at 1m ec2 stale for=1m\nat 1m imds lag by=1m\nat 2m node-1 reboot\n":                 "nobody knows what was given back",
		"at 1m node-1 upgrade to=1\nat 1m pod web-0 change-mac\nat 2m pod web-0 lose-alias\n": "only the pod knows",
		"at 1m ec2 fail AttachNetworkInterface AttachmentLimitExceeded times=3\n":             "",
		"at 1m ec2 fail AttachNetworkInterface AttachmentLimitExceeded times=3\nat 2m ec2 fail AttachNetworkInterface AttachmentLimitExceeded\n": "believed for longer",
		"at 1m ec2 leak\nat 2m ec2 leak of=another-vpc\n":                          "",
		"at 1m ec2 leak of=this-cluster\n":                                         "",
		"config DISABLE_LEAKED_ENI_CLEANUP=true\nat 1m ec2 leak of=this-cluster\n": "nobody sweeps",
		"config DISABLE_LEAKED_ENI_CLEANUP=true\nat 1m node-1 lose-records\n":      "nobody sweeps",
		"config DISABLE_LEAKED_ENI_CLEANUP=true\nat 1m node-1 terminate\n":         "nobody sweeps",
		"at 1m node-1 lose-records\nat 1m imds silent\nat 2m node-1 flush-rules\n": "nobody puts back in time",
		"at 1m node-1 lose-records\nat 1m pod web-0 change-mac\n":                  "",
		"at 1m kube create db 40 node=1\nat 2m kube scale db 3\n" + ready:          "",
	} {
		f, c, err := swarm.Read("owed.scn", []byte(head+lines+"finally converges within 20m\n"))
		must.Do(t, err)
		err = swarm.Feasible(f, c)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: expected %q, found %v", lines, says, err)
		}
	}
}

// TestARecordVersionOwesWhatAnUpgradeDoes: records of version 1 have no MACs, also where no line changes the version (swarm seed 1919391).
func TestARecordVersionOwesWhatAnUpgradeDoes(t *testing.T) {
	for version, survives := range map[string]bool{"": true, " version=1": false} {
		f, c, err := swarm.Read("old.scn", []byte("cluster nodes=1"+version+"\nstart pods web 1 on node-1\n"+
			"at 1m pod web-0 change-mac\nat 2m pod web-0 lose-alias\nfinally converges within 20m\n"))
		must.Do(t, err)
		if err := swarm.Feasible(f, c); (err == nil) != survives {
			t.Errorf("%q: %v", version, err)
		}
	}
}
