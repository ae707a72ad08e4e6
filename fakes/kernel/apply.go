package kernel

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/impl/dataplane"
)

// Apply runs p.Ops[from:to] and stops at the first operation that fails. done is how many operations
// of the plan are now done, counted from its beginning: to, or the index of the one that failed. A range
// outside the plan is cut to it.
func (k *Kernel) Apply(p dataplane.Plan, from, to int) (done int, err *dataplane.Error) {
	to = min(to, len(p.Ops))
	from = max(from, 0)
	for done = from; done < to; done++ {
		if kind, found := k.apply(&p.Ops[done]); found != "" {
			return done, &dataplane.Error{Kind: kind, Op: done, Text: p.Ops[done].String() + ": " + found}
		}
	}
	return done, nil
}

// apply runs one operation; found is what was found instead when it fails, and empty when it does not.
func (k *Kernel) apply(op *dataplane.Op) (kind dataplane.ErrorKind, found string) {
	switch op.Kind {
	case dataplane.CreateVeth:
		return k.createVeth(op)
	case dataplane.RenameLink:
		return k.renameLink(op)
	case dataplane.AdoptLink:
		return k.adoptLink(op)
	case dataplane.DeleteVeth:
		if slot := k.veth(op.Alias); slot != none {
			k.destroy(slot)
		}
	case dataplane.LinkUp, dataplane.SetMAC, dataplane.ProxyNeighbour:
		return k.applyVeth(op)
	case dataplane.PodRoute, dataplane.PodAddress, dataplane.PodNeighbour:
		return k.applyPod(op)
	case dataplane.EnsureRoute:
		return k.ensureRoute(op)
	case dataplane.RemoveRoute:
		if slot := k.routeDevice(op); slot != none {
			k.removeRoute(op.Table, op.Dst, slot)
		}
	case dataplane.EnsureRule:
		k.addRule(op.Rule())
	case dataplane.RemoveRule:
		k.removeRules(op.Rule(), false)
	case dataplane.RemoveStaleRules:
		k.removeRules(op.Rule(), true)
	case dataplane.FlushConntrack:
		k.flushFlows(op.Addr)
	case dataplane.AcceptForward:
		return k.acceptForward(op.Name)
	case dataplane.ENIUp, dataplane.ENIAddress, dataplane.HostNAT, dataplane.Sysctl:
		return k.applyENI(op)
	default:
		return dataplane.Invalid, "this kind is unknown"
	}
	return 0, ""
}

const (
	noSuchLink  = "no such link"
	nameIsTaken = "another link has that name"
)

func (k *Kernel) createVeth(op *dataplane.Op) (dataplane.ErrorKind, string) {
	if op.Link == "" || op.Name == "" || op.Netns == 0 {
		return dataplane.Invalid, "a veth needs both names and a namespace"
	}
	if len(op.Alias) > dataplane.MaxAlias {
		return dataplane.Invalid, "the alias is too long"
	}
	if k.slotByName(op.Link) != none {
		return dataplane.Exists, nameIsTaken
	}
	if k.slotByAlias(op.Alias) != none {
		return dataplane.Exists, "a link of that attachment lives"
	}
	ns := k.namespace(op.Netns)
	if ns == nil {
		return dataplane.NoNamespace, "no such namespace"
	}
	if k.hasEnd(ns, op.Name) {
		return dataplane.Exists, "the namespace has an interface of that name"
	}
	l := link{name: op.Link, mac: op.MAC, alias: op.Alias, up: true, mtu: op.MTU, rpFilter: strictFilter,
		netns: op.Netns, podName: op.Name}
	if l.mac == "" {
		l.mac = dataplane.VethMAC(strconv.FormatUint(k.next(), 16))
	}
	l.mtu = cmp.Or(l.mtu, defaultVeth)
	ns.ends++
	k.last = k.addLink(l)
	k.generation++
	return 0, ""
}

