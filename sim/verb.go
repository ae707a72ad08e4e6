package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/scn"
)

// Verb is something that a scenario can do.
type Verb struct {
	Name   string
	On     []scn.SubjectKind
	Params []Param
	Doc    string
	Source string // the incident or document that it comes from
}

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

// calls are the EC2 actions that a verb may name.
var calls = []string{"CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute", "DetachNetworkInterface",
	"DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "DescribeNetworkInterfaces", "any"}

func call(doc string) Param {
	return Param{Name: "call", Bare: true, Type: Word, Words: calls, Doc: doc}
}

// whose limits a fault to one node's calls.
func whose() Param { return named("node", Count, "0", "whose; 0 is everybody's") }

// Verbs are all verbs, by subject and name.
func Verbs() []Verb {
	return []Verb{
		{"socket", onNode, []Param{choice("cri", "", "what stands behind the runtime endpoint", "right", "absent", "unimplemented", "empty", "partial")},
			"changes what the daemon's runtime socket is", "seeds/000"},
		{"restart", onNode, []Param{{Name: "KEY", Type: Setting, Optional: true, Doc: "settings of the new daemon"}},
			"rolls the daemon: SIGTERM, then a new one with these settings", "seeds/000"},
		{"upgrade", onNode, []Param{{Name: "to", Type: Version, Doc: "record and protocol version of ours, 1 or 2, or a system, as NAME@WHERE (enilab systems)"}, choice("part", "both", "what is exchanged", "both", "daemon", "plugin"),
			choice("env", "new", "whose environment the new daemon has: its own manifest's, or the old one's, as when the image alone is changed", "new", "keep")},
			"exchanges daemon and plugin for another version's; also the way back", "seeds/001"},
		{"kill", onNode, nil, "SIGKILL to the daemon; kubelet starts it again after two seconds", "rule I"},
		{"kill-at", onNode, []Param{call("the request"), choice("when", "after", "before it is sent, or after EC2 has executed it", "before", "after")},
			"kills the daemon the next time it makes that EC2 request", "amazon-vpc-cni-k8s #69"},
		{"hold", onNode, nil, "keeps the daemon down", "rule F"},
		{"unhold", onNode, nil, "lets the daemon start again", "rule F"},
		{"terminate", onNode, nil, "terminates the instance", "amazon-vpc-cni-k8s #608"},
		{"reboot", onNode, nil, "reboots the machine: namespaces and /run are gone, /var/lib stays", "k8s #133081"},
		{"gc", onNode, []Param{choice("valid", "", "which attachments the caller lists", "all", "none", "missing")},
			"calls CNI GC with that list", "CNI specification 1.1.0, GC"},
		{"fail-dels", onNode, []Param{named("times", Count, "1", "how many"), named("after", Duration, "0s", "how long each takes")},
			"a plugin before ours fails the next DELs, so that the runtime repeats them", "seeds/003"},
		{"lose-records", onNode, nil, "the daemon's records of allocations are gone: a damaged file, a lost tmpfs", "plugins #498"},
		{"flush-rules", onNode, nil, "a stranger removes all ip rules", "amazon-vpc-cni-k8s #3162"},
		{"flush-routes", onNode, []Param{named("table", Count, "254", "routing table")}, "a stranger flushes a routing table", "nm-cloud-setup"},
		{"flush-nat", onNode, nil, "a stranger runs nft flush ruleset", "rule H"},
		{"add-third-party", onNode, nil, "others than the CNI use the node: iptables chains in both backends, an nftables table, a marked connection, a route, a rule and sysctls, as far as the kernel takes them",
			"amazon-vpc-cni-k8s #2840"},
		{"interrupt-dumps", onNode, []Param{named("times", Count, "1", "how many")}, "the next netlink dumps end early", "NLM_F_DUMP_INTR"},
		{"restart-kubelet", onNode, nil, "kubelet restarts", "k8s #59741"},
		{"restart-runtime", onNode, nil, "the container runtime restarts", "containerd #12922"},
		{"delete", onPod, nil, "deletes the pod gracefully", ""},
		{"force-delete", onPod, nil, "takes the object away at once; kubelet kills in the background", "seeds/002"},
		{"hang", onPod, nil, "a process of the pod goes into D state", "seeds/002"},
		{"unhang", onPod, nil, "that process ends", "seeds/002"},
		{"hide", onPod, nil, "the runtime's list lacks the pod's sandbox although it lives", "containerd restart.go"},
		{"lose-gateway", onPod, nil, "the pod loses its permanent ARP entry of the gateway", "seeds/003"},
		{"change-mac", onPod, nil, "udev gives the host veth another MAC", "amazon-vpc-cni-k8s #2103"},
		{"lose-alias", onPod, nil, "the pod's host veth has no alias: as if amazon-vpc-cni-k8s had made it", "takeover from amazon-vpc-cni-k8s"},
		{"add-addresses", onPod, []Param{bare("count", Count, "how many: those of its node first, then free ones of the subnet")},
			"a process of the pod, with NET_ADMIN, gives its interface more addresses", "rule B"},
		{"replay-del", onPod, []Param{named("after", Duration, "0s", "how much later"), named("every", Duration, "0s", "and again"), named("times", Count, "1", "how often")},
			"a stale DEL of the pod's previous sandbox arrives, with empty CNI_NETNS", "seeds/003"},
		{"create", onKube, []Param{bare("name", Word, "workload"), bare("count", Count, "pods"), choice("kind", "deployment", "controller", "deployment", "statefulset"),
			named("node", Count, "0", "only on that node; 0 is all")}, "makes a workload", ""},
		{"scale", onKube, []Param{bare("name", Word, "workload"), bare("count", Count, "pods")}, "scales a workload", "seeds/004"},
		{"roll", onKube, []Param{bare("name", Word, "workload"), bare("count", Count, "pods")}, "deletes a workload's oldest pods; others follow", "seeds/001"},
		{"hold-flows", onKube, nil, "a client in the VPC opens a TCP connection to every pod, to those that come too, and keeps a byte going in each", "amazon-vpc-cni-k8s #3162"},
		{"lose", onEC2, []Param{call("request"), named("times", Count, "1", "how many"), choice("after", "executed", "whether EC2 executes it", "executed", "dropped"), whose()},
			"the next such requests get no answer", "EC2 API, idempotency"},
		{"duplicate", onEC2, []Param{call("request"), named("times", Count, "1", "how many"), whose()},
			"the next such requests arrive twice: both are executed, the second answer is seen", "EC2 API, idempotency"},
		{"fail", onEC2, []Param{call("request"), bare("code", Word, "error code"), named("times", Count, "1", "how many"),
			choice("after", "dropped", "whether EC2 executes it all the same", "dropped", "executed"), whose()}, "the next such requests fail with that code", ""},
		{"throttle", onEC2, []Param{call("request"), named("times", Count, "1", "how many"), whose()}, "somebody else empties the bucket before the next such requests", "EC2 API, throttling"},
		{"slow", onEC2, []Param{call("request"), named("by", Duration, "5s", "how much"), named("times", Count, "1", "how many"),
			choice("way", "there", "before EC2 executes it, or after", "there", "back"), whose()}, "the next such requests take that much longer", ""},
		{"deny", onEC2, []Param{call("request"), named("for", Duration, "1m", "how long"), whose()}, "the node's role loses the permission", ""},
		{"allow", onEC2, []Param{{Name: "actions", Bare: true, Type: Actions, Doc: "all that the role names, such as CreateNetworkInterface,CreateTags"}, whose()},
			"the nodes' role names these actions and no other, until another one takes its place", "AmazonEKS_CNI_Policy"},
		{"skew", onEC2, []Param{named("by", Duration, "10m", "how much"), choice("clock", "behind", "which way", "behind", "ahead"), named("for", Duration, "1m", "how long"), whose()},
			"the node's clock is wrong: signatures more than five minutes off are refused", "EC2 API, RequestExpired"},
		{"stale", onEC2, []Param{named("by", Duration, "10s", "how old"), named("for", Duration, "1m", "how long"), whose()}, "Describes answer what was true that long ago", "EC2 API, consistency"},
		{"hang", onEC2, []Param{{Name: "what", Bare: true, Type: Word, Words: []string{"attach", "detach"}, Doc: "what hangs"}, named("for", Duration, "1m", "how long"), whose()},
			"attaches or detaches that begin meanwhile do not end before that", "amazon-vpc-cni-k8s #608"},
		{"in-use", onEC2, []Param{named("times", Count, "1", "how many"), whose()}, "the next ENIs to be deleted are said to be in use", "amazon-vpc-cni-k8s #608"},
		{"remove", onEC2, []Param{named("node", Count, "1", "whose"), named("device", Count, "1", "device index")}, "a stranger detaches an ENI and deletes it", ""},
		{"draw", onEC2, []Param{bare("seed", Count, "what they are drawn from"), named("faults", Count, "1", "how many")}, "faults of any kind that the seed picks, each over within two minutes", ""},
		{"detach", onEC2, []Param{named("node", Count, "1", "whose"), named("device", Count, "1", "device index")}, "a stranger detaches an ENI", ""},
		{"attach", onEC2, []Param{choice("kind", "no_manage", "what it is: tagged to be left alone, without a tag, or of a kind that carries no pods",
			"no_manage", "untagged", "trunk", "efa", "efa-only"), named("node", Count, "1", "whose"), named("device", Count, "0", "device index; 0 is the lowest free one"),
			named("addresses", Count, "2", "secondary addresses"), named("prefixes", Count, "0", "/28 prefixes, instead of addresses")},
			"a stranger makes an ENI and attaches it", "amazon-vpc-cni-k8s README, MANAGE_UNTAGGED_ENI"},
		{"leak", onEC2, []Param{choice("of", "another-cluster", "whose it was: another cluster's of this VPC, one's in another VPC, or this one's",
			"another-cluster", "another-vpc", "this-cluster"), named("addresses", Count, "2", "secondary addresses")},
			"a node that is gone leaves an available ENI, which its CNI made", "amazon-vpc-cni-k8s #608"},
		{"unassign", onEC2, []Param{bare("pod", Word, "whose address")}, "a stranger unassigns a pod's address", ""},
		{"drain-subnet", onEC2, []Param{named("leave", Count, "0", "free addresses")}, "strangers take the subnet's addresses", "seeds/004"},
		{"down", onEC2, []Param{named("for", Duration, "1m", "how long")}, "the EC2 endpoint answers Unavailable", ""},
		{"silent", onIMDS, []Param{named("for", Duration, "1m", "how long"), whose()}, "instance metadata does not answer", ""},
		{"lag", onIMDS, []Param{named("by", Duration, "30s", "how far behind")}, "instance metadata shows changes that much later", "amazon-ecs-cni-plugins#66"},
	}
}

// Metric is something that a scenario can expect.
type Metric struct {
	Name string
	On   []scn.SubjectKind
	Flag bool // true or false; otherwise a number
	Doc  string
}

// Metrics are all metrics.
func Metrics() []Metric {
	m := []Metric{
		{"addresses.free", onNode, false, "addresses that may be given away"},
		{"addresses.assigned", onNode, false, "addresses of attachments"},
		{"addresses.cooling", onNode, false, "addresses that cool down"},
		{"addresses.quarantined", onNode, false, "addresses set aside"},
		{"addresses.total", onNode, false, "all of them; without books those that EC2 has on the node's ENIs"},
		{"enis", onNode, false, "ENIs that the node has in service; without books those that EC2 has attached"},
		{"waiting", onNode, false, "ADDs that wait for an address"},
		{"serving", onNode, true, "the daemon answers"},
		{"impaired", onNode, true, "the daemon gives a reason for bad health"},
		{"daemon.starts", onNode, false, "daemons that have started since t=0"},
		{"plugin.version", onNode, false, "protocol version of the plugin that was run last; 0: none has been"},
		{"pods.ready", onNode, false, "pods that kubelet sees run"},
		{"pods.reachable", onNode, false, "pods that run and that a packet from the VPC reaches, and back"},
		{"calls.total", onNode, false, "the node's EC2 requests, those before t=0 too"},
		{"calls.throttled", onNode, false, "those that were throttled"},
		{"calls.failed", onNode, false, "those that were refused otherwise"},
		{"calls.lost", onNode, false, "those whose answer was lost"},
		{"calls.denied", onNode, false, "those that the instance's role does not allow (UnauthorizedOperation)"},
		{"ready", onPod, true, "kubelet sees the pod run"},
		{"reachable", onPod, true, "a packet from the VPC gets there and back"},
		{"pods.ready", onKube, false, "pods whose status is Running"},
		{"pods.total", onKube, false, "pod objects"},
		{"pods.made", onKube, false, "pod objects that were ever made, those of start lines too"},
		{"pods.unready", onKube, false, "pod objects that start, wait or go: 0 once every pod that is wanted runs"},
		{"pairs.tried", onKube, false, "pods that ask another pod: each one once, each ENI of a node every other of it, each node every other (up to 64)"},
		{"pairs.unreachable", onKube, false, "those that get no answer, with the source that the other one expects"},
		{"flows.open", onKube, false, "flows that hold-flows has open"},
		{"flows.cut", onKube, false, "those that were reset, or without an answer for more than 30 s, while their pod lived"},
		{"calls.total", onEC2, false, "requests since t=0"},
		{"calls.throttled", onEC2, false, "requests that were throttled since t=0"},
		{"calls.failed", onEC2, false, "requests that were refused otherwise since t=0"},
		{"calls.lost", onEC2, false, "requests whose answer was lost since t=0"},
		{"enis.available", onEC2, false, "ENIs that are attached to nothing"},
		{"enis.total", onEC2, false, "ENIs"},
	}
	for _, c := range calls[:len(calls)-1] {
		m = append(m, Metric{"calls." + c, onEC2, false, "requests since t=0"},
			Metric{"failed." + c, onEC2, false, "those that were refused otherwise than by throttling"})
	}
	for _, p := range ipam.Marks() {
		m = append(m, Metric{"reached." + p, onNode, false, "how often its daemons came there since t=0"})
	}
	return m
}

// Act is an action whose arguments have been checked against its verb.
type Act struct {
	Verb    string
	Subject scn.Subject
	values  map[string]string
	Keys    []scn.Arg // settings
}

// Text is an argument, or its default.
func (a *Act) Text(name string) string { return a.values[name] }

// Int is an argument of type Count.
func (a *Act) Int(name string) int {
	i, _ := strconv.Atoi(a.values[name]) // checked by Bind
	return i
}

// Duration is an argument of that type.
func (a *Act) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(a.values[name]) // checked by Bind
	return d
}

