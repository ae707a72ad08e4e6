package daemon

import (
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// gatedStore stands before RunStore's file: it can hold Commits up, fail them, and counts.
type gatedStore struct {
	Store
	mu     sync.Mutex
	broken bool
	sizes  []int // of batches
	gate   chan struct{}
}

// gatedRig is a daemon that serves, and its store.
func gatedRig(t *testing.T, addresses int) (*rig, *gatedStore) {
	t.Helper()
	r, s := newRig(t, addresses), &gatedStore{}
	r.c.Parts.Store = s.before
	return r.start().serves(), s
}

// before is Parts.Store.
func (s *gatedStore) before(of Store) Store {
	if f, ok := of.(*file); !ok || f.kind != ipam.RunStore {
		return of
	}
	s.Store = of
	return s
}

func (s *gatedStore) fail(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = yes
}

func (s *gatedStore) Commit(saves []*ipam.Save) error {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(saves))
	broken, gate := s.broken, s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if broken {
		return errors.New("the disk is full")
	}
	return s.Store.Commit(saves)
}

// TestDaemonSaysWhatItLacks: a Config without one of its parts is an error, and no panic later.
func TestDaemonSaysWhatItLacks(t *testing.T) {
	whole := Config{Clock: clock.Boot(), Kernel: newKernel(), Cloud: &fixedCloud{}, RunDir: "run", LibDir: "lib"}
	if _, err := newDaemon(whole); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
	for name, without := range map[string]func(*Config){"Clock": func(c *Config) { c.Clock = nil }, "Kernel": func(c *Config) { c.Kernel = nil },
		"Cloud": func(c *Config) { c.Cloud = nil }, "RunDir": func(c *Config) { c.RunDir = "" }, "LibDir": func(c *Config) { c.LibDir = "" }} {
		c := whole
		without(&c)
		if _, err := newDaemon(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestPlanInBetween: the kernel gets the plan that a laboratory makes of the core's, which stays as it was recorded.
func TestPlanInBetween(t *testing.T) {
	lane := ipam.Lane{Kind: ipam.HostLane, ENI: "eni-1"}
	wanted := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.CreateVeth, Alias: "of the core"}}}
	other := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.CreateVeth, Alias: "of the laboratory"}}}
	for _, replaced := range []bool{false, true} {
		ran := make(chan dataplane.Plan, 1)
		nk, c, want := newKernel(), Config{}, wanted
		nk.gate(func(p dataplane.Plan) { ran <- p })
		c.Kernel = nk
		if replaced {
			want = other
			c.Parts.Plan = func(l ipam.Lane, p dataplane.Plan) dataplane.Plan {
				if l != lane || !reflect.DeepEqual(p, wanted) {
					t.Errorf("it stands before %+v in %+v", p, l)
				}
				return other
			}
		}
		k := kernelIO{core: &core{life: &life{c: c, in: make(chan func(), 1)}}, requests: &requests{},
			lanes: map[ipam.Lane]*applyLane{}}
		a := &ipam.Apply{ID: 1, Lane: lane, Plan: wanted}
		k.apply(a)
		if got := <-ran; !reflect.DeepEqual(got, want) {
			t.Errorf("a laboratory is there: %v; the kernel gets %+v", replaced, got)
		}
		if !reflect.DeepEqual(a.Plan, wanted) {
			t.Errorf("the core's own plan is %+v now", a.Plan)
		}
	}
}

// TestKernelSeen: what the kernel shows is whole if it says so and nothing went wrong, and otherwise it is said why not.
func TestKernelSeen(t *testing.T) {
	failed := errors.New("no socket")
	for _, c := range []struct {
		whole bool
		err   error
		says  string
	}{{true, nil, ""}, {false, nil, "the dump was interrupted"}, {true, failed, "no socket"}, {false, failed, "no socket"}} {
		o := &dataplane.Observation{Complete: c.whole}
		want := ipam.Seen{ID: 7, What: ipam.LookKernel, Complete: c.says == "", Err: c.says, Kernel: o}
		if got := kernelSeen(7, o, c.err); !reflect.DeepEqual(got, want) {
			t.Errorf("complete %v, %v: found %+v", c.whole, c.err, got)
		}
	}
}

// TestCloudInBetween: what a laboratory puts before EC2 is asked in its place.
func TestCloudInBetween(t *testing.T) {
	inner, outer := &fixedCloud{}, &fixedCloud{}
	d, err := newDaemon(Config{Clock: clock.Boot(), Kernel: newKernel(), Cloud: inner, RunDir: "run", LibDir: "lib",
		Parts: Parts{Cloud: func(c Cloud) Cloud {
			if c != Cloud(inner) {
				t.Errorf("it stands before %v", c)
			}
			return outer
		}}})
	if err != nil || d.c.Cloud != Cloud(outer) {
		t.Errorf("EC2 is %v, %v", d.c.Cloud, err)
	}
}
