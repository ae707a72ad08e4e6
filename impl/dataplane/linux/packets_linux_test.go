package linux

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

const (
	secondaryMAC = "0a:00:00:00:00:02"

	nodeAddress = "10.0.10.10"
	eniAddress  = "10.0.20.10"
	firstPod    = "10.0.10.20" // of the primary ENI
	secondPod   = "10.0.20.20" // of the secondary one
	peerAddress = "10.0.99.9"  // elsewhere in the VPC
	internet    = "198.51.100.7"
)

// site is a node with two ENIs and two pods, and the VPC around it: a router that takes a packet from an ENI only
// when it would send the answer there (a VPC's source check), another address of the VPC, and the world.
type site struct {
	t      *testing.T
	k      *Kernel
	router *space
	pods   [2]*space
	specs  [2]dataplane.PodSpec
}

func newSite(t *testing.T, o Options) *site {
	enterNew(t)
	s := &site{t: t, router: newSpace(t)}
	writeSysctl(t, "ip_forward", "1")
	writeSysctl(t, "conf/default/rp_filter", "1")
	plug(t, s.router, "eth0", primaryMAC, "r0")
	plug(t, s.router, "eth1", secondaryMAC, "r1")
	s.router.run(t, s.configureRouter)
	s.configureMachine()
	s.k = openHere(t, o)
	host := hostSpec(true, true)
	apply(t, s.k, dataplane.InitPlan(host), nil)
	s.host(true, true)
	apply(t, s.k, dataplane.ENIPlan(dataplane.ENISpec{MAC: secondaryMAC, Device: 1, Primary: netip.MustParseAddr(eniAddress),
		Subnet: netip.MustParsePrefix("10.0.20.0/24"), Table: 2, MTU: 1500}), nil)
	for i, a := range []string{firstPod, secondPod} {
		s.pods[i] = newSpace(t)
		addr := netip.MustParseAddr(a)
		s.specs[i] = dataplane.PodSpec{Alias: dataplane.Alias("aws-cni", fmt.Sprint("sandbox", i), "eth0", addr), Netns: s.pods[i].inode,
			HostVeth: dataplane.HostVethName("eni", "default", a), Address: addr, Table: dataplane.TableOf(i), MTU: 1500}
		apply(t, s.k, dataplane.PodPlan(s.specs[i]), s.pods[i].pod(t))
	}
	return s
}

// host writes the node's own part.
func (s *site) host(snat, nodePort bool) {
	w := hostSpec(snat, nodePort)
	w.MTU = 1500
	apply(s.t, s.k, dataplane.HostPlan(w), nil)
}

// configureMachine is what a machine image does with device 0.
func (s *site) configureMachine() {
	l := must.Get(netlink.LinkByName("eth0"))(s.t)
	must.Do(s.t, addAddress("eth0", nodeAddress+"/24"))
	must.Do(s.t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP("10.0.10.1")}))
}

func (s *site) configureRouter() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	for _, a := range [][2]string{{"r0", "10.0.10.1/24"}, {"r1", "10.0.20.1/24"}, {"lo", peerAddress + "/32"}, {"lo", internet + "/32"}} {
		if err == nil {
			err = addAddress(a[0], a[1])
		}
	}
	for pod, via := range map[string]string{firstPod: nodeAddress, secondPod: eniAddress} {
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.ParseIP(pod), Mask: net.CIDRMask(32, 32)}, Gw: net.ParseIP(via)})
		}
	}
	for _, name := range []string{"r0", "r1"} {
		if err == nil {
			err = setStrict(name)
		}
	}
	return err
}

