package sim

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Cluster is what a scenario's cluster, config and start lines say.
type Cluster struct {
	Nodes      int
	Name       string // CLUSTER_NAME, which is tagged on every ENI; "" is unset
	Type       string
	VPC        netip.Prefix
	Further    []netip.Prefix // CIDRs of the VPC beside VPC
	Subnet     netip.Prefix
	ENIConfigs []ENIConfig
	Subnets    []Subnet // with what is known of each; the first is Subnet. Empty: it alone
	Runtime    cri.Runtime
	Warm       int // secondary addresses at launch
	Budget     int64
	Version    int
	MaxPods    int
	Settings   ipam.Settings
	Written    []string // names of those settings that lines write, whatever their values
	Start      []Workload
	Role       ec2.ActionSet // what the instances' role allows; 0 is everything
	Tokens     string        // of instance metadata: optional or required (IMDSv2); empty: what the systems that are played can do with
	// OtherNodes and OtherPods are what the API server has beside the scenario's own: objects that nobody runs.
	OtherNodes, OtherPods int
	Systems               []string // that lines upgrade to, as NAME@WHERE
}

// CIDRs are those of the VPC.
func (c *Cluster) CIDRs() []netip.Prefix { return append([]netip.Prefix{c.VPC}, c.Further...) }

