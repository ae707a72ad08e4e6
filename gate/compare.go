package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
)

// Kind of a finding.
type Kind string

// The kinds there are.
const (
	Regression Kind = "regression" // it held before, and does not after the change or in it; or breaks many times as often
	Accepted   Kind = "accepted"   // a regression that somebody has accepted
	Seldom     Kind = "seldom"     // it held before with every seed, and breaks with less than half of them: a race that somebody wins now and then
	Unsure     Kind = "unsure"     // the old version alone held it, in runs in which pods were cut off: what had to be left was not there
	Mended     Kind = "mended"     // it broke before, and holds with the new version
	Before     Kind = "before"     // it broke before already, and still does
)

// Finding is a difference, or what was broken before.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Scenario string   `json:"scenario"`
	Variant  string   `json:"variant,omitempty"`
	Check    string   `json:"check"`
	Plays    []Play   `json:"plays"` // in which it broke; of what is mended: in which it did not
	Seeds    []uint64 `json:"seeds"`
	Of       int      `json:"of"` // seeds with which these plays were played
	Cause    string   `json:"cause"`
	// Seed, At, Node and Text are of the first of these plays.
	Seed   uint64  `json:"seed"`
	At     float64 `json:"at"`
	Node   int     `json:"node,omitempty"`
	Text   string  `json:"text"`
	Change float64 `json:"change"`
	// Reason is why it was accepted.
	Reason string `json:"reason,omitempty"`
	// Again is the command that plays this play once more.
	Again string `json:"again,omitempty"`
}

// group is what is compared with each other.
type group struct {
	scenario, variant string
	seeds             map[uint64]map[Play]*Result
	rests             Evidence // what the old version alone shows with every seed
}

func groups(all []Result) []*group {
	var out []*group
	for i := range all {
		r := &all[i]
		at := slices.IndexFunc(out, func(g *group) bool { return g.scenario == r.Scenario && g.variant == r.Variant })
		if at < 0 {
			at, out = len(out), append(out, &group{scenario: r.Scenario, variant: r.Variant, seeds: map[uint64]map[Play]*Result{}})
		}
		g := out[at]
		if g.seeds[r.Seed] == nil {
			g.seeds[r.Seed] = map[Play]*Result{}
		}
		g.seeds[r.Seed][r.Play] = r
	}
	return out
}

// Compare says what held before and does not any more. What the old version alone breaks with any seed that was played was broken before: a version
// that is lucky with one seed proves nothing.
func Compare(all []Result) *Verdict {
	v := &Verdict{}
	for _, g := range groups(all) {
		v.compare(g)
		v.facts(g)
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.At, b.At))
	})
	return v
}

func rank(k Kind) int {
	return slices.Index([]Kind{Regression, Accepted, Seldom, Unsure, Mended, Before}, k)
}

func (v *Verdict) compare(g *group) {
	seeds := slices.Sorted(maps.Keys(g.seeds))
	var olds []*Result
	skipped := map[int]bool{}
	for _, s := range seeds {
		for _, p := range Plays() {
			if r := g.seeds[s][p]; r != nil && r.Unknown != "" {
				v.Unknown = append(v.Unknown, fmt.Sprintf("%s, %s, seed %d: %s", g.name(), p.Doc(), s, r.Unknown))
			}
		}
		old := g.seeds[s][Old]
		if old == nil || old.Unknown != "" {
			continue
		}
		olds = append(olds, old)
		for _, l := range old.Skipped {
			skipped[l] = true
		}
	}
	if len(olds) == 0 {
		if g.played() {
			v.Unknown = append(v.Unknown, g.name()+": the old version alone was not played, so nobody knows what held before")
		}
		return
	}
	for _, old := range olds {
		if why := old.useless(); why != "" {
			v.Unknown = append(v.Unknown, fmt.Sprintf("%s, seed %d: %s%s", g.name(), old.Seed, heldNothing, why))
			return
		}
	}
	g.rests = least(olds)
	for _, plays := range g.seeds {
		for p, r := range plays {
			plays[p] = r.podless(g.rests)
		}
	}
	known := knownOf(olds)
	first := len(v.Findings)
	for _, check := range g.checks(seeds) {
		if line := 0; skippedLine(check, &line) && skipped[line] {
			continue // nobody measured it before
		}
		v.judge(g, seeds, check, known)
	}
	v.doubt(g, seeds, v.Findings[first:])
}

// heldNothing is what is told of an old version that is useless, before why.
const heldNothing = "the old version does not serve, so nothing held before: "

// useless says why a result is that of a version which does not serve: it said so, and started no pod afterwards.
func (r *Result) useless() string {
	b := r.broke(serves)
	if b == nil {
		return ""
	}
	if r.Figures != nil && slices.ContainsFunc(r.Figures.Pods, func(p sim.PodLife) bool { return p.Made.Seconds() > b.At }) {
		return ""
	}
	return b.Text
}

