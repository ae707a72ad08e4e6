package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/timeline"
)

// A failure report shows what led to the failure, however much was told after it, and however much was told before.
func TestUntilIsCutAtAnInstant(t *testing.T) {
	var s timeline.Timeline
	for i := range 1000 {
		s.Add(time.Duration(i)*time.Second, 1, fmt.Sprintf("step %d", i))
	}
	lines := strings.Split(strings.TrimSpace(s.Until(700*time.Second)), "\n")
	if got := lines[len(lines)-1]; len(lines) != 701 || !strings.HasSuffix(got, "step 700") {
		t.Errorf("until 700 s there are %d lines, the last %q; expected 701 and step 700", len(lines), got)
	}
	if s.Until(-time.Second) != "" {
		t.Error("before time began something happened")
	}
}

// What is heard of late is told at its own instant, so lines after it are not cut off.
func TestUntilOfLinesOutOfOrder(t *testing.T) {
	var s timeline.Timeline
	s.Add(3*time.Second, 1, "later")
	s.Add(2*time.Second, 1, "earlier")
	if got := s.Until(2 * time.Second); strings.Contains(got, "later") || !strings.Contains(got, "earlier") {
		t.Errorf("until 2 s:\n%s", got)
	}
}

// How often something happened is said when all of it lies before the instant.
func TestUntilCounts(t *testing.T) {
	var s timeline.Timeline
	for i := range 3 {
		s.Add(time.Duration(i)*time.Second, 1, "again")
	}
	if got := s.Until(time.Second); strings.Contains(got, "times") {
		t.Errorf("after a second it is told how often it happens in three: %s", got)
	}
	if got := s.Until(2 * time.Second); !strings.Contains(got, "(3 times)") {
		t.Errorf("after two seconds: %s", got)
	}
}

// The story of people and golden files is bounded; the whole of it is there all the same.
func TestWholeIsAllOfIt(t *testing.T) {
	var s timeline.Timeline
	for i := range 1000 {
		s.Add(time.Duration(i)*time.Second, 1, fmt.Sprintf("step %d", i))
	}
	if got := s.String(); !strings.Contains(got, "step 399\n") || strings.Contains(got, "step 400") || !strings.Contains(got, "and 600 lines more") {
		t.Errorf("the story ends with %q", got[len(got)-80:])
	}
	if got := s.Whole(); !strings.HasSuffix(got, "step 999\n") {
		t.Errorf("all of it ends with %q", got[len(got)-80:])
	}
}
