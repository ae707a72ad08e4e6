package linux

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
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
	r       *request
}

func newRule(comment string) ruleMaker { return ruleMaker{comment, &request{}} }

func (m ruleMaker) done() natRule { return natRule{m.comment, m.r.b} }

func (m ruleMaker) expression(name string, data func(r *request)) ruleMaker {
	r := m.r
	element := r.nest(unix.NFTA_LIST_ELEM)
	r.text(unix.NFTA_EXPR_NAME, name)
	at := r.nest(unix.NFTA_EXPR_DATA)
	data(r)
	r.end(at)
	r.end(element)
	return m
}

func (r *request) value(kind uint16, value []byte) {
	at := r.nest(kind)
	r.bytes(unix.NFTA_DATA_VALUE, value)
	r.end(at)
}

func host32(value uint32) []byte { return native.AppendUint32(nil, value) }

func (m ruleMaker) meta(key uint32) ruleMaker {
	return m.expression("meta", func(r *request) {
		r.be32(unix.NFTA_META_DREG, register)
		r.be32(unix.NFTA_META_KEY, key)
	})
}

func (m ruleMaker) compare(op uint32, value []byte) ruleMaker {
	return m.expression("cmp", func(r *request) {
		r.be32(unix.NFTA_CMP_SREG, register)
		r.be32(unix.NFTA_CMP_OP, op)
		r.value(unix.NFTA_CMP_DATA, value)
	})
}

// bits is register = register & and ^ xor.
func (m ruleMaker) bits(and, xor []byte) ruleMaker {
	return m.expression("bitwise", func(r *request) {
		r.be32(unix.NFTA_BITWISE_SREG, register)
		r.be32(unix.NFTA_BITWISE_DREG, register)
		r.be32(unix.NFTA_BITWISE_LEN, uint32(len(and)))
		r.value(unix.NFTA_BITWISE_MASK, and)
		r.value(unix.NFTA_BITWISE_XOR, xor)
	})
}

func (m ruleMaker) flow(key uint32) ruleMaker {
	return m.expression("ct", func(r *request) {
		r.be32(unix.NFTA_CT_DREG, register)
		r.be32(unix.NFTA_CT_KEY, key)
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
	return m.meta(metaIIFKind).compare(cmpEqual, padded(vethKind))
}

// local: its destination is an address of this node, or, with NFTA_FIB_F_IIF, of the link it came in by.
func (m ruleMaker) local(flags uint32) ruleMaker {
	return m.expression("fib", func(r *request) {
		r.be32(unix.NFTA_FIB_DREG, register)
		r.be32(unix.NFTA_FIB_RESULT, unix.NFT_FIB_RESULT_ADDRTYPE)
		r.be32(unix.NFTA_FIB_FLAGS, flags)
	}).compare(cmpEqual, host32(unix.RTN_LOCAL))
}

// destination: its destination is in that prefix.
func (m ruleMaker) destination(p netip.Prefix) ruleMaker {
	and, first := mask(p), p.Masked().Addr().As4()
	return m.expression("payload", func(r *request) {
		r.be32(unix.NFTA_PAYLOAD_DREG, register)
		r.be32(unix.NFTA_PAYLOAD_BASE, networkHeader)
		r.be32(unix.NFTA_PAYLOAD_OFFSET, destinationOffset)
		r.be32(unix.NFTA_PAYLOAD_LEN, 4)
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

// ourBit sets bit 0x80 in the register and leaves the others as they are: they are somebody else's
// (amazon-vpc-cni-k8s #3872).
func (m ruleMaker) ourBit() ruleMaker {
	return m.bits(host32(^uint32(dataplane.Mark)), host32(dataplane.Mark))
}

// markFlow and markPacket set our bit.
func (m ruleMaker) markFlow() ruleMaker {
	return m.flow(ctMark).ourBit().expression("ct", func(r *request) {
		r.be32(unix.NFTA_CT_SREG, register)
		r.be32(unix.NFTA_CT_KEY, ctMark)
	})
}

func (m ruleMaker) markPacket() ruleMaker {
	return m.meta(metaMark).ourBit().expression("meta", func(r *request) {
		r.be32(unix.NFTA_META_SREG, register)
		r.be32(unix.NFTA_META_KEY, metaMark)
	})
}

// verdict ends the rule; a jump needs a chain.
func (m ruleMaker) verdict(code int32, chain string) ruleMaker {
	return m.expression("immediate", func(r *request) {
		r.be32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		data := r.nest(unix.NFTA_IMMEDIATE_DATA)
		v := r.nest(unix.NFTA_DATA_VERDICT)
		r.be32(unix.NFTA_VERDICT_CODE, uint32(code))
		if chain != "" {
			r.text(unix.NFTA_VERDICT_CHAIN, chain)
		}
		r.end(v)
		r.end(data)
	})
}

// translate gives the packet that source, and a port that nobody can guess.
func (m ruleMaker) translate(source netip.Addr) ruleMaker {
	addr := source.As4()
	return m.expression("immediate", func(r *request) {
		r.be32(unix.NFTA_IMMEDIATE_DREG, register)
		r.value(unix.NFTA_IMMEDIATE_DATA, addr[:])
	}).expression("nat", func(r *request) {
		r.be32(unix.NFTA_NAT_TYPE, unix.NFT_NAT_SNAT)
		r.be32(unix.NFTA_NAT_FAMILY, unix.AF_INET)
		r.be32(unix.NFTA_NAT_REG_ADDR_MIN, register)
		r.be32(unix.NFTA_NAT_FLAGS, natRandomFully|natMapAddress)
	})
}
