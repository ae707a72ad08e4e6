package dataplane

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Observation is what netlink dumps say, as plain data. Everything is sorted (see Sort), so that two
// observations of the same kernel compare.
type Observation struct {
	Links   []Link  // by name
	Routes  []Route // by table, then longest prefix first, then address
	Rules   []Rule  // by priority, then address; the kernel's own (protocol kernel) are left out
	NAT     NAT     // our nftables table; zero when it is absent
	Forward Forward

	// Complete is false after DUMP_INTR, ENOBUFS or an errno in DONE: then absence means nothing.
	Complete bool
}

// Link is a network device of the host, and what can be seen through it of its peer.
type Link struct {
	Index    int
	Name     string
	MAC      string
	Alias    string
	Adopted  bool // another CNI made it, and its MAC is not ours to choose: its group is AdoptedGroup
	Up       bool
	MTU      int
	RPFilter int // IPV4_DEVCONF_RP_FILTER: 0 off, 1 strict, 2 loose

	Addresses []netip.Prefix // on the host's side
	Proxy     []netip.Addr   // addresses it answers ARP for

	Veth          bool
	PeerLive      bool         // link-netnsid is valid: the peer's namespace lives
	PeerAddresses []netip.Addr // configured in that namespace (RTM_GETADDR with IFA_TARGET_NETNSID)
}

// Route is one route of any table. Via is invalid for scope link; Link is empty when it names no
// device that lives.
type Route struct {
	Table int
	Dst   netip.Prefix
	Via   netip.Addr
	Link  string
}

// Rule is one policy rule. An invalid From or To matches everything, a zero Mark matches any mark.
type Rule struct {
	Priority int
	From, To netip.Prefix
	Mark     uint32 // fwmark and mask are the same in everything we write
	Table    int
}

// Addr is the one address the rule is about; ok is false when it is about a wider prefix or a mark.
func (r Rule) Addr() (a netip.Addr, ok bool) {
	p := r.From
	if !p.IsValid() {
		p = r.To
	} else if r.To.IsValid() {
		return netip.Addr{}, false
	}
	if !p.IsSingleIP() || r.Mark != 0 { // an invalid one is none
		return netip.Addr{}, false
	}
	return p.Addr(), true
}

// Rule is the rule that an EnsureRule operation means: "to" for PriorityToPod, "from" for every other
// priority, or by mark.
func (o *Op) Rule() Rule {
	r := Rule{Priority: o.Priority, Mark: o.Mark, Table: o.Table}
	switch {
	case !o.Addr.IsValid():
	case o.Priority == PriorityToPod:
		r.To = hostPrefix(o.Addr)
	default:
		r.From = hostPrefix(o.Addr)
	}
	return r
}

// NAT is our nftables table as a whole.
type NAT struct {
	Present  bool
	Device   string     // MAC of the link that SNAT and NodePort are about
	Address  netip.Addr // what SNAT writes
	CIDRs    string     // not SNATed to: sorted, joined by spaces
	SNAT     bool
	NodePort bool
}

func (n NAT) op() Op {
	flags := make([]string, 0, 2)
	if n.SNAT {
		flags = append(flags, "snat")
	}
	if n.NodePort {
		flags = append(flags, "nodeport")
	}
	return Op{Kind: HostNAT, MAC: n.Device, Addr: n.Address, Name: n.CIDRs, Value: strings.Join(flags, " ")}
}

// NAT is the table that a HostNAT operation writes.
func (o *Op) NAT() NAT {
	return NAT{
		Present: true, Device: o.MAC, Address: o.Addr, CIDRs: o.Name,
		SNAT: strings.Contains(o.Value, "snat"), NodePort: strings.Contains(o.Value, "nodeport"),
	}
}

// Forward is the chain FORWARD of the table filter that iptables makes of nftables, as far as it concerns pods. What
// no rule there decides its policy does, which Docker sets to DROP, as firewalls do (amazon-vpc-cni-k8s #535). The table
// of iptables-legacy is not seen.
type Forward struct {
	Drops   bool   // the policy is DROP
	Accepts string // if so: begins of the names of links whose packets rules of ours accept; sorted, joined by spaces
}

// DropsOf says whether packets of a link are left to a policy of DROP.
func (f Forward) DropsOf(link string) bool {
	return f.Drops && !slices.ContainsFunc(strings.Fields(f.Accepts), func(p string) bool { return strings.HasPrefix(link, p) })
}

// Sort puts everything into the order that Observation promises. The maker of an Observation calls it once.
func (o *Observation) Sort() {
	slices.SortFunc(o.Links, func(a, b Link) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.Routes, compareRoutes)
	slices.SortFunc(o.Rules, CompareRules)
	for i := range o.Links {
		l := &o.Links[i]
		l.Addresses = sortedPrefixes(l.Addresses)
		slices.SortFunc(l.PeerAddresses, netip.Addr.Compare)
		slices.SortFunc(l.Proxy, netip.Addr.Compare)
	}
}

// compareRoutes orders by table, longest prefix and address. Routes that differ in nothing of that keep
// the order of the dump: the first is the one the kernel takes.
func compareRoutes(a, b Route) int {
	return cmp.Or(
		cmp.Compare(a.Table, b.Table),
		cmp.Compare(b.Dst.Bits(), a.Dst.Bits()),
		a.Dst.Addr().Compare(b.Dst.Addr()),
	)
}

// CompareRules orders by priority, then what the rule matches, then table.
func CompareRules(a, b Rule) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		comparePrefixes(a.To, b.To),
		comparePrefixes(a.From, b.From),
		cmp.Compare(a.Mark, b.Mark),
		cmp.Compare(a.Table, b.Table),
	)
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// sortedPrefixes is a sorted copy without repeats; an empty list stays nil.
func sortedPrefixes(in []netip.Prefix) []netip.Prefix {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in)
	slices.SortFunc(out, comparePrefixes)
	return slices.Compact(out)
}

// Uses says whether something uses an address, and what. For many addresses use Index.
func (o *Observation) Uses(a netip.Addr) (evidence string, used bool) {
	return o.Index().Uses(a)
}

// Equal says whether two sorted observations show the same.
func (o *Observation) Equal(p *Observation) bool {
	return o.Complete == p.Complete && o.NAT == p.NAT && o.Forward == p.Forward && slices.Equal(o.Rules, p.Rules) && slices.Equal(o.Routes, p.Routes) &&
		slices.EqualFunc(o.Links, p.Links, func(a, b Link) bool { return a.equal(&b) })
}

func (l *Link) equal(m *Link) bool {
	return l.Index == m.Index && l.Name == m.Name && l.MAC == m.MAC && l.Alias == m.Alias && l.Adopted == m.Adopted && l.Up == m.Up && l.MTU == m.MTU &&
		l.RPFilter == m.RPFilter && l.Veth == m.Veth && l.PeerLive == m.PeerLive && slices.Equal(l.Addresses, m.Addresses) &&
		slices.Equal(l.Proxy, m.Proxy) && slices.Equal(l.PeerAddresses, m.PeerAddresses)
}
