package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// In a borrowed namespace, the router has a routing table of its own, which is asked before all others and leaves no question open. So the
// routes that are there need not be touched, and their return after a link went down and up changes nothing.
const (
	loanTable    = 233
	rulePriority = 1 // after table local's
)

// borrow takes over a namespace's routing, as soon as there is a route. What it makes, and all that is made in the namespace later, is
// undone by Close.
func (f *Network) borrow() error {
	links, err := f.rtnl.links()
	if err != nil {
		return fmt.Errorf("its links: %w", err)
	}
	f.rtnl.table = loanTable
	for _, l := range links {
		f.firstCable = max(f.firstCable, int32(l.Attrs().Index)+1) // a name has its number, and must not be one that is there
	}
	if f.config.Segment != "" {
		if f.segment, err = f.rtnl.segment(f.config, links); err != nil {
			return err
		}
	}
	if err := f.takeRule(); err != nil {
		return err
	}
	if i := slices.IndexFunc(links, isLoopback); i >= 0 && links[i].Attrs().Flags&net.FlagUp == 0 {
		if err := f.rtnl.up(loopback); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
		f.undoLater(func() error { return f.rtnl.down(loopback) })
	}
	return f.configureBorrowed(links)
}

// takeRule makes the router's table the one that counts. The rule is also a lock: a namespace has one router.
func (f *Network) takeRule() error {
	err := f.rtnl.rule()
	if errors.Is(err, unix.EEXIST) {
		return errors.New("a VPC is at work there already, or one that was killed has left its traces; expected a namespace that is nobody's router")
	}
	if err != nil {
		return fmt.Errorf("routing rule: %w", err)
	}
	f.undoLater(f.rtnl.unrule)
	routes, err := f.rtnl.routes()
	if err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	if len(routes) > 0 {
		return fmt.Errorf("its routing table %d has %d routes; expected an unused table", loanTable, len(routes))
	}
	f.undoLater(f.rtnl.flush)
	return nil
}

func isLoopback(l netlink.Link) bool { return l.Attrs().Index == loopback }

func (f *Network) configureBorrowed(links []netlink.Link) error {
	var names []string
	for _, l := range links {
		if !isLoopback(l) {
			names = append(names, l.Attrs().Name)
		}
	}
	return Do(f.ns, func() error {
		before, err := remember()
		if err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		f.undoLater(func() error { return Do(f.ns, func() error { return restore(before) }) })
		return configure(true, names)
	})
}

// undoLater keeps what Close has to do in a borrowed namespace; the last comes first. A namespace of the Network's own takes all with it.
func (f *Network) undoLater(do func() error) {
	if f.config.Namespace != nil {
		f.undo = append(f.undo, do)
	}
}

// giveBack makes a borrowed namespace what it was.
func (f *Network) giveBack() error {
	var errs []error
	for _, undo := range slices.Backward(f.undo) {
		errs = append(errs, undo())
	}
	f.undo = nil
	return errors.Join(errs...)
}

// address gives the router an address of its own.
func (f *Network) address(a netip.Addr) error {
	if err := f.rtnl.address(a); err != nil {
		return fmt.Errorf("address %v: %w", a, err)
	}
	f.undoLater(func() error { return f.rtnl.unaddress(a) })
	return nil
}
