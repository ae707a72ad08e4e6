package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
)

// Band is how much dearer something may become: by a share of what it was, and by no less than a slack under which a difference means nothing. A
// band that changes is a commit that says why.
type Band struct {
	Name, Unit string
	Share      float64
	Slack      float64
	of         func(*sim.Figures) float64
}

func seconds(d time.Duration) float64      { return d.Seconds() }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Bands are all but those of EC2's calls and errors, of which there is one for each action and each code.
func Bands() []Band {
	return []Band{
		{"ADD, p50", "ms", 0.25, 10, func(f *sim.Figures) float64 { return milliseconds(f.Add) }},
		{"DEL, p50", "ms", 0.25, 10, func(f *sim.Figures) float64 { return milliseconds(f.Del) }},
		{"memory of the daemon", "MB", 0.25, 8, func(f *sim.Figures) float64 { return float64(f.Memory) / 1e6 }},
		{"time until the first pods run", "s", 0.25, 5, func(f *sim.Figures) float64 { return seconds(f.Ready) }},
		{"start of the daemon", "s", 0.25, 2, func(f *sim.Figures) float64 { return seconds(f.Start) }},
		{"ENIs in the end", "", 0.10, 0.9, func(f *sim.Figures) float64 { return float64(f.ENIs) }},
	}
}

// callsBand is that of each of EC2's actions. The slack is what two nodes make at one more of their rounds.
func callsBand(action string) Band {
	return Band{"EC2 calls, " + action, "", 0.10, 4, func(f *sim.Figures) float64 { return float64(f.Calls[action]) }}
}

// errorsBand is that of each error code that EC2 answers.
func errorsBand(code string) Band {
	return Band{"EC2 errors, " + code, "", 0.25, 3, func(f *sim.Figures) float64 { return float64(f.Errors[code]) }}
}

// Figure is a measurement before and after.
type Figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Old    float64 `json:"old"`
	New    float64 `json:"new"`
	Share  float64 `json:"share"`
	Slack  float64 `json:"slack"`
	Beyond bool    `json:"beyond"`
	// Reason is why it was accepted.
	Reason string `json:"reason,omitempty"`
}

func (f Figure) String() string {
	return fmt.Sprintf("%s: %.4g%s, was %.4g%s: more than %.0f %% and %.4g%[3]s dearer", f.Name, f.New, unit(f.Unit), f.Old, unit(f.Unit), 100*f.Share, f.Slack)
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " " + u
}

// Measure compares the figures of a load scenario: of each play the median over its seeds. Old or new without figures: there is nothing to compare.
func Measure(all []Result) []Figure {
	of := figuresOf(all)
	if len(of[Old]) == 0 || len(of[New]) == 0 {
		return nil
	}
	var out []Figure
	for _, b := range bandsOf(of) {
		f := Figure{Name: b.Name, Unit: b.Unit, Old: median(b.sorted(of[Old])), New: median(b.sorted(of[New])), Share: b.Share, Slack: b.Slack}
		f.Beyond = b.beyond(f.Old, f.New)
		out = append(out, f)
	}
	return out
}

// Settled says whether one seed more can change nothing that Measure says of a load: the median of three lies between any two of them, so
// it cannot where the least of the new version and the most of the old one are on the same side of the band as the most of the new one and the
// least of the old one.
func Settled(all []Result) bool {
	of := figuresOf(all)
	if len(of[Old]) < figureSeeds-1 || len(of[New]) < figureSeeds-1 {
		return false
	}
	for _, b := range bandsOf(of) {
		before, after := b.sorted(of[Old]), b.sorted(of[New])
		if b.beyond(before[0], after[len(after)-1]) != b.beyond(before[len(before)-1], after[0]) {
			return false
		}
	}
	return true
}

// figuresOf are the figures of each play in which the load was carried.
func figuresOf(all []Result) map[Play][]*sim.Figures {
	of := map[Play][]*sim.Figures{}
	for i := range all {
		if r := &all[i]; r.Figures != nil && r.Unknown == "" && r.carried() {
			of[r.Play] = append(of[r.Play], r.Figures)
		}
	}
	return of
}

// bandsOf are the bands of all that old and new version have figures of.
func bandsOf(of map[Play][]*sim.Figures) []Band {
	bands := Bands()
	actions, codes := map[string]bool{}, map[string]bool{}
	for _, p := range []Play{Old, New} {
		for _, f := range of[p] {
			for a := range f.Calls {
				actions[a] = true
			}
			for c := range f.Errors {
				codes[c] = true
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(actions)) {
		bands = append(bands, callsBand(a))
	}
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		bands = append(bands, errorsBand(c))
	}
	return bands
}

// beyond says whether a figure is beyond its band.
func (b *Band) beyond(before, after float64) bool {
	return after > before*(1+b.Share) && after > before+b.Slack
}

// sorted is a band's figure of each run, the least first.
func (b *Band) sorted(list []*sim.Figures) []float64 {
	v := make([]float64, len(list))
	for i, f := range list {
		v[i] = b.of(f)
	}
	slices.Sort(v)
	return v
}

// carried says whether a run did what the load asks for: of one that did not figures mean nothing. What else it broke is no figure's affair.
func (r *Result) carried() bool {
	return !slices.ContainsFunc(r.Broken, func(b Broken) bool {
		return strings.HasPrefix(b.Check, "line ") || b.Check == Settles || b.Check == EndsByItself || b.Check == serves
	})
}

// median is the middle of a sorted list; of two it is the greater one.
func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

// Dearer are the figures beyond their bands.
func (v *Verdict) Dearer() (out []Figure) {
	for _, f := range v.Figures {
		if f.Beyond {
			out = append(out, f)
		}
	}
	return out
}
