package kernel

import (
	"net/netip"
	"slices"
)

// namespace is a pod's network namespace. It lives while it is mounted or held.
type namespace struct {
	inode   uint64
	mounted bool
	holds   int // processes that keep it alive
	ends    int // veth ends in it
}

// holder is an address configured in a live namespace, by which link.
type holder struct {
	address netip.Addr
	inode   uint64
	slot    int32
}

// firstInode is where the inodes of namespaces begin (PROC_DYNAMIC_FIRST is 0xF0000000; a booted
// system has used some).
const firstInode = 0xF0000000 + 256

func (k *Kernel) searchNamespace(inode uint64) (int, bool) {
	lo, hi := 0, len(k.namespaces)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if k.namespaces[mid].inode < inode {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(k.namespaces) && k.namespaces[lo].inode == inode
}

func (k *Kernel) namespace(inode uint64) *namespace {
	if at, ok := k.searchNamespace(inode); ok {
		return &k.namespaces[at]
	}
	return nil
}

// NewNamespace makes a namespace that the runtime has mounted, and returns its inode: the lowest that
// no living namespace has.
func (k *Kernel) NewNamespace() uint64 {
	lo, hi := 0, len(k.namespaces) // the first place whose inode is not firstInode + place
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if k.namespaces[mid].inode == firstInode+uint64(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	inode := firstInode + uint64(lo)
	k.namespaces = slices.Insert(k.namespaces, lo, namespace{inode: inode, mounted: true})
	k.generation++
	return inode
}

// NamespaceExists says whether there is a namespace of that inode.
func (k *Kernel) NamespaceExists(inode uint64) bool { return k.namespace(inode) != nil }

// CloseNamespace is the runtime that removes its mount. The namespace and its veths, both ends, are
// gone unless a process holds it. Unknown inodes are left alone.
func (k *Kernel) CloseNamespace(inode uint64) {
	if ns := k.namespace(inode); ns != nil && ns.mounted {
		ns.mounted = false
		k.generation++
		k.endNamespace(ns)
	}
}

// Hold is a process that cannot be killed (state D) and keeps the namespace alive.
func (k *Kernel) Hold(inode uint64) {
	if ns := k.namespace(inode); ns != nil {
		ns.holds++
		k.generation++
	}
}

// Release ends one Hold; the last one ends a namespace that is closed.
func (k *Kernel) Release(inode uint64) {
	if ns := k.namespace(inode); ns != nil && ns.holds > 0 {
		ns.holds--
		k.generation++
		k.endNamespace(ns)
	}
}

func (k *Kernel) endNamespace(ns *namespace) {
	if ns.mounted || ns.holds > 0 {
		return
	}
	inode := ns.inode
	if ns.ends > 0 {
		for slot := range k.links {
			if k.links[slot].netns == inode {
				k.destroy(int32(slot))
			}
		}
	}
	at, _ := k.searchNamespace(inode)
	k.namespaces = slices.Delete(k.namespaces, at, at+1)
}

// hasEnd says whether a namespace has an interface of that name.
func (k *Kernel) hasEnd(ns *namespace, name string) bool {
	if ns.ends == 0 {
		return false
	}
	for slot := range k.links {
		if l := &k.links[slot]; l.netns == ns.inode && l.podName == name {
			return true
		}
	}
	return false
}

// searchHolder is the place of the first holder not before (a, inode).
func (k *Kernel) searchHolder(a netip.Addr, inode uint64) int {
	lo, hi := 0, len(k.holders)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		h := &k.holders[mid]
		if c := h.address.Compare(a); c < 0 || c == 0 && h.inode < inode {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (k *Kernel) addHolder(a netip.Addr, inode uint64, slot int32) {
	at := k.searchHolder(a, inode)
	k.holders = slices.Insert(k.holders, at, holder{a, inode, slot})
}

func (k *Kernel) removeHolder(a netip.Addr, inode uint64, slot int32) {
	for at := k.searchHolder(a, inode); at < len(k.holders); at++ {
		h := &k.holders[at]
		if h.address != a || h.inode != inode {
			return
		}
		if h.slot == slot {
			k.holders = slices.Delete(k.holders, at, at+1)
			return
		}
	}
}

// InUse is the namespace (the one of the lowest inode) in which an address is configured.
func (k *Kernel) InUse(a netip.Addr) (inode uint64, ok bool) {
	at := k.searchHolder(a, 0)
	if at == len(k.holders) || k.holders[at].address != a {
		return 0, false
	}
	return k.holders[at].inode, true
}

// Holders is how many live namespaces have an address configured. More than one is the accident that
// everything here is about.
func (k *Kernel) Holders(a netip.Addr) int {
	n, inode := 0, uint64(0)
	for at := k.searchHolder(a, 0); at < len(k.holders) && k.holders[at].address == a; at++ {
		if k.holders[at].inode != inode {
			n, inode = n+1, k.holders[at].inode
		}
	}
	return n
}

// LiveAddresses calls yield with every address configured in a live namespace, by address, then inode.
func (k *Kernel) LiveAddresses(yield func(inode uint64, a netip.Addr)) {
	for i := range k.holders {
		yield(k.holders[i].inode, k.holders[i].address)
	}
}
