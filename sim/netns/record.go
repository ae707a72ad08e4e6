package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/vpc"
)

// record is what a laboratory writes down for people: its timeline, EC2's calls, and the packets of its router and nodes.
type record struct {
	folder string
	calls  *os.File
	encode *json.Encoder
	taps   []tap
	err    error
}

type tap struct {
	name string
	*vpc.Tap
}

// newRecord begins one; who has it closes it, whatever the error says.
func newRecord(folder string, router *os.File) (*record, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	calls, err := os.Create(filepath.Join(folder, "ec2.jsonl"))
	if err != nil {
		return nil, err
	}
	r := &record{folder: folder, calls: calls, encode: json.NewEncoder(calls)}
	r.encode.SetEscapeHTML(false)
	return r, r.tap("router", router)
}

// tap keeps the packets of a namespace. No record is fine.
func (r *record) tap(name string, ns *os.File) error {
	if r == nil {
		return nil
	}
	t, err := vpc.OpenTap(ns)
	if err == nil {
		r.taps = append(r.taps, tap{name, t})
	}
	return err
}

// call is a line of ec2.jsonl: a request as the model saw it, and what it answered.
type call struct {
	At      float64        `json:"at"` // seconds of the scenario; before t=0 negative
	Node    int32          `json:"node,omitempty"`
	Action  string         `json:"action"`
	Request map[string]any `json:"request"`
	Answer  map[string]any `json:"answer"`
}

// served writes down a call.
func (r *record) served(at time.Duration, no int32, q *ec2.Request, a *ec2.Response) {
	if r == nil {
		return
	}
	c := call{At: at.Seconds(), Node: no, Action: q.Action.String()}
	var errs [2]error
	c.Request, errs[0] = fieldsOf(q)
	c.Answer, errs[1] = fieldsOf(a)
	delete(c.Request, "Action")
	r.err = errors.Join(r.err, errs[0], errs[1], r.encode.Encode(c))
}

// fieldsOf are the fields of a value that say something.
func fieldsOf(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	prune(m)
	return m, nil
}

// prune takes out what is empty.
func prune(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case map[string]any:
			if prune(v); len(v) == 0 {
				delete(m, k)
			}
		case []any:
			for _, x := range v {
				if inner, ok := x.(map[string]any); ok {
					prune(inner)
				}
			}
			if len(v) == 0 {
				delete(m, k)
			}
		case nil, string, bool, float64:
			if v == nil || v == "" || v == false || v == 0.0 {
				delete(m, k)
			}
		}
	}
}

// close writes the rest.
func (r *record) close(timeline string) error {
	if r == nil {
		return nil
	}
	errs := []error{r.err, r.calls.Close(), os.WriteFile(filepath.Join(r.folder, "timeline.txt"), []byte(timeline), 0o644)}
	for _, t := range r.taps {
		f, err := os.Create(filepath.Join(r.folder, t.name+".pcap"))
		if err == nil {
			err = errors.Join(t.Write(f), f.Close())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write down the run: %w", err)
	}
	return nil
}
