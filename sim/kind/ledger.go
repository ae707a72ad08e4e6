package kind

import (
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
)

// ledger tells what a scenario does at EC2 from what machines do that are none of its nodes. The cloud's goroutine uses it.
type ledger struct {
	outsiders []ec2.InstanceID
	base      []ec2.Count // of all, at t=0
	theirs    []ec2.Count // and the outsiders' part of it
}

// begin is t=0.
func (l *ledger) begin(m *ec2.Cloud) { l.base, l.theirs = actions.Ledger(m), l.others(m) }

// others are the outsiders' calls.
func (l *ledger) others(m *ec2.Cloud) []ec2.Count {
	out := make([]ec2.Count, ec2.ActionCount)
	for _, i := range l.outsiders {
		for a := range out {
			n := m.CallsBy(i, ec2.Action(a))
			out[a].Total += n.Total
			out[a].Throttled += n.Throttled
			out[a].Failed += n.Failed
			out[a].Lost += n.Lost
		}
	}
	return out
}

// since is what the scenario's calls count from: the others' calls since t=0 are none of them.
func (l *ledger) since(m *ec2.Cloud) []ec2.Count {
	out := slices.Clone(l.base)
	for a, n := range l.others(m) {
		out[a].Total += n.Total - l.theirs[a].Total
		out[a].Throttled += n.Throttled - l.theirs[a].Throttled
		out[a].Failed += n.Failed - l.theirs[a].Failed
		out[a].Lost += n.Lost - l.theirs[a].Lost
	}
	return out
}

// measure leaves out what is the outsiders'.
func (l *ledger) measure(m *ec2.Cloud, metric string) (int64, bool) {
	v, ok := actions.MeasureEC2(m, l.since(m), metric)
	_, of, ofSubnet := sim.SubnetMetric(metric)
	for _, i := range l.outsiders {
		switch {
		case metric == "enis.total":
			v -= int64(len(m.AttachedENIs(i)))
		case ofSubnet && of == "enis":
			theirs, _ := actions.MeasureInstance(m, i, metric)
			v -= theirs
		}
	}
	return v, ok
}