func (k *Kernel) renameLink(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.veth(op.Alias)
	if named := k.slotByName(op.Link); slot == none && named != none && k.links[named].netns != 0 {
		slot = named
	}
	switch {
	case op.Name == "":
		return dataplane.Invalid, "the new name is empty"
	case slot == none || k.links[slot].name == op.Name:
		return 0, ""
	case k.slotByName(op.Name) != none:
		return dataplane.Exists, nameIsTaken
	}
	k.rename(slot, op.Name)
	return 0, ""
}

func (k *Kernel) adoptLink(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.slotByName(op.Link)
	if slot == none || k.links[slot].netns == 0 {
		return dataplane.NoLink, noSuchLink
	}
	have := k.links[slot].alias
	if have != "" && have != op.Alias {
		return dataplane.Exists, "the link belongs to " + have
	}
	if have == "" && k.slotByAlias(op.Alias) != none {
		return dataplane.Exists, "a link of that attachment lives"
	}
	if have == "" {
		if r := k.routeIn(dataplane.MainTable, op.Addr); r == nil || !r.dst.IsSingleIP() {
			if !slices.Contains(k.peerAddresses(&k.links[slot]), op.Addr) {
				return dataplane.NoLink, "the address is routed nowhere, and is not behind that link"
			}
		} else if r.slot != slot {
			return dataplane.NoLink, "the address is routed to another link"
		}
		k.setAlias(slot, op.Alias)
	}
	if l := &k.links[slot]; op.MAC != "" && !l.adopted {
		l.adopted = true
		k.changedLink(l)
	}
	return 0, ""
}

// applyVeth is the host's end of a pod's link.
func (k *Kernel) applyVeth(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.veth(op.Alias)
	if slot == none {
		return dataplane.NoLink, noSuchLink
	}
	l := &k.links[slot]
	switch op.Kind {
	case dataplane.LinkUp:
		k.setUp(slot, true)
		k.setMTU(l, op.MTU)
	case dataplane.SetMAC:
		if l.mac != op.MAC {
			l.mac = op.MAC
			k.changedLink(l)
		}
	case dataplane.ProxyNeighbour:
		if !slices.Contains(l.proxy, op.Addr) {
			l.proxy = appended(l.proxy, op.Addr)
			k.changedLink(l)
		}
	}
	return 0, ""
}

func (k *Kernel) setMTU(l *link, mtu int) {
	if mtu != 0 && l.mtu != mtu {
		l.mtu = mtu
		k.changedEither(l)
	}
}

// appended is a longer copy, exactly as long as needed: clones share the original.
func appended[T any](list []T, item T) []T {
	longer := make([]T, len(list)+1)
	copy(longer, list)
	longer[len(list)] = item
	return longer
}

// applyPod is the pod's end.
func (k *Kernel) applyPod(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.veth(op.Alias)
	if slot == none {
		return dataplane.NoLink, noSuchLink
	}
	l := &k.links[slot]
	if l.netns != op.Netns {
		return dataplane.NoNamespace, "the link leads to another namespace"
	}
	switch op.Kind {
	case dataplane.PodRoute:
		r := podRoute{op.Dst, op.Via}
		if slices.Contains(l.podRoutes, r) {
			return 0, ""
		}
		if r.via.IsValid() && !l.podReaches(r.via) {
			return dataplane.Unreachable, "no route of the pod covers the gateway"
		}
		l.podRoutes = appended(l.podRoutes, r)
	case dataplane.PodAddress:
		if slices.Contains(l.podAddresses, op.Addr) {
			return 0, ""
		}
		l.podAddresses = appended(l.podAddresses, op.Addr)
		k.addHolder(op.Addr, l.netns, slot)
	case dataplane.PodNeighbour:
		if op.Addr != dataplane.Gateway() {
			return dataplane.Invalid, "a pod's neighbour is its gateway"
		}
		if l.neighbour == op.MAC {
			return 0, ""
		}
		l.neighbour = op.MAC
	}
	k.changedLink(l)
	return 0, ""
}

