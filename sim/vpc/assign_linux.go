package vpc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Assign makes a the ENI's, and no other's from now on. The ENI need not be plugged in, nor on the segment.
func (f *Network) Assign(mac string, a netip.Addr) error {
	err := f.change(mac, func(e *eni) error {
		if err := f.assignable(a); err != nil {
			return err
		}
		return f.assign(e, a)
	})
	if err != nil {
		return fmt.Errorf("vpc: assign %v to %s: %w", a, mac, err)
	}
	return nil
}

func (f *Network) assignable(a netip.Addr) error {
	subnet := holder(f.config.Subnets, a)
	switch {
	case !subnet.IsValid():
		return fmt.Errorf("it is in none of the subnets %v", f.config.Subnets)
	case a == gateway(subnet):
		return fmt.Errorf("it is the gateway of %v", subnet)
	case slices.Contains(f.config.Strangers, a):
		return errors.New("it is a stranger's on the segment (Config.Strangers)")
	case a == f.witness:
		return errors.New("it is the VPC's own (Witness)")
	}
	return nil
}

func (f *Network) assign(e *eni, a netip.Addr) error {
	before := f.owners[a]
	if before == e {
		return nil
	}
	if err := f.connect(e, a); err != nil { // replaces the route of the owner before without a gap
		return err
	}
	f.owners[a], e.addresses[a] = e, true
	f.arp.assigned(e, a)
	f.arp.announce(a)
	if before == nil {
		return nil
	}
	delete(before.addresses, a)
	f.arp.unassigned(before, a, false)
	f.tidy(before)
	if before.joined && e.joined { // on one link: the route and the neighbour are the new owner's by now
		return f.filter.refuse(before.hardware, a)
	}
	return f.disconnect(before, a)
}

// connect makes the router deliver a to the ENI, if it is attached, and take it from there.
func (f *Network) connect(e *eni, a netip.Addr) error {
	if !e.joined {
		return f.deliver(e, a)
	}
	if err := f.filter.allow(e.hardware, a); err != nil {
		return err
	}
	if err := f.deliver(e, a); err != nil {
		return errors.Join(err, f.filter.refuse(e.hardware, a))
	}
	return nil
}

// deliver makes the router send a to the ENI, if it is attached. The neighbour comes first: with the route alone the router would ask
// the instance by ARP. A cable that went with its node's namespace is as good as unplugged.
func (f *Network) deliver(e *eni, a netip.Addr) error {
	if e.index == 0 {
		return nil
	}
	err := f.rtnl.neighbour(a, e.index, e.hardware)
	if err == nil {
		if err = f.rtnl.route(a, e.index, f.witness); err != nil && !errors.Is(err, unix.ENODEV) {
			return errors.Join(err, f.rtnl.forget(a, e.index))
		}
	}
	if errors.Is(err, unix.ENODEV) && !e.joined {
		f.detached(e)
		return nil
	}
	return err
}

// Unassign takes a from its ENI: no ENI has it, packets for it vanish and packets from it are dropped. An address that
// is not assigned is fine.
func (f *Network) Unassign(a netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("vpc: unassign %v: %w", a, errClosed)
	}
	e := f.owners[a]
	if e == nil {
		return nil
	}
	if err := f.unassign(e, a); err != nil {
		return fmt.Errorf("vpc: unassign %v from %s: %w", a, e.mac, err)
	}
	return nil
}

func (f *Network) unassign(e *eni, a netip.Addr) error {
	if err := f.disconnect(e, a); err != nil {
		return err
	}
	delete(f.owners, a)
	delete(e.addresses, a)
	f.arp.unassigned(e, a, true)
	f.tidy(e)
	return nil
}

// disconnect undoes connect.
func (f *Network) disconnect(e *eni, a netip.Addr) error {
	if err := f.undeliver(e, a); err != nil || !e.joined {
		return err
	}
	return f.filter.refuse(e.hardware, a)
}

// undeliver undoes deliver. A route that leads to another link by now stays.
func (f *Network) undeliver(e *eni, a netip.Addr) error {
	if e.index == 0 {
		return nil
	}
	return errors.Join(f.rtnl.unroute(a, e.index), f.rtnl.forget(a, e.index))
}