// doubt tells of which plays nothing can be concluded, though they broke nothing that counts.
func (v *Verdict) doubt(g *group, seeds []uint64, found []Finding) {
	for _, s := range seeds {
		for _, p := range Plays() {
			r := g.seeds[s][p]
			if r == nil || r.Unknown != "" || slices.ContainsFunc(found, func(f Finding) bool {
				return f.Kind == Regression && slices.Contains(f.Plays, p) && slices.Contains(f.Seeds, s)
			}) {
				continue
			}
			for _, why := range r.doubts(g.rests) {
				v.Unknown = append(v.Unknown, fmt.Sprintf("%s, %s, seed %d: %s", g.name(), p.Doc(), s, why))
			}
		}
	}
}

// played says whether anything of it was.
func (g *group) played() bool {
	for _, plays := range g.seeds {
		for _, r := range plays {
			if r.Unknown == "" {
				return true
			}
		}
	}
	return false
}

// onceSettled says whether a check is an invariant about what is left in the end.
func onceSettled(check string) bool {
	i, ok := judge.ByPhrase(check)
	return ok && i.When == judge.Settled
}

// cutOff says whether what broke has taken away what pods need. Of a version that takes away rules and routes of living pods nobody can say that it
// leaves none of dead ones.
func cutOff(k known) bool {
	return slices.ContainsFunc([]judge.ID{judge.I10, judge.I17}, func(id judge.ID) bool {
		return len(k[id.Phrase()]) > 0
	})
}

// serves is the invariant without which nothing begins.
const serves = "a daemon that runs serves"

func skippedLine(check string, line *int) bool {
	_, err := fmt.Sscanf(check, "line %d", line)
	return err == nil
}

// checks are all that broke anywhere, those that broke first first.
func (g *group) checks(seeds []uint64) (out []string) {
	for _, s := range seeds {
		for _, p := range Plays() {
			if r := g.seeds[s][p]; r != nil && r.Unknown == "" {
				for _, b := range r.Broken {
					if !slices.Contains(out, b.Check) {
						out = append(out, b.Check)
					}
				}
			}
		}
	}
	return out
}

// known are the instants, in seconds, at which the old version alone broke each check with any seed.
type known map[string][]float64

// knownOf are those of all runs of the old version. Where a run tells the first ones alone (it breaks a check again and again), all that follows is known.
func knownOf(olds []*Result) known {
	k := known{}
	for _, r := range olds {
		told := map[string]int{}
		for _, b := range r.Broken {
			k[b.Check] = append(k[b.Check], b.At)
			told[b.Check]++
		}
		for check, n := range told {
			if r.Times[check] > n || check == EndsByItself && n >= mostEnds {
				for at := k[check][len(k[check])-1]; at < r.Ended; at += near {
					k[check] = append(k[check], at)
				}
			}
		}
	}
	return k
}

// near is how far apart, in seconds, two runs may break a check for the same reason: an upgrade takes longer than a roll, and what an address that was given
// too early meets comes with the next pod.
const near = 45.0

// mostEnds is how many ends of a daemon a run tells.
const mostEnds = 10

// explains says whether the old version alone breaks a check at about that instant too. What it breaks early hides nothing that comes later.
func (k known) explains(b *Broken) bool {
	return slices.ContainsFunc(k[b.Check], func(at float64) bool { return math.Abs(at-b.At) <= near })
}

// fresh is the first time that a result breaks a check where the old version alone does not; nil: there is none.
func (k known) fresh(r *Result, check string) *Broken {
	for i := range r.Broken {
		if b := &r.Broken[i]; b.Check == check && !k.explains(b) {
			return b
		}
	}
	return nil
}

func (v *Verdict) judge(g *group, seeds []uint64, check string, k known) {
	f := g.finding(seeds, check, func(r *Result) *Broken { return k.fresh(r, check) })
	if f != nil {
		f.Kind = Regression
		if f.Cause = f.cause(); 2*len(f.Seeds) < f.Of {
			f.Kind = Seldom
		}
		if len(k[check]) > 0 {
			f.Cause += "; the old version alone breaks it too, but not at that time"
		}
		if f.Kind == Regression && onceSettled(check) && cutOff(k) {
			f.Kind, f.Cause = Unsure, "the old version alone cuts pods off there: that nothing was left of them says nothing"
		}
		v.Findings = append(v.Findings, *f)
		return
	}
	f = g.finding(seeds, check, func(r *Result) *Broken { return r.broke(check) })
	if g.mended(seeds, check) {
		f.Kind, f.Cause = Mended, "the old version alone breaks it, the new one does not"
	} else if old, plays, times := g.worse(seeds, check); len(plays) == 0 {
		f.Kind, f.Cause = Before, "the old version alone breaks it already"
	} else {
		f.Kind, f.Plays, f.Cause = Regression, plays, fmt.Sprintf("the old version alone breaks it %s at most, and this at least %d", count(old), times)
		for _, s := range slices.Backward(seeds) {
			if r := g.seeds[s][plays[0]]; r != nil && r.Unknown == "" {
				b := r.broke(check)
				f.Seed, f.At, f.Node, f.Text, f.Change = s, b.At, b.Node, b.Text, r.Change
			}
		}
	}
	v.Findings = append(v.Findings, *f)
}

