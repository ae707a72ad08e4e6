package plugin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// check compares an attachment with the ADD that made it.
func (v *verb) check() error {
	if err := v.names(); err != nil {
		return err
	}
	prev, err := v.prevResult()
	if err != nil {
		return err
	}
	if prev == nil {
		return errorf(types.ErrInvalidNetworkConfig, "%s: prevResult is missing; CHECK follows an ADD and is given its result", v)
	}
	want, err := v.expected(prev)
	if err != nil {
		return err
	}
	ns, err := v.namespace()
	if err != nil {
		return err
	}
	defer ns.Close()
	r, err := v.ask(&ipc.Request{Inode: ns.inode}, v.conf.Timeout)
	if err != nil {
		return v.again(err)
	}
	if err := v.refused(r); err != nil {
		return err
	}
	if r.Address.IsValid() {
		want.host = r.Address
	}
	if err := want.compare(ns); err != nil {
		return errorf(ipam.CodeDrifted, "%s: CNI_NETNS=%s: %v", v, v.args.Netns, err)
	}
	return nil
}

// expectation is what a namespace should hold, by the word of prevResult and of the daemon.
type expectation struct {
	name   string
	mac    string // empty: not said
	ips    []netip.Prefix
	routes []*types.Route
	host   netip.Addr // the address that the daemon has for the attachment; invalid: not said
}

// expected takes out of prevResult what is this plugin's: plugins after it may have added to the result, or changed it.
func (v *verb) expected(prev *types100.Result) (*expectation, error) {
	own := -1
	for i, in := range prev.Interfaces {
		if in != nil && in.Name == v.args.IfName && samePath(in.Sandbox, v.args.Netns) {
			own = i
		}
	}
	if own < 0 {
		return nil, errorf(ipam.CodeDrifted, "%s: prevResult has no interface %s with sandbox %s", v, v.args.IfName, v.args.Netns)
	}
	e := &expectation{name: v.args.IfName, routes: prev.Routes}
	if mac, err := net.ParseMAC(prev.Interfaces[own].Mac); err == nil { // amazon-vpc-cni-k8s keeps a number there
		e.mac = mac.String()
	}
	for i, ip := range prev.IPs {
		switch {
		case ip == nil:
			continue
		case ip.Interface != nil && (*ip.Interface < 0 || *ip.Interface >= len(prev.Interfaces)):
			return nil, errorf(types.ErrInvalidNetworkConfig, "%s: prevResult: ips[%d].interface: expected an index below %d, found %d", v, i, len(prev.Interfaces), *ip.Interface)
		case ip.Interface != nil && *ip.Interface != own:
			continue
		}
		p, ok := prefix(&ip.Address)
		if !ok {
			return nil, errorf(types.ErrInvalidNetworkConfig, "%s: prevResult: ips[%d].address: expected an address, found %v", v, i, &ip.Address)
		}
		e.ips = append(e.ips, p)
	}
	return e, nil
}

// samePath says whether two paths name one thing: /var/run is a link to /run.
func samePath(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	bits, size := n.Mask.Size()
	a = a.Unmap()
	if size == 128 && a.Is4() {
		bits -= 96
	}
	p := netip.PrefixFrom(a, bits)
	return p, ok && p.IsValid()
}

// compare says what the namespace lacks.
func (e *expectation) compare(ns *namespace) error {
	l, err := ns.link(e.name)
	switch {
	case err != nil:
		return err
	case l == nil:
		return fmt.Errorf("interface %s is gone", e.name)
	case !l.up:
		return fmt.Errorf("interface %s is down", e.name)
	case e.mac != "" && !strings.EqualFold(e.mac, l.mac):
		return fmt.Errorf("interface %s has MAC %s, expected %s", e.name, l.mac, e.mac)
	}
	if err := e.compareAddresses(ns, l); err != nil {
		return err
	}
	return e.compareRoutes(ns, l)
}

func (e *expectation) compareAddresses(ns *namespace, l *link) error {
	if e.host.IsValid() && !hasAddress(e.ips, e.host) {
		return fmt.Errorf("prevResult does not have %v, which is the attachment's address", e.host)
	}
	have, err := ns.addresses(l.index)
	if err != nil {
		return err
	}
	for _, want := range e.ips {
		if !slices.Contains(have, want) {
			return fmt.Errorf("interface %s does not have address %v", e.name, want)
		}
	}
	return nil
}

// compareRoutes looks for the routes that make the pod's address reachable (dataplane.PodPlan), and for prevResult's.
func (e *expectation) compareRoutes(ns *namespace, l *link) error {
	have, err := ns.routes()
	if err != nil {
		return err
	}
	gateway := dataplane.Gateway()
	for _, want := range []route{
		{table: dataplane.MainTable, dst: netip.PrefixFrom(gateway, 32), link: l.index},
		{table: dataplane.MainTable, dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), via: gateway, link: l.index},
	} {
		if !hasRoute(have, want) {
			return fmt.Errorf("%v is missing", want)
		}
	}
	for _, r := range e.routes {
		if r == nil {
			continue
		}
		want := route{table: dataplane.MainTable}
		var ok bool
		if want.dst, ok = prefix(&r.Dst); !ok {
			return errors.New("prevResult has a route without destination")
		}
		want.dst = want.dst.Masked()
		if r.Table != nil {
			want.table = *r.Table
		}
		via, _ := netip.AddrFromSlice(r.GW) // none where it has no gateway
		want.via = via.Unmap()
		if !hasRoute(have, want) {
			return fmt.Errorf("%v is missing", want)
		}
	}
	return nil
}

func hasAddress(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Addr() == a })
}

// hasRoute looks for a route; one that was not said to have a gateway or a link may have any.
func hasRoute(list []route, want route) bool {
	return slices.ContainsFunc(list, func(r route) bool {
		return r.table == want.table && r.dst == want.dst && (!want.via.IsValid() || r.via == want.via) && (want.link == 0 || r.link == want.link)
	})
}
