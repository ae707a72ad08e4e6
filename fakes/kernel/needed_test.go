package kernel_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
)

// without says which operation of which plan a life leaves out; an empty plan leaves out none.
type without struct {
	plan string
	op   int
}

// life is one node's whole life: boot, a third party's stale rules, two incarnations of one pod name, a
// neighbour, accidents, removal. It collects what goes wrong, so that leaving out one operation can be
// seen to matter.
type life struct {
	k       *kernel.Kernel
	without without
	wrong   []string

	eni                       dataplane.ENISpec
	first, second, mainTenant dataplane.PodSpec
}

const staleTable = 7

func newLife(w without) *life {
	k := kernel.New(3)
	eni := secondary
	eni.Primary, eni.Subnet = ip("10.0.20.43"), netip.MustParsePrefix("10.0.20.0/24") // another subnet than the primary's
	l := &life{k: k, without: w, eni: eni}
	l.first = pod(k, "etcd-0", ip("10.0.20.70"), eni.Table)
	l.second = pod(k, "etcd-0", ip("10.0.20.71"), eni.Table)
	l.second.Displaced = l.first.Alias
	l.second.DisplacedName = dataplane.DisplacedVethName("eni", l.first.Alias)
	l.mainTenant = pod(k, "web", ip("10.0.10.80"), dataplane.MainTable)
	return l
}

// apply runs a plan, without the operation that this life does without; an error is one more wrong.
func (l *life) apply(name string, p dataplane.Plan) {
	if name == l.without.plan {
		p.Ops = slices.Delete(slices.Clone(p.Ops), l.without.op, l.without.op+1)
	}
	if _, err := l.k.Apply(p, 0, len(p.Ops)); err != nil {
		l.say(name + ": " + err.Kind.String())
	}
}

func (l *life) say(text string) {
	if text != "" {
		l.wrong = append(l.wrong, text)
	}
}

func (l *life) check(what, fault string) {
	if fault != "" {
		l.say(what + ": " + fault)
	}
}

func (l *life) trace(what string, a netip.Addr, mac string) {
	fault, _ := l.k.Trace(a, mac)
	l.check(what, fault)
}

func (l *life) boot() {
	k := l.k
	k.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.10.66/24"), ip("10.0.10.1"))
	k.Plug(secondaryMAC)
	k.Plug("0a:00:00:00:00:03")
	third := dataplane.ENISpec{MAC: "0a:00:00:00:00:03", Primary: ip("10.0.30.3"), Subnet: netip.MustParsePrefix("10.0.30.0/24"), Table: staleTable}
	if _, err := k.Apply(dataplane.ENIPlan(third), 0, 99); err != nil {
		l.say(err.Error())
	}
	k.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityFromENI, From: host32(l.eni.Primary), Table: staleTable})
	k.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityFromPod, From: host32(l.second.Address), Table: staleTable})
	l.apply("init", dataplane.InitPlan(host))
	l.apply("host", dataplane.HostPlan(host))
	l.apply("eni", dataplane.ENIPlan(l.eni))
}

func host32(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 32) }

func (l *life) run() []string {
	l.boot()
	l.enis()
	l.apply("first", dataplane.PodPlan(l.first))
	l.apply("main", dataplane.PodPlan(l.mainTenant))
	l.apply("pod", dataplane.PodPlan(l.second))
	l.pods()
	l.accidents()
	l.removal()
	return l.wrong
}

func (l *life) enis() {
	for _, o := range l.k.Observe().Links {
		if (o.MAC == primaryMAC || o.MAC == secondaryMAC) && o.MTU != dataplane.DefaultMTU {
			l.say("mtu of " + o.Name)
		}
	}
	fault, _ := l.k.TraceHost(l.eni.Primary, secondaryMAC)
	l.check("eni's own address", fault)
	l.k.RemoveRoutes(l.eni.Table)
	l.apply("eni", dataplane.ENIPlan(l.eni))
}

func (l *life) pods() {
	l.trace("older incarnation", l.first.Address, secondaryMAC)
	l.trace("newer incarnation", l.second.Address, secondaryMAC)
	l.trace("pod of the primary", l.mainTenant.Address, primaryMAC)
	fault, _ := l.k.TraceFrom(l.mainTenant.Address, primaryMAC, ip("10.0.20.200"))
	l.check("pod of the primary from the secondary's subnet", fault)
	fault, _ = l.k.Between(l.second.Address, l.mainTenant.Address)
	l.check("pod to pod", fault)
	fault, _ = l.k.Between(l.second.Address, l.first.Address)
	l.check("pod to its older self", fault)
	fault, _ = l.k.NodePort(l.second.Address, primaryMAC)
	l.check("node port", fault)
	source, _, fault := l.k.Egress(l.second.Address, ip("1.1.1.1"))
	l.check("egress", fault)
	if fault == "" && source != host.NodeAddress {
		l.say("egress: not translated")
	}
}

