package linux

import (
	"cmp"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// applier runs the operations of one plan.
type applier struct {
	k   *Kernel
	s   *netlink.Socket
	r   *netlink.Request
	pod *Pod

	last  device // the veth that the plan is about
	inPod int    // index of the veth whose peer is known to be in pod, 0: none
}

// interruptions bounds how often a dump is read again because the list changed meanwhile.
const interruptions = 8

// retry runs a dump again while it is interrupted.
func retry(dump func() error) (err error) {
	for range interruptions {
		if err = dump(); err != netlink.ErrInterrupted {
			return err
		}
	}
	return err
}

func (a *applier) apply(op *dataplane.Op) error {
	if err := onlyIPv4(op); err != nil {
		return err
	}
	switch op.Kind {
	case dataplane.CreateVeth:
		return a.createVeth(op)
	case dataplane.RenameLink:
		return a.renameLink(op)
	case dataplane.AdoptLink:
		return a.adoptLink(op)
	case dataplane.LinkUp:
		return a.linkUp(op)
	case dataplane.SetMAC:
		return a.setMAC(op)
	case dataplane.DeleteVeth:
		return a.deleteVeth(op)
	case dataplane.PodRoute, dataplane.PodAddress, dataplane.PodNeighbour:
		return a.applyPod(op)
	case dataplane.ProxyNeighbour:
		return a.proxyNeighbour(op)
	case dataplane.EnsureRoute:
		return a.ensureRoute(op)
	case dataplane.RemoveRoute:
		return a.removeRoute(op)
	case dataplane.EnsureRule:
		return a.ensureRule(op.Rule())
	case dataplane.RemoveRule:
		return a.removeRules(op.Rule(), false)
	case dataplane.RemoveStaleRules:
		return a.removeRules(op.Rule(), true)
	case dataplane.FlushConntrack:
		return a.k.flushConntrack([]netip.Addr{op.Addr})
	case dataplane.ENIUp:
		return a.eniUp(op)
	case dataplane.ENIAddress:
		return a.eniAddress(op)
	case dataplane.HostNAT:
		return a.hostNAT(op)
	case dataplane.Sysctl:
		return a.sysctl(op)
	case dataplane.AcceptForward:
		return a.acceptForward(op.Name)
	}
	return failed(dataplane.Invalid, "this kind is unknown")
}

// onlyIPv4 refuses what the package does not do before anything reads four octets of sixteen.
func onlyIPv4(op *dataplane.Op) error {
	for _, addr := range []netip.Addr{op.Addr, op.Via, op.Dst.Addr()} {
		if addr.IsValid() && !addr.Is4() {
			return failed(dataplane.Invalid, addr.String()+" is not an IPv4 address")
		}
	}
	return nil
}

func (a *applier) createVeth(op *dataplane.Op) error {
	switch {
	case op.Link == "" || op.Name == "" || op.Netns == 0:
		return failed(dataplane.Invalid, "a veth needs both names and a namespace")
	case len(op.Link) >= unix.IFNAMSIZ || len(op.Name) >= unix.IFNAMSIZ:
		return failed(dataplane.Invalid, "a link's name has at most 15 characters")
	case len(op.Alias) > dataplane.MaxAlias:
		return failed(dataplane.Invalid, "the alias is too long")
	}
	mac, haveMAC := parseMAC(op.MAC)
	if !haveMAC && op.MAC != "" {
		return failed(dataplane.Invalid, "the MAC is malformed")
	}
	a.k.creating.Lock()
	defer a.k.creating.Unlock()
	if err := a.mayCreate(op); err != nil {
		return err
	}
	if err := a.checkPod(op.Netns); err != nil {
		return err
	}
	newVeth(a.r.Reset(), op, mac, haveMAC, a.pod)
	var outcome vethOutcome
	if err := a.s.DoAll(a.r, outcome[:]); err != nil {
		return err
	}
	if outcome[0] != nil {
		return a.notCreated(op, outcome)
	}
	d, err := a.k.roster.name(op.Link)
	if err != nil {
		return err
	}
	if d.index == 0 || d.alias != op.Alias && d.alias != "" {
		return failed(dataplane.Other, "somebody took the new veth away at once, or made it theirs")
	}
	if netlink.Is(outcome[2], unix.EAFNOSUPPORT) { // the machine has no IPv6 at all, or the MTU is too small for it
		outcome[2] = nil
	}
	if err = cmp.Or(outcome[1:]...); err == nil {
		err = a.peerUp(d.peer)
	}
	if err != nil { // the caller takes CreateVeth for not done
		if undo := a.deleteLink(d.index); undo != nil {
			err = errors.Join(err, undo)
		}
		return err
	}
	a.last, a.inPod = d, d.index
	return nil
}

// peerUp brings the pod's end up, which a veth refuses while it is being made (ENOTCONN).
func (a *applier) peerUp(index int) error {
	r := a.r.Reset()
	r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, index, unix.IFF_UP, unix.IFF_UP)
	return a.pod.s.Do(r)
}

