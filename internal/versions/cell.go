package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cell is what came of one incident with one version.
type cell struct {
	Why    string // it was not played
	Status string // as `run --json` says it
	Kernel string
	Commit string        // of enilab
	CPU    time.Duration // of the computer's
	Breaks []breaks      // what broke first in each variant, each once
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

// result is what is read of `run --json`.
type result struct {
	Files []struct {
		Status   string
		Report   string
		Unknown  []struct{ Settings []string }
		Variants []struct {
			Name     string
			Error    string
			Unjudged []struct{}
			Broke    *struct {
				At        float64
				Invariant string
				Line      int
				Text      string
			}
		}
	}
	Errors []struct{ Message string }
}

// spent is the line that --in vm tells with ENILAB_VERBOSE.
var spent = regexp.MustCompile(`virtual machine: kernel ([^,]+),.* ([0-9]+) s of CPU`)

// readCell reads what was written beside base.
func readCell(base string) (*cell, error) {
	data, err := os.ReadFile(base + ".json")
	if err != nil {
		return nil, err
	}
	diag, err := os.ReadFile(base + ".err")
	if err != nil {
		return nil, err
	}
	by, err := os.ReadFile(base + ".commit")
	if err != nil {
		return nil, err
	}
	c, err := cellOf(data, diag)
	if err != nil {
		return nil, fmt.Errorf("%s.json: %w", base, err)
	}
	c.Commit = strings.TrimSpace(string(by))
	return c, nil
}

// cellOf reads a run's document, and what it told beside it.
func cellOf(data, diag []byte) (*cell, error) {
	var r result
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	if len(r.Errors) > 0 {
		return &cell{Why: r.Errors[0].Message}, nil
	}
	if len(r.Files) != 1 {
		return nil, fmt.Errorf("expected one file, found %d", len(r.Files))
	}
	f := &r.Files[0]
	c := &cell{Status: f.Status}
	if m := spent.FindSubmatch(diag); m != nil {
		c.Kernel = string(m[1])
		n, _ := strconv.Atoi(string(m[2])) // digits
		c.CPU = time.Duration(n) * time.Second
	}
	for _, u := range f.Unknown {
		c.Unknown = append(c.Unknown, u.Settings...)
	}
	for _, v := range f.Variants {
		c.Unjudged += len(v.Unjudged)
		if v.Broke == nil {
			continue
		}
		b := breaks{What: v.Broke.Invariant, At: time.Duration(v.Broke.At * float64(time.Second)), Text: v.Broke.Text}
		if b.What == "" {
			b.What = fmt.Sprintf("line %d", v.Broke.Line)
		}
		if !c.broke(b.What) {
			c.Breaks = append(c.Breaks, b)
		}
	}
	return c, nil
}

// broke says whether something broke first in some variant.
func (c *cell) broke(what string) bool {
	for _, b := range c.Breaks {
		if b.What == what {
			return true
		}
	}
	return false
}

// brief is the cell for who waits.
func (c *cell) brief() string {
	if c.Why != "" {
		return "not played: " + c.Why
	}
	s := c.Status
	for _, b := range c.Breaks {
		s += fmt.Sprintf(", %q at %s", b.What, clock(b.At))
	}
	return fmt.Sprintf("%s (%v of CPU)", s, c.CPU)
}

// clock prints an instant as timelines do, to the second.
func clock(d time.Duration) string {
	if d < 0 {
		return "-" + clock(-d)
	}
	s := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