func addAddress(link, address string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err = netlink.AddrAdd(l, a); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// serve answers every connection with the address it came from.
func (s *site) serve(where *space, address string) {
	var l net.Listener
	where.run(s.t, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	s.t.Cleanup(func() { l.Close() })
	go accept.Each(l.Accept, func(c net.Conn) {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		_, _ = io.WriteString(c, host)
		c.Close()
	})
}

// call connects and returns the address that the server saw. A nil where is the node itself.
func (s *site) call(where *space, from, to string, timeout time.Duration) (seen string, err error) {
	dial := func() error {
		d := net.Dialer{Timeout: timeout}
		if from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		c, err := d.Dial("tcp", to)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(timeout))
		b, err := io.ReadAll(c)
		seen = string(b)
		return err
	}
	if where == nil {
		return seen, dial()
	}
	err = where.in(dial)
	return seen, err
}

// sees fails unless the server sees that address.
func (s *site) sees(what string, where *space, from, to, want string) {
	s.t.Helper()
	if seen, err := s.call(where, from, to, 5*time.Second); err != nil || seen != want {
		s.t.Errorf("%s: the server saw %q, %v; expected %s", what, seen, err, want)
	}
}

func forEachKernel(t *testing.T, f func(t *testing.T, o Options)) {
	for _, o := range []Options{{}, {Floor: true}} {
		t.Run(fmt.Sprintf("floor=%v", o.Floor), func(t *testing.T) { f(t, o) })
	}
}

func TestPackets(t *testing.T) {
	forEachKernel(t, func(t *testing.T, o Options) {
		s := newSite(t, o)
		for i, a := range []string{firstPod, secondPod} {
			s.serve(s.pods[i], a+":80")
		}
		s.serve(s.router, internet+":80")
		s.serve(s.router, peerAddress+":80")
		s.inAndOut()
		s.nodePort()
		s.arp()
		s.renamed()
	})
}

func (s *site) inAndOut() {
	s.t.Helper()
	for i, a := range []string{firstPod, secondPod} {
		s.sees("from the world to "+a, s.router, internet, a+":80", internet)
		s.sees("from the VPC to "+a, s.router, peerAddress, a+":80", peerAddress)
		s.sees("from the node to "+a, nil, "", a+":80", nodeAddress)
		s.sees(a+" within the VPC", s.pods[i], "", peerAddress+":80", a)
		s.sees(a+" to the world", s.pods[i], "", internet+":80", nodeAddress)
	}
	s.sees("between the pods", s.pods[0], "", secondPod+":80", firstPod)
	s.sees("between the pods, back", s.pods[1], "", firstPod+":80", secondPod)
	s.host(false, true)
	for i, a := range []string{firstPod, secondPod} {
		s.sees(a+" to the world, translated elsewhere", s.pods[i], "", internet+":80", a)
	}
	s.host(true, true)
}

// nodePort plays kube-proxy: a port of the node is translated to the pod of the secondary ENI. A third party uses
// another bit of the flow's mark.
func (s *site) nodePort() {
	s.t.Helper()
	proxyPort(s.t, 30080, secondPod, 80)
	s.sees("a node port", s.router, internet, nodeAddress+":30080", internet)
	if marks := s.marks(); len(marks) == 0 || marks[0] != dataplane.Mark|strangersMark {
		s.t.Errorf("marks of the flow: %#x, expected %#x", marks, dataplane.Mark|strangersMark)
	}
	s.host(true, false)
	if seen, err := s.call(s.router, internet, nodeAddress+":30080", 300*time.Millisecond); err == nil {
		s.t.Errorf("a node port without its rules: answered (%s), so the test proves nothing", seen)
	}
	s.host(true, true)
	s.sees("a node port, again", s.router, internet, nodeAddress+":30080", internet)
}

const strangersMark = 0x4000

// marks are the marks of the flows that somebody in the world began toward the node's own address.
func (s *site) marks() (marks []uint32) {
	const ctaMark = 8
	r := s.k.ct.Reset()
	r.Netfilter(conntrackGet, unix.NLM_F_DUMP, unix.AF_INET, 0)
	must.Do(s.t, s.k.flows.Dump(r, func(body []byte) {
		if source(body[nfgenHeader:], ctaTupleOriginal).String() != internet || source(body[nfgenHeader:], ctaTupleReply).String() != secondPod {
			return
		}
		for c := rtnl.Attributes(body[nfgenHeader:]); c.Next(); {
			if c.Kind == ctaMark && c.BE32()&strangersMark != 0 {
				marks = append(marks, c.BE32())
			}
		}
	}))
	return marks
}

// proxyPort translates a port of the node, and marks its flows with a bit of its own.
func proxyPort(t *testing.T, port uint16, pod string, podPort uint16) {
	c := &nftables.Conn{}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "kube-proxy"})
	match := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{byte(port >> 8), byte(port)}},
	}
	mark := c.AddChain(&nftables.Chain{Name: "mark", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(-140)})
	c.AddRule(&nftables.Rule{Table: table, Chain: mark, Exprs: append(append([]expr.Any{}, match...),
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: host32(^uint32(strangersMark)), Xor: host32(strangersMark)},
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1, SourceRegister: true})})
	nat := c.AddChain(&nftables.Chain{Name: "nat", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest})
	to := netip.MustParseAddr(pod).As4()
	c.AddRule(&nftables.Rule{Table: table, Chain: nat, Exprs: append(append([]expr.Any{}, match...),
		&expr.Immediate{Register: 1, Data: to[:]},
		&expr.Immediate{Register: 2, Data: []byte{byte(podPort >> 8), byte(podPort)}},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2})})
	must.Do(t, c.Flush())
}

// arp: a pod that lost the permanent entry for its gateway asks, and the host veth answers.
func (s *site) arp() {
	s.t.Helper()
	s.pods[1].run(s.t, func() error {
		list, err := netlink.NeighList(0, unix.AF_INET)
		for i := range list {
			if err == nil && list[i].IP.String() == dataplane.Gateway().String() {
				err = netlink.NeighDel(&list[i])
			}
		}
		return err
	})
	s.sees("a pod without its permanent neighbour", s.pods[1], "", peerAddress+":80", secondPod)
	s.pods[1].run(s.t, func() error {
		list, err := netlink.NeighList(0, unix.AF_INET)
		for i := range list {
			if n := &list[i]; err == nil && n.IP.String() == dataplane.Gateway().String() && (n.State == unix.NUD_PERMANENT || n.HardwareAddr.String() != dataplane.VethMAC(s.specs[1].Alias)) {
				err = fmt.Errorf("its neighbour is %v", n)
			}
		}
		return err
	})
}

// renamed: a link that gives up its name keeps its traffic.
func (s *site) renamed() {
	s.t.Helper()
	w := s.specs[1]
	apply(s.t, s.k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "eniother"}}}, nil)
	s.sees("behind a renamed link", s.router, internet, secondPod+":80", internet)
	s.sees("from behind a renamed link", s.pods[1], "", internet+":80", nodeAddress)
}

// setStrict makes a link drop what would be answered by another.
func setStrict(name string) error {
	return onSysctl("conf/"+name+"/rp_filter", "1")
}
