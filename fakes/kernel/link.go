package kernel

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/impl/dataplane"
)

// link is a device of the host; a veth's record holds both ends. Its lists are replaced as a whole and
// never changed in place, so that clones may share them.
type link struct {
	index     int // 0: the slot is free
	name      string
	mac       string
	alias     string
	adopted   bool
	up        bool
	eni       bool
	mtu       int
	rpFilter  int
	addresses []netip.Prefix
	proxy     []netip.Addr

	// The pod's end; netns is 0 for an ENI.
	netns        uint64
	podName      string
	podAddresses []netip.Addr
	added        []netip.Addr // what the pod itself has added to those
	podRoutes    []podRoute
	neighbour    string // MAC of the permanent entry for 169.254.1.1; empty: none
}

type podRoute struct {
	dst netip.Prefix
	via netip.Addr
}

// ref finds a link by a key; lists of refs are sorted by key.
type ref struct {
	key  string
	slot int32
}

const (
	none         = int32(-1)
	bootMTU      = 1500 // what a driver starts with
	defaultVeth  = 1500
	strictFilter = 1 // the worst default of the distributions in use
)

func search(refs []ref, key string) (int, bool) {
	lo, hi := 0, len(refs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := strings.Compare(refs[mid].key, key); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

func insertRef(refs []ref, key string, slot int32) []ref {
	at, _ := search(refs, key)
	return slices.Insert(refs, at, ref{key, slot})
}

func removeRef(refs []ref, key string) []ref {
	if at, ok := search(refs, key); ok {
		return slices.Delete(refs, at, at+1)
	}
	return refs
}

// slotByName is the slot of the link of that name, or none.
func (k *Kernel) slotByName(name string) int32 {
	if at, ok := search(k.byName, name); ok {
		return k.byName[at].slot
	}
	return none
}

// slotByAlias is the slot of the link with exactly that alias, or none.
func (k *Kernel) slotByAlias(alias string) int32 {
	if alias == "" {
		return none
	}
	if int(k.last) < len(k.links) && k.links[k.last].alias == alias {
		return k.last
	}
	if at, ok := search(k.byAlias, alias); ok {
		k.last = k.byAlias[at].slot
		return k.last
	}
	return none
}

// veth is slotByAlias for what may only be done to a veth: an ENI stays whatever alias it was given.
func (k *Kernel) veth(alias string) int32 {
	slot := k.slotByAlias(alias)
	if slot != none && k.links[slot].netns == 0 {
		return none
	}
	return slot
}

// slotByMAC is the slot of the ENI device that has that MAC now, or none.
func (k *Kernel) slotByMAC(mac string) int32 {
	for i := range k.enis {
		if slot := k.enis[i].slot; k.links[slot].mac == mac {
			return slot
		}
	}
	return none
}

// addLink takes a slot for a link, gives it the next index and lists it.
func (k *Kernel) addLink(l link) int32 {
	l.index = k.nextIndex
	k.nextIndex++
	var slot int32
	if n := len(k.free); n > 0 {
		slot = k.free[n-1]
		k.free = k.free[:n-1]
		k.links[slot] = l
	} else {
		slot = int32(len(k.links))
		k.links = append(k.links, l)
	}
	k.byName = insertRef(k.byName, l.name, slot)
	if l.alias != "" {
		k.byAlias = insertRef(k.byAlias, l.alias, slot)
	}
	return slot
}

// destroy removes a link, both ends of a veth, with its addresses and every route through it. Rules stay.
func (k *Kernel) destroy(slot int32) {
	l := &k.links[slot]
	k.removeRoutesOf(slot)
	for _, a := range l.podAddresses {
		k.removeHolder(a, l.netns, slot)
	}
	if l.netns != 0 {
		if ns := k.namespace(l.netns); ns != nil {
			ns.ends--
		}
	}
	if l.eni {
		k.enis = slices.DeleteFunc(k.enis, func(r ref) bool { return r.slot == slot })
		k.changedWidely()
	} else {
		k.changedLink(l)
	}
	k.byName = removeRef(k.byName, l.name)
	if l.alias != "" {
		k.byAlias = removeRef(k.byAlias, l.alias)
	}
	k.links[slot] = link{}
	k.free = append(k.free, slot)
}

// rename gives a link another name, which no link has.
func (k *Kernel) rename(slot int32, name string) {
	l := &k.links[slot]
	k.byName = removeRef(k.byName, l.name)
	l.name = name
	k.byName = insertRef(k.byName, name, slot)
	k.changedLink(l)
}

func (k *Kernel) setAlias(slot int32, alias string) {
	l := &k.links[slot]
	if l.alias != "" {
		k.byAlias = removeRef(k.byAlias, l.alias)
	}
	l.alias = alias
	if alias != "" {
		k.byAlias = insertRef(k.byAlias, alias, slot)
	}
	k.changedLink(l)
}

// setUp brings a link up, with the subnet routes of its addresses, or down, which loses every route
// through it (fib_disable_ip) and its proxy neighbours (neigh_ifdown).
func (k *Kernel) setUp(slot int32, up bool) {
	l := &k.links[slot]
	if l.up == up {
		return
	}
	l.up = up
	if !up {
		k.removeRoutesOf(slot)
		l.proxy = nil
	} else {
		k.addSubnetRoutes(slot)
	}
	k.changedEither(l)
}

func (k *Kernel) changedEither(l *link) {
	if l.eni {
		k.changedWidely()
	} else {
		k.changedLink(l)
	}
}

// addSubnetRoutes makes the routes that come with addresses, after any that are there already.
func (k *Kernel) addSubnetRoutes(slot int32) {
	for _, p := range k.links[slot].addresses {
		if !p.IsSingleIP() {
			k.insertRoute(route{table: dataplane.MainTable, dst: p.Masked(), slot: slot})
		}
	}
}

// setAddresses replaces a link's addresses and what comes with them.
func (k *Kernel) setAddresses(slot int32, addresses []netip.Prefix) {
	l := &k.links[slot]
	for _, p := range l.addresses {
		k.removeRoute(dataplane.MainTable, p.Masked(), slot)
	}
	l.addresses = addresses
	if l.up {
		k.addSubnetRoutes(slot)
	}
	k.changedEither(l)
}

// Plug makes an ENI's device appear: down, without address. A MAC that is there already is left alone.
func (k *Kernel) Plug(mac string) {
	if k.plugged(mac) != none {
		return
	}
	slot := k.addLink(link{name: k.freeName(), mac: mac, eni: true, mtu: bootMTU, rpFilter: strictFilter})
	k.enis = append(k.enis, ref{mac, slot})
	k.changedWidely()
}

// PlugPrimary makes device 0 appear as the machine's own network configuration leaves it: up, with its
// address, the subnet's route and a default route in main. It is done again at every Reboot.
func (k *Kernel) PlugPrimary(mac string, address netip.Prefix, gateway netip.Addr) {
	k.Plug(mac)
	k.primary = primary{mac, address, gateway}
	slot := k.plugged(mac)
	k.setAddresses(slot, []netip.Prefix{address})
	k.setUp(slot, true)
	k.replaceRoute(route{table: dataplane.MainTable, dst: everywhere(), via: gateway, slot: slot})
}

// Unplug makes an ENI's device disappear, with its addresses and the routes through it.
func (k *Kernel) Unplug(mac string) {
	if slot := k.plugged(mac); slot != none {
		k.destroy(slot)
	}
	if k.primary.mac == mac {
		k.primary = primary{}
	}
}

// plugged is the slot of the ENI device that came with that MAC, whatever it has now, or none.
func (k *Kernel) plugged(mac string) int32 {
	for i := range k.enis {
		if k.enis[i].key == mac {
			return k.enis[i].slot
		}
	}
	return none
}

// freeName is the first free eth name.
func (k *Kernel) freeName() string {
	for n := 0; ; n++ {
		name := "eth" + strconv.Itoa(n)
		if k.slotByName(name) == none {
			return name
		}
	}
}

func everywhere() netip.Prefix { return netip.PrefixFrom(netip.IPv4Unspecified(), 0) }
