package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/verb"
)

// parse reads a document.
func parse(data []byte) (*runner.Document, error) {
	d := &runner.Document{}
	switch err := json.Unmarshal(data, d); {
	case err != nil:
		return nil, fmt.Errorf("expected a JSON document, found %q: %w", start(data), err)
	case d.Enilab != runner.RunFormat:
		return nil, fmt.Errorf("expected a document %q, found %q", runner.RunFormat, d.Enilab)
	case len(d.Errors) == 0 && len(d.Files) == 0:
		return nil, errors.New("the document has no file")
	}
	return d, nil
}

// start is the begin of what should have been a document.
func start(data []byte) string {
	const most = 200
	return strings.TrimSpace(string(data[:min(len(data), most)]))
}

// outcome is how the run of a scenario ended. The error says why it was refused.
func outcome(d *runner.Document, f *scn.File) (*swarm.Outcome, error) {
	if len(d.Errors) > 0 {
		e := d.Errors[0]
		return nil, fmt.Errorf("line %d: %s %s", e.Line, e.Message, e.Hint)
	}
	x := &d.Files[0]
	o := &swarm.Outcome{Struck: map[string]int{}, Events: x.Events}
	if x.Status == "interrupted" {
		o.Cut = true
		return o, nil
	}
	if len(x.Variants) == 0 {
		o.Unknown = "nothing was run: " + why(x, "")
		return o, nil
	}
	v := &x.Variants[0]
	switch {
	case x.Status == "bad":
		o.Broken = swarm.NewBroken(swarm.Started, v.Error, 0, 0)
	case x.Status == "too slow" || x.Status == "skipped" || x.Status == "not deterministic":
		o.Unknown = x.Status + ": " + why(x, v.Error)
	case v.Broke != nil:
		o.Broken = first(v)
	case v.Error != "": // the laboratory broke, and nothing else had
		o.Unknown = "the laboratory broke: " + v.Error
	case len(v.UnderWay) > 0 && x.Status == "not settled":
		o.Broken = swarm.NewBroken(swarm.Settled, "still under way at the end: "+gravest(v.UnderWay), seconds(v.Ended), 0)
	case x.Status == "violated": // by no invariant and no line: world and simulator disagree
		o.Unknown = why(x, "")
	default:
		strike(x, f, o)
	}
	return o, nil
}

// why is what a run says of itself, in a line.
func why(x *runner.FileDocument, err string) string {
	if err != "" {
		return err
	}
	for _, s := range x.Skipped {
		return fmt.Sprintf("line %d: %s", s.Line, s.Why)
	}
	const most = 300
	text := strings.Join(strings.Fields(x.Report), " ")
	return text[:min(len(text), most)]
}

// first is what broke first.
func first(v *runner.VariantDocument) *swarm.Broken {
	b := v.Broke
	at := seconds(b.At)
	switch {
	case b.Invariant != "":
		return swarm.NewBroken(b.Invariant, b.Text, at, b.Node)
	case b.Line == 0:
		return swarm.NewBroken(swarm.Lives, b.Text, at, b.Node)
	}
	text := b.Text
	if len(v.UnderWay) > 0 {
		text += "; in the end: " + gravest(v.UnderWay)
	}
	return swarm.NewBroken(swarm.Expectation, text, at, b.Node)
}

// gravest is the pod that does not run, if there is one: what else is under way is so because of it.
func gravest(underWay []string) string {
	for _, s := range underWay {
		if strings.HasPrefix(s, "pod ") {
			return s
		}
	}
	return underWay[0]
}

// strike notes which lines struck.
func strike(x *runner.FileDocument, f *scn.File, o *swarm.Outcome) {
	missed := map[int]bool{}
	for _, s := range x.Skipped {
		missed[s.Line] = true
	}
	for _, m := range x.Variants[0].Missed {
		missed[m.Line] = true
	}
	for _, m := range x.Variants[0].Maybe {
		missed[m.Line] = !m.Struck
	}
	for i := range f.Lines {
		if at, ok := f.Lines[i].Stmt.(*scn.At); ok && at.Action != nil && !missed[f.Lines[i].Pos.Line] {
			v := verb.Verb{Name: at.Action.Verb, On: []scn.SubjectKind{at.Action.Subject.Kind}}
			o.Struck[v.Key()]++
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
