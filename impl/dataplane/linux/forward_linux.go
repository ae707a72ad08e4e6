package linux

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// The chain of iptables, when it is the one of nftables, that every packet passes which a machine forwards.
const (
	filterTable  = "filter"
	forwardChain = "FORWARD"
)

// verdictDrop is NF_DROP.
const verdictDrop = 0

// forwardRules are "iptables -A FORWARD -i PREFIX+ -j ACCEPT" and the same with -o, as iptables writes them: it refuses
// to list a table that has what it does not know, and what iptables-restore writes has to be the same again, so they
// have no comment. They are at the chain's end, so that only what nobody else has decided is accepted.
func forwardRules(prefix string) []natRule {
	begins := func(key uint32) natRule {
		return newRule("").meta(key).compare(cmpEqual, []byte(prefix)).count().verdict(verdictAccept, "").done()
	}
	return []natRule{begins(metaIIFName), begins(metaOIFName)}
}

// forward reads the chain: one question where its policy is ACCEPT, as it should be, or where it is not there.
func (o *observer) forward(out *dataplane.Observation) (err error) {
	out.Forward = dataplane.Forward{}
	drops, rules, err := readForward(o.nft, &o.r)
	if err != nil || !drops {
		return err
	}
	var accepted []string
	for i := range rules {
		prefix := comparedName(rules[i].expressions)
		if prefix != "" && !slices.Contains(accepted, prefix) && len(missing(forwardRules(prefix), rules)) == 0 {
			accepted = append(accepted, prefix)
		}
	}
	slices.Sort(accepted)
	out.Forward = dataplane.Forward{Drops: true, Accepts: strings.Join(accepted, " ")}
	return nil
}

// readForward says whether the chain drops what none of its rules decides, and which rules it has if so.
func readForward(s *netlink.Socket, r *netlink.Request) (drops bool, rules []ruleSeen, err error) {
	_, policy, err := readChain(s, r, filterTable, forwardChain)
	if err != nil || policy != verdictDrop {
		return false, nil, err
	}
	r.Reset().Netfilter(nftMessage(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, unix.AF_INET, 0)
	r.Text(unix.NFTA_RULE_TABLE, filterTable)
	r.Text(unix.NFTA_RULE_CHAIN, forwardChain)
	err = s.Dump(r, func(body []byte) {
		if rule, ok := parseRule(body); ok {
			rules = append(rules, rule)
		}
	})
	return true, rules, err
}

// missing are those of some rules that a chain does not have, whoever has written it.
func missing(want []natRule, have []ruleSeen) []natRule {
	return slices.DeleteFunc(want, func(w natRule) bool {
		return slices.ContainsFunc(have, func(h ruleSeen) bool { return sameExpressions(h.expressions, w.expressions) })
	})
}

// comparedName is the begin of a link's name that a rule asks for in its second expression; "" is none.
func comparedName(expressions []byte) string {
	e := netlink.Attributes(expressions)
	for range 2 {
		if !e.Next() {
			return ""
		}
	}
	value := e.Value
	for _, kind := range []uint16{unix.NFTA_EXPR_DATA, unix.NFTA_CMP_DATA, unix.NFTA_DATA_VALUE} {
		a := netlink.Attributes(value)
		for a.Kind != kind {
			if !a.Next() {
				return ""
			}
		}
		value = a.Value
	}
	if slices.Contains(value, 0) { // a whole name
		return ""
	}
	return string(value)
}

// acceptForward adds the rules that the chain lacks, where its policy is DROP.
func (a *applier) acceptForward(prefix string) error {
	if prefix == "" {
		return failed(dataplane.Invalid, "links of any name would be accepted")
	}
	a.k.translating.Lock()
	defer a.k.translating.Unlock()
	r := &a.k.nft
	drops, rules, err := readForward(a.k.tables, r)
	lacks := missing(forwardRules(prefix), rules)
	if err != nil || !drops || len(lacks) == 0 {
		return err
	}
	r.Reset().Netfilter(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	for i := range lacks {
		addRule(r, filterTable, forwardChain, &lacks[i])
	}
	return a.k.transact(r)
}
