package vpc

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// segment is the shared Ethernet that one link of a borrowed namespace is on.
type segment struct {
	index   int32
	mac     net.HardwareAddr // the router's there
	subnets []netip.Prefix   // the link has the address of each one's gateway
}

// subnet is the one of the segment's that holds a, or zero.
func (s *segment) subnet(a netip.Addr) netip.Prefix { return holder(s.subnets, a) }

// segment finds it, or says what is wrong with it.
func (r *rtnl) segment(c Config, links []netlink.Link) (*segment, error) {
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == c.Segment })
	if i < 0 {
		return nil, fmt.Errorf("segment %s: there is no such link in the namespace", c.Segment)
	}
	l := links[i].Attrs()
	index := int32(l.Index)
	if l.EncapType != "ether" || len(l.HardwareAddr) != 6 || l.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("segment %s: expected an Ethernet link that is up; found type %s, flags %v", c.Segment, l.EncapType, l.Flags)
	}
	addrs, err := r.addresses(index)
	if err != nil {
		return nil, fmt.Errorf("segment %s: addresses: %w", c.Segment, err)
	}
	s := &segment{index: index, mac: l.HardwareAddr}
	for _, a := range addrs {
		if subnet := holder(c.Subnets, a); subnet.IsValid() && a == gateway(subnet) {
			s.subnets = append(s.subnets, subnet)
		}
	}
	if len(s.subnets) > 0 {
		return s, s.reaches(c.Strangers)
	}
	return nil, fmt.Errorf("segment %s: it has the addresses %v; expected the gateway (the second address) of one of the subnets %v", c.Segment, addrs, c.Subnets)
}

// reaches says whether the link is in the strangers' subnets.
func (s *segment) reaches(strangers []netip.Addr) error {
	for _, a := range strangers {
		if !s.subnet(a).IsValid() {
			return fmt.Errorf("stranger %v: the segment is in %v; expected the address of its gateway on the link", a, s.subnets)
		}
	}
	return nil
}

// openSegment makes the router one of the segment's.
func (f *Network) openSegment() (err error) {
	f.undoLater(f.forgetSegment)
	for _, a := range f.config.Strangers {
		// The router's own packets are ICMP errors. They come from an address that a stranger has a route to.
		if err := f.rtnl.route(a, f.segment.index, gateway(f.segment.subnet(a))); err != nil {
			return fmt.Errorf("route to stranger %v: %w", a, err)
		}
	}
	if f.filter, err = newFilter(f.ns, f.segment); err != nil {
		return err
	}
	f.undoLater(f.filter.close)
	return nil
}

// forgetSegment removes the neighbours; routes go with their table.
func (f *Network) forgetSegment() error {
	var errs []error
	for _, a := range f.config.Strangers {
		errs = append(errs, f.rtnl.forget(a, f.segment.index))
	}
	for _, e := range f.enis {
		for a := range e.addresses {
			if e.joined {
				errs = append(errs, f.rtnl.forget(a, f.segment.index))
			}
		}
	}
	return errors.Join(errs...)
}

// Join says that an ENI is a machine on the segment: the addresses that are assigned to it are routed there from now on, and packets from
// its MAC with any other source are dropped. An ENI that has joined already is fine; one that is plugged in is an error.
func (f *Network) Join(mac string) error {
	if err := f.change(mac, f.join); err != nil {
		return fmt.Errorf("vpc: join %s: %w", mac, err)
	}
	return nil
}

func (f *Network) join(e *eni) error {
	switch {
	case f.segment == nil:
		return errors.New("the VPC has no segment (Config.Segment)")
	case slices.Equal(e.hardware, f.segment.mac):
		return errors.New("it is the router's own MAC on the segment")
	case e.joined:
		return nil
	}
	if err := f.unattached(e); err != nil {
		return err
	}
	addrs := slices.SortedFunc(maps.Keys(e.addresses), netip.Addr.Compare)
	if err := f.filter.join(e.hardware, addrs); err != nil {
		return err
	}
	e.index, e.joined = f.segment.index, true
	f.arp.attached(e)
	for _, a := range addrs {
		if err := f.deliver(e, a); err != nil {
			return errors.Join(fmt.Errorf("route to %v: %w", a, err), f.leave(e))
		}
	}
	f.arp.announce(addrs...)
	return nil
}

// Leave undoes Join: the ENI's addresses stay assigned, and packets for them vanish. An ENI that has not joined, or an unknown one, is fine.
func (f *Network) Leave(mac string) error {
	err := f.change(mac, func(e *eni) error {
		if !e.joined {
			return nil
		}
		return f.leave(e)
	})
	if err != nil {
		return fmt.Errorf("vpc: leave %s: %w", mac, err)
	}
	return nil
}

func (f *Network) leave(e *eni) error {
	addrs := slices.SortedFunc(maps.Keys(e.addresses), netip.Addr.Compare)
	for _, a := range addrs {
		if err := f.undeliver(e, a); err != nil {
			return fmt.Errorf("route to %v: %w", a, err)
		}
	}
	if err := f.filter.leave(e.hardware, addrs); err != nil {
		return err
	}
	f.detached(e)
	return nil
}