// finding is what is known of a check wherever of finds that it broke; nil: nowhere.
func (g *group) finding(seeds []uint64, check string, of func(*Result) *Broken) *Finding {
	f := &Finding{Scenario: g.scenario, Variant: g.variant, Check: check}
	var first *Broken
	for _, p := range Plays() {
		broke := false
		for _, s := range seeds {
			r := g.seeds[s][p]
			if r == nil || r.Unknown != "" {
				continue
			}
			b := of(r)
			if b == nil {
				continue
			}
			broke = true
			if first == nil {
				first, f.Seed, f.Change = b, s, r.Change
			}
			if !slices.Contains(f.Seeds, s) {
				f.Seeds = append(f.Seeds, s)
			}
		}
		if broke {
			f.Plays = append(f.Plays, p)
		}
	}
	if first == nil {
		return nil
	}
	f.At, f.Node, f.Text = first.At, first.Node, first.Text
	slices.Sort(f.Seeds)
	for _, s := range seeds {
		if slices.ContainsFunc(f.Plays, func(p Play) bool { r := g.seeds[s][p]; return r != nil && r.Unknown == "" }) {
			f.Of++
		}
	}
	return f
}

func count(times int) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}

// What was broken before is worse from so many times on what the old version alone breaks at most, and so many more: a race ends otherwise with each
// version, and a node that cut one pod off and now cuts ten is no race.
const (
	worseTimes = 3
	worseMore  = 3
)

// worse are the plays that break with every seed an invariant far more often than the old version alone does with any, how often that one does at
// most, and they at least.
func (g *group) worse(seeds []uint64, check string) (old int, plays []Play, times int) {
	for _, s := range seeds {
		if r := g.seeds[s][Old]; r != nil && r.Unknown == "" {
			old = max(old, r.Times[check])
		}
	}
	times = math.MaxInt
	for _, p := range Plays() {
		least := math.MaxInt
		for _, s := range seeds {
			if r := g.seeds[s][p]; r != nil && r.Unknown == "" {
				least = min(least, r.Times[check])
			}
		}
		if least < math.MaxInt && least > worseTimes*old+worseMore {
			plays, times = append(plays, p), min(times, least)
		}
	}
	return old, plays, times
}

// mended says whether the new version alone held wherever the old one did not, with the same seed, in a run that shows as much as the old one's.
func (g *group) mended(seeds []uint64, check string) (mended bool) {
	for _, s := range seeds {
		old, fresh := g.seeds[s][Old], g.seeds[s][New]
		if old == nil || fresh == nil || old.Unknown != "" || fresh.Unknown != "" {
			continue
		}
		if fresh.broke(check) != nil || fresh.useless() != "" || len(fresh.doubts(g.rests)) > 0 {
			return false
		}
		mended = mended || old.broke(check) != nil
	}
	return mended
}

// cause is what the plays in which something broke have in common.
func (f *Finding) cause() string {
	has := func(p Play) bool { return slices.Contains(f.Plays, p) }
	up, upImage, back, backImage := has(Upgrade), has(UpgradeImage), has(Rollback), has(RollbackImage)
	switch {
	case has(New):
		return "the new version itself"
	case upImage && !up && !back && !backImage:
		return "the upgrade of the image alone: with its manifest the new version holds"
	case up || upImage:
		if back || backImage {
			return "the change, in both directions"
		}
		return "the upgrade"
	case backImage && !back:
		return "the rollback of the image alone: with its manifest the old version holds"
	}
	return "the rollback"
}

func (g *group) name() string {
	if g.variant == "" {
		return g.scenario
	}
	return g.scenario + " (" + g.variant + ")"
}

// Name is the scenario with its variant.
func (f *Finding) Name() string { return (&group{scenario: f.Scenario, variant: f.Variant}).name() }

// Where says in which plays.
func (f *Finding) Where() string {
	var out []string
	for _, p := range f.Plays {
		out = append(out, p.Doc())
	}
	return strings.Join(out, "; ")
}

// Doubtful are the plays of a scenario in which a regression was seen: to be sure they, and the old version alone, are played with other seeds too. Of a
// difference that several plays show the first one is enough. Nil is none.
func (v *Verdict) Doubtful(scenario string) (plays []Play) {
	for _, f := range v.Findings {
		if f.Kind != Regression || f.Scenario != scenario {
			continue
		}
		if !slices.ContainsFunc(f.Plays, func(p Play) bool { return slices.Contains(plays, p) }) {
			plays = append(plays, f.Plays[0])
		}
	}
	if len(plays) > 0 {
		plays = append([]Play{Old}, plays...)
	}
	return plays
}
