package vpc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
)

// errClosed is the answer of every operation after Close.
var errClosed = errors.New("the VPC is closed")

// Network is a running VPC.
type Network struct {
	config  Config
	witness netip.Addr
	ns      *os.File // the router's; borrowed if it is the configuration's
	segment *segment // nil: there is none
	filter  *filter  // of the segment

	mu     sync.Mutex // one change of the router at a time; guards what follows
	closed bool
	rtnl   *rtnl
	cutter *rtnl           // its own lock: removes cables
	enis   map[string]*eni // by MAC, those with a cable or an address
	owners map[netip.Addr]*eni
	cables int32          // ever plugged: indexes and names are not used twice
	undo   []func() error // of a borrowed namespace, in the order in which things were done

	firstCable int32 // the indexes of cables are greater

	life     context.Context // ends with Close
	end      context.CancelFunc
	arp      *responder
	probes   probes
	internet *service
	dialled  connections
	captures sync.WaitGroup
}

// New makes a VPC with its router, without cables.
func New(c Config) (*Network, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	f := &Network{config: c, witness: c.witness(), enis: map[string]*eni{}, owners: map[netip.Addr]*eni{}, firstCable: firstCable}
	f.life, f.end = context.WithCancel(context.Background())
	if f.ns = c.Namespace; f.ns == nil {
		if f.ns, err = NewNamespace(); err != nil {
			return nil, err
		}
	}
	if err := f.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("vpc: the VPC's router: %w", err), f.Close())
	}
	return f, nil
}

// build makes a router of the namespace. What it has opened when it fails, Close closes.
func (f *Network) build() (err error) {
	if f.rtnl, err = dialRTNL(f.ns); err != nil {
		return err
	}
	if f.cutter, err = dialRTNL(f.ns); err != nil {
		return err
	}
	if err := f.take(); err != nil {
		return err
	}
	if err := f.rtnl.blackhole(); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	for _, a := range []netip.Addr{f.witness, f.config.Internet} {
		if err := f.address(a); err != nil {
			return err
		}
	}
	if f.segment != nil {
		if err := f.openSegment(); err != nil {
			return err
		}
	}
	return Do(f.ns, func() (err error) {
		if f.arp, err = respond(f.config, f.segment, f.rtnl); err != nil {
			return fmt.Errorf("ARP: %w", err)
		}
		if f.internet, err = serve(f.InternetAddr()); err != nil {
			return fmt.Errorf("service on the internet: %w", err)
		}
		return nil
	})
}

// take makes the namespace one that can be a router.
func (f *Network) take() error {
	if f.config.Namespace == nil {
		return Do(f.ns, func() error { return configure(false, nil) })
	}
	if err := f.borrow(); err != nil {
		return fmt.Errorf("borrow a network namespace: %w", err)
	}
	return nil
}

// Close removes the cables, from the instances too, and the router, or all of it that is in a borrowed namespace. Connections of
// Dial and of the internet are reset; Ping, Dial and Capture that are under way end. A second Close does nothing.
func (f *Network) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.end()
	f.dialled.close()
	f.probes.close()
	errs := together(f.closeService, f.closeARP, f.closeCables, func() error { f.captures.Wait(); return nil })
	errs = append(errs, f.giveBack())
	if f.rtnl != nil { // the ARP responder used it
		f.rtnl.close()
	}
	if f.config.Namespace == nil {
		errs = append(errs, f.ns.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("vpc: close: %w", err)
	}
	return nil
}

// together runs them at the same time: most of what they do is to wait for the kernel's readers (synchronize_net), some 15 ms each.
func together(all ...func() error) []error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, do := range all {
		running.Go(func() { errs[i] = do() })
	}
	running.Wait()
	return errs
}

func (f *Network) closeService() error {
	if f.internet == nil {
		return nil
	}
	return f.internet.close()
}

func (f *Network) closeARP() error {
	if f.arp == nil {
		return nil
	}
	return f.arp.close()
}

func (f *Network) closeCables() error {
	if f.cutter == nil {
		return nil
	}
	defer f.cutter.close()
	return f.cutter.removeCables()
}

// within is ctx as long as the Network lives.
func (f *Network) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(f.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Namespace is the router's network namespace. The file is Config's, or the Network's: then it is closed by Close.
func (f *Network) Namespace() *os.File { return f.ns }

// Witness is the address that Ping and Dial come from: in the VPC, in no subnet if there is room.
func (f *Network) Witness() netip.Addr { return f.witness }

// InternetAddr is a TCP service outside the VPC. It writes the peer's address as text ("10.0.1.10") and closes.
func (f *Network) InternetAddr() netip.AddrPort {
	return netip.AddrPortFrom(f.config.Internet, internetPort)
}
