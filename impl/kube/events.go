package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// event is a metav1.WatchEvent.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// errLarge ends a watch whose event has no end.
var errLarge = fmt.Errorf("an event of the watch is larger than %d bytes", mostNode)

// perEvent bounds how much is read for one event: a decoder would buffer whatever comes.
type perEvent struct {
	r    io.Reader
	left int
}

func (p *perEvent) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errLarge
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

// events follows a watch to its end and says how many came; nil is the end that the server chose.
func (w *watch) events(from *perEvent) (n int, err error) {
	d := json.NewDecoder(from)
	for ; ; n++ {
		from.left = mostNode
		var e event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, fmt.Errorf("watch of node %s: %w", w.r.cfg.Node, err)
		}
		if err := w.apply(&e); err != nil {
			return n, err
		}
	}
}

func (w *watch) apply(e *event) error {
	switch e.Type {
	case "ERROR":
		return w.failed(e)
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
	default:
		return fmt.Errorf("watch of node %s: unknown event %q", w.r.cfg.Node, e.Type)
	}
	var o node
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return fmt.Errorf("watch of node %s: %s: %w", w.r.cfg.Node, e.Type, err)
	}
	if o.Metadata.ResourceVersion != "" {
		w.version = o.Metadata.ResourceVersion
	}
	if e.Type != "ADDED" && e.Type != "MODIFIED" || o.Metadata.Name != w.r.cfg.Node {
		return nil
	}
	f, err := o.facts()
	if err != nil {
		return err
	}
	w.tell(f)
	return nil
}

// failed reads the metav1.Status of an ERROR event; 410 says that the version is too old.
func (w *watch) failed(e *event) error {
	var s struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(e.Object, &s); err != nil {
		return fmt.Errorf("watch of node %s: ERROR: %w", w.r.cfg.Node, err)
	}
	return &Refused{"GET", "/api/v1/nodes?watch", s.Code, s.Message}
}
