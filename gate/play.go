package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/scn"
)

// Play is a way to play a scenario.
type Play string

// The plays there are.
const (
	Old           Play = "old"            // the version before, which is rolled in the middle
	New           Play = "new"            // the version after, the same way
	UpgradeImage  Play = "upgrade-image"  // from before to after, the image alone
	Upgrade       Play = "upgrade"        // with the manifest
	RollbackImage Play = "rollback-image" // from after to before, the image alone
	Rollback      Play = "rollback"       // with the manifest
)

// Plays are all, in the order in which they are told.
func Plays() []Play { return []Play{Old, New, UpgradeImage, Upgrade, RollbackImage, Rollback} }

// Doc is what a play is, for people.
func (p Play) Doc() string {
	switch p {
	case Old:
		return "the old version alone"
	case New:
		return "the new version alone"
	case UpgradeImage:
		return "upgraded, image only"
	case Upgrade:
		return "upgraded with the new manifest"
	case RollbackImage:
		return "rolled back, image only"
	case Rollback:
		return "rolled back with the old manifest"
	}
	return string(p)
}

// Pair are the two versions.
type Pair struct {
	// From and To are what scenarios call them: NAME@VERSION.
	From, To string
	// Role is what the nodes may do at EC2, by the documentation of From; nil: everything.
	Role []string
	// Tokens is whether metadata requires them: what From can do with. Empty: it does not matter.
	Tokens string
}

// Same says whether nothing changes.
func (p *Pair) Same() bool { return p.From == p.To }

// Script is a scenario as it is played.
type Script struct {
	Play   Play
	System string        // that is there at the begin
	Later  string        // that comes with the change; empty: none does
	Text   string        // the scenario, with the change in it
	Change time.Duration // when
	Line   int           // of the change
}

// changeKey is the variable by which a scenario says when the change is to happen: vary change=5m.
const changeKey = "change"

// Scripts are a scenario's plays. Numbers of lines stay. The version that is alone is rolled at the instant of the change, by which its processes end as
// they do in an upgrade: what a roll alone breaks is no upgrade's fault. The nodes have the rights of the version before, unless the scenario says which,
// and with flows every pod has a client that holds a connection to it.
func (p *Pair) Scripts(f *scn.File, flows bool) ([]Script, error) {
	at, err := changeAt(f)
	if err != nil {
		return nil, err
	}
	g := f.Clone()
	p.endow(g)
	unexpect(g)
	if flows {
		hold(g)
	}
	var out []Script
	for _, play := range Plays() {
		from, to, keep := p.From, p.To, play == UpgradeImage || play == RollbackImage
		if play == New || play == RollbackImage || play == Rollback {
			from, to = to, from
		}
		action := &scn.Action{Subject: scn.Subject{Kind: scn.AllNodes}, Verb: "restart"}
		later := ""
		if play != Old && play != New && !p.Same() {
			later = to
			action.Verb, action.Args = "upgrade", []scn.Arg{{Key: "to", Value: to}}
			if keep {
				action.Args = append(action.Args, scn.Arg{Key: "env", Value: "keep"})
			}
		}
		h := g.Clone()
		h.Lines = append(h.Lines, scn.Line{Stmt: &scn.At{When: at, Action: action}, Comment: "the change"})
		out = append(out, Script{Play: play, System: from, Later: later, Text: h.String(), Change: at, Line: len(h.Lines)})
	}
	return out, nil
}

// flowsAt is when clients begin to hold a connection to each pod, in a scenario that says nothing of it.
const flowsAt = time.Second

// hold lets clients hold a TCP connection to every pod from the begin on, as they do in production, where a scenario holds none itself.
func hold(f *scn.File) {
	for _, l := range f.Lines {
		if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil && at.Action.Verb == "hold-flows" {
			return
		}
	}
	f.Lines = append(f.Lines, scn.Line{Stmt: &scn.At{When: flowsAt, Maybe: true, Action: &scn.Action{Subject: scn.Subject{Kind: scn.Kube}, Verb: "hold-flows"}}, Comment: "the gate's"})
}

