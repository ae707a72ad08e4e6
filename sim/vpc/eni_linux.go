package vpc

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// eni is what the router knows of an ENI.
type eni struct {
	mac       string
	hardware  net.HardwareAddr
	addresses map[netip.Addr]bool
	index     int32 // of the router's end of its cable, or of its link to the segment; 0: neither
	joined    bool  // it is the segment
}

// routerMAC is the router's on every cable: locally administered, and in no ENI's range that EC2 uses.
func routerMAC() net.HardwareAddr { return net.HardwareAddr{0x0e, 0x65, 0x6e, 0x69, 0, 1} }

// Limits of a cable's MTU: RFC 791's minimum for IPv4, and a jumbo frame with room (EC2 User Guide, "Network MTU": 9001).
const (
	minMTU = 68
	maxMTU = 65535
)

// Plug puts a cable between the router and an instance: a link with that name and MAC appears in the network namespace node, down and
// without an address. The addresses that are assigned to the ENI are routed to it from now on. A MAC has one cable: a second Plug is an
// error while the first cable exists, and so is Plug of an ENI that has joined the segment.
func (f *Network) Plug(node *os.File, name, mac string, mtu int) error {
	err := f.change(mac, func(e *eni) error {
		switch {
		case node == nil:
			return errors.New("the node's network namespace is a nil file")
		case name == "" || len(name) >= unix.IFNAMSIZ:
			return fmt.Errorf("the name has %d bytes; expected 1 to %d", len(name), unix.IFNAMSIZ-1)
		case mtu < minMTU || mtu > maxMTU:
			return fmt.Errorf("MTU %d; expected %d to %d", mtu, minMTU, maxMTU)
		}
		return f.plug(e, node, name, mtu)
	})
	if err != nil {
		return fmt.Errorf("vpc: plug %s (%s): %w", name, mac, err)
	}
	return nil
}

func (f *Network) plug(e *eni, node *os.File, name string, mtu int) error {
	if err := f.unattached(e); err != nil {
		return err
	}
	f.cables++
	index := f.firstCable + f.cables
	near := end{name: f.cableName(index), mac: routerMAC(), mtu: mtu}
	far := end{name: name, mac: e.hardware, mtu: mtu}
	err := control(node, func(fd int) error { return f.rtnl.cable(index, near, far, fd) })
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("the node has a link of that name: %w", err)
	}
	if err != nil {
		return err
	}
	e.index = index
	f.arp.attached(e)
	addrs := slices.SortedFunc(maps.Keys(e.addresses), netip.Addr.Compare)
	for _, a := range addrs {
		if err := f.deliver(e, a); err != nil {
			f.detached(e)
			return errors.Join(fmt.Errorf("route to %v: %w", a, err), f.rtnl.remove(index))
		}
	}
	f.arp.announce(addrs...)
	return nil
}

// unattached makes sure that the ENI is neither plugged in nor joined. A cable that went with its node's namespace is as good as unplugged.
func (f *Network) unattached(e *eni) error {
	if e.joined {
		return errors.New("it has joined the segment; it must leave first")
	}
	if e.index == 0 {
		return nil
	}
	there, err := f.rtnl.exists(e.index)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("its cable %s is plugged in already; unplug it first", f.cableName(e.index))
	}
	f.detached(e)
	return nil
}

// firstCable leaves room below for the links that a kernel makes by itself in a new namespace (lo, tunl0, sit0, …).
const firstCable = 100

func (f *Network) cableName(index int32) string { return "e" + strconv.Itoa(int(index-f.firstCable)) }

// Unplug pulls the ENI's cable: the link vanishes from the instance at once, whatever it is doing. The addresses stay assigned. An ENI
// without a cable (one that has joined the segment, too), or an unknown one, is fine.
func (f *Network) Unplug(mac string) error {
	var index int32
	err := f.change(mac, func(e *eni) error {
		if !e.joined {
			index = e.index
			f.detached(e)
		}
		return nil
	})
	if err == nil && index != 0 {
		err = f.cut(mac, index)
	}
	if err != nil {
		return fmt.Errorf("vpc: unplug %s: %w", mac, err)
	}
	return nil
}

// cut removes a cable that is unplugged by name only. The kernel takes 15 ms to be sure that no CPU uses a link that
// goes (rcu_barrier), and holds no lock meanwhile, so no other call has to wait either: neither f.mu nor the socket of
// all others is taken.
func (f *Network) cut(mac string, index int32) error {
	err := f.cutter.remove(index)
	if err == nil || f.life.Err() != nil { // Close takes all cables
		return nil
	}
	return errors.Join(err, f.change(mac, func(e *eni) error { // it is still there
		if e.index == 0 {
			e.index = index
			f.arp.attached(e)
		}
		return nil
	}))
}

// detached notes that the ENI has left the segment, or that its cable is gone: the kernel removed its routes and neighbours with it.
func (f *Network) detached(e *eni) {
	if e.index != 0 {
		f.arp.detached(e)
	}
	e.index, e.joined = 0, false
}

// change finds the ENI, or begins one, and forgets it if the change left nothing of it.
func (f *Network) change(mac string, do func(*eni) error) error {
	hardware, err := parseMAC(mac)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed
	}
	mac = hardware.String()
	e := f.enis[mac]
	if e == nil {
		e = &eni{mac: mac, hardware: hardware, addresses: map[netip.Addr]bool{}}
		f.enis[mac] = e
	}
	defer f.tidy(e)
	return do(e)
}

func (f *Network) tidy(e *eni) {
	if e.index == 0 && len(e.addresses) == 0 {
		delete(f.enis, e.mac)
	}
}

func parseMAC(mac string) (net.HardwareAddr, error) {
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		return nil, err
	}
	if len(hardware) != 6 || hardware[0]&1 != 0 {
		return nil, errors.New("expected the six bytes of a unicast MAC")
	}
	return hardware, nil
}
