package interference

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
)

// What others than the CNI have on a node. The addresses are of networks for documentation, which are in no use.
const (
	thirdPartyChain = "THIRD-PARTY"
	thirdPartyTable = "third-party"
	thirdPartyMark  = 0x4000

	thirdPartyPeerPort, thirdPartySelfPort = 40000, 443
)

var (
	thirdPartyNet  = net.IPNet{IP: net.IP{192, 0, 2, 0}, Mask: net.CIDRMask(24, 32)}
	thirdPartyPeer = net.IP{192, 0, 2, 9}
	thirdPartySelf = net.IP{203, 0, 113, 9}
)

// party is one thing of a third party: how it is put there, and how it looks now; "" is that it is not there.
type party struct {
	name string
	add  func() error
	look func() (string, error)
}

// errLacking is that the kernel takes no such thing.
type errLacking struct{ why string }

func (e *errLacking) Error() string { return e.why }

// parties are all of them. Those of iptables are in the tables in which CNIs work: a flush of such a table takes them
// along.
func parties() []party {
	out := []party{
		{fmt.Sprintf("rule %d", kernel.ThirdParty.Priority), addPartyRule, lookPartyRule},
		{"route " + thirdPartyNet.String(), func() error { return addPartyRoute(unix.RT_TABLE_MAIN) }, func() (string, error) { return lookPartyRoute(unix.RT_TABLE_MAIN) }},
		{fmt.Sprintf("route of table %d", kernel.ThirdParty.Table), func() error { return addPartyRoute(kernel.ThirdParty.Table) },
			func() (string, error) { return lookPartyRoute(kernel.ThirdParty.Table) }},
		{"table inet " + thirdPartyTable + " of nftables", addPartyTable, func() (string, error) { return lookPartyChains(nftables.TableFamilyINet, thirdPartyTable) }},
		{"mark of a connection", addPartyMark, lookPartyMark},
	}
	for _, table := range []string{"nat", "mangle", "filter"} {
		out = append(out, party{"chain " + thirdPartyChain + " of iptables-nft, table " + table, func() error { return addPartyChain(table) },
			func() (string, error) { return lookPartyChains(nftables.TableFamilyIPv4, table) }})
	}
	for _, table := range []string{"nat", "mangle"} {
		out = append(out, party{"chain " + thirdPartyChain + " of iptables-legacy, table " + table, func() error { return addLegacyChain(table) },
			func() (string, error) { return lookLegacyChain(table) }})
	}
	for _, s := range [][2]string{{"net/ipv4/ip_local_reserved_ports", "30000-32767"}, {"net/ipv4/conf/all/log_martians", "1"}, {"net/ipv4/tcp_keepalive_time", "600"}} {
		out = append(out, party{"sysctl " + strings.ReplaceAll(s[0], "/", "."), func() error { return setSysctl(s[0], s[1]) }, func() (string, error) { return getSysctl(s[0]) }})
	}
	return out
}

// AddThirdParty puts on a node what others than its CNI have there. lacks is what this kernel takes none of, with the reason.
func AddThirdParty() (lacks []string, err error) {
	for _, p := range parties() {
		err := p.add()
		if lack, ok := errors.AsType[*errLacking](err); ok {
			lacks = append(lacks, p.name+": "+lack.why)
		} else if err != nil {
			return lacks, fmt.Errorf("add a third party's %s: %w", p.name, err)
		}
	}
	return lacks, nil
}

// ThirdParty is how all of that looks now, by name. What is not there is left out. The error is that something could not be looked at.
func ThirdParty() (map[string]string, error) {
	out := map[string]string{}
	for _, p := range parties() {
		text, err := p.look()
		if _, lacks := errors.AsType[*errLacking](err); lacks {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at a third party's %s: %w", p.name, err)
		}
		if text != "" {
			out[p.name] = text
		}
	}
	return out, nil
}

func addPartyRule() error {
	r := netlink.NewRule()
	r.Family, r.Priority, r.Mark, r.Table = unix.AF_INET, kernel.ThirdParty.Priority, kernel.ThirdParty.Mark, kernel.ThirdParty.Table
	mask := kernel.ThirdParty.Mark
	r.Mask = &mask
	return ignore(netlink.RuleAdd(r), unix.EEXIST)
}

