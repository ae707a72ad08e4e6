package linux

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

func (a *applier) renameLink(op *dataplane.Op) error {
	if op.Name == "" || len(op.Name) >= unix.IFNAMSIZ {
		return failed(dataplane.Invalid, "the new name is empty or too long")
	}
	d, err := a.veth(op.Alias)
	if err == errNoLink {
		d, err = a.k.roster.name(op.Link)
		if err == nil && (d.index == 0 || d.kind != netlink.VethKind) {
			return nil
		}
	}
	if err != nil || d.name == op.Name {
		return err
	}
	if other, err := a.k.roster.name(op.Name); err != nil {
		return err
	} else if other.index != 0 && other.index != d.index {
		return failed(dataplane.Exists, "another link has that name")
	}
	a.last = device{} // its name is another in any case
	err = a.rename(d, op.Name)
	if netlink.Is(err, unix.ENODEV) { // it is another attachment's, whose own DEL may take it away at the same time
		return nil
	}
	return err
}

func (a *applier) rename(d device, name string) error {
	if !a.k.floor || !d.up {
		if err := a.name(d.index, name); !netlink.Is(err, unix.EBUSY) {
			return err
		}
	}
	return a.renameDown(d.index, name)
}

func (a *applier) name(index int, name string) error {
	return a.set(index, 0, 0, func(r *netlink.Request) { r.Text(unix.IFLA_IFNAME, name) })
}

// renameDown is for Linux before 6.2, which renames no link that is up: down, which loses its routes
// and proxy neighbours, rename, up, and all of them again. Should the process die in between, the link is
// down or bare, which a repair sees.
func (a *applier) renameDown(index int, name string) error {
	lost, err := a.keepsakes(index)
	if err != nil {
		return err
	}
	if err = a.set(index, 0, unix.IFF_UP, nil); err != nil {
		return err
	}
	renamed := a.name(index, name)
	if err = a.up(index, 0); err == nil {
		err = a.putBack(index, lost)
	}
	if renamed != nil {
		return renamed
	}
	return err
}

// keepsakes are what a link loses when it goes down.
type keepsakes struct {
	routes  [][]byte // bodies of RTM_NEWROUTE, as they were dumped
	proxies []netip.Addr
}

func (a *applier) keepsakes(index int) (lost keepsakes, err error) {
	err = retry(func() error {
		lost.routes = lost.routes[:0]
		var v routeView
		return a.s.Dump(askRoutes(a.r, 0), func(body []byte) {
			if v.parse(body) && v.index == index && v.observed() && v.protocol != unix.RTPROT_KERNEL {
				lost.routes = append(lost.routes, slices.Clone(body))
			}
		})
	})
	if err != nil {
		return lost, err
	}
	err = retry(func() error {
		lost.proxies = lost.proxies[:0]
		return a.s.Dump(askProxies(a.r), func(body []byte) {
			if at, addr, ok := parseProxy(body); ok && at == index {
				lost.proxies = append(lost.proxies, addr)
			}
		})
	})
	// What has no gateway comes first: it is the way to those that the others have.
	slices.SortStableFunc(lost.routes, func(x, y []byte) int { return gateways(x) - gateways(y) })
	return lost, err
}

func gateways(body []byte) int {
	var v routeView
	if v.parse(body) && v.via.IsValid() {
		return 1
	}
	return 0
}

func (a *applier) putBack(index int, lost keepsakes) error {
	for _, body := range lost.routes {
		r := a.r.Reset()
		r.Message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ACK)
		r.Raw(body...)
		const flags = unix.NLMSG_HDRLEN + 8
		b := r.Last()[flags:]
		netlink.Native.PutUint32(b, netlink.Native.Uint32(b)&unix.RTNH_F_ONLINK) // the rest is the kernel's to say
		if err := a.s.Do(r); err != nil && !netlink.Is(err, unix.EEXIST) {
			return err
		}
	}
	for _, addr := range lost.proxies {
		proxy(a.r.Reset(), index, addr)
		if err := a.s.Do(a.r); err != nil {
			return err
		}
	}
	return nil
}

// askProxies asks for the proxy entries of all links.
func askProxies(r *netlink.Request) *netlink.Request {
	r.Reset().Neighbour(unix.RTM_GETNEIGH, unix.NLM_F_DUMP, 0, 0, unix.NTF_PROXY)
	return r
}

// parseProxy reads an RTM_NEWNEIGH of the proxy table.
func parseProxy(body []byte) (index int, addr netip.Addr, ok bool) {
	if len(body) < unix.SizeofNdMsg || body[0] != unix.AF_INET || body[10]&unix.NTF_PROXY == 0 {
		return 0, addr, false
	}
	for c := netlink.Attributes(body[unix.SizeofNdMsg:]); c.Next(); {
		if c.Kind == unix.NDA_DST {
			addr = c.IP()
		}
	}
	return int(netlink.Native.Uint32(body[4:])), addr, addr.IsValid()
}
