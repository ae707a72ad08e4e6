package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
	"github.com/enilab/enilab/sim/runner"
)

// cell is what came of one incident with one version.
type cell struct {
	Why    string // it was not played
	Status string // as `run --json` says it
	Kernel string
	Build  string        // of enilab
	CPU    time.Duration // of the computer's
	Breaks []breaks      // what broke first in each variant, each once
	// Skipped is why lines were not played, each reason once; Missed are actions that found nothing to strike, of a run that is no verdict for that.
	Skipped, Missed []string
	// Unknown are the settings that the version does not know, and Unjudged how many expectations were not judged for that.
	Unknown  []string
	Unjudged int
}

// breaks is what broke first in a variant.
type breaks struct {
	What string // an invariant's phrase, or "line N"
	At   time.Duration
	Text string
}

// spent is the line that --in vm tells with ENILAB_VERBOSE.
var spent = regexp.MustCompile(`virtual machine: kernel ([^,]+),.* ([0-9]+) s of CPU`)

// cellOf reads what came of a run: its document, and what it told beside it.
func cellOf(of *campaign.Result) *cell {
	if of.Why != "" {
		return &cell{Why: of.Why}
	}
	f, err := runner.OnlyFile(of.Stdout)
	if err != nil {
		return &cell{Why: err.Error()}
	}
	c := &cell{Status: f.Status, Build: of.Build, Skipped: f.Reasons()}
	if m := spent.FindSubmatch(of.Stderr); m != nil {
		c.Kernel = string(m[1])
		n, _ := strconv.Atoi(string(m[2])) // digits
		c.CPU = time.Duration(n) * time.Second
	}
	for _, u := range f.Unknown {
		c.Unknown = append(c.Unknown, u.Settings...)
	}
	for _, v := range f.Variants {
		c.Unjudged += len(v.Unjudged)
		if v.Error != "" {
			return &cell{Why: v.Error}
		}
		for _, m := range v.Missed {
			if text := fmt.Sprintf("line %d: %s", m.Line, m.Text); !slices.Contains(c.Missed, text) {
				c.Missed = append(c.Missed, text)
			}
		}
		if v.Broke == nil {
			continue
		}
		b := breaks{What: v.Broke.Invariant, At: time.Duration(v.Broke.At * float64(time.Second)), Text: v.Broke.Text}
		switch {
		case b.What == "" && v.Broke.Line > 0:
			b.What = fmt.Sprintf("line %d", v.Broke.Line)
		case b.What == "":
			b.What = gate.EndsByItself
		}
		if !c.broke(b.What) {
			c.Breaks = append(c.Breaks, b)
		}
	}
	return c
}

// broke says whether something broke first in some variant.
func (c *cell) broke(what string) bool {
	return slices.ContainsFunc(c.Breaks, func(b breaks) bool { return b.What == what })
}

// brief is the cell for who waits.
func (c *cell) brief() string {
	if c.Why != "" {
		return "not played: " + c.Why
	}
	s := c.Status
	for _, b := range c.Breaks {
		s += fmt.Sprintf(", %q at %s", b.What, campaign.Clock(b.At))
	}
	return fmt.Sprintf("%s (%v of CPU)", s, c.CPU)
}