// vethOutcome is what the kernel says to the messages of newVeth.
type vethOutcome [4]error

// newVeth is four messages: the pair, then the alias, then no IPv6 address of the kernel's own making, then up. The host's end
// is not up, and so not used, before it has its key.
func newVeth(r *netlink.Request, op *dataplane.Op, mac [6]byte, haveMAC bool, pod *Pod) {
	r.Link(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK|signed, 0, 0, 0)
	r.Text(unix.IFLA_IFNAME, op.Link)
	if haveMAC {
		r.Bytes(unix.IFLA_ADDRESS, mac[:])
	}
	if op.MTU != 0 {
		r.U32(unix.IFLA_MTU, uint32(op.MTU))
	}
	info := r.Nest(unix.IFLA_LINKINFO)
	r.Text(unix.IFLA_INFO_KIND, netlink.VethKind)
	data := r.Nest(unix.IFLA_INFO_DATA)
	peer := r.Nest(vethInfoPeer)
	r.Raw(unix.AF_UNSPEC, 0, 0, 0)
	r.Raw(make([]byte, unix.SizeofIfInfomsg-4)...)
	r.Text(unix.IFLA_IFNAME, op.Name)
	if op.MTU != 0 {
		r.U32(unix.IFLA_MTU, uint32(op.MTU))
	}
	r.U32(unix.IFLA_NET_NS_FD, uint32(pod.netns.Fd()))
	r.End(peer)
	r.End(data)
	r.End(info)

	r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 0, 0, 0)
	r.Text(unix.IFLA_IFNAME, op.Link)
	r.Bytes(unix.IFLA_IFALIAS, []byte(op.Alias))

	r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 0, 0, 0)
	r.Text(unix.IFLA_IFNAME, op.Link)
	spec := r.Nest(unix.IFLA_AF_SPEC)
	family := r.Nest(unix.AF_INET6)
	r.U8(unix.IFLA_INET6_ADDR_GEN_MODE, addrGenModeNone)
	r.End(family)
	r.End(spec)

	r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 0, unix.IFF_UP, unix.IFF_UP)
	r.Text(unix.IFLA_IFNAME, op.Link)
}

const (
	vethInfoPeer    = 1 // VETH_INFO_PEER (linux/veth.h)
	addrGenModeNone = 1 // IN6_ADDR_GEN_MODE_NONE (linux/if_link.h)
)

// mayCreate asks in the order of the model, so that both find the same reason first.
func (a *applier) mayCreate(op *dataplane.Op) error {
	if d, err := a.k.roster.name(op.Link); err != nil {
		return err
	} else if d.index != 0 {
		return failed(dataplane.Exists, "another link has that name")
	}
	if d, err := a.k.roster.alias(op.Alias); err != nil {
		return err
	} else if d.index != 0 {
		return failed(dataplane.Exists, "a link of that attachment lives")
	}
	return nil
}