func lookPartyRule() (string, error) {
	list, err := Retried(func() ([]netlink.Rule, error) { return netlink.RuleList(unix.AF_INET) })
	for _, r := range list {
		if r.Priority == kernel.ThirdParty.Priority && r.Mark == kernel.ThirdParty.Mark {
			return fmt.Sprintf("fwmark %#x lookup %d", r.Mark, r.Table), err
		}
	}
	return "", err
}

// partyService is the type of service that the routes are for: an Observation has no words for such routes, which no CNI makes.
const partyService = 0x10

func addPartyRoute(table int) error {
	return ignore(netlink.RouteAdd(&netlink.Route{Dst: &thirdPartyNet, Table: table, Type: unix.RTN_BLACKHOLE, Tos: partyService, Protocol: unix.RTPROT_STATIC}), unix.EEXIST)
}

func lookPartyRoute(table int) (string, error) {
	list, err := Retried(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: table, Dst: &thirdPartyNet, Type: unix.RTN_BLACKHOLE}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_DST|netlink.RT_FILTER_TYPE)
	})
	if err != nil || len(list) == 0 {
		return "", err
	}
	return fmt.Sprintf("blackhole %v tos %#x", &thirdPartyNet, list[0].Tos), nil
}

func ignore(err error, is error) error {
	if errors.Is(err, is) {
		return nil
	}
	return err
}

// fromParty matches packets from the third party's network, as iptables writes it, so that iptables can read the table.
func fromParty(then ...expr.Any) []expr.Any {
	return append([]expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 3},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: thirdPartyNet.IP[:3]}, &expr.Counter{}}, then...)
}

// addPartyTable is a firewall's own table.
func addPartyTable() error {
	return withTables(func(c *nftables.Conn) {
		t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: thirdPartyTable})
		policy := nftables.ChainPolicyAccept
		in := c.AddChain(&nftables.Chain{Name: "input", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityRef(10), Policy: &policy})
		c.AddRule(&nftables.Rule{Table: t, Chain: in, Exprs: []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0xff, 0xff, 0xff, 0x7f}}, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}})
	})
}

// bases are the chains from which a third party jumps to its own.
var bases = map[string]nftables.Chain{
	"nat":    {Name: "POSTROUTING", Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource},
	"mangle": {Name: "PREROUTING", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityMangle},
	"filter": {Name: "FORWARD", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter},
}

// addPartyChain is what iptables-nft -N THIRD-PARTY makes, with a rule in it and one that jumps there.
func addPartyChain(table string) error {
	return withTables(func(c *nftables.Conn) {
		t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table})
		base, policy := bases[table], nftables.ChainPolicyAccept
		base.Table, base.Policy = t, &policy
		from := c.AddChain(&base)
		own := c.AddChain(&nftables.Chain{Name: thirdPartyChain, Table: t})
		c.AddRule(&nftables.Rule{Table: t, Chain: own, Exprs: fromParty(&expr.Verdict{Kind: expr.VerdictReturn})})
		c.AddRule(&nftables.Rule{Table: t, Chain: from, Exprs: fromParty(&expr.Verdict{Kind: expr.VerdictJump, Chain: thirdPartyChain})})
	})
}

func withTables(do func(*nftables.Conn)) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	do(c)
	if err := c.Flush(); NoNFTables(err) || errors.Is(err, unix.ENOENT) {
		return &errLacking{fmt.Sprintf("the kernel has no such table of nftables: %v", err)}
	} else {
		return err
	}
}

