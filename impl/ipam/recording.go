package ipam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// recordingFormat is the version of the lines, see Recording.
const recordingFormat = "recording/1"

// Recording writes what the flight recorder keeps and `enilab replay` steps again: text, one JSON object per line. The
// first is the header, a Node and the name of its policy; each further one is an input, when it came, and a
// fingerprint of the effects:
//
//	{"enilab":"recording/1","version":2,"policy":"sound","node":{…}}
//	{"at":1500000000,"in":{"Add":{…}},"out":"cbf29ce484222325"}
//	{"at":1700000000,"in":{"Tick":{}},"out":"af63bd4c8601b7df"}
type Recording struct {
	header []byte
	buf    []byte
}

// head is the first line.
type head struct {
	Enilab  string          `json:"enilab"`
	Version int             `json:"version"`
	Policy  string          `json:"policy"`
	Node    json.RawMessage `json:"node"`
}

// step is a further line.
type step struct {
	At  *time.Duration  `json:"at"`
	In  json.RawMessage `json:"in"`
	Out string          `json:"out"`
}

// NewRecording begins a recording with the Node as it is now; policy is the name by which Replay asks for its Policy.
func NewRecording(n *Node, policy string) (*Recording, error) {
	node, err := n.Encode()
	if err != nil {
		return nil, fmt.Errorf("begin recording: %w", err)
	}
	h, err := json.Marshal(head{recordingFormat, Version, policy, node})
	if err != nil {
		return nil, fmt.Errorf("begin recording: %w", err)
	}
	return &Recording{header: append(h, '\n')}, nil
}

// Header is the first line.
func (r *Recording) Header() []byte { return r.header }

// Line is the line of one step: what came in at that time, and what the Node returned. It is good until the next Line.
func (r *Recording) Line(at time.Duration, in Input, effs []Effect) ([]byte, error) {
	input, err := MarshalInput(in)
	if err != nil {
		return nil, fmt.Errorf("record input at %v: %w", at, err)
	}
	out, err := fingerprint(effs)
	if err != nil {
		return nil, fmt.Errorf("record effects at %v: %w", at, err)
	}
	b := append(r.buf[:0], `{"at":`...)
	b = strconv.AppendInt(b, int64(at), 10)
	b = append(append(b, `,"in":`...), input...)
	b = append(append(b, `,"out":"`...), out...)
	r.buf = append(b, "\"}\n"...)
	return r.buf, nil
}

// fingerprint is the FNV-1a hash of the effects' JSON, as 16 hex digits.
func fingerprint(effs []Effect) (string, error) {
	data, err := MarshalEffects(effs)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	h.Write(data)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// Replayed says how far a recording was stepped again with the same effects.
type Replayed struct {
	Lines int           // inputs
	Until time.Duration // time of the last one
}

// Replay steps a recording again, calls each (unless it is nil) after every step, and compares the effects. What it
// returns beside an error is how far the recording is good.
func Replay(data []byte, policy func(name string) (*Policy, bool), each func(line int, at time.Duration, in Input, effs []Effect)) (Replayed, error) {
	first, rest, whole := bytes.Cut(data, []byte("\n"))
	if !whole {
		return Replayed{}, fmt.Errorf("replay: the header (line 1) is cut off after %d bytes; nothing can be replayed", len(first))
	}
	p, err := NewPlayer(first, policy)
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: the header (line 1): %w; nothing can be replayed", err)
	}
	for line := 2; len(rest) > 0; line++ {
		var text []byte
		text, rest, whole = bytes.Cut(rest, []byte("\n"))
		if !whole {
			return p.done, fmt.Errorf("replay: line %d: it is cut off; the recording is good up to line %d, %v", line, line-1, p.done.Until)
		}
		at, in, effs, err := p.Step(text)
		if err != nil {
			return p.done, fmt.Errorf("replay: line %d: %w; the recording is good up to line %d, %v", line, err, line-1, p.done.Until)
		}
		if each != nil {
			each(line, at, in, effs)
		}
	}
	return p.done, nil
}

