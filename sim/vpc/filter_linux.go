package vpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// filter is the source check of the segment: rp_filter cannot tell ENIs apart that share a link. It is one table of nftables:
//
//	chain check {                                         # before anything else looks at a packet
//		type filter hook prerouting priority raw
//		iif SEGMENT ether saddr @joined ether saddr . ip saddr != @owned counter drop
//		ip daddr GATEWAY counter drop                     # of each subnet; a VPC's router does not answer
//	}
//	chain clamp {
//		type filter hook forward priority mangle
//		iif SEGMENT tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu
//		oif SEGMENT tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu
//	}
type filter struct {
	ns            *os.File
	conn          *nftables.Conn // nil: the next transaction opens one
	table         *nftables.Table
	joined, owned *nftables.Set
}

// filterTable is its name.
const filterTable = "enilab-vpc"

// newFilter fails where there is such a table already.
func newFilter(ns *os.File, s *segment) (*filter, error) {
	f := &filter{ns: ns, table: &nftables.Table{Name: filterTable, Family: nftables.TableFamilyIPv4}}
	// The library counts IDs that are not given in a variable of its own, without a lock.
	f.joined = &nftables.Set{ID: 1, Table: f.table, Name: "joined", KeyType: nftables.TypeEtherAddr}
	f.owned = &nftables.Set{ID: 2, Table: f.table, Name: "owned", Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeEtherAddr, nftables.TypeIPAddr)}
	err := f.do("make", func(c *nftables.Conn) error {
		c.CreateTable(f.table)
		if err := errors.Join(c.AddSet(f.joined, nil), c.AddSet(f.owned, nil)); err != nil {
			return err
		}
		check := c.AddChain(&nftables.Chain{Table: f.table, Name: "check", Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw})
		c.AddRule(&nftables.Rule{Table: f.table, Chain: check, Exprs: f.spoofed(s)})
		for _, subnet := range s.subnets {
			c.AddRule(&nftables.Rule{Table: f.table, Chain: check, Exprs: toRouter(subnet)})
		}
		clamp := c.AddChain(&nftables.Chain{Table: f.table, Name: "clamp", Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityMangle})
		for _, way := range []expr.MetaKey{expr.MetaKeyIIF, expr.MetaKeyOIF} {
			c.AddRule(&nftables.Rule{Table: f.table, Chain: clamp, Exprs: clampMSS(s, way)})
		}
		return nil
	})
	return f, err
}

// close removes the table; one that is gone is fine.
func (f *filter) close() error {
	err := gone(f.do("remove", func(c *nftables.Conn) error {
		c.DelTable(f.table)
		return nil
	}))
	return errors.Join(err, f.hangUp())
}

// do is one transaction: all of it, or nothing.
func (f *filter) do(what string, change func(*nftables.Conn) error) error {
	err := f.dial()
	if err == nil {
		if err = change(f.conn); err == nil {
			err = f.conn.Flush()
		}
		if err != nil { // answers may be left in the socket
			err = errors.Join(err, f.hangUp())
		}
	}
	if err != nil {
		return fmt.Errorf("%s nftables table ip %s: %w", what, filterTable, err)
	}
	return nil
}

// dial opens a socket that stays: the kernel takes 15 ms to close one that has removed something.
func (f *filter) dial() error {
	if f.conn != nil {
		return nil
	}
	return control(f.ns, func(fd int) (err error) {
		f.conn, err = nftables.New(nftables.WithNetNSFd(fd), nftables.AsLasting())
		return err
	})
}

func (f *filter) hangUp() error {
	c := f.conn
	f.conn = nil
	if c == nil {
		return nil
	}
	return c.CloseLasting()
}

// join begins to check a MAC.
func (f *filter) join(mac net.HardwareAddr, addrs []netip.Addr) error {
	return f.do("add to", func(c *nftables.Conn) error {
		return errors.Join(add(c, f.owned, pairs(mac, addrs)), add(c, f.joined, []nftables.SetElement{{Key: mac}}))
	})
}

func (f *filter) leave(mac net.HardwareAddr, addrs []netip.Addr) error {
	return f.do("take from", func(c *nftables.Conn) error {
		return errors.Join(take(c, f.joined, []nftables.SetElement{{Key: mac}}), take(c, f.owned, pairs(mac, addrs)))
	})
}

