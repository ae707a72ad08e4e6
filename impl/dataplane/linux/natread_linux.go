package linux

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// natSeen is our table as the kernel has it.
type natSeen struct {
	chains int // and sets and the like: none of ours
	asleep bool
	rules  []ruleSeen
}

type ruleSeen struct {
	chain, comment string
	expressions    []byte
}

// observeNAT reads the table back. What an operation said is in the comments; the table counts as
// present only when every chain and every rule that it means is there, does what it should, and nothing
// else is. linkOf is the name of the ENI with a MAC, or empty.
func (o *observer) observeNAT(linkOf func(mac string) string) (nat dataplane.NAT, err error) {
	seen, err := o.readTable()
	if err != nil || seen.asleep || len(seen.rules) == 0 || seen.rules[0].chain != aboutChain {
		return dataplane.NAT{}, err
	}
	nat, link, ok := parseAbout(seen.rules[0].comment)
	if now := linkOf(nat.Device); !ok || now != "" && now != link { // the rules are about another link
		return dataplane.NAT{}, nil
	}
	nat.CIDRs = seen.cidrs()
	chains, err := ruleset(nat, link)
	if err != nil || !seen.matches(chains) {
		return dataplane.NAT{}, nil
	}
	for i := range chains {
		if ok, err := o.chainIs(&chains[i]); err != nil || !ok {
			return dataplane.NAT{}, err
		}
	}
	return nat, nil
}

func (s *natSeen) cidrs() string {
	var texts []string
	for _, r := range s.rules {
		if r.chain == vpcChain {
			texts = append(texts, r.comment)
		}
	}
	return strings.Join(texts, " ")
}

// matches says whether those are the chains and their rules, in order, and no more.
func (s *natSeen) matches(chains []chain) bool {
	rules := 0
	for i := range chains {
		for j := range chains[i].rules {
			if rules == len(s.rules) {
				return false
			}
			have, want := &s.rules[rules], &chains[i].rules[j]
			if have.chain != chains[i].name || have.comment != want.comment || !sameExpressions(have.expressions, want.expressions) {
				return false
			}
			rules++
		}
	}
	return rules == len(s.rules) && s.chains == len(chains)
}

// readTable reads the table and its rules, in the order of the chains. One that is not there has none.
func (o *observer) readTable() (seen natSeen, err error) {
	r := o.r.Reset()
	r.Netfilter(nftMessage(unix.NFT_MSG_GETTABLE), 0, unix.AF_INET, 0)
	r.Text(unix.NFTA_TABLE_NAME, natTable)
	body, err := o.nft.Get(r)
	if netlink.Is(err, unix.ENOENT) {
		return seen, nil
	}
	if err != nil {
		return seen, err
	}
	for c := netlink.Attributes(body[min(nfgenHeader, len(body)):]); c.Next(); {
		switch c.Kind {
		case unix.NFTA_TABLE_USE:
			seen.chains = int(c.BE32())
		case unix.NFTA_TABLE_FLAGS:
			seen.asleep = c.BE32()&tableDormant != 0
		}
	}
	r = o.r.Reset()
	r.Netfilter(nftMessage(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, unix.AF_INET, 0)
	r.Text(unix.NFTA_RULE_TABLE, natTable)
	err = o.nft.Dump(r, func(body []byte) {
		if rule, ok := parseRule(body); ok {
			seen.rules = append(seen.rules, rule)
		}
	})
	return seen, err
}

// tableDormant is NFT_TABLE_F_DORMANT.
const tableDormant = 1

func parseRule(body []byte) (rule ruleSeen, ok bool) {
	if len(body) < nfgenHeader {
		return rule, false
	}
	for c := netlink.Attributes(body[nfgenHeader:]); c.Next(); {
		switch c.Kind {
		case unix.NFTA_RULE_CHAIN:
			rule.chain = string(c.Text())
		case unix.NFTA_RULE_EXPRESSIONS:
			rule.expressions = bytes.Clone(c.Value)
		case unix.NFTA_RULE_USERDATA:
			rule.comment = commentOf(c.Value)
		}
	}
	return rule, true
}

// chainIs says whether a chain of our table is as it should be, but for its rules.
func (o *observer) chainIs(want *chain) (bool, error) {
	have, policy, err := readChain(o.nft, &o.r, natTable, want.name)
	return err == nil && have.name == want.name && have.kind == want.kind && have.hook == want.hook &&
		have.priority == want.priority && policy == verdictAccept, err
}

// readChain asks for one chain: a dump would be of all tables, and kube-proxy's have thousands. A chain that is not
// there has no name.
func readChain(s *netlink.Socket, r *netlink.Request, table, name string) (have chain, policy uint32, err error) {
	r.Reset().Netfilter(nftMessage(unix.NFT_MSG_GETCHAIN), 0, unix.AF_INET, 0)
	r.Text(unix.NFTA_CHAIN_TABLE, table)
	r.Text(unix.NFTA_CHAIN_NAME, name)
	body, err := s.Get(r)
	if netlink.Is(err, unix.ENOENT) {
		return have, verdictAccept, nil
	}
	if err != nil || len(body) < nfgenHeader {
		return have, verdictAccept, err
	}
	have, policy = chain{name: name}, verdictAccept
	for c := netlink.Attributes(body[nfgenHeader:]); c.Next(); {
		switch c.Kind {
		case unix.NFTA_CHAIN_TYPE:
			have.kind = string(c.Text())
		case unix.NFTA_CHAIN_POLICY:
			policy = c.BE32()
		case unix.NFTA_CHAIN_HOOK:
			for h := netlink.Attributes(c.Value); h.Next(); {
				switch h.Kind {
				case unix.NFTA_HOOK_HOOKNUM:
					have.hook = h.BE32()
				case unix.NFTA_HOOK_PRIORITY:
					have.priority = int32(h.BE32())
				}
			}
		}
	}
	return have, policy, nil
}

// sameExpressions says whether two lists of expressions do the same, in order.
func sameExpressions(have, want []byte) bool {
	h, w := netlink.Attributes(have), netlink.Attributes(want)
	for w.Next() {
		if !h.Next() || !holds(h.Value, w.Value) {
			return false
		}
	}
	return !h.Next()
}

// holds says whether one expression has all attributes of another, with the same values, at every depth. The
// kernel dumps them in an order of its own, and newer ones with attributes that older ones do not
// know, at their defaults.
func holds(have, want []byte) bool {
	for w := netlink.Attributes(want); w.Next(); {
		h := netlink.Attributes(have)
		for h.Kind != w.Kind {
			if !h.Next() {
				return false
			}
		}
		if w.Nested && !holds(h.Value, w.Value) || !w.Nested && !bytes.Equal(h.Value, w.Value) {
			return false
		}
	}
	return true
}
