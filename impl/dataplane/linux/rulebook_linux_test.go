package linux

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// theirRule is a pod's rule that another program makes.
func theirRule(address netip.Addr, table int) *netlink.Rule {
	r := netlink.NewRule()
	r.Priority, r.Table, r.Family, r.Protocol = dataplane.PriorityFromPod, table, unix.AF_INET, unix.RTPROT_STATIC
	r.Src = &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(32, 32)}
	return r
}

// tables are those of the rules of a pod's address, as the rulebook has them.
func tables(t *testing.T, k *Kernel, address netip.Addr) (tables []int) {
	t.Helper()
	w := dataplane.Rule{Priority: dataplane.PriorityFromPod, From: netip.PrefixFrom(address, 32), Table: 99}
	for _, r := range must.Get(k.rules.like(w))(t) {
		tables = append(tables, r.Table)
	}
	return tables
}

// TestRulesOfOthersAreHeard: also those that come and go after all were read, and those of which no word arrived.
func TestRulesOfOthersAreHeard(t *testing.T) {
	k, w := withPod(t)
	expect := func(what string, address netip.Addr, want ...int) {
		t.Helper()
		if have := tables(t, k, address); fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%s: the rules lead to tables %v, expected %v", what, have, want)
		}
	}
	expect("the pod's own", w.Address, w.Table)
	must.Do(t, netlink.RuleAdd(theirRule(w.Address, 7)))
	expect("another program has added one", w.Address, w.Table, 7)
	must.Do(t, netlink.RuleDel(theirRule(w.Address, 7)))
	expect("and has taken it away", w.Address, w.Table)

	other := spec(2, 1).Address
	must.Do(t, netlink.RuleAdd(theirRule(other, 7)))
	expect("another address has one", other, 7)
	must.Do(t, netlink.RuleDel(theirRule(other, 7)))
	expect("and has it no longer", other)
	if len(k.rules.rules) != 2 {
		t.Errorf("%d different rules are known, expected 2 of the pod", len(k.rules.rules))
	}

	must.Do(t, k.rules.queue.Room(1))
	for i := range 200 {
		must.Do(t, netlink.RuleAdd(theirRule(spec(2+i, 1).Address, 7)))
	}
	expect("the queue ran over", spec(201, 1).Address, 7)
	if len(k.rules.rules) != 202 {
		t.Errorf("%d different rules are known, expected 2 of the pod and 200", len(k.rules.rules))
	}
}

// TestARuleThatIsListedTwice: it came while all were read, so the kernel told of it and listed it. Its removal is done
// nevertheless.
func TestARuleThatIsListedTwice(t *testing.T) {
	k, w := withPod(t)
	rule := dataplane.Rule{Priority: dataplane.PriorityFromPod, From: netip.PrefixFrom(w.Address, 32), Table: w.Table}
	k.rules.add(must.Get(k.rules.like(rule))(t)[0])
	for range 2 {
		apply(t, k, one(dataplane.Op{Kind: dataplane.RemoveRule, Priority: rule.Priority, Addr: w.Address,
			Table: rule.Table}), nil)
	}
	for _, r := range observe(t, k).Rules {
		if r == rule {
			t.Errorf("%+v is still there", r)
		}
	}
}
