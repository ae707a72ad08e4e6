package linux

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// The table and its chains. amazon-vpc-cni-k8s's own table is called aws-cni, so both may be there during
// a swap.
const (
	natTable    = "enilab"
	aboutChain  = "about"
	vpcChain    = "vpc"
	markInChain = "mark-in"
	markOut     = "mark-out"
	sourceChain = "source"
)

// Priorities of hooks (linux/netfilter_ipv4.h).
const (
	priorityMangle  = -150
	priorityMarkOut = -100 + 10 // dstnat + 10: after kube-proxy has translated a service's address
	prioritySource  = 100
)

// chain is a chain of our table as it should be.
type chain struct {
	name     string
	kind     string // of a base chain, else empty
	hook     uint32
	priority int32
	rules    []natRule
}

// natRule is one rule: its expressions as NFTA_RULE_EXPRESSIONS holds them, and a comment that a
// listing shows. What an operation said is read back from the comments; that it holds, from the expressions.
type natRule struct {
	comment     string
	expressions []byte
}

// ruleset is the table for a spec, with the primary link's name.
//
//	table ip enilab {
//		chain about   { comment "enilab/1 mac=… addr=… link=eth0 snat nodeport" }
//		chain vpc     { ip daddr CIDR accept … }                         # accept ends the chain that jumped
//		chain mark-in { type filter hook prerouting priority mangle
//			iifname PRIMARY fib daddr . iif type local ct mark set ct mark or 0x80 }
//		chain mark-out { type filter hook prerouting priority dstnat + 10
//			fib daddr type local return
//			iifname PRIMARY return
//			ct state new meta iifkind veth jump vpc
//			ct state new meta iifkind veth ct mark set ct mark or 0x80
//			ct mark and 0x80 == 0x80 meta mark set meta mark or 0x80 }
//		chain source { type nat hook postrouting priority srcnat
//			oifname PRIMARY fib daddr type local accept
//			oifname PRIMARY jump vpc
//			oifname PRIMARY snat to ADDRESS fully-random }
//	}
//
// mark-in is for NodePort: what came in by the primary link for an address of it, before kube-proxy
// translates it. mark-out brings the answers, and what pods begin themselves toward the world outside
// (SNAT), to rule 1024: by the primary link, which owns the address that source writes. It is no nat chain, as
// amazon-vpc-cni-k8s's is: those see no flow that an earlier nat chain has translated.
func ruleset(nat dataplane.NAT, link string) (chains []chain, err error) {
	cidrs, err := vpcRules(nat.CIDRs)
	if err != nil {
		return nil, err
	}
	chains = append(chains,
		chain{name: aboutChain, rules: []natRule{{comment: aboutText(nat, link)}}},
		chain{name: vpcChain, rules: cidrs})
	if nat.NodePort {
		chains = append(chains, chain{name: markInChain, kind: "filter", hook: unix.NF_INET_PRE_ROUTING, priority: priorityMangle,
			rules: []natRule{newRule("came in by the primary link").link(metaIIFName, link).local(unix.NFTA_FIB_F_DADDR | unix.NFTA_FIB_F_IIF).markFlow().done()}})
	}
	if nat.NodePort || nat.SNAT {
		chains = append(chains, chain{name: markOut, kind: "filter", hook: unix.NF_INET_PRE_ROUTING, priority: priorityMarkOut, rules: markOutRules(nat, link)})
	}
	if nat.SNAT {
		chains = append(chains, chain{name: sourceChain, kind: "nat", hook: unix.NF_INET_POST_ROUTING, priority: prioritySource, rules: sourceRules(nat, link)})
	}
	return chains, nil
}

func markOutRules(nat dataplane.NAT, link string) []natRule {
	rules := []natRule{
		newRule("to the node itself").local(unix.NFTA_FIB_F_DADDR).verdict(unix.NFT_RETURN, "").done(),
		newRule("not from a pod").link(metaIIFName, link).verdict(unix.NFT_RETURN, "").done(),
	}
	if nat.SNAT {
		rules = append(rules,
			newRule("a pod's new flow").newFlow().fromVeth().verdict(unix.NFT_JUMP, vpcChain).done(),
			newRule("leaves the VPC").newFlow().fromVeth().markFlow().done())
	}
	return append(rules, newRule("out by the primary link").flowMarked().markPacket().done())
}

func sourceRules(nat dataplane.NAT, link string) []natRule {
	return []natRule{
		newRule("to the node itself").link(metaOIFName, link).local(unix.NFTA_FIB_F_DADDR).verdict(verdictAccept, "").done(),
		newRule("within the VPC").link(metaOIFName, link).verdict(unix.NFT_JUMP, vpcChain).done(),
		newRule("leaves the VPC").link(metaOIFName, link).translate(nat.Address).done(),
	}
}

// vpcRules has one rule per CIDR, whose comment is the CIDR as it was given. An IPv6 one matches nothing
// in a table of IPv4, so its rule is the comment alone.
func vpcRules(cidrs string) (rules []natRule, err error) {
	for _, text := range strings.Fields(cidrs) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, failed(dataplane.Invalid, "not a CIDR: "+text)
		}
		rule := newRule(text)
		if p.Addr().Is4() {
			rule.destination(p).verdict(verdictAccept, "")
		}
		rules = append(rules, rule.done())
	}
	return rules, nil
}

const aboutPrefix = "enilab/1 "

