package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/splitmix"
)

// Kernel is one node's kernel. The zero value is not usable; see New.
type Kernel struct {
	random     uint64 // state of the generator
	generation uint64

	links     []link  // by slot; a slot is reused, so everything else may name a link by it
	free      []int32 // slots without a link
	byName    []ref
	byAlias   []ref
	enis      []ref // ENI devices by the MAC they were plugged in with, in that order
	nextIndex int
	last      int32 // slot of the veth last looked up: a plan is about one
	primary   primary

	namespaces []namespace // by inode
	holders    []holder    // by address, then inode

	routes []route          // by table, longest prefix, address; equals in order of insertion
	to     []addressRule    // rules "to" one address
	from   []addressRule    // rules "from" one address
	wide   []dataplane.Rule // all others, in dataplane.CompareRules' order

	nat      dataplane.NAT
	natLink  string         // the name that nat.Device's link had then, which the rules are about
	natCIDRs []netip.Prefix // nat.CIDRs, parsed; replaced, never changed
	forward  dataplane.Forward
	flows    []netip.Addr // addresses that conntrack knows flows of, sorted

	interrupted int // how many of the next dumps will be incomplete

	changedAddrs, drained []netip.Addr
	changedAll            bool
}

// primary is what the machine's own network configuration (DHCP) gives device 0, at every boot.
type primary struct {
	mac     string
	address netip.Prefix
	gateway netip.Addr
}

// New is a freshly booted kernel without any device.
func New(seed uint64) *Kernel {
	return &Kernel{random: seed, nextIndex: firstIndex}
}

// firstIndex is the first device's index; 1 is lo.
const firstIndex = 2

// Clone is a deep copy: nothing done to one is seen by the other.
func (k *Kernel) Clone() *Kernel {
	c := *k
	c.links = slices.Clone(k.links) // the lists inside a link are replaced, never changed
	c.free = slices.Clone(k.free)
	c.byName = slices.Clone(k.byName)
	c.byAlias = slices.Clone(k.byAlias)
	c.enis = slices.Clone(k.enis)
	c.namespaces = slices.Clone(k.namespaces)
	c.holders = slices.Clone(k.holders)
	c.routes = slices.Clone(k.routes)
	c.to = slices.Clone(k.to)
	c.from = slices.Clone(k.from)
	c.wide = slices.Clone(k.wide)
	c.flows = slices.Clone(k.flows)
	c.changedAddrs = slices.Clone(k.changedAddrs)
	c.drained = nil
	return &c
}

// Generation grows with every change, and only then.
func (k *Kernel) Generation() uint64 { return k.generation }

// maxChanged bounds the list of changed addresses; past it, "all" is cheaper than a longer list.
const maxChanged = 256

// Changed returns the addresses whose reachability may have changed since the last call: those listed, in order
// of change and possibly repeated, or all of them after a wide change (an ENI, a table, the NAT). The
// list is valid until the next call.
func (k *Kernel) Changed() (addresses []netip.Addr, all bool) {
	addresses, all = k.changedAddrs, k.changedAll
	k.changedAddrs, k.drained, k.changedAll = k.drained[:0], k.changedAddrs, false
	return addresses, all
}

// changed records a change that concerns one address.
func (k *Kernel) changed(a netip.Addr) {
	k.generation++
	if k.changedAll {
		return
	}
	n := len(k.changedAddrs)
	if n > 0 && k.changedAddrs[n-1] == a {
		return
	}
	if n == maxChanged {
		k.changedWidely()
		return
	}
	k.changedAddrs = append(k.changedAddrs, a)
}

// changedLink records a change of a pod's link.
func (k *Kernel) changedLink(l *link) {
	k.generation++
	for _, a := range l.podAddresses {
		k.changed(a)
	}
}

// changedWidely records a change that may concern every address.
func (k *Kernel) changedWidely() {
	k.generation++
	k.changedAll = true
	k.changedAddrs = k.changedAddrs[:0]
}

// next is the next random number.
func (k *Kernel) next() uint64 { return splitmix.Next(&k.random) }
