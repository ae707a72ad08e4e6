package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
)

// pair is an upgrade from one release to another one, or to this repository's enilab.
type pair struct {
	From, To string
	Mode     string // a mode of the gate's; "" is the settings that the release has by default
}

func (p pair) String() string {
	s := p.From + ".." + p.To
	if p.Mode != "" {
		s += ":" + p.Mode
	}
	return s
}

// ours is the version that stands for this repository's enilab.
const ours = "enilab"

func list(pairs []pair) string {
	var out []string
	for _, p := range pairs {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

// pairs are the upgrades from the minor since on of each release to the next one, and from the minor minors on of each minor's last release to the next
// minor's first and last. In each mode it is each minor's last release to the next minor's last; and the newest release is gated to ours, in every
// mode and in none. Releases may be there twice.
func pairs(releases []string, since, minors string) (out []pair) {
	all := slices.Clone(releases)
	slices.SortFunc(all, campaign.Compare)
	all = slices.Compact(all)
	add := func(p pair) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	from := func(minor string) int {
		i, _ := slices.BinarySearchFunc(all, minor+".0", campaign.Compare)
		return i
	}
	var groups [][]string // of a minor each
	for _, v := range all[from(minors):] {
		if n := len(groups); n > 0 && campaign.Minor(groups[n-1][0]) == campaign.Minor(v) {
			groups[n-1] = append(groups[n-1], v)
		} else {
			groups = append(groups, []string{v})
		}
	}
	modes := append([]string{""}, gate.Modes()...)
	for i := 1; i < len(groups); i++ {
		last, next := groups[i-1][len(groups[i-1])-1], groups[i]
		add(pair{From: last, To: next[0]})
		for _, mode := range modes {
			add(pair{last, next[len(next)-1], mode})
		}
	}
	for i := from(since) + 1; i < len(all); i++ {
		add(pair{From: all[i-1], To: all[i]})
	}
	for _, mode := range modes {
		add(pair{all[len(all)-1], ours, mode})
	}
	slices.SortStableFunc(out, func(a, b pair) int {
		if c := campaign.Compare(a.From, b.From); c != 0 {
			return c
		}
		if c := compareTo(a.To, b.To); c != 0 {
			return c
		}
		return strings.Compare(a.Mode, b.Mode)
	})
	return out
}

// playOrder are the places of pairs in the order in which they are played: the newest release first, for that is what most people are about to do.
func playOrder(pairs []pair) []int {
	out := make([]int, len(pairs))
	for i := range out {
		out[i] = len(pairs) - 1 - i
	}
	return out
}

// compareTo is campaign.Compare, with ours behind all releases.
func compareTo(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == ours:
		return 1
	case b == ours:
		return -1
	}
	return campaign.Compare(a, b)
}

// args is the gate of a pair, without what says how its result is told.
func (p pair) args(figures bool) []string {
	to := system + "@" + p.To
	if p.To == ours {
		to = ours
	}
	args := []string{"gate", "--from", system + "@" + p.From, "--to", to}
	if p.Mode != "" {
		args = append(args, "--mode", p.Mode, "--only", "change-"+p.Mode)
	}
	if !figures {
		args = append(args, "--no-figures")
	}
	return args
}

func (p pair) folder(version string) string {
	return filepath.Join(campaign.Folder(), system, version)
}

// absent is which of the two is not at hand; empty: both are.
func (p pair) absent(atHand []string) string {
	for _, v := range []string{p.From, p.To} {
		if v != ours && !slices.Contains(atHand, v) {
			return notAtHand + v
		}
	}
	return ""
}

// notAtHand begins why a pair was not gated of which a version is missing.
const notAtHand = "not at hand: "

// upstream is what is known of upstream by hand.
type upstream struct {
	// Releases are all there are, so that one that is not at hand is said.
	Releases []string  `json:"releases"`
	Tracker  []tracker `json:"tracker"`
}

// tracker is what upstream's tracker says of findings.
type tracker struct {
	Pairs []string `json:"pairs"` // FROM..TO
	// Checks are invariants' phrases, "line N", or figures' names.
	Checks []string `json:"checks"`
	// Issues are numbers of issues and pull requests; none: nothing was found.
	Issues []int  `json:"issues"`
	Says   string `json:"says"`
}

func readUpstream(path string) (*upstream, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := &upstream{}
	if err := yaml.UnmarshalStrict(data, u); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, e := range u.Tracker {
		if len(e.Pairs) == 0 || len(e.Checks) == 0 || e.Says == "" {
			return nil, fmt.Errorf("%s: entry %d of tracker: expected pairs, checks and says", path, i+1)
		}
	}
	return u, nil
}

// of are the entries about a finding.
func (u *upstream) of(p pair, check string) (out []*tracker) {
	for i := range u.Tracker {
		if e := &u.Tracker[i]; slices.Contains(e.Pairs, p.String()) && slices.Contains(e.Checks, check) {
			out = append(out, e)
		}
	}
	return out
}