// aboutText is what no other rule says: the MAC, and the flags of an empty table.
func aboutText(nat dataplane.NAT, link string) string {
	text := aboutPrefix + "mac=" + nat.Device + " link=" + link
	if nat.Address.IsValid() {
		text += " addr=" + nat.Address.String()
	}
	if nat.SNAT {
		text += " snat"
	}
	if nat.NodePort {
		text += " nodeport"
	}
	return text
}

// parseAbout reads aboutText; the CIDRs are elsewhere.
func parseAbout(text string) (nat dataplane.NAT, link string, ok bool) {
	rest, ok := strings.CutPrefix(text, aboutPrefix)
	if !ok {
		return nat, "", false
	}
	for _, word := range strings.Fields(rest) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "mac":
			nat.Device = value
		case "link":
			link = value
		case "addr":
			nat.Address, _ = netip.ParseAddr(value)
		case "snat":
			nat.SNAT = true
		case "nodeport":
			nat.NodePort = true
		}
	}
	nat.Present = true
	return nat, link, aboutText(nat, link) == text
}

// commentMax is how long a comment may be (NFT_USERDATA_MAXLEN, less its type and length, and NUL).
const commentMax = 256 - 3

func (a *applier) hostNAT(op *dataplane.Op) error {
	d, err := a.eni(op.MAC)
	if err != nil {
		return err
	}
	nat := op.NAT()
	if nat.SNAT && !nat.Address.IsValid() {
		return failed(dataplane.Invalid, "SNAT needs the node's address")
	}
	chains, err := ruleset(nat, d.name)
	if err != nil {
		return err
	}
	a.k.translating.Lock()
	defer a.k.translating.Unlock()
	return a.k.replaceTable(chains)
}

func nftMessage(kind uint16) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

// replaceTable writes the whole table in one transaction: a reader sees the old or the new one,
// and no packet meets half of it. A table can only be deleted when it is there, so it is made first.
func (k *Kernel) replaceTable(chains []chain) error {
	r := k.nft.Reset()
	r.Netfilter(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	for _, kind := range []uint16{unix.NFT_MSG_NEWTABLE, unix.NFT_MSG_DELTABLE, unix.NFT_MSG_NEWTABLE} {
		r.Netfilter(nftMessage(kind), unix.NLM_F_CREATE, unix.AF_INET, 0)
		r.Text(unix.NFTA_TABLE_NAME, natTable)
	}
	for i := range chains {
		addChain(r, &chains[i])
	}
	for i := range chains {
		for j := range chains[i].rules {
			addRule(r, natTable, chains[i].name, &chains[i].rules[j])
		}
	}
	return k.transact(r)
}

// transact ends a batch, and has it carried out as a whole.
func (k *Kernel) transact(r *netlink.Request) error {
	flags := r.Last()[6:] // the last message speaks for all: the kernel answers the others only to refuse them
	netlink.Native.PutUint16(flags, netlink.Native.Uint16(flags)|unix.NLM_F_ACK)
	last := r.N - 1
	r.Netfilter(unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	return k.tables.Transact(r, last)
}

func addChain(r *netlink.Request, c *chain) {
	r.Netfilter(nftMessage(unix.NFT_MSG_NEWCHAIN), unix.NLM_F_CREATE, unix.AF_INET, 0)
	r.Text(unix.NFTA_CHAIN_TABLE, natTable)
	r.Text(unix.NFTA_CHAIN_NAME, c.name)
	if c.kind == "" {
		return
	}
	hook := r.Nest(unix.NFTA_CHAIN_HOOK)
	r.BE32(unix.NFTA_HOOK_HOOKNUM, c.hook)
	r.BE32(unix.NFTA_HOOK_PRIORITY, uint32(c.priority))
	r.End(hook)
	r.BE32(unix.NFTA_CHAIN_POLICY, verdictAccept)
	r.Text(unix.NFTA_CHAIN_TYPE, c.kind)
}

func addRule(r *netlink.Request, table, chain string, rule *natRule) {
	r.Netfilter(nftMessage(unix.NFT_MSG_NEWRULE), unix.NLM_F_CREATE|unix.NLM_F_APPEND, unix.AF_INET, 0)
	r.Text(unix.NFTA_RULE_TABLE, table)
	r.Text(unix.NFTA_RULE_CHAIN, chain)
	if len(rule.expressions) > 0 {
		r.Bytes(unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, rule.expressions)
	}
	if rule.comment == "" {
		return
	}
	comment := rule.comment[:min(len(rule.comment), commentMax)]
	at := r.Begin(unix.NFTA_RULE_USERDATA)
	r.Raw(commentType, byte(len(comment)+1)) // libnftnl's type, length, value
	r.Raw([]byte(comment)...)
	r.Raw(0)
	r.End(at)
}

// commentType is NFTNL_UDATA_RULE_COMMENT (libnftnl/udata.h).
const commentType = 0

// commentOf reads a rule's comment back.
func commentOf(userdata []byte) string {
	for len(userdata) >= 2 && len(userdata) >= 2+int(userdata[1]) {
		value := userdata[2 : 2+int(userdata[1])]
		if userdata[0] == commentType {
			return strings.TrimSuffix(string(value), "\x00")
		}
		userdata = userdata[2+len(value):]
	}
	return ""
}

func mask(p netip.Prefix) (m [4]byte) {
	binary.BigEndian.PutUint32(m[:], uint32(uint64(0xffffffff)<<(32-p.Bits())))
	return m
}
