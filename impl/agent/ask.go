package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/local"
	"github.com/enilab/enilab/impl/settings"
)

// askBound is how long the daemon of this node may take to answer its operator.
const askBound = 10 * time.Second

// asks are the words of the command line that ask the daemon of this node, and what is printed of its answer.
var asks = map[string]func(w io.Writer, r *local.Response) error{
	local.Status: printStatus,
	local.View:   printView,
	local.Record: printRecord,
}

// ask is `ipamd status`, `ipamd view` and `ipamd record`.
func ask(w io.Writer, verb string, s *settings.Settings) error {
	c, err := local.Dial(s.Socket, askBound)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.Call(&local.Request{Version: ipam.Version, Verb: verb}, askBound)
	if err != nil {
		return err
	}
	if r.Code != 0 {
		return errors.New(r.Text)
	}
	return asks[verb](w, r)
}

var errNotReady = errors.New("this node takes no pods")

func printStatus(w io.Writer, r *local.Response) error {
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

func printView(w io.Writer, r *local.Response) error {
	var b bytes.Buffer
	if err := json.Indent(&b, r.Body, "", "  "); err != nil {
		return fmt.Errorf("view: %w", err)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// printRecord prints the recording itself, for `enilab replay`.
func printRecord(w io.Writer, r *local.Response) error {
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
