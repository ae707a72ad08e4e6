package verb

import (
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
)

// Verb is something that a scenario can do.
type Verb struct {
	Name   string
	On     []scn.SubjectKind
	Params []Param
	Doc    string
	Source string // the incident or document that it comes from

	// Strike does it, now. It is struck only by what a kernel, a model or a process has told; what waits for somebody
	// to meet it is armed.
	Strike func(t *Target) Strike
	// Plan notes what other lines may rely on, before any is checked; Check refuses an action that can never strike.
	// Both may be nil.
	Plan, Check func(f *File, a *Act)

	Draw, DrawAny *Draw // how a swarm draws it, and one for any CNI; nil: it does not
	// Owe notes what a scenario asks of a CNI with the verb, or that it is more than one owes. It may be nil.
	Owe      func(o *draw.Owing, a *Act)
	Pods     bool  // pods come or go
	Ordinary bool  // people and controllers do it: part of every seed's workload
	Closes   *Verb // whose doing it ends, and with which it is drawn
	Replaces bool  // it ends what an earlier one of it did
	AtRandom bool  // what it does is drawn when it strikes
	AtDaemon bool  // it is about the daemon, and not about its machine
	// Lasts says whether what it does goes on until it is ended, or until the run's faults are; nil: it never does.
	Lasts func(a *Act) bool

	Survives Survival // whether a correct CNI does
	AnyCNI   Survival // whether any CNI does, where that is another answer; see Anybody
	Needs    Needs
	Skips    []Skip
}

// Needs is what a system under test must have for a verb to mean something to it.
type Needs struct {
	Daemon  bool   // it has one
	Runtime bool   // it asks the runtime for sandboxes
	GC      bool   // its plugin has the specification's GC
	Cloud   bool   // it asks EC2 and metadata, which all verbs on these need
	Ours    string // why it means something to enilab alone; "" is that it does not
}

// Skip is a kind of line that a world does not carry out, and why that cannot be helped.
type Skip struct {
	World string
	Line  string // the verb, with what else the line must have to be left out
	Why   string
	When  func(a *Act, nodes int) bool // nil: always
}

// Survival says whether a correct CNI survives what a verb does: pods come to run, what is broken is repaired in time,
// and nothing is left behind. A swarm draws only what one survives; else its violations would be nobody's mistake.
type Survival struct {
	Never bool   // whatever its arguments are
	Why   string // why no CNI survives it, or when none does; "" is that a correct one always survives
	// Beyond says whether arguments are among those with which none survives, where that can be told from them.
	Beyond func(a *Act) bool
}

// Excludes says whether no CNI survives an action.
func (s Survival) Excludes(a *Act) bool { return s.Never || s.Beyond != nil && s.Beyond(a) }

// Word is the short form: "yes", "no", or "partly" for a verb that only some arguments or circumstances make deadly.
func (s Survival) Word() string {
	switch {
	case s.Never:
		return "no"
	case s.Why != "":
		return "partly"
	}
	return "yes"
}

func always(*Act) bool { return true }

// NeedsCloud says whether it means something only to a system that asks EC2 and metadata.
func (v *Verb) NeedsCloud() bool { return v.Needs.Cloud || v.On[0] == scn.EC2 || v.On[0] == scn.IMDS }

// Ends says whether the verb ends what another one began.
func (v *Verb) Ends(other *Verb) bool { return v.Closes == other || v.Replaces && v == other }

// ForAnyCNI says whether a swarm for any CNI draws a verb, and why not or with which arguments. It draws less than
// what a correct CNI survives: only what every CNI promises to survive, by the CNI specification or because clouds and
// machines do it every day. Other CNIs do not promise to repair all that ours repairs.
func (v *Verb) ForAnyCNI() Survival {
	if v.Survives.Never {
		return v.Survives
	}
	return v.AnyCNI
}

// Key names a verb together with what it is done to, as "pod hang" and "ec2 hang" are two.
func (v *Verb) Key() string {
	switch v.On[0] {
	case scn.Node, scn.AllNodes:
		return "node " + v.Name
	case scn.Pod:
		return "pod " + v.Name
	}
	return scn.Subject{Kind: v.On[0]}.String() + " " + v.Name
}

// Usage is a line that shows how the verb is written.
func (v *Verb) Usage() string {
	s := v.Name
	for _, p := range v.Params {
		arg := p.Name
		if !p.Bare {
			value := p.Type.String()
			if p.Words != nil {
				value = strings.Join(p.Words, "|")
			}
			arg += "=" + value
		}
		if p.Optional {
			arg = "[" + arg + "]"
		}
		s += " " + arg
	}
	return s
}

// Of finds the verb of an action; nil: there is none of that name for its subject.
func Of(a *scn.Action) *Verb {
	for _, v := range All() {
		if v.Name == a.Verb && slices.Contains(v.On, a.Subject.Kind) {
			return v
		}
	}
	return nil
}

// Skipped says why a world leaves an action out, in a cluster with so many nodes; "" is that it does not.
func Skipped(world string, action *scn.Action, nodes int) (why string) {
	a, err := Bind(action)
	if err != nil {
		return "" // a mistake of the scenario's, said elsewhere
	}
	for _, s := range a.Of.Skips {
		if s.World == world && (s.When == nil || s.When(a, nodes)) {
			return s.Why
		}
	}
	return ""
}
