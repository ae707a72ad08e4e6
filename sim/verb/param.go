package verb

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/scn"
)

// Param is an argument of a verb.
type Param struct {
	Name     string
	Bare     bool // given as VALUE; otherwise as NAME=VALUE
	Type     Type
	Words    []string // Type Word: the values there are; nil is any
	Default  string   // "" with Optional false: must be given
	Optional bool
	Doc      string
}

// Type of an argument.
type Type uint8

const (
	Word Type = iota
	Count
	Duration
	Actions // names of EC2's actions, separated by commas
	Setting // KEY=VALUE of ipam.Settings, any number
	Version // a number, or a system as NAME@WHERE
)

var typeNames = [...]string{"word", "count", "duration", "actions", "setting", "version"}

func (t Type) String() string { return typeNames[t] }

// What verbs are done to.
var (
	onNode = []scn.SubjectKind{scn.Node, scn.AllNodes}
	onPod  = []scn.SubjectKind{scn.Pod}
	onEC2  = []scn.SubjectKind{scn.EC2}
	onIMDS = []scn.SubjectKind{scn.IMDS}
	onKube = []scn.SubjectKind{scn.Kube}
)

func bare(name string, t Type, doc string) Param {
	return Param{Name: name, Bare: true, Type: t, Doc: doc}
}

func named(name string, t Type, def, doc string) Param {
	return Param{Name: name, Type: t, Default: def, Optional: true, Doc: doc}
}

func choice(name, def, doc string, words ...string) Param {
	return Param{Name: name, Type: Word, Words: words, Default: def, Optional: def != "", Doc: doc}
}

// Requests are the EC2 actions that a verb may name.
var Requests = []string{"CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute",
	"DetachNetworkInterface",
	"DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "DescribeNetworkInterfaces",
	"DescribeSubnets"}

// anyRequest stands for all of them.
const anyRequest = "any"

func call(doc string) Param {
	return Param{Name: "call", Bare: true, Type: Word, Words: append(slices.Clone(Requests), anyRequest), Doc: doc}
}

// whose limits a fault to one node's calls.
func whose() Param { return named("node", Count, "0", "whose; 0 is everybody's") }

// ofSubnets says which of the cluster's subnets it is.
func ofSubnets() Param { return named("subnet", Count, "1", "which of the cluster's") }

// howMany says how often a fault is met.
func howMany() Param { return named("times", Count, "1", "how many") }

func (p *Param) check(arg scn.Arg) *scn.Error {
	switch p.Type {
	case Count:
		if i, err := strconv.Atoi(arg.Value); err != nil || i < 0 || i > 1_000_000 {
			return scn.Errorf(arg.ValuePos, "a whole number from 0 to 1000000", "%s: bad number %q", p.Name, arg.Value)
		}
	case Version:
		if !isVersion(arg.Value) {
			return scn.Errorf(arg.ValuePos, "such as 1, or amazon-vpc-cni-k8s@1.5.3", "%s: bad version %q", p.Name,
				arg.Value)
		}
	case Duration:
		if d, err := time.ParseDuration(arg.Value); err != nil || d < 0 {
			return scn.Errorf(arg.ValuePos, "such as 30s, 20m or 1h30m", "%s: bad duration %q", p.Name, arg.Value)
		}
	case Actions:
		if _, err := ec2.ParseActions(arg.Value); err != nil {
			return scn.Errorf(arg.ValuePos, "such as CreateNetworkInterface,CreateTags", "%s: %v", p.Name, err)
		}
	case Word:
		if p.Words != nil && !slices.Contains(p.Words, arg.Value) {
			return scn.Errorf(arg.ValuePos, Unknown(arg.Value, p.Words), "%s: unknown %q", p.Name, arg.Value)
		}
	}
	return nil
}

// isVersion says whether a text is a number, or NAME@WHERE.
func isVersion(s string) bool {
	name, where, system := strings.Cut(s, "@")
	if !system {
		i, err := strconv.Atoi(s)
		return err == nil && i >= 0 && i <= 1_000_000
	}
	plain := func(r rune) bool { return r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	return name != "" && where != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0
}
