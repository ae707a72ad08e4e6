package linux

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// Numbers of linux/netfilter/nf_tables.h and nf_conntrack_common.h that x/sys/unix lacks.
const (
	metaMark    = 3
	metaIIFName = 6
	metaOIFName = 7
	metaIIFKind = 26 // Linux 5.1

	ctState = 0
	ctMark  = 3
	ctNew   = 1 << 3 // NF_CT_STATE_BIT(IP_CT_NEW)

	cmpEqual    = 0
	cmpNotEqual = 1

	verdictAccept = 1 // NF_ACCEPT

	register = 1 // the only one we use

	natRandomFully = 1 << 4 // NF_NAT_RANGE_PROTO_RANDOM_FULLY
	natMapAddress  = 1 << 0 // NF_NAT_RANGE_MAP_IPS, which the kernel adds

	networkHeader     = 1 // NFT_PAYLOAD_NETWORK_HEADER
	destinationOffset = 16
)

// ruleMaker writes a rule's expressions, each as the kernel dumps it.
type ruleMaker struct {
	comment string
	r       *netlink.Request
}

func newRule(comment string) ruleMaker { return ruleMaker{comment, &netlink.Request{}} }

func (m ruleMaker) done() natRule { return natRule{m.comment, m.r.B} }

func (m ruleMaker) expression(name string, data func(r *netlink.Request)) ruleMaker {
	r := m.r
	element := r.Nest(unix.NFTA_LIST_ELEM)
	r.Text(unix.NFTA_EXPR_NAME, name)
	at := r.Nest(unix.NFTA_EXPR_DATA)
	data(r)
	r.End(at)
	r.End(element)
	return m
}

func dataValue(r *netlink.Request, kind uint16, value []byte) {
	at := r.Nest(kind)
	r.Bytes(unix.NFTA_DATA_VALUE, value)
	r.End(at)
}

func host32(value uint32) []byte { return netlink.Native.AppendUint32(nil, value) }

func (m ruleMaker) meta(key uint32) ruleMaker {
	return m.expression("meta", func(r *netlink.Request) {
		r.BE32(unix.NFTA_META_DREG, register)
		r.BE32(unix.NFTA_META_KEY, key)
	})
}

func (m ruleMaker) compare(op uint32, value []byte) ruleMaker {
	return m.expression("cmp", func(r *netlink.Request) {
		r.BE32(unix.NFTA_CMP_SREG, register)
		r.BE32(unix.NFTA_CMP_OP, op)
		dataValue(r, unix.NFTA_CMP_DATA, value)
	})
}

// bits is register = register & and ^ xor.
func (m ruleMaker) bits(and, xor []byte) ruleMaker {
	return m.expression("bitwise", func(r *netlink.Request) {
		r.BE32(unix.NFTA_BITWISE_SREG, register)
		r.BE32(unix.NFTA_BITWISE_DREG, register)
		r.BE32(unix.NFTA_BITWISE_LEN, uint32(len(and)))
		dataValue(r, unix.NFTA_BITWISE_MASK, and)
		dataValue(r, unix.NFTA_BITWISE_XOR, xor)
	})
}

func (m ruleMaker) flow(key uint32) ruleMaker {
	return m.expression("ct", func(r *netlink.Request) {
		r.BE32(unix.NFTA_CT_DREG, register)
		r.BE32(unix.NFTA_CT_KEY, key)
	})
}

// link: the packet came in by, or leaves by, the link of that name. A name outlives a driver that is loaded anew; an index
// does not.
func (m ruleMaker) link(key uint32, name string) ruleMaker {
	return m.meta(key).compare(cmpEqual, padded(name))
}

// padded is a name as the kernel compares it: as long as the longest, with NULs behind.
func padded(name string) []byte {
	var b [unix.IFNAMSIZ]byte
	copy(b[:], name)
	return b[:]
}

// fromVeth: it came in by a veth, as pods' packets do; a link without a kind ends the rule.
func (m ruleMaker) fromVeth() ruleMaker {
	return m.meta(metaIIFKind).compare(cmpEqual, padded(netlink.VethKind))
}

