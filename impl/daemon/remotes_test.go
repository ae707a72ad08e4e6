package daemon

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/kube"
)

// sources answer each question with something that no other one has.
type sources struct{}

func (sources) Call(context.Context, *ipam.Call) ipam.Result { return ipam.Result{} }
func (sources) Metadata(context.Context) (*ipam.IMDS, error) {
	return &ipam.IMDS{Groups: []string{"sg-1"}}, nil
}
func (sources) ENIs(_ context.Context, ids []string) ([]ipam.ENI, error) {
	return []ipam.ENI{{ID: "asked " + ids[0]}}, nil
}
func (sources) Leaked(context.Context) ([]ipam.ENI, error) { return []ipam.ENI{{ID: "leaked"}}, nil }
func (sources) Attached(context.Context) ([]ipam.ENI, error) {
	return []ipam.ENI{{ID: "attached"}}, nil
}
func (sources) Subnets(context.Context) ([]ipam.Subnet, error) {
	return []ipam.Subnet{{ID: "subnet-1"}}, nil
}
func (sources) Sandboxes(context.Context) ([]ipam.Sandbox, error) {
	return []ipam.Sandbox{{ID: "c1"}}, nil
}
func (sources) Pods(context.Context) ([]ipam.Pod, error)          { return []ipam.Pod{{Name: "web"}}, nil }
func (sources) Watch(context.Context, func(kube.NodeFacts)) error { return nil }
func (sources) ENIConfig(context.Context, *ipam.Settings) (ipam.ENIConfig, error) {
	return ipam.ENIConfig{Name: "zone-a"}, nil
}

// TestAServerIsGivenUpAtItsBound, not before, and once: what it says after that is heard as that of any other.
func TestAServerIsGivenUpAtItsBound(t *testing.T) {
	const until = 5 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	other, keep := context.WithCancel(t.Context())
	defer keep()
	rm := &remotes{asked: map[ipam.ID]*remote{1: {cancel, until}, 2: {keep, until + 2}}}
	for _, c := range []struct {
		now   time.Duration
		ended bool // at this instant
	}{{0, false}, {until - 1, false}, {until, true}, {until, false}, {until + 1, false}} {
		if got := rm.bound(c.now); got != c.ended || (ctx.Err() != nil) != (c.now >= until) {
			t.Errorf("at %v: something was ended: %v, expected %v; its context: %v", c.now, got, c.ended, ctx.Err())
		}
	}
	if other.Err() != nil || len(rm.asked) != 2 {
		t.Errorf("the other server: %v; %d answers are awaited", other.Err(), len(rm.asked))
	}
}

// TestEachLookAsksItsSource, and its answer is the core's.
func TestEachLookAsksItsSource(t *testing.T) {
	rm := &remotes{core: &core{life: &life{c: Config{Cloud: sources{}, Runtime: sources{}, Pods: sources{}}}}}
	for what, want := range map[ipam.What]ipam.Seen{
		ipam.LookRuntime:  {Sandboxes: []ipam.Sandbox{{ID: "c1"}}},
		ipam.LookIMDS:     {IMDS: &ipam.IMDS{Groups: []string{"sg-1"}}},
		ipam.LookENI:      {ENIs: []ipam.ENI{{ID: "asked eni-1"}}},
		ipam.LookLeaked:   {ENIs: []ipam.ENI{{ID: "leaked"}}},
		ipam.LookAttached: {ENIs: []ipam.ENI{{ID: "attached"}}},
		ipam.LookSubnets:  {Subnets: []ipam.Subnet{{ID: "subnet-1"}}},
		ipam.LookPods:     {Pods: []ipam.Pod{{Name: "web"}}},
		ipam.LookConfig:   {Config: &ipam.ENIConfig{Name: "zone-a"}},
	} {
		var in ipam.Seen
		if err := rm.inquire(t.Context(), &ipam.Look{What: what, ENIs: []string{"eni-1"}}, &in); err != nil || !reflect.DeepEqual(in, want) {
			t.Errorf("%v: %+v, %v; expected %+v", what, in, err, want)
		}
	}
}