// Player steps a recording again line by line, also while it is still being written.
type Player struct {
	// Before, if any, is called with every input before the Node is stepped with it.
	Before func(at time.Duration, in Input)

	node *Node
	done Replayed
}

// NewPlayer begins with the header line; policy finds a Policy by the name that the header gives it.
func NewPlayer(header []byte, policy func(name string) (*Policy, bool)) (*Player, error) {
	n, err := begin(header, policy)
	return &Player{node: n}, err
}

// Node is the Node as it is after the last step. It belongs to the player.
func (p *Player) Node() *Node { return p.node }

// Replayed is how far the recording was stepped again.
func (p *Player) Replayed() Replayed { return p.done }

// begin reads the header.
func begin(text []byte, policy func(string) (*Policy, bool)) (*Node, error) {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	if h.Enilab != recordingFormat {
		return nil, fmt.Errorf("expected format %q, found %q; use the enilab that wrote it", recordingFormat, h.Enilab)
	}
	if h.Version != Version {
		return nil, fmt.Errorf("expected version %d, found %d; use the enilab that wrote it", Version, h.Version)
	}
	p, ok := policy(h.Policy)
	if !ok || p == nil {
		return nil, fmt.Errorf("policy %q is unknown to this enilab", h.Policy)
	}
	node, err := withoutEmpty(h.Node)
	if err != nil {
		return nil, err
	}
	return Decode(node, p)
}

// withoutEmpty is an encoded Node without the members of its state that this core does not have any more and that hold nothing: an older core's
// recording loses nothing by that. One that holds something is for Decode to refuse.
func withoutEmpty(node []byte) ([]byte, error) {
	var e struct {
		Encoding string
		State    map[string]json.RawMessage
	}
	if err := json.Unmarshal(node, &e); err != nil {
		return nil, err
	}
	mine, err := json.Marshal(new(state))
	if err != nil {
		return nil, err
	}
	var known map[string]json.RawMessage
	if err := json.Unmarshal(mine, &known); err != nil {
		return nil, err
	}
	before := len(e.State)
	maps.DeleteFunc(e.State, func(name string, value json.RawMessage) bool {
		_, ok := known[name]
		return !ok && slices.Contains([]string{"null", "false", "0", `""`, "[]", "{}"}, string(value))
	})
	if len(e.State) == before {
		return node, nil // as it is, also what else may be wrong with it
	}
	return json.Marshal(e)
}

// Difference is why a replay ended at an input that this core answers otherwise. What was wanted when it was recorded only the core of then knows.
type Difference struct {
	At              time.Duration
	In              Input
	Effects         []Effect // of this core
	Recorded, Found string   // fingerprints
}

func (d *Difference) Error() string {
	return fmt.Sprintf("the effects at %v differ: expected fingerprint %q, found %s of %d effects", d.At, d.Recorded, d.Found, len(d.Effects))
}

// Step steps the Node with one line of the recording. An error, also a *Difference, ends the replay.
func (p *Player) Step(text []byte) (at time.Duration, in Input, effs []Effect, err error) {
	var s step
	if err := strictly(text, &s); err != nil {
		return 0, nil, nil, err
	}
	if s.At == nil {
		return 0, nil, nil, errors.New("it has no time (\"at\")")
	}
	at = *s.At
	if p.done.Lines > 0 && at < p.done.Until {
		return 0, nil, nil, fmt.Errorf("time runs backwards to %v", at)
	}
	if in, err = UnmarshalInput(s.In); err != nil {
		return 0, nil, nil, err
	}
	if p.Before != nil {
		p.Before(at, in)
	}
	effs = p.node.Step(at, in)
	out, err := fingerprint(effs)
	if err != nil {
		return 0, nil, nil, err
	}
	if out != s.Out {
		return 0, nil, nil, &Difference{At: at, In: in, Effects: effs, Recorded: s.Out, Found: out}
	}
	p.done.Lines, p.done.Until = p.done.Lines+1, at
	return at, in, effs, nil
}

// strictly reads one JSON value without members that its type does not have.
func strictly(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the value")
	}
	return nil
}
