package virtual

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// maxStory bounds a story: it is for people, and a broken world says the same thing a thousand times.
const maxStory = 400

// story is what happened, a line each, for people and for golden files. Names that the seed makes (ENIs, sandboxes) appear as
// ordinals, so that a story says what happened and not what it was called.
type story struct {
	lines   []line
	enis    []string
	dropped int
}

type line struct {
	at   time.Duration
	node int32
	text string
	n    int // how often in a row
}

func (s *story) clear() { s.lines, s.dropped = nil, 0 }

func (s *story) clone() story {
	c := *s
	c.lines, c.enis = slices.Clone(s.lines), slices.Clone(s.enis)
	return c
}

// eni is the ordinal name of an ENI.
func (s *story) eni(id string) string {
	i := slices.Index(s.enis, id)
	if i < 0 {
		s.enis = append(s.enis, id)
		i = len(s.enis) - 1
	}
	return fmt.Sprintf("eni-%c", 'A'+i%26)
}

func (s *story) add(at time.Duration, node int32, text string) {
	for i := len(s.lines) - 1; i >= 0 && i >= len(s.lines)-3; i-- { // the same again
		if l := &s.lines[i]; l.node == node && l.text == text && at-l.at < time.Minute {
			l.n++
			return
		}
	}
	if len(s.lines) >= maxStory {
		s.dropped++
		return
	}
	s.lines = append(s.lines, line{at, node, text, 1})
}

// tell writes a line about a node.
func (w *World) tell(n *node, _ rune, text string) {
	if !w.cfg.Quiet {
		w.story.add(w.now-w.epoch, n.no, text)
	}
}

// untold are marks that happen all the time, or that something else tells.
var untold = map[ipam.Mark]bool{ipam.DelUnknown: true, ipam.DelQueued: true, ipam.CallThrottled: true, ipam.ENIDrained: true, 0: true}

func (w *World) noted(n *node, e *ipam.Note) {
	if w.cfg.Quiet || untold[e.Mark] {
		return
	}
	text := strings.ReplaceAll(e.Mark.String(), "-", " ")
	if e.ENI != "" {
		text += " " + w.story.eni(e.ENI)
	}
	if e.Warn && e.Text != "" {
		text += ": " + w.ordinals(e.Text)
	}
	w.story.add(w.now-w.epoch, n.no, text)
}

// figures tell of a fleet, which has too many nodes for a story: a line a minute, until nothing changes.
func (w *World) figures() {
	waiting, attached := int64(0), w.cloud.CountENIs(ec2.InUse)
	for _, n := range w.nodes[1:] {
		if v, ok := w.measureNode(n, "waiting"); ok {
			waiting += v
		}
	}
	throttled, _ := w.measureEC2("calls.throttled")
	text := fmt.Sprintf("%d pods ready, %d wait in their ADD; %d ENIs attached, %d calls throttled so far", w.kube.Ready(), waiting, attached, throttled)
	if n := len(w.story.lines); n == 0 || w.story.lines[n-1].text != text {
		w.story.add(w.now-w.epoch, wholeCluster, text)
	}
}

// ordinals replaces the ENIs' names in a text.
func (w *World) ordinals(text string) string {
	words := strings.Fields(text)
	for i, s := range words {
		if strings.HasPrefix(s, "eni-") && len(s) == len("eni-")+17 {
			words[i] = w.story.eni(s)
		}
	}
	return strings.Join(words, " ")
}

// refused tells that an ADD or DEL was turned down.
func (w *World) refused(n *node, r *ipam.Reply) {
	if w.cfg.Quiet || r.Err == nil {
		return
	}
	w.story.add(w.now-w.epoch, n.no, fmt.Sprintf("%v is told: code %d", r.Verb, r.Err.Code))
}

// cloudSaid tells of mutations at EC2.
func (w *World) cloudSaid(n *node, f *inFlight, r *ec2.Response) {
	if w.cfg.Quiet {
		return
	}
	id, result := string(f.req.ENI), "ok"
	switch {
	case r.Lost:
		result = "the answer is lost"
	case r.Code == "RequestLimitExceeded":
		return
	case r.Code != "":
		result = r.Code
	case r.ENI.ID != "":
		id = string(r.ENI.ID)
	}

	text := f.req.Action.String()
	if id != "" {
		text += " " + w.story.eni(id)
	}
	w.story.add(w.now-w.epoch, n.no, text+": "+result)
}

// Story is what happened since t=0.
func (w *World) Story() string {
	var b strings.Builder
	for _, l := range w.story.lines {
		fmt.Fprintf(&b, "%8s  %-8s  %s", round(l.at), who(l.node), l.text)
		if l.n > 1 {
			fmt.Fprintf(&b, " (%d times)", l.n)
		}
		b.WriteByte('\n')
	}
	if w.story.dropped > 0 {
		fmt.Fprintf(&b, "          and %d lines more\n", w.story.dropped)
	}
	return b.String()
}

// wholeCluster is told of by figures.
const wholeCluster = -1

// who did it: a node, the scenario itself, or the cluster as a whole.
func who(node int32) string {
	switch node {
	case 0:
		return "scenario"
	case wholeCluster:
		return "cluster"
	}
	return fmt.Sprintf("node-%d", node)
}

func round(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d/time.Minute), (d % time.Minute).Seconds())
}
