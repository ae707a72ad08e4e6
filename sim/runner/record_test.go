package runner

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/timeline"
)

// TestRecordChangesNothing: a run that is followed is the same run, event by event.
func TestRecordChangesNothing(t *testing.T) {
	names := must.Get(fs.Glob(scenarios.Files, "*.scn"))(t)
	for _, name := range names {
		if testing.Short() && !strings.HasPrefix(name, "socket") && !strings.HasPrefix(name, "drift") {
			continue
		}
		data := must.Get(fs.ReadFile(scenarios.Files, name))(t)
		c := must.Get(Load(Sim(), name, data))(t)
		if c.Variants[0].Cluster.Nodes > fleetNodes {
			continue
		}
		v := &c.Variants[0]
		plain := v.once(&Options{Seed: 3}, nil, Progress{})
		followed := v.once(&Options{Seed: 3, Record: true}, nil, Progress{})
		if plain.Hash != followed.Hash || plain.Events != followed.Events || plain.Verdict.Story != followed.Verdict.Story {
			t.Errorf("%s: a run that is followed is another", name)
		}
		if plain.Record != nil || followed.Record == nil || len(followed.Record.Events) == 0 && followed.Verdict.Story != "" {
			t.Errorf("%s: followed %v", name, followed.Record)
		}
	}
}

// TestRecord: what a run was is in its record: who was cut off, which lines struck, how often the invariant was looked at.
func TestRecord(t *testing.T) {
	r := run(t, quiet, Options{Record: true})
	rec := r.Runs[0].Record
	var daemon, pods, enis int
	for i := range rec.Tracks.Subjects {
		s := &rec.Tracks.Subjects[i]
		switch s.Kind {
		case timeline.KindDaemon:
			daemon++
		case timeline.KindENI:
			enis++
		case timeline.KindPod:
			pods++
		}
		if l := s.Spans[len(s.Spans)-1]; l.To != 6*time.Minute {
			t.Errorf("%s ends at %v: %+v", s.Name, l.To, s.Spans)
		}
	}
	if daemon != 1 || enis != 3 || pods != 14 {
		t.Errorf("%d daemons, %d ENIs, %d pods", daemon, enis, pods)
	}
	if len(rec.Deeds) != 1 || rec.Deeds[0].At != time.Minute || rec.Deeds[0].Line != 6 || rec.Deeds[0].Act.Verb != "flush-rules" {
		t.Errorf("deeds %+v", rec.Deeds)
	}
	looks := map[string]int64{}
	for _, l := range rec.Looks {
		looks[l.Invariant.Phrase()] = l.Times
	}
	if looks["every live pod is reachable"] < 14 || looks["no address is in two live namespaces"] < 14 || looks["warm targets are met"] != 1 || looks["no flow of a living pod is cut"] != 0 {
		t.Errorf("looked %v", looks)
	}
}
