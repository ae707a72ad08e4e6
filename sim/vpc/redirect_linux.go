package vpc

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// redirectTable is the name of what Redirect makes.
const redirectTable = "enilab-redirect"

// Redirect lets TCP connections to from arrive at to, those of a namespace's own processes and those that it forwards. Whoever listens at to holds
// no port of from's number, which another process of the namespace may want at all addresses. It is one table of nftables, and goes with the namespace.
func Redirect(ns *os.File, from, to netip.AddrPort) error {
	err := control(ns, func(fd int) error {
		c, err := nftables.New(nftables.WithNetNSFd(fd))
		if err != nil {
			return err
		}
		table := c.AddTable(&nftables.Table{Name: redirectTable, Family: nftables.TableFamilyIPv4})
		before := nftables.ChainPriorityRef(*nftables.ChainPriorityNATDest - 1) // kube-proxy's: what is translated first stays so
		for name, hook := range map[string]*nftables.ChainHook{"out": nftables.ChainHookOutput, "in": nftables.ChainHookPrerouting} {
			chain := c.AddChain(&nftables.Chain{Table: table, Name: name, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: before})
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: translate(from, to)})
		}
		return c.Flush()
	})
	if err != nil {
		return fmt.Errorf("make nftables table ip %s, which sends %v to %v: %w", redirectTable, from, to, err)
	}
	return nil
}

// translate is ip daddr FROM tcp dport FROM dnat to TO.
func translate(from, to netip.AddrPort) []expr.Any {
	const register1 = register0 + 1
	return []expr.Any{
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: from.Addr().AsSlice()},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register0},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register0, Data: binary.BigEndian.AppendUint16(nil, from.Port())},
		&expr.Immediate{Register: register0, Data: to.Addr().AsSlice()},
		&expr.Immediate{Register: register1, Data: binary.BigEndian.AppendUint16(nil, to.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register0, RegProtoMin: register1, Specified: true},
	}
}
