package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
)

// Accident is what a third party does to a machine's network namespace, or to a pod's. It is data: [Kernel.Suffer]
// does it to this model, and sim/interference to a real kernel.
type Accident struct {
	What      Change
	Table     int          // of FlushRoutes
	MAC       string       // of ChangeMAC
	Addresses []netip.Addr // of AddAddresses

	// Where it happens to a pod: the inode of its namespace, and the host end of its link. The world, which knows the
	// pod, fills them in.
	Netns uint64
	Link  string
}

// Change is a kind of accident. Scenarios have verbs of these names.
type Change string

const (
	FlushRules  Change = "flush-rules"
	FlushRoutes Change = "flush-routes"
	FlushNAT    Change = "flush-nat"
	DropARP     Change = "drop-arp"
	DropForward Change = "drop-forward"

	// Of a pod.
	LoseGateway  Change = "lose-gateway"
	ChangeMAC    Change = "change-mac"
	LoseAlias    Change = "lose-alias"
	AddAddresses Change = "add-addresses"
)

// Inside says whether a change is made in the pod's own namespace, and not in the machine's.
func (c Change) Inside() bool { return c == LoseGateway || c == AddAddresses }

// Suffer has an accident happen, and says how many things there were to change.
func (k *Kernel) Suffer(a Accident) int {
	switch a.What {
	case FlushRules:
		return k.FlushRules()
	case FlushRoutes:
		return k.RemoveRoutes(a.Table)
	case FlushNAT:
		return count(k.FlushNAT())
	case DropARP:
		return k.DropARP()
	case DropForward:
		return count(k.DropForward())
	case LoseGateway:
		return count(k.LoseNeighbour(a.Netns))
	case ChangeMAC:
		return count(k.SetLinkMAC(a.Link, a.MAC))
	case LoseAlias:
		return count(k.SetLinkAlias(a.Link, ""))
	case AddAddresses:
		return k.AddAddresses(a.Netns, a.Addresses)
	}
	return 0
}

// count is 1 of what there was, 0 of what there was not.
func count(had bool) int {
	if had {
		return 1
	}
	return 0
}

// FlushRules is a third party that removes every rule but those of the given priorities, and the kernel's
// own: systemd-networkd (amazon-vpc-cni-k8s #3162, #3309), nm-cloud-setup. It says how many it removed.
func (k *Kernel) FlushRules(keepPriority ...int) int {
	before := len(k.to) + len(k.from) + len(k.wide)
	drop := func(r addressRule) bool { return !slices.Contains(keepPriority, r.priority) }
	k.to = slices.DeleteFunc(k.to, drop)
	k.from = slices.DeleteFunc(k.from, drop)
	k.wide = slices.DeleteFunc(k.wide, func(r dataplane.Rule) bool { return !slices.Contains(keepPriority, r.Priority) })
	k.changedWidely()
	return before - len(k.to) - len(k.from) - len(k.wide)
}

// RemoveRoutes is a third party that flushes a routing table. It says how many routes it removed.
func (k *Kernel) RemoveRoutes(table int) int {
	before := len(k.routes)
	k.routes = slices.DeleteFunc(k.routes, func(r route) bool { return r.table == table })
	k.changedWidely()
	return before - len(k.routes)
}

// SetLinkMAC is udev's MACAddressPolicy=persistent on a link that is there already
// (amazon-vpc-cni-k8s #2103, #3155). It says whether there was such a link with another MAC.
func (k *Kernel) SetLinkMAC(name, mac string) bool {
	slot := k.slotByName(name)
	if slot == none || k.links[slot].mac == mac {
		return false
	}
	k.links[slot].mac = mac
	k.changedEither(&k.links[slot])
	return true
}

// SetLinkAlias writes another alias, or none: a third party's doing, or a pod that another CNI made. It says whether
// there was such a link with another alias.
func (k *Kernel) SetLinkAlias(name, alias string) bool {
	slot := k.slotByName(name)
	if slot == none || k.links[slot].alias == alias || alias != "" && k.slotByAlias(alias) != none {
		return false
	}
	k.setAlias(slot, alias)
	return true
}

// LinkDown takes a link down, and with it every route through it.
func (k *Kernel) LinkDown(name string) {
	if slot := k.slotByName(name); slot != none {
		k.setUp(slot, false)
	}
}

// LoseProxy removes the proxy neighbour entries of a link.
func (k *Kernel) LoseProxy(name string) {
	if slot := k.slotByName(name); slot != none && k.links[slot].proxy != nil {
		k.links[slot].proxy = nil
		k.changedEither(&k.links[slot])
	}
}