// InVPC says whether an address is in the VPC.
func (c *Cluster) InVPC(a netip.Addr) bool {
	return slices.ContainsFunc(c.CIDRs(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// Workload of pods that run when time begins.
type Workload struct {
	Name  string
	Count int
	Nodes []int
}

// The most nodes and pods that an API server has beside a scenario's own: a virtual machine has the memory for so many.
const (
	MostOtherNodes = 2000
	MostOtherPods  = 20_000
)

// maxNodes bounds a cluster: the auditor's and the subnet's sizes follow from it.
const maxNodes = 10_000

// unnamed is the name of a cluster whose daemons have no CLUSTER_NAME.
const unnamed = "none"

var clusterKeys = []string{"nodes", "type", "vpc", "subnet", "subnets", "eniconfigs", "runtime", "warm", "budget", "version", "max-pods", "name", "role", "tokens", "other-nodes", "other-pods"}

// Check judges what the parser cannot: verbs, nodes, mutants, invariants, metrics, settings, contradictions between lines, and actions
// that cannot strike whatever happens. It returns all errors at once.
func Check(f *scn.File) (*Cluster, error) { return check(f, true, true) }

// CheckRest is Check of a file of which lines are missing, because they could not be read: what those may have made is not missed. cluster
// says that the cluster line is there.
func CheckRest(f *scn.File, cluster bool) (*Cluster, error) { return check(f, false, cluster) }

func check(f *scn.File, whole, nodes bool) (*Cluster, error) {
	c := &checker{File: verb.NewFile(whole, nodes), cluster: Cluster{Nodes: 1, Name: "enilab", Type: "m5.large",
		VPC: netip.MustParsePrefix("10.0.0.0/16"), Version: ipam.Version,
		Settings: ipam.Defaults()}}
	for i := range f.Lines {
		c.head(&f.Lines[i])
	}
	c.foresee(f)
	for i := range f.Lines {
		c.line(&f.Lines[i])
	}
	if !c.cluster.Subnet.IsValid() {
		c.cluster.Subnet = c.cluster.VPC
	}
	if !c.cluster.VPC.Overlaps(c.cluster.Subnet) || c.cluster.Subnet.Bits() < c.cluster.VPC.Bits() {
		c.cluster.VPC = netip.PrefixFrom(c.cluster.Subnet.Addr(), min(16, c.cluster.Subnet.Bits())).Masked()
	}
	c.placeSubnets()
	c.placeENIConfigs()
	if len(c.Errors) > 0 {
		return nil, c.Errors
	}
	c.cluster.Systems = c.Systems
	return &c.cluster, nil
}

type checker struct {
	*verb.File
	cluster    Cluster
	first      Subnet   // what subnet= says
	further    []Subnet // what subnets= says
	placed     scn.Pos  // where
	configured scn.Pos  // where eniconfigs= is
}

// subnet reads the cluster's first subnet: a CIDR, or what subnets= takes.
func (c *checker) subnet(kv scn.KV, plain func(*netip.Prefix)) {
	if _, err := netip.ParsePrefix(kv.Value); err == nil || !strings.Contains(kv.Value, ":") {
		plain(&c.cluster.Subnet)
		return
	}
	s, err := parseSubnet(kv.Value)
	if err != nil {
		c.bad(kv.ValuePos, subnetUsage, "cluster subnet: %v", err)
		return
	}
	c.first, c.cluster.Subnet = s, s.CIDR
}

// subnets reads the cluster's further subnets.
func (c *checker) subnets(kv scn.KV) {
	c.placed = kv.ValuePos
	for _, text := range strings.Split(kv.Value, ",") {
		s, err := parseSubnet(text)
		if err != nil {
			c.bad(kv.ValuePos, subnetUsage, "cluster subnets: %v", err)
			return
		}
		c.further = append(c.further, s)
	}
	if c.File.Subnets = 1 + len(c.further); c.File.Subnets > mostSubnets {
		c.bad(kv.ValuePos, "", "cluster subnets: expected %d at most beside the first one, found %d", mostSubnets-1,
			len(c.further))
	}
}

// placeSubnets puts the cluster's subnets into its VPC.
func (c *checker) placeSubnets() {
	if len(c.further) == 0 && c.first.CIDR == (netip.Prefix{}) {
		return
	}
	c.first.CIDR = c.cluster.Subnet
	c.cluster.Subnets = append([]Subnet{c.first}, c.further...)
	for i, s := range c.cluster.Subnets {
		if !slices.ContainsFunc(c.cluster.CIDRs(), func(v netip.Prefix) bool { return v.Contains(s.CIDR.Addr()) && s.CIDR.Bits() >= v.Bits() }) {
			c.bad(c.placed, "write vpc=CIDR,... with room for all", "subnet %v is outside the VPC %v", s.CIDR, c.cluster.VPC)
		}
		for _, o := range c.cluster.Subnets[:i] {
			if o.CIDR.Overlaps(s.CIDR) {
				c.bad(c.placed, "", "subnets %v and %v overlap", o.CIDR, s.CIDR)
			}
		}
	}
}

func (c *checker) bad(pos scn.Pos, hint, format string, args ...any) {
	c.Errors = append(c.Errors, scn.Errorf(pos, hint, format, args...))
}

// foresee collects what the file's lines will have done, whatever happens.
func (c *checker) foresee(f *scn.File) {
	c.Type, c.File.Nodes, c.File.Version = c.cluster.Type, c.cluster.Nodes, c.cluster.Version
	c.Versions[c.cluster.Version] = true
	for i := range f.Lines {
		switch s := f.Lines[i].Stmt.(type) {
		case *scn.Finally:
			c.Settles = true
		case *scn.Start:
			if n := s.Count; s.Target.Kind == scn.AllNodes {
				c.AtLeast(s.Name, n*c.cluster.Nodes)
			} else {
				c.AtLeast(s.Name, n)
			}
		case *scn.At:
			if s.Action == nil {
				continue
			}
			if act, err := verb.Bind(s.Action); err == nil && act.Of.Plan != nil { // an error is said elsewhere
				act.Of.Plan(c.File, act)
			}
		}
	}
}

func (c *checker) head(l *scn.Line) {
	switch s := l.Stmt.(type) {
	case *scn.Cluster:
		for _, kv := range s.Args {
			c.clusterArg(kv)
		}
	case *scn.Config:
		for _, kv := range s.Args {
			if err := verb.CheckSetting(kv.Pos, kv.Key, kv.Value); err != nil {
				c.Errors = append(c.Errors, err)
				continue
			}
			s := &c.cluster.Settings
			before := *s
			_ = s.Put(kv.Key, kv.Value) // checked
			c.cluster.Written = append(c.cluster.Written, kv.Key)
			if s.CustomNetwork && s.IMDSOnly && !(before.CustomNetwork && before.IMDSOnly) {
				c.bad(kv.Pos, "set one of them to false", "config %s: with ENABLE_IMDS_ONLY_MODE=true no network interface is made, and"+
					" none can be made by an ENIConfig (AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true): such a daemon takes no pods", kv.Key)
			}
		}
	}
}

func (c *checker) clusterArg(kv scn.KV) {
	number := func(low, high int, to *int) {
		i, err := strconv.Atoi(kv.Value)
		if err != nil || i < low || i > high {
			c.bad(kv.ValuePos, "", "cluster %s: expected a whole number from %d to %d, found %q", kv.Key, low, high, kv.Value)
			return
		}
		*to = i
	}
	prefix := func(to *netip.Prefix) {
		p, err := netip.ParsePrefix(kv.Value)
		if err != nil || !p.Addr().Is4() || p.Bits() < 16 || p.Bits() > 28 {
			c.bad(kv.ValuePos, "such as 10.0.10.0/24", "cluster %s: expected an IPv4 CIDR from /16 to /28, as a VPC's and its subnets' are, found %q", kv.Key, kv.Value)
			return
		}
		*to = p.Masked()
	}
	budget := 0
	switch kv.Key {
	case "nodes":
		number(1, maxNodes, &c.cluster.Nodes)
	case "type":
		if _, ok := ec2.LimitsOf(kv.Value); !ok {
			c.bad(kv.ValuePos, "such as c5.xlarge or m5.4xlarge", "cluster type: unknown instance type %q", kv.Value)
			return
		}
		c.cluster.Type = kv.Value
	case "vpc":
		list := strings.Split(kv.Value, ",")
		all := make([]netip.Prefix, len(list))
		for i := range list {
			kv.Value = list[i]
			prefix(&all[i])
		}
		c.cluster.VPC, c.cluster.Further = all[0], all[1:]
	case "subnet":
		c.subnet(kv, prefix)
	case "subnets":
		c.subnets(kv)
	case "eniconfigs":
		c.eniConfigs(kv)
	case "runtime":
		r, ok := cri.ParseRuntime(kv.Value)
		if !ok {
			c.bad(kv.ValuePos, "such as containerd, containerd-1.7-guard, crio or dockershim", "cluster runtime: unknown %q", kv.Value)
		}
		c.cluster.Runtime = r
	case "warm":
		number(0, 64, &c.cluster.Warm)
	case "budget":
		number(0, 100_000_000, &budget)
		c.cluster.Budget = int64(budget)
	case "version":
		number(1, ipam.Version, &c.cluster.Version)
	case "other-nodes":
		number(0, MostOtherNodes, &c.cluster.OtherNodes)
	case "other-pods":
		number(0, MostOtherPods, &c.cluster.OtherPods)
	case "max-pods":
		number(0, 10_000, &c.cluster.MaxPods)
	case "role":
		role, err := ec2.ParseActions(kv.Value)
		if err != nil {
			c.bad(kv.ValuePos, "such as CreateNetworkInterface,CreateTags", "cluster role: %v", err)
		}
		c.cluster.Role = role
	case "tokens":
		if kv.Value != "optional" && kv.Value != "required" {
			c.bad(kv.ValuePos, "optional, or required", "cluster tokens: unknown %q", kv.Value)
		}
		c.cluster.Tokens = kv.Value
	case "name":
		if c.cluster.Name = kv.Value; kv.Value == unnamed {
			c.cluster.Name = ""
		}
	default:
		c.bad(kv.Pos, verb.Unknown(kv.Key, clusterKeys), "cluster takes no %q", kv.Key)
	}
}

func (c *checker) line(l *scn.Line) {
	switch s := l.Stmt.(type) {
	case *scn.Start:
		c.start(l, s)
	case *scn.Always:
		c.invariant(s.InvariantPos, s.Invariant)
	case *scn.Against:
		if _, ok := mutants.ByName(s.Mutant); !ok {
			c.bad(s.MutantPos, suggest(s.Mutant, mutants.Names(), "enilab mutants lists them"), "unknown mutant %q", s.Mutant)
		}
		c.invariant(s.InvariantPos, s.Invariant)
	case *scn.Reaches:
		if !slices.Contains(ipam.Marks(), s.Point) {
			c.bad(s.Pos, suggest(s.Point, ipam.Marks(), "docs/incidents.md has those of each scenario"), "unknown coverage point %q", s.Point)
		}
	case *scn.Never:
		if !c.Settles && c.Whole {
			c.bad(s.Pos, "write finally converges within DURATION", "never settles says nothing in a file that is not given time to settle")
		}
	case *scn.At:
		c.at(s)
	}
}

// inPrefix is how many addresses a slot has with ENABLE_PREFIX_DELEGATION.
const inPrefix = 16

func (c *checker) start(l *scn.Line, s *scn.Start) {
	w := Workload{Name: s.Name, Count: s.Count}
	if slices.Contains(c.Made, s.Name) {
		c.bad(l.Pos, "give each its own name", "pods %s are started twice", s.Name)
	}
	c.Made = append(c.Made, s.Name)
	of, _ := ec2.LimitsOf(c.cluster.Type)                                 // checked
	if most := of.ENIs * (of.IPv4PerENI - 1) * inPrefix; s.Count > most { // t=0 would never come
		c.bad(l.Pos, "", "pods %s: expected at most %d on a node, which is what a %s can have addresses for, found %d", s.Name, most,
			c.cluster.Type, s.Count)
	}
	if s.Target.Kind == scn.AllNodes {
		for i := 1; i <= c.cluster.Nodes; i++ {
			w.Nodes = append(w.Nodes, i)
		}
		w.Count *= c.cluster.Nodes
	} else if c.subject(s.Target) {
		w.Nodes = []int{s.Target.Node}
	}
	c.cluster.Start = append(c.cluster.Start, w)
}

func (c *checker) invariant(pos scn.Pos, phrase string) {
	i, ok := judge.ByPhrase(phrase)
	switch {
	case !ok:
		c.bad(pos, suggest(phrase, judge.Phrases(), "enilab invariants lists them, quoted exactly"), "unknown invariant %q", phrase)
	case i.ID == judge.I8 && c.cluster.Budget == 0 && c.Headed:
		c.bad(pos, "write budget=CALLS on the cluster line", "%q cannot break: the cluster has no budget", phrase)
	}
}

func (c *checker) at(s *scn.At) {
	if s.Action != nil {
		if !c.subject(s.Action.Subject) {
			return
		}
		act, err := verb.Bind(s.Action)
		if err != nil {
			c.Errors = append(c.Errors, err)
			return
		}
		c.Check(s.Action.VerbPos, act)
		return
	}
	if c.subject(s.Check.Subject) {
		c.metric(s.Check)
	}
}

func (c *checker) subject(s scn.Subject) bool {
	switch s.Kind {
	case scn.Node:
		if s.Node > c.cluster.Nodes && c.Headed {
			names := "node-1"
			if c.cluster.Nodes > 1 {
				names = "one of node-1 to node-" + strconv.Itoa(c.cluster.Nodes)
			}
			c.bad(s.Pos, "name "+names+", or raise nodes=", "there is no node-%d: the cluster has nodes=%d", s.Node, c.cluster.Nodes)
			return false
		}
	case scn.Pod:
		return c.Pod(s.Pos, s.Pod)
	}
	return true
}

func (c *checker) metric(k *scn.Check) {
	var known []string
	for _, m := range Metrics() {
		if !slices.Contains(m.On, k.Subject.Kind) {
			continue
		}
		known = append(known, m.Name)
		if m.Name != k.Metric {
			continue
		}
		switch n := m.subnet(); {
		case n > c.File.Subnets && c.Headed:
			c.bad(k.MetricPos, "name it with subnets=CIDR,... on the cluster line", "there is no subnet %d: the cluster has %d",
				n, c.File.Subnets)
		case m.Flag && k.Op != "" && k.Value != "true" && k.Value != "false":
			c.bad(k.ValuePos, "write true or false", "%s is true or false, found %q", m.Name, k.Value)
		case !m.Flag && k.Op == "":
			c.bad(k.MetricPos, "such as "+m.Name+" == 17", "%s is a number: it needs something to be compared with", m.Name)
		case !m.Flag:
			if _, err := strconv.ParseInt(k.Value, 10, 64); err != nil {
				c.bad(k.ValuePos, "a whole number", "%s: bad number %q", m.Name, k.Value)
			}
		}
		return
	}
	c.bad(k.MetricPos, suggest(k.Metric, known, "there are "+strings.Join(known, ", ")), "%s has no metric %q", k.Subject, k.Metric)
}

func suggest(word string, known []string, otherwise string) string {
	if near := scn.Suggest(word, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	return otherwise
}