func (l *life) accidents() {
	c := l.k.Clone()
	c.LoseNeighbour(l.second.Netns)
	fault, _ := c.Trace(l.second.Address, secondaryMAC)
	l.check("lost neighbour", fault)
	c = l.k.Clone()
	c.LoseProxy(l.second.HostVeth)
	fault, _ = c.Trace(l.second.Address, secondaryMAC)
	l.check("lost proxy", fault)
}

// removal takes the newer incarnation out while a process holds its namespace, the second time with
// the alias cleared by a third party, and then the ENI.
func (l *life) removal() {
	l.k.OpenFlow(l.second.Address)
	l.k.Hold(l.second.Netns)
	cleared := *l
	cleared.k, cleared.wrong = l.k.Clone(), nil
	cleared.k.SetLinkAlias(l.second.HostVeth, "")
	cleared.apply("removal", dataplane.PodRemoval(l.second))
	if _, ok := cleared.k.Trace(l.second.Address, primaryMAC); ok {
		l.say("alias cleared: answers after removal")
	}

	l.apply("removal", dataplane.PodRemoval(l.second))
	if l.k.Holders(l.second.Address) != 0 {
		l.say("held namespace keeps the address")
	}
	l.apply("flows", dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack, Addr: l.second.Address}}})
	what, _ := l.k.Leftovers(l.second.Address)
	l.say(what)
	l.trace("older incarnation after removal", l.first.Address, secondaryMAC)

	l.apply("eni removal", dataplane.ENIRemoval(l.eni))
	o := l.k.Observe()
	for _, r := range o.Routes {
		if r.Table == l.eni.Table {
			l.say("route left in the ENI's table: " + r.Dst.String())
		}
	}
	for _, r := range o.Rules {
		if r.Priority == dataplane.PriorityFromENI && r.Table == l.eni.Table {
			l.say("rule of the ENI left")
		}
	}
}

// TestEveryOperationIsNeeded leaves out each operation of each plan in turn. The table is what breaks
// first, in the order of the plan.
func TestEveryOperationIsNeeded(t *testing.T) {
	if wrong := newLife(without{}).run(); len(wrong) != 0 {
		t.Fatalf("a whole life goes wrong:\n%s", strings.Join(wrong, "\n"))
	}
	l := newLife(without{})
	plans := map[string]dataplane.Plan{
		"init": dataplane.InitPlan(host), "host": dataplane.HostPlan(host), "eni": dataplane.ENIPlan(l.eni),
		"pod": dataplane.PodPlan(l.second), "removal": dataplane.PodRemoval(l.second), "eni removal": dataplane.ENIRemoval(l.eni),
		"flows": {Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack, Addr: l.second.Address}}},
	}
	for _, tt := range []struct {
		plan   string
		breaks []string
	}{
		{"init", []string{"node port: " + kernel.StrictFilter}},
		{"host", []string{
			"mtu of eth0",
			"node port: " + kernel.BackByOther,
			"node port: " + kernel.BackByOther,
		}},
		{"eni", []string{
			"eni: link is down",
			"eni's own address: " + kernel.NotOnHost,
			"eni: gateway is unreachable",
			"eni's own address: " + kernel.BackByOther,
			"pod of the primary from the secondary's subnet: " + kernel.BackByOther,
			"eni's own address: " + kernel.BackByOther,
			"eni's own address: " + kernel.BackByOther,
		}},
		{"pod", []string{
			"pod: already exists",
			"pod: link is missing",
			"pod: gateway is unreachable",
			"newer incarnation: " + kernel.PodHasNoRoute,
			"newer incarnation: " + kernel.NotInNamespace,
			"lost proxy: " + kernel.NoNeighbour,
			"lost neighbour: " + kernel.NoNeighbour,
			"newer incarnation: " + kernel.BackByOther,
			"newer incarnation: " + kernel.RoutedElsewhere,
			"pod to its older self: " + kernel.WrongPod,
			"newer incarnation: " + kernel.BackByOther,
		}},
		{"removal", []string{
			"held namespace keeps the address",
			kernel.LeftRule,
			kernel.LeftRule,
			"alias cleared: answers after removal",
		}},
		{"flows", []string{kernel.LeftFlow}},
		{"eni removal", []string{
			"rule of the ENI left",
			"route left in the ENI's table: 0.0.0.0/0",
			"route left in the ENI's table: 10.0.20.1/32",
		}},
	} {
		if len(tt.breaks) != len(plans[tt.plan].Ops) {
			t.Errorf("plan %s has %d operations, the table %d", tt.plan, len(plans[tt.plan].Ops), len(tt.breaks))
			continue
		}
		for i, want := range tt.breaks {
			wrong := newLife(without{tt.plan, i}).run()
			if len(wrong) == 0 || wrong[0] != want {
				t.Errorf("%s without %s\nbreaks %q\nwant first %q", tt.plan, plans[tt.plan].Ops[i].Kind, wrong, want)
			}
		}
	}
}
