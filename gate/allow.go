package gate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/internal/strictyaml"
)

// Acceptance is a difference that somebody knows and accepts.
type Acceptance struct {
	Place strictyaml.Place
	// Check is an invariant's phrase, an expectation ("line 12"), or a figure's name.
	Check string
	// Scenario and Play limit it; empty: in all.
	Scenario, Play string
	Reason         string
}

// maxAllow bounds a file of acceptances.
const maxAllow = 1 << 20

// parseAllow reads them:
//
//	accepted:
//	  - check: every del ends in success
//	    scenario: del-retries
//	    play: rollback
//	    reason: we never roll back
func parseAllow(name string, data []byte) ([]Acceptance, error) {
	r := strictyaml.NewReader(name)
	n := r.Tree(data, strictyaml.Form{What: "a file of accepted differences", Max: maxAllow, Begin: "begin with accepted:"})
	if n == nil {
		return nil, r.Err()
	}
	var out []Acceptance
	o := r.Object(n, "a file of accepted differences", strictyaml.Field{Key: "accepted", Read: func(n *yaml.Node) {
		r.List(n, "accepted", func(n *yaml.Node) {
			a := Acceptance{Place: strictyaml.PlaceOf(n)}
			o := r.Object(n, "an accepted difference", r.Text("check", &a.Check), r.Text("scenario", &a.Scenario), r.Text("play", &a.Play), r.Text("reason", &a.Reason))
			r.Need(n, &o, "an accepted difference", "check", "reason")
			if a.Play != "" && !slices.Contains(Plays(), Play(a.Play)) {
				r.Add(o.At("play"), "there are "+strings.Join(PlayNames(), ", "), "there is no play %q", a.Play)
			}
			if strings.TrimSpace(a.Reason) == "" {
				r.Add(o.At("reason"), "say why, for whoever reads it next year", "the reason is empty")
			}
			out = append(out, a)
		})
	}})
	r.Need(n, &o, "a file of accepted differences", "accepted")
	return out, r.Err()
}

// PlayNames are the words for plays.
func PlayNames() (out []string) {
	for _, p := range Plays() {
		out = append(out, string(p))
	}
	return out
}

// Accept takes what is accepted out of what makes a gate red, and names acceptances that match nothing. One that is for a play accepts that play alone:
// what broke in others too stays a regression there.
func (v *Verdict) Accept(list []Acceptance, file string) {
	for i := range list {
		a := &list[i]
		used := false
		for j := range v.Figures {
			if f := &v.Figures[j]; f.Beyond && f.Name == a.Check && a.Play == "" && a.Scenario == "" {
				f.Reason, used = a.Reason, true
			}
		}
		var more []Finding
		for j := range v.Findings {
			f := &v.Findings[j]
			if f.Kind != Regression || f.Check != a.Check || a.Scenario != "" && a.Scenario != f.Scenario {
				continue
			}
			if a.Play != "" && !slices.Contains(f.Plays, Play(a.Play)) {
				continue
			}
			used = true
			if a.Play == "" || len(f.Plays) == 1 {
				f.Kind, f.Reason = Accepted, a.Reason
				continue
			}
			accepted := *f
			accepted.Kind, accepted.Reason, accepted.Plays = Accepted, a.Reason, []Play{Play(a.Play)}
			more = append(more, accepted)
			f.Plays = slices.DeleteFunc(slices.Clone(f.Plays), func(p Play) bool { return p == Play(a.Play) })
		}
		v.Findings = append(v.Findings, more...)
		if !used {
			v.Stale = append(v.Stale, fmt.Sprintf("%s:%d: accepts %q, which does not differ any more: take it out", file, a.Place.Line, a.Check))
		}
	}
}
