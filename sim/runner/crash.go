package runner

import (
	"fmt"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// MaxCrashNodes is how large a cluster may be in which a daemon is killed at every event: each crash is a fork of the whole
// cluster, and their number grows with it too.
const MaxCrashNodes = 64

// Crashes is what came of killing a variant's daemons everywhere.
type Crashes struct {
	Variant string
	Report  virtual.CrashReport
	Err     error // why it could not be judged
}

// Crashable says why a daemon cannot be killed at every event of the file, or nothing.
func (c *Case) Crashable() error {
	for _, l := range c.File.Lines {
		if _, never := l.Stmt.(*scn.Never); never && l.Guard.Allows(c.Place.Name) {
			return fmt.Errorf("%s never settles, as its line %d says: there is nothing that a crash could be held against", c.File.Name, l.Number)
		}
	}
	for i := range c.Variants {
		if n := c.Variants[i].Cluster.Nodes; n > MaxCrashNodes {
			return fmt.Errorf("%s has %d nodes: a crash at every event is tried in clusters of at most %d nodes", c.File.Name, n, MaxCrashNodes)
		}
	}
	return nil
}

// crashEverywhere kills the daemons of each variant at every event.
func (c *Case) crashEverywhere(r *Result, o *Options, p Progress) {
	for i := range c.Variants {
		v := &c.Variants[i]
		p.Variant, p.Doing = v.Name, "crashes"
		p.Run++
		if o.interrupted() {
			r.worsen(Interrupted)
			return
		}
		report, err := virtual.CrashEverywhere(func() (*sim.Run, *virtual.World, error) { return v.OpenSim(o.Seed, o.Against) }, virtual.CrashOptions{
			Interrupted: o.Interrupted,
			Progress: func(done, total int) {
				p.Doing = fmt.Sprintf("crash point %d of %d", done, total)
				o.tell(p)
			},
		})
		r.Crashes = append(r.Crashes, Crashes{v.Name, report, err})
		switch {
		case err != nil || len(report.Broken) > 0:
			r.worsen(Violated)
		case report.Cut:
			r.worsen(Interrupted)
		}
	}
}

// crashed sums up the crashes of all variants.
func (r *Result) crashed() (points, forks int) {
	for i := range r.Crashes {
		points += r.Crashes[i].Report.Points
		forks += r.Crashes[i].Report.Forks
	}
	return points, forks
}
