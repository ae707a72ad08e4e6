package linux

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

func (a *applier) eniUp(op *dataplane.Op) error {
	d, err := a.eni(op.MAC)
	if err != nil {
		return err
	}
	return a.up(d.index, op.MTU)
}

func (a *applier) eniAddress(op *dataplane.Op) error {
	d, err := a.eni(op.MAC)
	if err != nil {
		return err
	}
	if !op.Addr.IsValid() || !op.Dst.IsValid() {
		return failed(dataplane.Invalid, "an ENI's address needs its subnet")
	}
	want := netip.PrefixFrom(op.Addr, op.Dst.Bits())
	have, err := a.addresses(d.index)
	if err != nil || len(have) == 1 && have[0] == want {
		return err
	}
	return a.replaceAddresses(d.index, have, want)
}

// replaceAddresses never leaves the link without an address, for with the last one the kernel takes all of the
// link's routes (fib_inetaddr_event). Nor can the new address simply come first: as the second of its subnet it would
// go with the first. A /32 is of no subnet, and holds the place.
func (a *applier) replaceAddresses(index int, have []netip.Prefix, want netip.Prefix) error {
	anchor := netip.PrefixFrom(want.Addr(), 32)
	if len(have) > 0 {
		if err := a.addAddress(index, anchor); err != nil {
			return err
		}
	}
	for _, p := range have {
		if p != anchor {
			if err := a.deleteAddress(index, p); err != nil {
				return err
			}
		}
	}
	if err := a.addAddress(index, want); err != nil || len(have) == 0 || want == anchor {
		return err
	}
	return a.deleteAddress(index, anchor)
}

// addAddress and deleteAddress do nothing when it is there already, or gone: one address may take others along.
func (a *applier) addAddress(index int, p netip.Prefix) error {
	r := a.r.Reset()
	r.Address(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, p.Bits(), index)
	r.IP(unix.IFA_LOCAL, p.Addr())
	err := a.s.Do(r)
	if netlink.Is(err, unix.EEXIST) {
		err = nil
	}
	return err
}

func (a *applier) deleteAddress(index int, p netip.Prefix) error {
	r := a.r.Reset()
	r.Address(unix.RTM_DELADDR, unix.NLM_F_ACK, p.Bits(), index)
	r.IP(unix.IFA_LOCAL, p.Addr())
	r.IP(unix.IFA_ADDRESS, p.Addr())
	err := a.s.Do(r)
	if netlink.Is(err, unix.EADDRNOTAVAIL) {
		err = nil
	}
	return err
}

// addresses are a link's own.
func (a *applier) addresses(index int) (have []netip.Prefix, err error) {
	err = retry(func() error {
		have = have[:0]
		r := a.r.Reset()
		r.Address(unix.RTM_GETADDR, unix.NLM_F_DUMP, 0, index)
		return a.s.Dump(r, func(body []byte) {
			if at, p, ok := netlink.ParseAddress(body); ok && at == index {
				have = append(have, p)
			}
		})
	})
	return have, err
}

// sysctl sets rp_filter over netlink (IFLA_INET_CONF), which needs no /proc/sys and means the right
// namespace of any caller; the kernel has no such way for names it keeps no number of.
func (a *applier) sysctl(op *dataplane.Op) error {
	d, err := a.eni(op.MAC)
	if err != nil {
		return err
	}
	value, err := strconv.Atoi(op.Value)
	if err != nil || op.Name == "" || strings.ContainsAny(op.Name, "/.") {
		return failed(dataplane.Invalid, "a sysctl needs a name of one element and a number")
	}
	if op.Name != "rp_filter" {
		return a.k.writeSysctl("/proc/sys/net/ipv4/conf/"+d.name+"/"+op.Name, op.Value)
	}
	if value < 0 || value > 2 {
		return failed(dataplane.Invalid, "rp_filter is 0, 1 or 2")
	}
	return a.set(d.index, 0, 0, func(r *netlink.Request) {
		spec := r.Nest(unix.IFLA_AF_SPEC)
		family := r.Nest(unix.AF_INET)
		conf := r.Nest(unix.IFLA_INET_CONF)
		r.U32(netlink.DevconfRPFilter, uint32(value))
		r.End(conf)
		r.End(family)
		r.End(spec)
	})
}

// writeSysctl writes below /proc/sys/net, which is the calling thread's namespace's: it must be ours.
func (k *Kernel) writeSysctl(path, value string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if inode, err := threadNamespace(); err != nil {
		return err
	} else if inode != k.inode {
		return failed(dataplane.Other, "this thread is in another network namespace")
	}
	err := os.WriteFile(path, []byte(value), 0)
	if errors.Is(err, os.ErrNotExist) {
		return failed(dataplane.Invalid, "the kernel has no such sysctl")
	}
	return err
}