// local: its destination is an address of this node, or, with NFTA_FIB_F_IIF, of the link it came in by.
func (m ruleMaker) local(flags uint32) ruleMaker {
	return m.expression("fib", func(r *netlink.Request) {
		r.BE32(unix.NFTA_FIB_DREG, register)
		r.BE32(unix.NFTA_FIB_RESULT, unix.NFT_FIB_RESULT_ADDRTYPE)
		r.BE32(unix.NFTA_FIB_FLAGS, flags)
	}).compare(cmpEqual, host32(unix.RTN_LOCAL))
}

// destination: its destination is in that prefix.
func (m ruleMaker) destination(p netip.Prefix) ruleMaker {
	and, first := mask(p), p.Masked().Addr().As4()
	return m.expression("payload", func(r *netlink.Request) {
		r.BE32(unix.NFTA_PAYLOAD_DREG, register)
		r.BE32(unix.NFTA_PAYLOAD_BASE, networkHeader)
		r.BE32(unix.NFTA_PAYLOAD_OFFSET, destinationOffset)
		r.BE32(unix.NFTA_PAYLOAD_LEN, 4)
	}).bits(and[:], make([]byte, 4)).compare(cmpEqual, first[:])
}

// newFlow: nothing has answered its flow yet.
func (m ruleMaker) newFlow() ruleMaker {
	return m.flow(ctState).bits(host32(ctNew), host32(0)).compare(cmpNotEqual, host32(0))
}

// flowMarked: its flow has our bit.
func (m ruleMaker) flowMarked() ruleMaker {
	return m.flow(ctMark).bits(host32(dataplane.Mark), host32(0)).compare(cmpEqual, host32(dataplane.Mark))
}

// ourBit sets bit 0x80 in the register and leaves the others as they are: they are other programs'
// (amazon-vpc-cni-k8s #3872).
func (m ruleMaker) ourBit() ruleMaker {
	return m.bits(host32(^uint32(dataplane.Mark)), host32(dataplane.Mark))
}

// markFlow and markPacket set our bit.
func (m ruleMaker) markFlow() ruleMaker {
	return m.flow(ctMark).ourBit().expression("ct", func(r *netlink.Request) {
		r.BE32(unix.NFTA_CT_SREG, register)
		r.BE32(unix.NFTA_CT_KEY, ctMark)
	})
}

func (m ruleMaker) markPacket() ruleMaker {
	return m.meta(metaMark).ourBit().expression("meta", func(r *netlink.Request) {
		r.BE32(unix.NFTA_META_SREG, register)
		r.BE32(unix.NFTA_META_KEY, metaMark)
	})
}

// count counts the packets that come here, as every rule of iptables does.
func (m ruleMaker) count() ruleMaker { return m.expression("counter", func(*netlink.Request) {}) }

// verdict ends the rule; a jump needs a chain.
func (m ruleMaker) verdict(code int32, chain string) ruleMaker {
	return m.expression("immediate", func(r *netlink.Request) {
		r.BE32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		data := r.Nest(unix.NFTA_IMMEDIATE_DATA)
		v := r.Nest(unix.NFTA_DATA_VERDICT)
		r.BE32(unix.NFTA_VERDICT_CODE, uint32(code))
		if chain != "" {
			r.Text(unix.NFTA_VERDICT_CHAIN, chain)
		}
		r.End(v)
		r.End(data)
	})
}

// translate gives the packet that source, and a random port.
func (m ruleMaker) translate(source netip.Addr) ruleMaker {
	addr := source.As4()
	return m.expression("immediate", func(r *netlink.Request) {
		r.BE32(unix.NFTA_IMMEDIATE_DREG, register)
		dataValue(r, unix.NFTA_IMMEDIATE_DATA, addr[:])
	}).expression("nat", func(r *netlink.Request) {
		r.BE32(unix.NFTA_NAT_TYPE, unix.NFT_NAT_SNAT)
		r.BE32(unix.NFTA_NAT_FAMILY, unix.AF_INET)
		r.BE32(unix.NFTA_NAT_REG_ADDR_MIN, register)
		r.BE32(unix.NFTA_NAT_FLAGS, natRandomFully|natMapAddress)
	})
}
