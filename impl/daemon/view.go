package daemon

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// Inspection is what the request "view" gets: the node as its daemon sees it.
type Inspection struct {
	Now      time.Duration // by the daemon's clock
	Began    time.Duration
	Version  int
	Policy   string
	Ready    bool
	Reasons  []string
	Requests int // of plugins, without an answer
	Effects  int // under way
	Steps    uint64
	View     ipam.View
	Rows     []ipam.Row // addresses
}

// inspect is the daemon's view of the node.
func (d *daemon) inspect() *ipc.Response {
	v := Inspection{Now: d.clock.Now(), Began: d.health.began, Version: d.c.Version, Policy: d.c.Parts.PolicyName, Steps: d.steps,
		Requests: d.requests.callers - 1, Effects: d.local + len(d.remotes.asked)}
	v.Ready, v.Reasons = d.health.ready()
	if d.node != nil {
		v.View = d.health.view
		d.node.Rows(func(r ipam.Row) { v.Rows = append(v.Rows, r) })
	}
	body, err := json.Marshal(&v)
	if err != nil {
		return refusal(ipam.CodeIO, "view: "+err.Error())
	}
	return &ipc.Response{Ready: v.Ready, Reasons: v.Reasons, Body: body}
}

// Dump is what the request "record" gets.
type Dump struct {
	File      string // on the node
	Err       string // why there is none
	Recording string // the same, for `enilab replay`
}

// record answers with the flight recorder. Its file is written beside the loop: that disk may hang.
func (d *daemon) record(c *caller) {
	d.work(func() func() {
		out := d.dump()
		return func() {
			if !c.left {
				d.requests.respond(c, out)
			}
		}
	})
}

// dump is the flight recorder; any goroutine.
func (d *daemon) dump() *ipc.Response {
	path, data, err := d.recorder.dump(d.c.LogDir)
	out := Dump{File: path, Recording: string(data)}
	if err != nil {
		out.File, out.Err = "", err.Error()
	}
	body, err := json.Marshal(&out)
	if err != nil || len(body) > ipc.MaxResponse/2 {
		out.Recording = ""
		body, _ = json.Marshal(&out) // strings
	}
	return &ipc.Response{Body: body}
}

// note is an event of the core that matters.
func (d *daemon) note(n *ipam.Note) {
	args := make([]any, 0, 8)
	if n.Att != (ipam.Attachment{}) {
		args = append(args, "attachment", n.Att)
	}
	if n.Addr.IsValid() {
		args = append(args, "address", n.Addr)
	}
	if n.ENI != "" {
		args = append(args, "eni", n.ENI)
	}
	if n.Text != "" {
		args = append(args, "text", n.Text)
	}
	if n.Warn {
		d.log.Warn(n.Point.String(), args...)
	} else {
		d.log.Info(n.Point.String(), args...)
	}
}

func join(texts []string) string { return strings.Join(texts, "; ") }
