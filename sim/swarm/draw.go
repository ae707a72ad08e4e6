package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
)

// How long the parts of a drawn scenario take. The bounds of the liveness phase are far above what a correct CNI needs: two minutes
// until EC2 is consistent and calls in doubt are known, five until an attachment that was never listed is believed gone, a minute for
// a pool to shrink, a minute and a half between two tries of a refused call.
const (
	shortest   = 4 * time.Minute // safety phase
	longest    = 20 * time.Minute
	longestDay = time.Hour        // of one in twenty
	readiness  = 15 * time.Minute // until every pod is ready
	settling   = 20 * time.Minute
	settlingOn = 150 * time.Minute // when an ENI may be nobody's: every hour somebody looks for such, and half an hour later once more
)

// Name is what a seed's scenario is called.
func Name(seed uint64) string { return fmt.Sprintf("swarm-%d.scn", seed) }

// Draw writes the scenario of a seed.
func Draw(seed uint64) string {
	p := &plan{source: newSource(seed), ready: readiness, settle: settling, attached: map[int]int{}}
	p.shape = drawShape(&p.source)
	p.fit()
	p.upgraded = p.shape.version
	p.safety = p.span(shortest, longest, 30*time.Second)
	if p.chance(5) {
		p.safety = p.span(longest, longestDay, time.Minute)
	}
	p.enable()
	p.startPods()
	for todo := p.instants(); len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		if p.chance(45) {
			p.operate(at)
		} else if p.strike(at) && p.chance(30) { // something meets the daemon that has hardly started
			then := min(p.safety, at+models.RestartPause+p.span(0, 300*time.Millisecond, time.Millisecond))
			i, _ := slices.BinarySearch(todo, then)
			todo = slices.Insert(todo, i, then)
		}
	}
	p.bringBack()
	return p.text(seed)
}

// plan is a scenario that is being drawn.
type plan struct {
	source
	shape    shape
	safety   time.Duration // when the faults end
	moments  []time.Duration
	kinds    []*kind // the enabled ones
	weight   int     // of them together
	loads    []workload
	start    []string
	lines    []planned
	doomed   int           // the node that will be terminated; 0 is none
	gone     bool          // it is
	pinned   bool          // every workload is on one node
	upgraded int           // version of the last upgrade
	detaches bool          // a stranger detaches ENIs
	attached map[int]int   // ENIs that strangers attach, by node
	leaks    int           // ENIs that nodes which are gone have left
	sweeps   bool          // one of them is this cluster's
	wanted   time.Duration // when a workload was changed last
	hidden   int           // sandboxes that nobody will ever end
	limited  bool          // EC2 refuses an attach as one too many
	cni      *CNI          // nil: ours
	ready    time.Duration // how long the parts of the liveness phase take
	settle   time.Duration
	drawn    string // for whom it is, in the headline
	unready  bool   // something happens after which it is not owed that every pod is ready before the run ends
}

// workload as it is wanted at the instant that is being drawn.
type workload struct {
	name     string
	count    int
	node     int // 0: all
	stateful bool
	made     time.Duration
}

// planned is a line at its instant.
type planned struct {
	at   time.Duration
	text string
}

// write adds an action that may miss its target: it may be gone by then.
func (p *plan) write(at time.Duration, format string, args ...any) {
	p.lines = append(p.lines, planned{at, "maybe at " + short(at) + " " + fmt.Sprintf(format, args...)})
}

// must adds an action that has a target, and a check.
func (p *plan) must(at time.Duration, format string, args ...any) {
	p.lines = append(p.lines, planned{at, "at " + short(at) + " " + fmt.Sprintf(format, args...)})
}

// short is a duration as the language prints it.
func short(d time.Duration) string { return scn.FormatDuration(d) }

// fit makes the subnet large enough that every node can have a pod for good.
func (p *plan) fit() {
	h := &p.shape
	for {
		perNode, all := h.room()
		if perNode > 0 && all >= h.nodes && usable(h.bits) >= h.nodes*(1+h.warm) {
			return
		}
		h.bits--
	}
}

// moments are what instants gather around, so that what happens meets.
func (p *plan) drawMoments() {
	for range p.between(2, 6) {
		p.moments = append(p.moments, p.span(0, p.safety*3/4, time.Second))
	}
}

// instants are when something happens, in order.
func (p *plan) instants() []time.Duration {
	p.drawMoments()
	var out []time.Duration
	for range p.between(4, 18) {
		at := p.span(0, p.safety*9/10, time.Second)
		if p.chance(70) {
			at = pick(&p.source, p.moments...) + p.span(0, 12*time.Second, time.Second)
		}
		if p.chance(40) {
			at += p.span(0, time.Second, 10*time.Millisecond)
		}
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}

// later is an instant some time after another, within the safety phase.
func (p *plan) later(at, lo, hi time.Duration) time.Duration {
	return min(p.safety, at+p.span(lo, hi, time.Second))
}

// within is a duration of a fault that is over by the end of the safety phase.
func (p *plan) lasts(at, lo, hi time.Duration) time.Duration {
	return max(time.Second, min(p.span(lo, hi, 5*time.Second), (p.safety-at).Truncate(time.Second)))
}

// text puts the scenario together.
func (p *plan) text(seed uint64) string {
	slices.SortStableFunc(p.lines, func(a, b planned) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	fmt.Fprintf(&b, "# Drawn by enilab swarm %sfrom seed %d.\n", p.drawn, seed)
	b.WriteString(p.shape.head())
	for _, l := range p.start {
		b.WriteString(l + "\n")
	}
	for _, l := range p.lines {
		b.WriteString(l.text + "\n")
	}
	if !p.unready && p.doomed == 0 {
		fmt.Fprintf(&b, "at %s within %s expect kube pods.unready == 0\n", short(p.safety), short(p.ready))
	}
	settle := p.settle
	if p.doomed > 0 || p.detaches || p.sweeps {
		settle = settlingOn
	}
	fmt.Fprintf(&b, "finally converges within %s\n", short(settle))
	return b.String()
}