// podReaches says whether a route of scope link covers an address.
func (l *link) podReaches(a netip.Addr) bool {
	for i := range l.podRoutes {
		if r := &l.podRoutes[i]; !r.via.IsValid() && r.dst.Contains(a) {
			return true
		}
	}
	return false
}

// device is the link an operation names: a veth by alias, an ENI by MAC, any by name.
func (k *Kernel) device(op *dataplane.Op) int32 {
	switch {
	case op.Alias != "":
		return k.veth(op.Alias)
	case op.MAC != "":
		return k.slotByMAC(op.MAC)
	default:
		return k.slotByName(op.Link)
	}
}

// routeDevice is the link whose route may be removed. A veth whose alias a third party cleared still counts
// by its name; one with another alias is another attachment's.
func (k *Kernel) routeDevice(op *dataplane.Op) int32 {
	slot := k.device(op)
	if slot == none && op.Alias != "" {
		slot = k.slotByName(op.Link)
		if slot != none && k.links[slot].alias != "" {
			return none
		}
	}
	return slot
}

func (k *Kernel) ensureRoute(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.device(op)
	switch {
	case !op.Dst.IsValid() || op.Table == 0:
		return dataplane.Invalid, "a route needs a destination and a table"
	case slot == none:
		return dataplane.NoLink, noSuchLink
	case !k.links[slot].up:
		return dataplane.LinkDown, "the link is down"
	case op.Via.IsValid() && !k.onLink(op.Table, op.Via, slot):
		return dataplane.Unreachable, "no route of the link covers the gateway"
	}
	k.replaceRoute(route{table: op.Table, dst: op.Dst.Masked(), via: op.Via, slot: slot})
	return 0, ""
}

// applyENI is what concerns an ENI's link, or the node by way of its primary one.
func (k *Kernel) applyENI(op *dataplane.Op) (dataplane.ErrorKind, string) {
	slot := k.slotByMAC(op.MAC)
	if slot == none {
		return dataplane.NoLink, noSuchLink
	}
	l := &k.links[slot]
	switch op.Kind {
	case dataplane.ENIUp:
		k.setUp(slot, true)
		k.setMTU(l, op.MTU)
	case dataplane.ENIAddress:
		if !op.Addr.IsValid() || !op.Dst.IsValid() {
			return dataplane.Invalid, "an ENI's address needs its subnet"
		}
		p := netip.PrefixFrom(op.Addr, op.Dst.Bits())
		if len(l.addresses) != 1 || l.addresses[0] != p {
			k.setAddresses(slot, []netip.Prefix{p})
		}
	case dataplane.HostNAT:
		return k.setNAT(op.NAT(), l.name)
	case dataplane.Sysctl:
		value, err := strconv.Atoi(op.Value)
		if op.Name != "rp_filter" || err != nil || value < 0 || value > 2 {
			return dataplane.Invalid, "the model knows only rp_filter, 0 to 2"
		}
		if l.rpFilter != value {
			l.rpFilter = value
			k.changedWidely()
		}
	}
	return 0, ""
}

func (k *Kernel) acceptForward(prefix string) (dataplane.ErrorKind, string) {
	if prefix == "" {
		return dataplane.Invalid, "links of any name would be accepted"
	}
	if k.forward.DropsOf(prefix) {
		list := append(strings.Fields(k.forward.Accepts), prefix)
		slices.Sort(list)
		k.forward.Accepts = strings.Join(list, " ")
		k.changedWidely()
	}
	return 0, ""
}

func (k *Kernel) setNAT(nat dataplane.NAT, link string) (dataplane.ErrorKind, string) {
	var cidrs []netip.Prefix
	for _, text := range strings.Fields(nat.CIDRs) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return dataplane.Invalid, "not a CIDR: " + text
		}
		cidrs = append(cidrs, p)
	}
	if k.nat != nat || k.natLink != link {
		k.nat, k.natLink, k.natCIDRs = nat, link, cidrs
		k.changedWidely()
	}
	return 0, ""
}
