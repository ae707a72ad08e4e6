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

// CallsBand is that of each of EC2's actions. The slack is what two nodes make at one more of their rounds.
func CallsBand(action string) Band {
	return Band{"EC2 calls, " + action, "", 0.10, 4, func(f *sim.Figures) float64 { return float64(f.Calls[action]) }}
}

// ErrorsBand is that of each error code that EC2 answers.
func ErrorsBand(code string) Band {
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
	of := map[Play][]*sim.Figures{}
	for i := range all {
		if r := &all[i]; r.Figures != nil && r.Unknown == "" && r.carried() {
			of[r.Play] = append(of[r.Play], r.Figures)
		}
	}
	if len(of[Old]) == 0 || len(of[New]) == 0 {
		return nil
	}
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
		bands = append(bands, CallsBand(a))
	}
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		bands = append(bands, ErrorsBand(c))
	}
	var out []Figure
	for _, b := range bands {
		f := Figure{Name: b.Name, Unit: b.Unit, Old: median(of[Old], b.of), New: median(of[New], b.of), Share: b.Share, Slack: b.Slack}
		f.Beyond = f.New > f.Old*(1+f.Share) && f.New > f.Old+f.Slack
		out = append(out, f)
	}
	return out
}

// carried says whether a run did what the load asks for: of one that did not figures mean nothing. What else it broke is no figure's affair.
func (r *Result) carried() bool {
	for _, b := range r.Broken {
		if strings.HasPrefix(b.Check, "line ") || b.Check == Settles || b.Check == EndsByItself || b.Check == serves {
			return false
		}
	}
	return true
}

func median(list []*sim.Figures, of func(*sim.Figures) float64) float64 {
	var v []float64
	for _, f := range list {
		v = append(v, of(f))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// Dearer are the figures beyond their bands.
func (v *Verdict) Dearer() (out []Figure) {
	for _, f := range v.Figures {
		if f.Beyond {
			out = append(out, f)
		}
	}
	return out
}
