package machine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/vpc"
)

// JumboMTU is what a VPC carries, in bytes. A driver starts with bootMTU.
const (
	JumboMTU = 9001
	bootMTU  = 1500
)

// Links are the names of a machine's links by the MACs of their ENIs.
type Links map[string]string

// Plug gives a machine an ENI's link, with the first name ethN that no other one has, and returns it. One that is there stays.
func (l Links) Plug(f *vpc.Network, ns *os.File, mac string) (name string, err error) {
	if l[mac] != "" {
		return l[mac], nil
	}
	name = l.free()
	if err := f.Plug(ns, name, mac, JumboMTU); err != nil {
		return name, fmt.Errorf("plug %s: %w", name, err)
	}
	l[mac] = name
	return name, Booted(ns, name)
}

// Booted gives a link the MTU that a driver starts with.
func Booted(ns *os.File, name string) error { return vpc.SetMTU(ns, name, bootMTU) }

func (l Links) free() string {
	taken := map[string]bool{}
	for _, name := range l {
		taken[name] = true
	}
	for i := 0; ; i++ {
		if name := fmt.Sprintf("eth%d", i); !taken[name] {
			return name
		}
	}
}

// Follow lets a VPC carry traffic to where EC2 has its addresses after an event. Links are the machines' own, see Plug.
func Follow(f *vpc.Network, c *ec2.Cloud, e *ec2.Event) error {
	switch e.Kind {
	case ec2.ENICreated, ec2.ENIAttached:
		v, ok := c.ENI(e.ENI)
		if !ok || !judge.Here(c, &v) {
			return nil
		}
		return each(&v, func(a netip.Addr) error { return f.Assign(v.MAC, a) })
	case ec2.AddressAssigned:
		return f.Assign(c.MAC(e.ENI), e.Address)
	case ec2.AddressUnassigned:
		return f.Unassign(e.Address)
	case ec2.PrefixAssigned:
		return within(e.Prefix, func(a netip.Addr) error { return f.Assign(c.MAC(e.ENI), a) })
	case ec2.PrefixUnassigned:
		return within(e.Prefix, f.Unassign)
	case ec2.ENIDetachStarted: // traffic ends here, long before the link is gone
		if v, ok := c.ENI(e.ENI); ok {
			return each(&v, f.Unassign)
		}
	case ec2.LinkUnplugged:
		return f.Unplug(e.MAC)
	}
	return nil
}

// each does something for an ENI's addresses, those in its prefixes too; that of an Elastic@Network@Adapter has none.
func each(e *ec2.ENI, do func(netip.Addr) error) error {
	if !e.Primary.IsValid() {
		return nil
	}
	errs := []error{do(e.Primary)}
	for _, a := range e.Secondaries {
		errs = append(errs, do(a))
	}
	for _, p := range e.Prefixes {
		errs = append(errs, within(p, do))
	}
	return errors.Join(errs...)
}

// within does something for each address of a prefix. A VPC here carries IPv4 alone.
func within(p netip.Prefix, do func(netip.Addr) error) error {
	if !p.Addr().Is4() {
		return nil
	}
	var errs []error
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		errs = append(errs, do(a))
	}
	return errors.Join(errs...)
}
