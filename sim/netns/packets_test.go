package netns_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// twoNodes has pods on the primary and on a secondary ENI of both nodes: an ENI of an m5.large carries 9, and there are two.
const twoNodes = `# Two nodes, and nothing happens.
cluster nodes=2 type=m5.large subnet=10.0.40.0/24 runtime=containerd
config  MAX_ENI=2 %s
start   pods web 14 on node-*
always  "every live pod is reachable"
at 1s   expect kube pods.ready == 28
`

// answerIn bounds what a TCP connection may take, in real time. A first packet may be lost while an ARP entry is made: one second.
const answerIn = 5 * time.Second

// somewhere finds pods on a node, on its primary or on a secondary ENI.
func somewhere(t *testing.T, w *netns.World, on int, secondary bool) []netns.Spot {
	t.Helper()
	var out []netns.Spot
	for _, p := range w.Pods() {
		if p.Node == on && p.Secondary == secondary {
			out = append(out, p)
		}
	}
	if len(out) < 2 {
		t.Fatalf("node-%d has %d pods with secondary ENI = %v, expected two at least", on, len(out), secondary)
	}
	return out
}

func eni(secondary bool) string {
	if secondary {
		return "secondary"
	}
	return "primary"
}

// seen asks a TCP service from a pod, and gives the address that it sees.
func seen(t *testing.T, w *netns.World, from netns.Spot, to netip.AddrPort) netip.Addr {
	t.Helper()
	text, _, err := w.Handle(from.Node).Box().Ask(from.Inode, to, answerIn)
	if err != nil {
		t.Errorf("%s (%v on node-%d) asks %v: %v", from.Pod, from.Address, from.Node, to, err)
		return netip.Addr{}
	}
	return must.Get(netip.ParseAddr(text))(t)
}

// Pods reach each other by their own addresses, on one node and on two, whichever ENIs they are on.
func TestPodsReachPods(t *testing.T) {
	w := open(t, fmt.Sprintf(twoNodes, ""))
	for _, there := range []int{1, 2} {
		for _, a := range []bool{false, true} {
			for _, b := range []bool{false, true} {
				from, to := somewhere(t, w, 1, a)[0], somewhere(t, w, there, b)[1]
				if got := seen(t, w, from, netip.AddrPortFrom(to.Address, node.ResponderPort)); got != from.Address {
					t.Errorf("node-1 %s to node-%d %s: %s is seen as %v, expected its own %v", eni(a), there, eni(b), from.Pod, got, from.Address)
				}
			}
		}
	}
}

// The packets are real: the router sees each of them, on the cable of the ENI that the pod's address belongs to.
func TestPacketsAreSeenInTheRouter(t *testing.T) {
	w := open(t, fmt.Sprintf(twoNodes, ""))
	for _, secondary := range []bool{false, true} {
		from, to := somewhere(t, w, 1, secondary)[0], somewhere(t, w, 2, secondary)[0]
		packets := capture(t, w)
		seen(t, w, from, netip.AddrPortFrom(to.Address, node.ResponderPort))
		left, came := false, false
		await(t, packets, fmt.Sprintf("a packet from %v by cable %s and on to %v by cable %s", from.Address, from.MAC, to.Address, to.MAC), func(p *vpc.Packet) bool {
			src, dst := addresses(p.Data)
			if src == from.Address && dst == to.Address {
				left = left || !p.Sent && p.MAC == from.MAC
				came = came || p.Sent && p.MAC == to.MAC
			}
			return left && came
		})
	}
}

// capture are the packets of the VPC from now on.
func capture(t *testing.T, w *netns.World) <-chan vpc.Packet {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	return must.Get(w.Network().Capture(ctx, "any"))(t)
}

// await reads packets until one is what a test waits for.
func await(t *testing.T, packets <-chan vpc.Packet, what string, is func(*vpc.Packet) bool) {
	t.Helper()
	late := time.After(answerIn)
	for {
		select {
		case p, ok := <-packets:
			if !ok {
				t.Fatalf("the capture ended before %s", what)
			}
			if is(&p) {
				return
			}
		case <-late:
			t.Fatalf("%v went by without %s", answerIn, what)
		}
	}
}

// addresses are an IPv4 packet's source and destination; others have none.
func addresses(frame []byte) (src, dst netip.Addr) {
	const header = 14 // of Ethernet
	if len(frame) < header+20 || frame[12] != 0x08 || frame[13] != 0x00 {
		return
	}
	ip := frame[header:]
	return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
}

// The internet sees the node's address, or the pod's where somebody else translates (AWS_VPC_K8S_CNI_EXTERNALSNAT).
func TestTheInternetSees(t *testing.T) {
	for _, external := range []bool{false, true} {
		t.Run(fmt.Sprintf("external=%v", external), func(t *testing.T) {
			w := open(t, fmt.Sprintf(twoNodes, fmt.Sprintf("AWS_VPC_K8S_CNI_EXTERNALSNAT=%v", external)))
			_, primary := w.Primary(1)
			for _, secondary := range []bool{false, true} {
				p := somewhere(t, w, 1, secondary)[0]
				want := primary
				if external {
					want = p.Address
				}
				if got := seen(t, w, p, w.Network().InternetAddr()); got != want {
					t.Errorf("%s on a %s ENI is seen as %v, expected %v (the pod has %v, the node %v)", p.Pod, eni(secondary), got, want, p.Address, primary)
				}
			}
		})
	}
}