// endow writes the role and the tokens into the cluster's line, where it says nothing of them.
func (p *Pair) endow(f *scn.File) {
	var role []string
	for _, a := range p.Role {
		if _, known := ec2.ParseAction(a); known { // others nobody asks of this EC2
			role = append(role, a)
		}
	}
	for i := range f.Lines {
		c, ok := f.Lines[i].Stmt.(*scn.Cluster)
		if !ok {
			continue
		}
		for _, kv := range []scn.KV{{Key: "role", Value: strings.Join(role, ",")}, {Key: "tokens", Value: p.Tokens}} {
			if kv.Value != "" && !slices.ContainsFunc(c.Args, func(x scn.KV) bool { return x.Key == kv.Key }) {
				c.Args = append(c.Args, kv)
			}
		}
	}
}

// unexpect takes out what the change itself makes untrue: how many daemons have started.
func unexpect(f *scn.File) {
	for i, l := range f.Lines {
		if at, ok := l.Stmt.(*scn.At); ok && at.Check != nil && at.Check.Metric == "daemon.starts" {
			f.Lines[i] = scn.Line{Pos: l.Pos, Number: l.Number, Comment: "the gate starts daemons too: " + strings.TrimSpace(l.Raw)}
		}
	}
}

// VariantName is the name of a variant without the instant of the change, which has one value.
func VariantName(name string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(name), func(s string) bool { return strings.HasPrefix(s, changeKey+"=") }), " ")
}

// What should be around the change: before it nothing for as long as an address cools down, for what a version remembers of that over a restart, and meets,
// is luck where a scenario does not say so; after it nothing until the daemon has begun.
const (
	roomBefore = 40 * time.Second
	roomAfter  = 15 * time.Second
)

// changeAt is when the change happens: as the scenario says, or in the quiet place that is next to its middle. Quiet is where no line does or expects
// anything for a while before, none waits for something to come true, and nobody keeps a daemon down: an upgrade of a node whose daemon may not start is
// another story.
func changeAt(f *scn.File) (time.Duration, error) {
	var busy []span
	var end time.Duration
	held := map[string]time.Duration{}
	for _, l := range f.Lines {
		switch s := l.Stmt.(type) {
		case *scn.Vary:
			if s.Key != changeKey {
				continue
			}
			d, err := time.ParseDuration(s.Values[0])
			if err != nil || d < 0 || len(s.Values) > 1 {
				return 0, fmt.Errorf("%s:%d: vary %s= says when a gate changes the version: expected one duration such as 5m, found %s", f.Name, l.Number, changeKey, strings.Join(s.Values, ","))
			}
			return d, nil
		case *scn.At:
			if !l.Guard.Allows("netns") {
				continue
			}
			last := s.When
			if s.Check != nil {
				last += s.Check.Within
			}
			busy = append(busy, span{s.When - roomAfter, last + roomBefore})
			end = max(end, last, s.Until)
			if s.Action == nil {
				continue
			}
			who := s.Action.Subject.String()
			switch s.Action.Verb {
			case "hold":
				held[who] = s.When
			case "unhold":
				for h, since := range held {
					if h == who || strings.HasSuffix(who, "*") || strings.HasSuffix(h, "*") {
						busy = append(busy, span{since - roomAfter, s.When + roomBefore})
						delete(held, h)
					}
				}
			}
		}
	}
	if end == 0 {
		return 0, fmt.Errorf("%s: nothing happens in it at any instant, so there is no middle to change the version in (write vary %s=1m)", f.Name, changeKey)
	}
	for _, since := range held {
		busy = append(busy, span{since - roomAfter, end + roomBefore})
	}
	if at, ok := quiet(busy, end/2, end); ok {
		return at, nil
	}
	for i := range busy { // it is crowded: an instant without a line will do
		busy[i].from, busy[i].to = busy[i].from+roomAfter-time.Second, busy[i].to-roomBefore+time.Second
	}
	if at, ok := quiet(busy, end/2, end); ok {
		return at, nil
	}
	return 0, errors.New(f.Name + ": there is always something that a line waits for, or a daemon that is kept down: write when the version is to be changed, such as vary " + changeKey + "=5m")
}

type span struct{ from, to time.Duration }

// quiet is the instant next to the middle, in whole seconds, that is in no span.
func quiet(busy []span, middle, end time.Duration) (time.Duration, bool) {
	middle = middle.Truncate(time.Second)
	for d := time.Duration(0); d <= end; d += time.Second {
		for _, at := range []time.Duration{middle + d, middle - d} {
			if at > 0 && at < end && !slices.ContainsFunc(busy, func(s span) bool { return s.from < at && at < s.to }) {
				return at, true
			}
		}
	}
	return 0, false
}
