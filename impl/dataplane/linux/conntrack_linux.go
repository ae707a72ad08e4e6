package linux

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// Messages and attributes of linux/netfilter/nfnetlink_conntrack.h.
const (
	conntrackGet    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	conntrackDelete = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2
	conntrackStats  = unix.NFNL_SUBSYS_CTNETLINK<<8 | 5

	ctaStatsEntries = 1

	ctaTupleOriginal = 1
	ctaTupleReply    = 2
	ctaID            = 12
	ctaZone          = 18
	ctaFilter        = 25

	ctaTupleIP = 1
	ctaIPv4Src = 1

	filterIPSource = 1 << 0
)

// walkable is for how many addresses the kernel walks the table itself, twice for each. To read all flows once takes as long as ten of its
// walks, and is one for any number of addresses.
const walkable = 4

// fewFlows is how many flows cost less to read than the two walks of one address whose dump is filtered.
const fewFlows = 4096

// flushConntrack forgets the flows that the addresses began, and those that reach them, also by another
// name (a service's): there, the answer comes from them. Both are found by a source address, of one side or of
// the other. Linux has one table for all namespaces, as large as memory suggests, and no index by
// address: each side is one walk. Since 6.11 the kernel deletes while it walks; before, it filters a
// dump (5.8), whose walk is many times as slow.
func (k *Kernel) flushConntrack(addrs []netip.Addr) error {
	for _, addr := range addrs {
		if !addr.Is4() {
			return failed(dataplane.Invalid, "the address is missing, or is not an IPv4 address: "+addr.String())
		}
	}
	k.flushing.Lock()
	defer k.flushing.Unlock()
	n, err := k.countFlows()
	if err != nil || n == 0 {
		return err
	}
	if k.filters && len(addrs) <= walkable {
		err := k.deleteFlows(addrs)
		if !netlink.Is(err, unix.EOPNOTSUPP) && !netlink.Is(err, unix.EINVAL) { // what older kernels say to a filter here
			return err
		}
		k.filters = false
	}
	if len(addrs) > walkable || n <= fewFlows*len(addrs) {
		return k.flushSides(addrs, ctaTupleOriginal, ctaTupleReply)
	}
	for i := range addrs {
		for _, side := range []uint16{ctaTupleOriginal, ctaTupleReply} {
			if err := k.flushSides(addrs[i:i+1], side); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Kernel) deleteFlows(addrs []netip.Addr) error {
	for _, addr := range addrs {
		for _, side := range []uint16{ctaTupleOriginal, ctaTupleReply} {
			if err := k.deleteSide(addr, side); err != nil {
				return err
			}
		}
	}
	return nil
}

// countFlows is how many flows the namespace has.
func (k *Kernel) countFlows() (n int, err error) {
	r := k.ct.Reset()
	r.Netfilter(conntrackStats, 0, unix.AF_UNSPEC, 0)
	body, err := k.flows.Get(r)
	if err != nil || len(body) < nfgenHeader {
		return 0, err
	}
	for c := netlink.Attributes(body[nfgenHeader:]); c.Next(); {
		if c.Kind == ctaStatsEntries {
			n = int(c.BE32())
		}
	}
	return n, nil
}

// bySource limits a request to the flows one of whose sides has that source.
func bySource(r *netlink.Request, addr netip.Addr, side uint16) {
	tuple := r.Nest(side)
	ip := r.Nest(ctaTupleIP)
	r.IP(ctaIPv4Src, addr)
	r.End(ip)
	r.End(tuple)
	filter := r.Nest(ctaFilter)
	r.U32(side, filterIPSource) // CTA_FILTER_ORIG_FLAGS and _REPLY_FLAGS have the sides' numbers, and the host's byte order
	r.End(filter)
}

func (k *Kernel) deleteSide(addr netip.Addr, side uint16) error {
	r := k.ct.Reset()
	r.Netfilter(conntrackDelete, unix.NLM_F_ACK, unix.AF_INET, 0)
	bySource(r, addr, side)
	return k.flows.Do(r)
}

// flushSides reads the flows, filtered by the kernel when it is about one side of one address, and deletes them one by one.
func (k *Kernel) flushSides(addrs []netip.Addr, sides ...uint16) error {
	r := k.ct.Reset()
	r.Netfilter(conntrackGet, unix.NLM_F_DUMP, unix.AF_INET, 0)
	if len(sides) == 1 && len(addrs) == 1 {
		bySource(r, addrs[0], sides[0])
	}
	wanted := make(map[netip.Addr]bool, len(addrs))
	for _, addr := range addrs {
		wanted[addr] = true
	}
	var victims netlink.Request
	err := k.flows.Dump(r, func(body []byte) {
		if len(body) < nfgenHeader {
			return
		}
		for _, side := range sides {
			if wanted[source(body[nfgenHeader:], side)] {
				deleteFlow(&victims, body[nfgenHeader:])
				return
			}
		}
	})
	if err != nil && err != netlink.ErrInterrupted { // what began meanwhile is not the removed pod's
		return err
	}
	return k.forgetFlows(victims.B)
}

const nfgenHeader = 4 // struct nfgenmsg

// source is the source address of one side of a flow.
func source(flow []byte, side uint16) (addr netip.Addr) {
	for c := netlink.Attributes(flow); c.Next(); {
		if c.Kind != side {
			continue
		}
		for tuple := netlink.Attributes(c.Value); tuple.Next(); {
			if tuple.Kind != ctaTupleIP {
				continue
			}
			for ip := netlink.Attributes(tuple.Value); ip.Next(); {
				if ip.Kind == ctaIPv4Src {
					addr = ip.IP()
				}
			}
		}
	}
	return addr
}

// deleteFlow is the message that deletes exactly the flow that was dumped.
func deleteFlow(r *netlink.Request, flow []byte) {
	r.Netfilter(conntrackDelete, unix.NLM_F_ACK, unix.AF_INET, 0)
	for c := netlink.Attributes(flow); c.Next(); {
		switch c.Kind {
		case ctaTupleOriginal:
			r.Bytes(c.Kind|unix.NLA_F_NESTED, c.Value)
		case ctaZone, ctaID:
			r.Bytes(c.Kind, c.Value)
		}
	}
	r.Finish()
}

// forgetFlows sends the messages one by one: a pod may have had thousands of flows, and their
// acknowledgements must fit into the socket.
func (k *Kernel) forgetFlows(messages []byte) error {
	for len(messages) > 0 {
		size := int(netlink.Native.Uint32(messages))
		one := netlink.Request{B: messages[:size:size], N: 1}
		if err := k.flows.Do(&one); err != nil && !netlink.Is(err, unix.ENOENT) { // it ended by itself
			return err
		}
		messages = messages[size:]
	}
	return nil
}