// verbFor finds a verb by name and kind of subject.
func verbFor(name string, k scn.SubjectKind) (*Verb, bool) {
	for _, v := range Verbs() {
		if v.Name == name && slices.Contains(v.On, k) {
			return &v, true
		}
	}
	return nil, false
}

func verbNames(k scn.SubjectKind) []string {
	var out []string
	for _, v := range Verbs() {
		if slices.Contains(v.On, k) {
			out = append(out, v.Name)
		}
	}
	return out
}

// Bind checks an action against the catalogue. The error is an *scn.Error with its position.
func Bind(a *scn.Action) (*Act, *scn.Error) {
	v, ok := verbFor(a.Verb, a.Subject.Kind)
	if !ok {
		known := verbNames(a.Subject.Kind)
		return nil, scn.Errorf(a.VerbPos, unknown(a.Verb, known), "%s cannot %q", a.Subject, a.Verb)
	}
	act := &Act{Verb: v.Name, Subject: a.Subject, values: map[string]string{}}
	for _, p := range v.Params {
		act.values[p.Name] = p.Default
	}
	given := map[string]bool{}
	for _, arg := range a.Args {
		p, err := v.param(arg, given)
		if err != nil {
			return nil, err
		}
		if p.Type == Setting {
			if err := checkSetting(arg.Pos, arg.Key, arg.Value); err != nil {
				return nil, err
			}
			act.Keys = append(act.Keys, arg)
			continue
		}
		if err := p.check(arg); err != nil {
			return nil, err
		}
		given[p.Name] = true
		act.values[p.Name] = arg.Value
	}
	for _, p := range v.Params {
		if !p.Optional && !given[p.Name] {
			return nil, scn.Errorf(a.VerbPos, "write "+v.Usage(), "%s lacks %s", v.Name, p.Name)
		}
	}
	return act, nil
}

