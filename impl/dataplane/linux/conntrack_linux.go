package linux

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

// Messages and attributes of linux/netfilter/nfnetlink_conntrack.h.
const (
	conntrackGet    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	conntrackDelete = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2

	ctaTupleOriginal = 1
	ctaTupleReply    = 2
	ctaID            = 12
	ctaZone          = 18
	ctaFilter        = 25

	ctaTupleIP = 1
	ctaIPv4Src = 1

	filterIPSource = 1 << 0
)

// flushConntrack forgets the flows that an address began, and those that reach it, also by another
// name (a service's): there, the answer comes from it. The kernel filters the dump (Linux 5.8); it has
// no way to delete by filter.
func (k *Kernel) flushConntrack(addr netip.Addr) error {
	if !addr.IsValid() {
		return failed(dataplane.Invalid, "the address is missing")
	}
	k.netfilter.Lock()
	defer k.netfilter.Unlock()
	for _, side := range []uint16{ctaTupleOriginal, ctaTupleReply} {
		if err := k.flushSide(addr, side); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) flushSide(addr netip.Addr, side uint16) error {
	r := k.nft.reset()
	r.netfilter(conntrackGet, unix.NLM_F_DUMP, unix.AF_INET, 0)
	tuple := r.nest(side)
	ip := r.nest(ctaTupleIP)
	r.ip(ctaIPv4Src, addr)
	r.end(ip)
	r.end(tuple)
	filter := r.nest(ctaFilter)
	r.u32(side, filterIPSource) // CTA_FILTER_ORIG_FLAGS and _REPLY_FLAGS have the sides' numbers, and the host's byte order
	r.end(filter)

	var victims request
	err := k.flows.dump(r, func(body []byte) {
		if len(body) >= nfgenHeader && source(body[nfgenHeader:], side) == addr {
			victims.deleteFlow(body[nfgenHeader:])
		}
	})
	if err != nil && err != errInterrupted { // what is new since then is not a flow of the removed pod
		return err
	}
	return k.forgetFlows(victims.b)
}

const nfgenHeader = 4 // struct nfgenmsg

// source is the source address of one side of a flow.
func source(flow []byte, side uint16) (addr netip.Addr) {
	for c := (cursor{rest: flow}); c.next(); {
		if c.kind != side {
			continue
		}
		for tuple := (cursor{rest: c.value}); tuple.next(); {
			if tuple.kind != ctaTupleIP {
				continue
			}
			for ip := (cursor{rest: tuple.value}); ip.next(); {
				if ip.kind == ctaIPv4Src {
					addr = ip.ip()
				}
			}
		}
	}
	return addr
}

// deleteFlow is the message that deletes exactly the flow that was dumped.
func (r *request) deleteFlow(flow []byte) {
	r.netfilter(conntrackDelete, unix.NLM_F_ACK, unix.AF_INET, 0)
	for c := (cursor{rest: flow}); c.next(); {
		switch c.kind {
		case ctaTupleOriginal:
			r.bytes(c.kind|unix.NLA_F_NESTED, c.value)
		case ctaZone, ctaID:
			r.bytes(c.kind, c.value)
		}
	}
	r.finish()
}

// forgetFlows sends the messages one by one: a pod may have had thousands of flows, and their
// acknowledgements must fit into the socket.
func (k *Kernel) forgetFlows(messages []byte) error {
	for len(messages) > 0 {
		size := int(native.Uint32(messages))
		one := request{b: messages[:size:size], n: 1}
		if err := k.flows.do(&one); err != nil && !is(err, unix.ENOENT) { // it ended by itself
			return err
		}
		messages = messages[size:]
	}
	return nil
}