// notCreated says why there is no pair. A third party's link that took the name in the microseconds since
// mayCreate has been given our alias by the second message: it is taken off again.
func (a *applier) notCreated(op *dataplane.Op, outcome vethOutcome) error {
	err := outcome[0]
	if outcome[1] == nil {
		if d, found := a.k.roster.name(op.Link); found == nil && d.index != 0 && d.alias == op.Alias {
			if undo := a.set(d.index, 0, 0, func(r *netlink.Request) { r.Bytes(unix.IFLA_IFALIAS, nil) }); undo != nil {
				return undo
			}
		}
		return failed(dataplane.Exists, "another link has that name")
	}
	if netlink.Is(err, unix.EEXIST) {
		return failed(dataplane.Exists, "the namespace has an interface of that name")
	}
	return err
}

func (a *applier) adoptLink(op *dataplane.Op) error {
	if op.Alias == "" || len(op.Alias) > dataplane.MaxAlias {
		return failed(dataplane.Invalid, "the alias is empty or too long")
	}
	d, err := a.k.roster.name(op.Link)
	switch {
	case err != nil:
		return err
	case d.index == 0 || d.kind != netlink.VethKind:
		return errNoLink
	case d.alias != "" && d.alias != op.Alias:
		return failed(dataplane.Exists, "the link belongs to "+d.alias)
	case d.alias == "":
		if err := a.mayAdopt(op, &d); err != nil {
			return err
		}
	}
	err = a.set(d.index, 0, 0, func(r *netlink.Request) {
		r.Bytes(unix.IFLA_IFALIAS, []byte(op.Alias))
		if op.MAC != "" {
			r.U32(unix.IFLA_GROUP, dataplane.AdoptedGroup)
		}
	})
	if err == nil {
		d.alias = op.Alias
		a.last = d
	}
	return err
}

func (a *applier) mayAdopt(op *dataplane.Op, d *device) error {
	if other, err := a.byAlias(op.Alias); err != nil {
		return err
	} else if other.index != 0 {
		return failed(dataplane.Exists, "a link of that attachment lives")
	}
	to, err := a.routed(op.Addr)
	switch {
	case err != nil || to == d.index:
		return err
	case to != 0:
		return failed(dataplane.NoLink, "the address is routed to another link")
	}
	behind := false
	if d.netnsid >= 0 {
		err = retry(func() error {
			behind = false
			return addressesIn(a.s, a.r, uint32(d.netnsid), func(addr netip.Addr) { behind = behind || addr == op.Addr })
		})
	}
	if err == nil && !behind {
		err = failed(dataplane.NoLink, "the address is routed nowhere, and is not behind that link")
	}
	return err
}

func (a *applier) linkUp(op *dataplane.Op) error {
	d, err := a.veth(op.Alias)
	if err != nil {
		return err
	}
	a.last.up = true
	return a.up(d.index, op.MTU)
}

func (a *applier) setMAC(op *dataplane.Op) error {
	d, err := a.veth(op.Alias)
	if err != nil || d.mac.is(op.MAC) {
		return err
	}
	mac, ok := parseMAC(op.MAC)
	if !ok {
		return failed(dataplane.Invalid, "the MAC is malformed")
	}
	a.last.mac = textOfMAC(mac[:])
	return a.set(d.index, 0, 0, func(r *netlink.Request) { r.Bytes(unix.IFLA_ADDRESS, mac[:]) })
}

func (a *applier) proxyNeighbour(op *dataplane.Op) error {
	if !op.Addr.IsValid() {
		return failed(dataplane.Invalid, "a neighbour needs an address")
	}
	d, err := a.veth(op.Alias)
	if err != nil {
		return err
	}
	proxy(a.r.Reset(), d.index, op.Addr)
	return a.s.Do(a.r)
}

// proxy is one entry of the table that says which addresses a link answers ARP for.
func proxy(r *netlink.Request, index int, addr netip.Addr) {
	r.Neighbour(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK, index, unix.NUD_PERMANENT, unix.NTF_PROXY)
	r.IP(unix.NDA_DST, addr)
}