// allow lets a MAC send from a.
func (f *filter) allow(mac net.HardwareAddr, a netip.Addr) error {
	return f.do("add to", func(c *nftables.Conn) error { return add(c, f.owned, pairs(mac, []netip.Addr{a})) })
}

func (f *filter) refuse(mac net.HardwareAddr, a netip.Addr) error {
	return f.do("take from", func(c *nftables.Conn) error { return take(c, f.owned, pairs(mac, []netip.Addr{a})) })
}

// elementBatch is how many elements go into one message; the length of a netlink attribute has 16 bits.
const elementBatch = 512

func add(c *nftables.Conn, s *nftables.Set, all []nftables.SetElement) error {
	return batches(all, func(some []nftables.SetElement) error { return c.SetAddElements(s, some) })
}

func take(c *nftables.Conn, s *nftables.Set, all []nftables.SetElement) error {
	return batches(all, func(some []nftables.SetElement) error { return c.SetDeleteElements(s, some) })
}

func batches(all []nftables.SetElement, do func([]nftables.SetElement) error) error {
	for len(all) > 0 {
		n := min(len(all), elementBatch)
		if err := do(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// pairs are keys of owned: each part fills whole registers of four bytes.
func pairs(mac net.HardwareAddr, addrs []netip.Addr) []nftables.SetElement {
	out := make([]nftables.SetElement, len(addrs))
	for i, a := range addrs {
		out[i].Key = append(append(append([]byte(nil), mac...), 0, 0), a.AsSlice()...)
	}
	return out
}

// Registers of four bytes (linux/netfilter/nf_tables.h, NFT_REG32_00 and on). A register of sixteen bytes is four of them.
const (
	register0 = unix.NFT_REG32_00
	register2 = unix.NFT_REG32_00 + 2
)

// spoofed drops packets of joined ENIs with a source that they do not own.
func (f *filter) spoofed(s *segment) []expr.Any {
	source := expr.Payload{DestRegister: register0, Base: expr.PayloadBaseLLHeader, Offset: 6, Len: 6}
	return append(on(s, expr.MetaKeyIIF),
		&expr.Meta{Key: expr.MetaKeyIIFTYPE, Register: register0}, // so that nft can print the rule as above
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: binary.NativeEndian.AppendUint16(nil, unix.ARPHRD_ETHER)},
		&source,
		&expr.Lookup{SourceRegister: register0, SetName: f.joined.Name, SetID: f.joined.ID},
		&source,
		&expr.Payload{DestRegister: register2, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4},
		&expr.Lookup{SourceRegister: register0, SetName: f.owned.Name, SetID: f.owned.ID, Invert: true},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
}

// toRouter drops packets to a subnet's gateway.
func toRouter(subnet netip.Prefix) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: gateway(subnet).AsSlice()},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop},
	}
}

// clampMSS lowers what the SYN of a connection that crosses the segment says about TCP's segments. RtTCPMSS is the smaller MTU of both ways.
func clampMSS(s *segment, way expr.MetaKey) []expr.Any {
	const tcpFlags, syn, rst, maxSegment = 13, 2, 4, 2 // RFC 9293, section 3.1 and 3.2
	return append(on(s, way),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register0},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseTransportHeader, Offset: tcpFlags, Len: 1},
		&expr.Bitwise{SourceRegister: register0, DestRegister: register0, Len: 1, Mask: []byte{syn | rst}, Xor: []byte{0}},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: []byte{syn}},
		&expr.Rt{Register: register0, Key: expr.RtTCPMSS},
		&expr.Byteorder{SourceRegister: register0, DestRegister: register0, Op: expr.ByteorderHton, Len: 2, Size: 2},
		&expr.Exthdr{SourceRegister: register0, Type: maxSegment, Offset: 2, Len: 2, Op: expr.ExthdrOpTcpopt})
}

// on matches the link that a packet came by (iif) or goes by (oif).
func on(s *segment, way expr.MetaKey) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: way, Register: register0},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: binary.NativeEndian.AppendUint32(nil, uint32(s.index))},
	}
}
