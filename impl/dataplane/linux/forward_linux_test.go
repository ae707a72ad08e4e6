package linux

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/interference"
)

func acceptOp(prefix string) dataplane.Plan {
	return dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.AcceptForward, Name: prefix}}}
}

// TestForwardIsAccepted: rules come to the chain where its policy is DROP, once, at its end, and are read back.
func TestForwardIsAccepted(t *testing.T) {
	k := openNew(t, Options{})
	expect := func(when string, want dataplane.Forward, rules int) {
		t.Helper()
		if have := observe(t, k).Forward; have != want {
			t.Errorf("%s: observed %+v, expected %+v", when, have, want)
		}
		if have := len(forwarding(t)); have != rules {
			t.Errorf("%s: the chain has %d rules, expected %d", when, have, rules)
		}
	}
	expect("without the chain", dataplane.Forward{}, 0)
	apply(t, k, acceptOp("eni"), nil)
	expect("and with the operation", dataplane.Forward{}, 0)

	must.Get(interference.Do(kernel.Accident{What: kernel.DropForward}))(t)
	expect("with DROP", dataplane.Forward{Drops: true}, 0)
	apply(t, k, acceptOp("eni"), nil)
	expect("repaired", dataplane.Forward{Drops: true, Accepts: "eni"}, 2)
	apply(t, k, acceptOp("eni"), nil)
	expect("repaired twice", dataplane.Forward{Drops: true, Accepts: "eni"}, 2)
	apply(t, k, acceptOp("cni"), nil)
	expect("with another prefix", dataplane.Forward{Drops: true, Accepts: "cni eni"}, 4)

	c := &nftables.Conn{}
	must.Do(t, c.DelRule(forwarding(t)[1]))
	must.Do(t, c.Flush())
	expect("with half of it", dataplane.Forward{Drops: true, Accepts: "cni"}, 3)
	apply(t, k, acceptOp("eni"), nil)
	expect("and repaired", dataplane.Forward{Drops: true, Accepts: "cni eni"}, 4)

	for _, r := range forwarding(t) {
		must.Do(t, c.DelRule(r))
	}
	other := forwarding(t)[0] // an administrator's, for one link and for nobody's
	other.Exprs = []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Register: 1, Data: padded("eni0")}, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
	other.Handle = 0
	c.AddRule(other)
	must.Do(t, c.Flush())
	expect("with a rule of somebody's", dataplane.Forward{Drops: true}, 1)
	apply(t, k, acceptOp("eni"), nil)
	expect("and repaired", dataplane.Forward{Drops: true, Accepts: "eni"}, 3)
	if first, ok := forwarding(t)[0].Exprs[3].(*expr.Verdict); !ok || first.Kind != expr.VerdictDrop {
		t.Errorf("what somebody else decides comes no longer first: %+v", forwarding(t)[0].Exprs)
	}
	if done, err := k.Apply(acceptOp(""), nil); err == nil || err.Kind != dataplane.Invalid {
		t.Errorf("a prefix that every name has: %d done, %v", done, err)
	}
}

// TestForwardOfAnotherChain: the same rules accept nothing in another chain of the table, or in a chain of that name in
// another table.
func TestForwardOfAnotherChain(t *testing.T) {
	k := openNew(t, Options{})
	must.Get(interference.Do(kernel.Accident{What: kernel.DropForward}))(t)
	must.Do(t, k.replaceTable([]chain{{name: forwardChain, rules: forwardRules("eni")}}))
	c := &nftables.Conn{}
	filter := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: filterTable}
	c.AddChain(&nftables.Chain{Name: "other", Table: filter})
	must.Do(t, c.Flush())
	r := k.nft.Reset()
	r.Netfilter(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	for _, rule := range forwardRules("eni") {
		addRule(r, filterTable, "other", &rule)
	}
	must.Do(t, k.transact(r))
	if have, want := observe(t, k).Forward, (dataplane.Forward{Drops: true}); have != want {
		t.Errorf("observed %+v, expected %+v", have, want)
	}
}

// forwarding are the rules of the chain.
func forwarding(t *testing.T) []*nftables.Rule {
	t.Helper()
	c := &nftables.Conn{}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: filterTable}
	chain, err := c.ListChain(table, forwardChain)
	if err != nil {
		return nil
	}
	return must.Get(c.GetRules(table, chain))(t)
}
