package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/settings"
)

// askBound is how long the daemon of this node may take to answer its operator, and askStatus how long to say how it is: it does that within
// statusBound, and kubelet's patience with a probe is a second unless it is told otherwise.
const (
	askBound  = 10 * time.Second
	askStatus = 950 * time.Millisecond
)

// Kubernetes' probes of a container.
const (
	readiness = "readiness"
	liveness  = "liveness"
)

// asks are the words of the command line that ask the daemon of this node, and what is printed of its answer.
var asks = map[string]func(w io.Writer, r *ipc.Response) error{
	ipc.Status: printStatus,
	ipc.View:   printView,
	ipc.Record: printRecord,
}

// ask is `ipamd status`, `ipamd view` and `ipamd record`.
func ask(w io.Writer, verb, probe string, s *settings.Settings) error {
	if verb != ipc.Status {
		r, err := consult(s.Socket, verb, askBound)
		if err != nil {
			return err
		}
		return asks[verb](w, r)
	}
	began := time.Now()
	r, err := consult(s.Socket, verb, askStatus)
	switch {
	case probe == liveness:
		return printLife(w, r, err, s, max(askStatus-time.Since(began), time.Millisecond))
	case err != nil:
		return err
	case probe == readiness:
		r.Ready = r.Serving
	}
	return asks[verb](w, r)
}

// consult asks the daemon, within a bound.
func consult(socket, verb string, bound time.Duration) (*ipc.Response, error) {
	end := time.Now().Add(bound)
	c, err := ipc.Dial(socket, bound)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	r, err := c.Call(&ipc.Request{Version: ipam.Version, Verb: verb}, time.Until(end))
	if err != nil {
		return nil, err
	}
	if r.Code != 0 {
		return nil, errors.New(r.Text)
	}
	return r, nil
}

// printLife is for a livenessProbe: a daemon that answers is not to be killed for what it says, nor one that waits for another CNI's to end.
func printLife(w io.Writer, r *ipc.Response, err error, s *settings.Settings, left time.Duration) error {
	switch {
	case err == nil && r.Busy:
		return errors.New(join(r.Reasons))
	case err == nil:
		_, err = fmt.Fprintln(w, "alive")
		return err
	}
	if !errors.Is(err, ipc.ErrNotRunning) { // it listens, and hangs: it may be the one at the rival's address too
		return err
	}
	if other := probe(s.Rival, s.Socket, left); other != nil {
		_, err = fmt.Fprintln(w, "alive, and waits:", other)
	}
	return err
}

var errNotReady = errors.New("this node takes no pods")

func printStatus(w io.Writer, r *ipc.Response) error {
	head := "ready"
	if !r.Ready {
		head = "not ready"
	}
	fmt.Fprintln(w, head)
	for _, why := range r.Reasons {
		fmt.Fprintln(w, "  "+why)
	}
	if !r.Ready {
		return errNotReady
	}
	return nil
}

func printView(w io.Writer, r *ipc.Response) error {
	var b bytes.Buffer
	if err := json.Indent(&b, r.Body, "", "  "); err != nil {
		return fmt.Errorf("view: %w", err)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// printRecord prints the recording itself, for `enilab replay`.
func printRecord(w io.Writer, r *ipc.Response) error {
	var d Dump
	if err := json.Unmarshal(r.Body, &d); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if d.Recording == "" {
		return fmt.Errorf("record: it is too long for an answer; the daemon wrote it to %s on the node %s", d.File, d.Err)
	}
	_, err := io.WriteString(w, d.Recording)
	return err
}
