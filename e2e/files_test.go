package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
)

// file is a scenario that is played on kind from its file, each run of it on a cluster of its own: all its variants, and
// the mutants that it names in the first of them.
type file struct {
	name string
	// same are variants that are another one's twin on kind, for what they vary is skipped there.
	same []string
	// labels are those of its specs: long is not for every change.
	labels Labels
}

// long is the label of what make e2e leaves out unless it is asked for.
const long = "long"

var files = []file{
	{name: "force-delete"},
	{name: "socket-mismatch", labels: Label(long)},
	{name: "statefulset-name-reuse", labels: Label(long)},
	{name: "del-retries", same: []string{"runtime=containerd-1.6"}, labels: Label(long)},
	{name: "eni-leak", labels: Label(long)},
	{name: "reboot", labels: Label(long)},
	{name: "subnet-exhausted", labels: Label(long)},
	{name: "forward-drop", labels: Label(long)},
	{name: "kill-loop", labels: Label(long)},
	{name: "upgrade", labels: Label(long)},
	{name: "custom-networking", labels: Label(long)},
	{name: "subnets", labels: Label(long)},
	{name: "subnets-excluded", labels: Label(long)},
}

// fileLimit bounds one run of a file with the making of its cluster: the longest, upgrade, takes 13 minutes on two cores.
const fileLimit = 30 * time.Minute

// describeFiles makes a spec of every run of every file.
func (s *site) describeFiles() {
	limits := []any{NodeTimeout(fileLimit), PollProgressAfter(fileLimit), GracePeriod(downLimit)}
	Describe("the scenario", Label("files"), func() {
		for i := range files {
			f := &files[i]
			c, err := s.load(context.Background(), f)
			if err != nil {
				It(f.name, func() { check(err) })
				continue
			}
			Describe(f.name, Label(f.name), f.labels, func() {
				for n := range c.Variants {
					v := &c.Variants[n]
					It("holds "+v.Name, Label("holds"), func(ctx SpecContext) { s.holds(ctx, f, n) }, limits)
				}
				for n := range c.Against {
					a := &c.Against[n]
					It(fmt.Sprintf("against %s breaks %q", a.Mutant.Name, a.Claim.Invariant), Label(a.Mutant.Name), Label("mutant"),
						func(ctx SpecContext) { s.breaks(ctx, f, n) }, limits)
				}
			})
		}
	})
}

// load reads a file for world kind, and leaves out the variants that are another one's twin there.
func (s *site) load(ctx context.Context, f *file) (*runner.Case, error) {
	p := kind.Place(kind.Config{Context: ctx, Name: clusterName(), Parts: cluster.Parts{Image: s.image}, Mutants: true,
		Log: func(at time.Duration, text string) { say(fmt.Sprintf("%9.3fs  %s", at.Seconds(), text)) }})
	name := f.name + ".scn"
	data, err := scenarios.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c, err := runner.Load(p, filepath.Join("scenarios", name), data)
	if err != nil {
		return nil, err
	}
	c.Variants = slices.DeleteFunc(c.Variants, func(v runner.Variant) bool { return slices.Contains(f.same, v.Name) })
	return c, nil
}

// image is what cluster.Parts asks for: the images of the whole run.
func (s *site) image(_ context.Context, laboratory bool) ([]byte, string, error) {
	if laboratory {
		return s.laboratory, imageOptions(true).Reference(), nil
	}
	return s.production, imageOptions(false).Reference(), nil
}

// holds plays a variant of a file: all that is judged holds.
func (s *site) holds(ctx SpecContext, f *file, variant int) {
	c := got(s.load(ctx, f))
	c.Variants, c.Against = c.Variants[variant:variant+1], nil
	if r := s.run(ctx, c, nil); r.Status != runner.Held {
		Fail(r.Report())
	}
}

// breaks plays the first variant of a file against a mutant that it names: what the file says of it is what breaks first.
func (s *site) breaks(ctx SpecContext, f *file, against int) {
	c := got(s.load(ctx, f))
	a := &c.Against[against]
	c.Variants = c.Variants[:1]
	r := s.run(ctx, c, &a.Mutant)
	if len(r.Runs) != 1 || r.Status == runner.Interrupted {
		Fail(r.Report())
	}
	if why := a.Judge(&r.Runs[0], c.Place.Slack); why != "" {
		Fail(why + "\n" + r.Report())
	}
}

// run plays a case of one variant, with its evidence when it fails, and with all traces of its cluster.
func (s *site) run(ctx SpecContext, c *runner.Case, m *mutants.Mutant) *runner.Result {
	var errs []error
	began := time.Now()
	r := c.Run(runner.Options{Seed: runner.DefaultSeed, Against: m,
		Interrupted: func() bool { return ctx.Err() != nil },
		Opened: func(v *runner.Variant, w runner.World, r *sim.Run) func() {
			return func() {
				b := &bed{site: s, Cluster: w.(*kind.World).Cluster()}
				list, err := tracesOf(context.WithoutCancel(ctx), b.Cluster)
				s.traces.Left, errs = append(s.traces.Left, list...), append(errs, err)
				so := runner.SoFar(v, w, r)
				if m == nil && (so.Break != nil || ctx.Err() != nil) {
					dir := filepath.Join(s.artifacts, fileName(CurrentSpecReport().FullText()))
					errs = append(errs, b.collect(context.WithoutCancel(ctx), dir, began))
					errs = append(errs, write(filepath.Join(dir, "timeline.txt"), []byte(so.Timeline)))
					say("evidence is in " + dir)
				}
			}
		}})
	s.traces.End = clock.Boot().Now()
	check(errors.Join(errs...))
	say(r.Report())
	return r
}
