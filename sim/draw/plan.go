package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/scn"
)

// plan is a scenario that is being drawn.
type Plan struct {
	Source
	Shape    Shape
	Safety   time.Duration // when the faults end
	Moments  []time.Duration
	Loads    []Workload
	Start    []string
	Lines    []Planned
	Doomed   int           // the node that will be terminated; 0 is none
	Gone     bool          // it is
	Pinned   bool          // every workload is on one node
	Upgraded int           // version of the last upgrade
	Detaches bool          // a third party detaches ENIs
	Attached map[int]int   // ENIs that third parties attach, by node
	Leaks    int           // ENIs that nodes which are gone have left
	Sweeps   bool          // one of them is this cluster's
	Trails   bool          // metadata is so far behind that it does not catch up in the usual time
	Wanted   time.Duration // when a workload was changed last
	Hidden   int           // sandboxes that nobody will ever end
	Limited  bool          // EC2 refuses an attach as one too many
	Ready    time.Duration // how long the parts of the liveness phase take
	Settle   time.Duration
	Drawn    string   // for whom it is, in the headline
	Settings []string // that the CNI knows; nil: all of ours
	Unready  bool     // something happens after which it is not owed that every pod is ready before the run ends
}

// workload as it is wanted at the instant that is being drawn.
type Workload struct {
	Name     string
	Count    int
	Node     int // 0: all
	Stateful bool
	Made     time.Duration
}

// planned is a line at its instant.
type Planned struct {
	At   time.Duration
	Text string
}

// write adds an action that may miss its target: it may be gone by then.
func (p *Plan) Write(at time.Duration, format string, args ...any) {
	p.Lines = append(p.Lines, Planned{at, "maybe at " + Short(at) + " " + fmt.Sprintf(format, args...)})
}

// must adds an action that has a target, and a check.
func (p *Plan) Must(at time.Duration, format string, args ...any) {
	p.Lines = append(p.Lines, Planned{at, "at " + Short(at) + " " + fmt.Sprintf(format, args...)})
}

// short is a duration as the language prints it.
func Short(d time.Duration) string { return scn.FormatDuration(d) }

// fit makes the subnet large enough that every node can have a pod for good.
func (p *Plan) Fit() {
	h := &p.Shape
	for {
		perNode, all := h.Room()
		if perNode > 0 && all >= h.Nodes && Usable(h.Bits) >= h.Nodes*(1+h.Warm) {
			return
		}
		h.Bits--
	}
}

// moments are what instants gather around, so that what happens meets.
func (p *Plan) DrawMoments() {
	for range p.Between(2, 6) {
		p.Moments = append(p.Moments, p.Span(0, p.Safety*3/4, time.Second))
	}
}

// instants are when something happens, in order.
func (p *Plan) Instants() []time.Duration {
	p.DrawMoments()
	var out []time.Duration
	for range p.Between(4, 18) {
		at := p.Span(0, p.Safety*9/10, time.Second)
		if p.Chance(70) {
			at = Pick(&p.Source, p.Moments...) + p.Span(0, 12*time.Second, time.Second)
		}
		if p.Chance(40) {
			at += p.Span(0, time.Second, 10*time.Millisecond)
		}
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

// later is an instant some time after another, within the safety phase.
func (p *Plan) Later(at, lo, hi time.Duration) time.Duration {
	return min(p.Safety, at+p.Span(lo, hi, time.Second))
}

// within is a duration of a fault that is over by the end of the safety phase.
func (p *Plan) Lasts(at, lo, hi time.Duration) time.Duration {
	return max(time.Second, min(p.Span(lo, hi, 5*time.Second), (p.Safety-at).Truncate(time.Second)))
}

// text puts the scenario together.
func (p *Plan) Text(seed uint64) string {
	slices.SortStableFunc(p.Lines, func(a, b Planned) int { return cmp.Compare(a.At, b.At) })
	var b strings.Builder
	fmt.Fprintf(&b, "# Drawn by enilab swarm %sfrom seed %d.\n", p.Drawn, seed)
	b.WriteString(p.Shape.Head())
	for _, l := range p.Start {
		b.WriteString(l + "\n")
	}
	for _, l := range p.Lines {
		b.WriteString(l.Text + "\n")
	}
	if !p.Unready && p.Doomed == 0 {
		fmt.Fprintf(&b, "at %s within %s expect kube pods.unready == 0\n", Short(p.Safety), Short(p.Ready))
	}
	settle := p.Settle
	if p.Doomed > 0 || p.Detaches || p.Sweeps || p.Trails {
		settle = settlingOn
	}
	fmt.Fprintf(&b, "finally converges within %s\n", Short(settle))
	return b.String()
}

func (p *Plan) OneNode() string { return fmt.Sprintf("node-%d", p.Between(1, p.Shape.Nodes)) }

func (p *Plan) AnyNode() string {
	if p.Shape.Nodes > 1 && p.Chance(25) {
		return "node-*"
	}
	return p.OneNode()
}

// mutations are the calls that change something at EC2.
var Mutations = []string{"CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute",
	"DetachNetworkInterface",
	"DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"}

func (p *Plan) Call() string {
	if p.Chance(15) {
		return Pick(&p.Source, "DescribeNetworkInterfaces", "any")
	}
	return Pick(&p.Source, Mutations...)
}

func (p *Plan) Times(most int) string {
	if n := p.Between(1, most); n > 1 {
		return fmt.Sprintf(" times=%d", n)
	}
	return ""
}

func (p *Plan) Whose() string {
	if p.Shape.Nodes > 1 && p.Chance(40) {
		return fmt.Sprintf(" node=%d", p.Between(1, p.Shape.Nodes))
	}
	return ""
}

// long is how long an outage may take: now and then much longer than usual.
func (p *Plan) Long(usual time.Duration) time.Duration {
	if p.Chance(15) {
		return 20 * time.Minute
	}
	return usual
}

// otherCall is a request that makes no ENI.
func (p *Plan) OtherCall() string {
	return Pick(&p.Source, slices.DeleteFunc(append(slices.Clone(Mutations), "DescribeNetworkInterfaces"),
		func(c string) bool { return c == Making })...)
}

// outage is how long a fault for any CNI lasts.
func (p *Plan) Outage(at time.Duration) string {
	return Short(p.Lasts(at, 10*time.Second, AnyOutage))
}

// settlingOn is how long settling may take when an ENI may be nobody's: every hour somebody looks for such, and half
// an hour later once more.
const settlingOn = 150 * time.Minute

// Making is the request that makes an ENI.
const Making = "CreateNetworkInterface"

// AnyOutage is how long a fault may last for any CNI.
const AnyOutage = time.Minute
