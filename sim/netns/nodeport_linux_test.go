package netns_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// nodePort is one of those that a cluster gives to services.
const nodePort = 30080

// What comes in for a node's port and is led to a pod on a secondary ENI has to leave by the primary one again, whose address the caller
// asked. Without AWS_VPC_CNI_NODE_PORT_SUPPORT it leaves by the pod's own ENI, and the VPC drops it.
func TestNodePort(t *testing.T) {
	if testing.Short() {
		t.Skip("eight seconds of packets through two daemons: leave -short out")
	}
	for _, supported := range []bool{true, false} {
		t.Run(fmt.Sprintf("supported=%v", supported), func(t *testing.T) {
			w := open(t, fmt.Sprintf(twoNodes, fmt.Sprintf("AWS_VPC_CNI_NODE_PORT_SUPPORT=%v", supported)))
			for _, secondary := range []bool{false, true} {
				pod := somewhere(t, w, 1, secondary)[0]
				forward(t, w, pod)
				text, err := dialNodePort(w)
				answers := supported || !secondary
				if (err == nil) != answers {
					t.Errorf("a pod on a %s ENI by node-1's port: %q, %v; expected an answer: %v", eni(secondary), text, err, answers)
				}
				if err == nil && text != w.Network().Witness().String() {
					t.Errorf("the pod sees %s, expected the caller, %v", text, w.Network().Witness())
				}
			}
		})
	}
}

// The way back is the primary ENI's cable.
func TestNodePortReturnsByThePrimary(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: connections that time out")
	}
	w := open(t, fmt.Sprintf(twoNodes, ""))
	pod := somewhere(t, w, 1, true)[0]
	mac, address := w.Primary(1)
	forward(t, w, pod)
	packets := capture(t, w)
	must.Get(dialNodePort(w))(t)
	await(t, packets, fmt.Sprintf("a packet from %v to the caller", address), func(p *vpc.Packet) bool {
		src, dst := addresses(p.Data)
		if p.Sent || dst != w.Network().Witness() {
			return false
		}
		if src != address || p.MAC != mac {
			t.Errorf("a packet from %v returned by the cable of %s, expected %v by the primary's, %s", src, p.MAC, address, mac)
		}
		return true
	})
}

// refusedIn is how long nobody has to answer for a connection to be given up, in real time: longer than the first repetition of a SYN.
const refusedIn = 1500 * time.Millisecond

// dialNodePort asks node-1's port from the far side of the VPC.
func dialNodePort(w *netns.World) (string, error) {
	_, address := w.Primary(1)
	ctx, stop := context.WithTimeout(context.Background(), refusedIn)
	defer stop()
	c, err := w.Network().Dial(ctx, netip.AddrPortFrom(address, nodePort))
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(refusedIn))
	text, err := io.ReadAll(c)
	return strings.TrimSpace(string(text)), err
}

// forward leads node-1's port to a pod, as kube-proxy does.
func forward(t *testing.T, w *netns.World, to netns.Spot) {
	t.Helper()
	must.Do(t, vpc.Do(w.Handle(1).Box().Netns(), func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "services"})
		c.FlushTable(table)
		chain := c.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{nodePort >> 8, nodePort & 0xff}},
			&expr.Immediate{Register: 1, Data: to.Address.AsSlice()},
			&expr.Immediate{Register: 2, Data: []byte{node.ResponderPort >> 8, node.ResponderPort & 0xff}},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
		}})
		return errors.Join(c.Flush(), c.CloseLasting())
	}))
}