func (v *Verb) param(arg scn.Arg, given map[string]bool) (*Param, *scn.Error) {
	for i := range v.Params {
		p := &v.Params[i]
		switch {
		case p.Type == Setting && arg.Key != "":
			return p, nil
		case arg.Key == p.Name:
			return p, nil
		case arg.Key == "" && p.Bare && !given[p.Name]:
			return p, nil
		}
	}
	name := arg.Key
	if name == "" {
		name = arg.Value
	}
	return nil, scn.Errorf(arg.Pos, "write "+v.Usage(), "%s takes no %q", v.Name, name)
}

func (p *Param) check(arg scn.Arg) *scn.Error {
	switch p.Type {
	case Count:
		if i, err := strconv.Atoi(arg.Value); err != nil || i < 0 || i > 1_000_000 {
			return scn.Errorf(arg.ValuePos, "a whole number from 0 to 1000000", "%s: bad number %q", p.Name, arg.Value)
		}
	case Version:
		if !isVersion(arg.Value) {
			return scn.Errorf(arg.ValuePos, "such as 1, or amazon-vpc-cni-k8s@1.5.3", "%s: bad version %q", p.Name, arg.Value)
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
			return scn.Errorf(arg.ValuePos, unknown(arg.Value, p.Words), "%s: unknown %q", p.Name, arg.Value)
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

// Usage is a line that shows how the verb is written.
func (v *Verb) Usage() string {
	s := v.Name
	for _, p := range v.Params {
		arg := p.Name
		if !p.Bare {
			value := p.Type.String()
			if p.Words != nil {
				value = joinWords(p.Words)
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

func checkSetting(pos scn.Pos, key, value string) *scn.Error {
	s := ipam.Defaults()
	if err := s.Put(key, value); err != nil {
		if !slices.Contains(ipam.Variables(), key) {
			return scn.Errorf(pos, unknown(key, ipam.Variables()), "unknown setting %q", key)
		}
		return scn.Errorf(pos, "", "%v", err)
	}
	return nil
}

func joinWords(words []string) string {
	s := ""
	for i, w := range words {
		if i > 0 {
			s += "|"
		}
		s += w
	}
	return s
}

// unknown is the hint for a word that is none of those known.
func unknown(word string, known []string) string {
	if near := scn.Suggest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) <= 12 {
		return "there are " + joinWords(known)
	}
	return "enilab verbs lists them"
}