// DropARP is a third party that clears the machine's neighbour table. It says how many proxy entries there were; all
// others come back by themselves, and this model has none.
func (k *Kernel) DropARP() (count int) {
	for slot := range k.links {
		if l := &k.links[slot]; len(l.proxy) > 0 {
			count += len(l.proxy)
			l.proxy = nil
			k.changedEither(l)
		}
	}
	return count
}

// LoseNeighbour makes a pod lose its permanent gateway entry. It says whether the pod had one.
func (k *Kernel) LoseNeighbour(inode uint64) (had bool) {
	for slot := range k.links {
		if l := &k.links[slot]; l.netns == inode && inode != 0 && l.neighbour != "" {
			l.neighbour, had = "", true
			k.changedLink(l)
		}
	}
	return had
}

// AddAddresses is a pod with NET_ADMIN that gives its interface more addresses. No CNI assigned them: [Kernel.Holders]
// and all that asks who has an address leave them out. It says how many of them the namespace did not have.
func (k *Kernel) AddAddresses(inode uint64, list []netip.Addr) (count int) {
	for slot := range k.links {
		l := &k.links[slot]
		if l.netns != inode || inode == 0 {
			continue
		}
		for _, a := range list {
			if !slices.Contains(l.podAddresses, a) && !slices.Contains(l.added, a) {
				l.added = appended(l.added, a)
				count++
			}
		}
		k.changedLink(l)
		return count
	}
	return 0
}

// DropForward is a third party that sets the policy of the filter table's chain FORWARD to DROP. It says whether that
// was another one.
func (k *Kernel) DropForward() bool {
	if k.forward.Drops {
		return false
	}
	k.forward = dataplane.Forward{Drops: true}
	k.changedWidely()
	return true
}

// FlushNAT is a third party that runs "nft flush ruleset". It says whether there was anything.
func (k *Kernel) FlushNAT() bool {
	had := k.nat.Present || k.forward.Drops
	k.nat, k.natCIDRs, k.forward = dataplane.NAT{}, nil, dataplane.Forward{}
	k.changedWidely()
	return had
}

// AddForeignRule is a third party's rule, whatever it matches.
func (k *Kernel) AddForeignRule(r dataplane.Rule) { k.addRule(r) }

// HasRule says whether there is such a rule.
func (k *Kernel) HasRule(r dataplane.Rule) bool {
	list, a := k.list(r)
	if list == nil {
		_, known := slices.BinarySearchFunc(k.wide, r, dataplane.CompareRules)
		return known
	}
	return slices.Contains(*list, addressRule{a, r.Priority, r.Table})
}

// OpenFlow is traffic that makes conntrack remember a flow of an address.
func (k *Kernel) OpenFlow(a netip.Addr) {
	if at, known := slices.BinarySearchFunc(k.flows, a, netip.Addr.Compare); !known {
		k.flows = slices.Insert(k.flows, at, a)
		k.generation++
	}
}

// HasFlow says whether conntrack remembers a flow of an address: its next owner would get it.
func (k *Kernel) HasFlow(a netip.Addr) bool {
	_, known := slices.BinarySearchFunc(k.flows, a, netip.Addr.Compare)
	return known
}

func (k *Kernel) flushFlows(a netip.Addr) {
	if at, known := slices.BinarySearchFunc(k.flows, a, netip.Addr.Compare); known {
		k.flows = slices.Delete(k.flows, at, at+1)
		k.generation++
	}
}

// Reboot loses everything but the ENI devices: they come back in the order they were plugged in, down
// and without address, except the primary, which the machine configures again. Indexes and inodes
// begin anew.
func (k *Kernel) Reboot() {
	fresh := New(k.random)
	fresh.generation = k.generation
	for _, eni := range k.enis {
		if p := k.primary; eni.key == p.mac {
			fresh.PlugPrimary(p.mac, p.address, p.gateway)
		} else {
			fresh.Plug(eni.key)
		}
	}
	fresh.changedWidely()
	*k = *fresh
}

// VethOf is the host end of the link of a sandbox, by the container ID in its alias; "" if there is none.
func (k *Kernel) VethOf(containerID string) string {
	for i := range k.links {
		if _, id, _, _, ok := dataplane.ParseAlias(k.links[i].alias); ok && id == containerID && k.links[i].index != 0 {
			return k.links[i].name
		}
	}
	return ""
}
