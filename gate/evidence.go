package gate

import (
	"fmt"
	"slices"
	"strings"
)

// Evidence is what a run's silence rests on: a version that was never asked for a pod breaks nothing.
type Evidence struct {
	Before  int `json:"before"`  // pods that were made before the change
	After   int `json:"after"`   // and after it
	Deleted int `json:"deleted"` // pods that were deleted after it
	Older   int `json:"older"`   // those of them that had been made before it
	Flows   int `json:"flows"`   // connections that clients held
	Pairs   int `json:"pairs"`   // times that one pod asked another
	Judged  int `json:"judged"`  // expectations
}

// Evidence is what the result rests on; of a run that never began it is none.
func (r *Result) Evidence() (e Evidence) {
	if e.Judged = r.Judged; r.Figures == nil {
		return e
	}
	e.Flows, e.Pairs = r.Figures.Flows, r.Figures.Pairs
	for _, p := range r.Figures.Pods {
		before := p.Made.Seconds() < r.Change
		if before {
			e.Before++
		} else {
			e.After++
		}
		if p.Deleted && p.Ended.Seconds() >= r.Change {
			if e.Deleted++; before {
				e.Older++
			}
		}
	}
	return e
}

func (e Evidence) String() string {
	return fmt.Sprintf("%d pods made before the change and %d after it, %d deleted after it (%d of them from before), %d flows held, %d pairs asked, %d expectations judged",
		e.Before, e.After, e.Deleted, e.Older, e.Flows, e.Pairs, e.Judged)
}

// kinds are the numbers of an evidence by their names.
func (e Evidence) kinds() []struct {
	what string
	n    int
} {
	return []struct {
		what string
		n    int
	}{{"makes no pod before the change", e.Before}, {"makes no pod after the change", e.After}, {"deletes no pod after the change", e.Deleted},
		{"deletes no pod of before after the change", e.Older}, {"holds no flow", e.Flows}, {"asks no pair of pods", e.Pairs}, {"judges no expectation", e.Judged}}
}

// doubts are why nothing can be concluded from what a run did not break: what it lacks of what the old version alone shows in the same scenario, and lines
// that struck nothing. least is what the old version alone shows with every seed.
func (r *Result) doubts(least Evidence) (out []string) {
	e := r.Evidence()
	if e.Before+e.After == 0 {
		out = append(out, "no pod was made")
	}
	mine, theirs := e.kinds(), least.kinds()
	for i := range mine {
		if mine[i].n == 0 && theirs[i].n > 0 {
			out = append(out, fmt.Sprintf("it %s, and the old version alone has %d", mine[i].what, theirs[i].n))
		}
	}
	for _, m := range r.Missed {
		out = append(out, fmt.Sprintf("line %d struck nothing: %s", m.Line, m.Text))
	}
	return out
}

// least is the smallest of each number.
func least(list []*Result) Evidence {
	out := list[0].Evidence()
	for _, r := range list[1:] {
		e := r.Evidence()
		out = Evidence{min(out.Before, e.Before), min(out.After, e.After), min(out.Deleted, e.Deleted), min(out.Older, e.Older), min(out.Flows, e.Flows), min(out.Pairs, e.Pairs), min(out.Judged, e.Judged)}
	}
	return out
}

// StartsPods is what a version breaks that starts no pod where the old one alone does.
const StartsPods = "pods start"

// podless adds to a result that no pod was started, where the old version alone does that with every seed.
func (r *Result) podless(old Evidence) *Result {
	e := r.Evidence()
	text, at := "", r.Change
	switch {
	case r.Unknown != "" || r.Figures == nil:
		return r
	case e.Before+e.After == 0 && old.Before+old.After > 0:
		text, at = fmt.Sprintf("no pod was started, and the old version alone starts %d", old.Before+old.After), 0
	case e.After == 0 && old.After > 0:
		text = fmt.Sprintf("no pod was started after the change, and the old version alone starts %d", old.After)
	default:
		return r
	}
	if r.Figures.Failed > 0 {
		text += fmt.Sprintf("; %d ADDs failed", r.Figures.Failed)
	}
	more := *r
	more.Broken = append(slices.Clone(r.Broken), Broken{Check: StartsPods, At: at, Text: text})
	return &more
}

// evidence tells what the plays rest on.
func (p *Page) evidence(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-44s  %-14s  %s\n", "rests on", "play", "pods made before + after the change, deleted after (of before); flows, pairs, expectations")
	for i := range p.Results {
		r := &p.Results[i]
		name := (&group{scenario: r.Scenario, variant: r.Variant}).name()
		if r.Seed != 1 {
			name = fmt.Sprintf("%s seed %d", name, r.Seed)
		}
		if r.Unknown != "" {
			continue
		}
		e := r.Evidence()
		fmt.Fprintf(b, "%-44s  %-14s  %d + %d, %d (%d); %d, %d, %d\n", name, r.Play, e.Before, e.After, e.Deleted, e.Older, e.Flows, e.Pairs, e.Judged)
	}
}
