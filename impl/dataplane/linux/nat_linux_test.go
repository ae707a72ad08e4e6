package linux

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

const primaryMAC = "0a:00:00:00:00:01"

func hostSpec(snat, nodePort bool) dataplane.HostSpec {
	return dataplane.HostSpec{PrimaryMAC: primaryMAC, NodeAddress: netip.MustParseAddr("10.0.10.10"), ExternalSNAT: !snat, NodePort: nodePort, MTU: 9001,
		VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.168.1.7/32")}}
}

func natOp(snat, nodePort bool) dataplane.Plan {
	ops := dataplane.HostPlan(hostSpec(snat, nodePort)).Ops
	return dataplane.Plan{Ops: ops[len(ops)-1:]}
}

// TestNATIsReadBack: every shape of the table is observed as what was written.
func TestNATIsReadBack(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	if nat := observe(t, k).NAT; nat.Present {
		t.Fatalf("before anything was written: %+v", nat)
	}
	for _, snat := range []bool{true, false} {
		for _, nodePort := range []bool{true, false} {
			p := natOp(snat, nodePort)
			apply(t, k, p, nil)
			if have, want := observe(t, k).NAT, p.Ops[0].NAT(); have != want {
				t.Errorf("observed %+v\nexpected %+v", have, want)
			}
		}
	}
}

// TestAboutWithoutAnAddress: a table that rewrites no source says so by what it leaves out, and is read back.
func TestAboutWithoutAnAddress(t *testing.T) {
	want := dataplane.NAT{Present: true, Device: primaryMAC, NodePort: true}
	text := aboutText(want, "eth0")
	if text != aboutPrefix+"mac="+primaryMAC+" link=eth0 nodeport" {
		t.Errorf("it says %q", text)
	}
	if nat, link, ok := parseAbout(text); nat != want || link != "eth0" || !ok {
		t.Errorf("%q is read as %+v of %s, %v", text, nat, link, ok)
	}
}

// TestNATOfAnotherPlace: the right rules in a chain that packets meet elsewhere, or after others, are not the table.
func TestNATOfAnotherPlace(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	p := natOp(true, true)
	want := p.Ops[0].NAT()
	for name, change := range map[string]func(c *chain){
		"":                 func(*chain) {},
		"another hook":     func(c *chain) { c.hook = unix.NF_INET_LOCAL_IN },
		"another priority": func(c *chain) { c.priority++ },
		"another kind":     func(c *chain) { c.kind = "nat" },
	} {
		chains := must.Get(ruleset(want, "eth0"))(t)
		at := slices.IndexFunc(chains, func(c chain) bool { return c.kind != "" && c.hook == unix.NF_INET_PRE_ROUTING })
		change(&chains[at])
		apply(t, k, p, nil)
		must.Do(t, k.replaceTable(chains))
		if nat := observe(t, k).NAT; nat.Present != (name == "") {
			t.Errorf("%s %q: observed %+v", chains[at].name, name, nat)
		}
	}
}

// TestNATThatIsAsleep: a table whose rules the kernel has and does not follow is not the table.
func TestNATThatIsAsleep(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, natOp(true, true), nil)
	r := k.nft.Reset()
	r.Netfilter(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	r.Netfilter(nftMessage(unix.NFT_MSG_NEWTABLE), 0, unix.AF_INET, 0)
	r.Text(unix.NFTA_TABLE_NAME, natTable)
	r.BE32(unix.NFTA_TABLE_FLAGS, tableDormant)
	must.Do(t, k.transact(r))
	if nat := observe(t, k).NAT; nat.Present {
		t.Errorf("observed %+v", nat)
	}
}

// TestNATBesideAnotherTable: what is in another program's table, also in chains of the same names, is nothing of ours.
func TestNATBesideAnotherTable(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	c := &nftables.Conn{}
	their := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "aws-cni"})
	for _, name := range []string{aboutChain, vpcChain} {
		c.AddRule(&nftables.Rule{Table: their, Chain: c.AddChain(&nftables.Chain{Name: name, Table: their})})
	}
	must.Do(t, c.Flush())
	if nat := observe(t, k).NAT; nat.Present {
		t.Errorf("before anything was written: %+v", nat)
	}
	p := natOp(true, true)
	apply(t, k, p, nil)
	if have, want := observe(t, k).NAT, p.Ops[0].NAT(); have != want {
		t.Errorf("observed %+v\nexpected %+v", have, want)
	}
}

// TestNATOfStrangers: whatever somebody removes, adds or changes, the table does not count as present.
func TestNATOfStrangers(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	p := natOp(true, true)
	check := func(name string, do func(c *nftables.Conn, table *nftables.Table, chains []*nftables.Chain)) {
		t.Helper()
		apply(t, k, p, nil)
		if nat := observe(t, k).NAT; !nat.Present {
			t.Fatalf("%s: before, the table is not there", name)
		}
		c := &nftables.Conn{}
		all := must.Get(c.ListChains())(t)
		do(c, all[0].Table, all)
		must.Do(t, c.Flush())
		if nat := observe(t, k).NAT; nat == p.Ops[0].NAT() || nat.Present && !strings.Contains(name, vpcChain) { // a CIDR less is a table of other CIDRs
			t.Errorf("%s: still observed: %+v", name, nat)
		}
	}
	check("flush ruleset", func(c *nftables.Conn, _ *nftables.Table, _ []*nftables.Chain) { c.FlushRuleset() })
	check("another policy", func(c *nftables.Conn, _ *nftables.Table, chains []*nftables.Chain) {
		drop := nftables.ChainPolicyDrop
		last := *chains[len(chains)-1]
		last.Policy = &drop
		c.AddChain(&last)
	})
	check("another chain", func(c *nftables.Conn, table *nftables.Table, _ []*nftables.Chain) {
		c.AddChain(&nftables.Chain{Name: "other", Table: table})
	})
	apply(t, k, p, nil)
	chains, rules := shape(t)
	for i := range chains {
		check("flush chain "+chains[i], func(c *nftables.Conn, _ *nftables.Table, all []*nftables.Chain) { c.FlushChain(all[i]) })
		for n := range rules[i] {
			check("delete a rule of "+chains[i], func(c *nftables.Conn, table *nftables.Table, all []*nftables.Chain) {
				have := must.Get(c.GetRules(table, all[i]))(t)
				must.Do(t, c.DelRule(have[n]))
			})
			check("empty a rule of "+chains[i], func(c *nftables.Conn, table *nftables.Table, all []*nftables.Chain) {
				have := must.Get(c.GetRules(table, all[i]))(t)
				if len(have[n].Exprs) == 0 { // the record: any other text
					have[n].UserData = nil
				}
				c.ReplaceRule(&nftables.Rule{Table: table, Chain: all[i], Handle: have[n].Handle, UserData: have[n].UserData})
			})
		}
		check("add a rule to "+chains[i], func(c *nftables.Conn, table *nftables.Table, all []*nftables.Chain) {
			c.AddRule(&nftables.Rule{Table: table, Chain: all[i]})
		})
	}
}

// shape are the chains' names and numbers of rules.
func shape(t *testing.T) (names []string, rules []int) {
	c := &nftables.Conn{}
	all := must.Get(c.ListChains())(t)
	for _, chain := range all {
		have := must.Get(c.GetRules(chain.Table, chain))(t)
		names, rules = append(names, chain.Name), append(rules, len(have))
	}
	return names, rules
}