// lookPartyChains are the third party's rules of a table, without what they have counted; of a table that is its own all of them.
func lookPartyChains(family nftables.TableFamily, table string) (string, error) {
	c, err := nftables.New()
	if err != nil {
		return "", err
	}
	chains, err := c.ListChainsOfTableFamily(family)
	if err != nil {
		if NoNFTables(err) {
			return "", &errLacking{err.Error()}
		}
		return "", err
	}
	var out []string
	for _, chain := range chains {
		if chain.Table.Name != table {
			continue
		}
		rules, err := c.GetRules(chain.Table, chain)
		if errors.Is(err, unix.ENOENT) { // it went since
			continue
		}
		if err != nil {
			return "", err
		}
		for _, r := range rules {
			if text := partyRule(r); family == nftables.TableFamilyINet || text != "" {
				out = append(out, chain.Name+": "+text)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; "), nil
}

// partyRule is a third party's rule as text, "" of any other one.
func partyRule(r *nftables.Rule) string {
	var words []string
	mine := false
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Payload:
			words = append(words, fmt.Sprintf("payload %d+%d", e.Offset, e.Len))
		case *expr.Meta:
			words = append(words, fmt.Sprintf("meta %d", e.Key))
		case *expr.Cmp:
			mine = mine || bytes.Equal(e.Data, thirdPartyNet.IP[:3])
			words = append(words, "is "+hex.EncodeToString(e.Data))
		case *expr.Verdict:
			words = append(words, strings.TrimSpace(map[expr.VerdictKind]string{expr.VerdictReturn: "return", expr.VerdictJump: "jump", expr.VerdictDrop: "drop"}[e.Kind]+" "+e.Chain))
		}
	}
	if !mine && r.Table.Name != thirdPartyTable {
		return ""
	}
	return strings.Join(words, " ")
}

// addPartyMark is a connection that a third party has marked.
func addPartyMark() error {
	flow := &netlink.ConntrackFlow{FamilyType: unix.AF_INET, Mark: thirdPartyMark, TimeOut: 86400,
		Forward:   netlink.IPTuple{SrcIP: thirdPartyPeer, DstIP: thirdPartySelf, Protocol: unix.IPPROTO_TCP, SrcPort: thirdPartyPeerPort, DstPort: thirdPartySelfPort},
		Reverse:   netlink.IPTuple{SrcIP: thirdPartySelf, DstIP: thirdPartyPeer, Protocol: unix.IPPROTO_TCP, SrcPort: thirdPartySelfPort, DstPort: thirdPartyPeerPort},
		ProtoInfo: &netlink.ProtoInfoTCP{State: connectionEstablished}}
	err := netlink.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, flow)
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
		return &errLacking{fmt.Sprintf("the kernel has no nf_conntrack_netlink: %v", err)}
	}
	return err
}

// connectionEstablished is TCP_CONNTRACK_ESTABLISHED of the kernel's enum tcp_conntrack.
const connectionEstablished = 3

// lookPartyMark asks for that one connection: a list of all would be long on a node in use, and is asked for every second.
func lookPartyMark() (string, error) {
	// The kernel marks its one answer as the first of several, and sends no further one: what ends them is the acknowledgement.
	req := nl.NewNetlinkRequest(int(netlink.ConntrackTable)<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_ACK)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
	tuple := nl.NewRtAttr(nl.CTA_TUPLE_ORIG|unix.NLA_F_NESTED, nil)
	ip := tuple.AddRtAttr(nl.CTA_TUPLE_IP|unix.NLA_F_NESTED, nil)
	ip.AddRtAttr(nl.CTA_IP_V4_SRC, thirdPartyPeer)
	ip.AddRtAttr(nl.CTA_IP_V4_DST, thirdPartySelf)
	proto := tuple.AddRtAttr(nl.CTA_TUPLE_PROTO|unix.NLA_F_NESTED, nil)
	proto.AddRtAttr(nl.CTA_PROTO_NUM, []byte{unix.IPPROTO_TCP})
	proto.AddRtAttr(nl.CTA_PROTO_SRC_PORT, binary.BigEndian.AppendUint16(nil, thirdPartyPeerPort))
	proto.AddRtAttr(nl.CTA_PROTO_DST_PORT, binary.BigEndian.AppendUint16(nil, thirdPartySelfPort))
	req.AddData(tuple)
	answers, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
		return "", &errLacking{err.Error()}
	case err != nil:
		return "", err
	case len(answers) != 1 || len(answers[0]) < nl.SizeofNfgenmsg:
		return "", fmt.Errorf("expected one connection, found %d", len(answers))
	}
	attrs, err := nl.ParseRouteAttr(answers[0][nl.SizeofNfgenmsg:])
	if err != nil {
		return "", err
	}
	mark := uint32(0) // a kernel leaves out one that is 0
	for _, a := range attrs {
		if a.Attr.Type == nl.CTA_MARK && len(a.Value) >= 4 {
			mark = binary.BigEndian.Uint32(a.Value)
		}
	}
	return fmt.Sprintf("mark %#x", mark), nil
}

func setSysctl(name, value string) error {
	err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrPermission) {
		return &errLacking{err.Error()}
	}
	return err
}

func getSysctl(name string) (string, error) {
	data, err := os.ReadFile("/proc/sys/" + name)
	if errors.Is(err, os.ErrNotExist) {
		return "", &errLacking{err.Error()}
	}
	return strings.TrimSpace(string(data)), err
}
