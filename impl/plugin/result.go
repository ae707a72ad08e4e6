package plugin

import (
	"encoding/json"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/enilab/enilab/impl/ipc"
)

// prevResult is the result of the plugin before this one in the list, or of the ADD that a CHECK is about; nil when there
// is none.
func (v *verb) prevResult() (*types100.Result, error) {
	if v.conf.PrevResult == nil {
		return nil, nil
	}
	bad := func(err error) error {
		return errorf(types.ErrInvalidNetworkConfig, "%s: prevResult: %v", v, err)
	}
	var raw map[string]any
	if err := json.Unmarshal(v.conf.PrevResult, &raw); err != nil {
		return nil, bad(err)
	}
	raw["cniVersion"] = v.conf.Version // a result is in the configuration's version; before 1.0.0 it need not say so
	in, _ := json.Marshal(raw)         // what was read can be written
	r, err := version.NewResult(v.conf.Version, in)
	if err != nil {
		return nil, bad(err)
	}
	out, err := types100.NewResultFromResult(r)
	if err != nil {
		return nil, bad(err)
	}
	return out, nil
}

// result is what ADD made: the host's end, the pod's end and the address on it. Like amazon-vpc-cni-k8s it names no routes: they
// are part of the datapath and not of what a runtime or a chained plugin may want to change.
func (v *verb) result(r *ipc.Response, made *link) *types100.Result {
	out := &types100.Result{CNIVersion: types100.ImplementedSpecVersion}
	if r.Veth != "" {
		out.Interfaces = append(out.Interfaces, v.hostEnd(r))
	}
	out.Interfaces = append(out.Interfaces, &types100.Interface{Name: v.args.IfName, Mac: made.mac, Mtu: made.mtu, Sandbox: v.args.Netns})
	bits := r.Address.BitLen()
	out.IPs = []*types100.IPConfig{{
		Interface: types100.Int(len(out.Interfaces) - 1),
		Address:   net.IPNet{IP: r.Address.AsSlice(), Mask: net.CIDRMask(bits, bits)},
	}}
	return out
}

// hostEnd is the host's end; its MAC is read from the kernel where the daemon does not say it.
func (v *verb) hostEnd(r *ipc.Response) *types100.Interface {
	i := &types100.Interface{Name: r.Veth, Mac: r.HostMAC}
	s, err := dialRoute()
	if err != nil {
		return i
	}
	defer s.Close()
	if l, err := s.linkByName(r.Veth); err == nil && l != nil {
		i.Mac, i.Mtu = l.mac, l.mtu
	}
	return i
}

// print prints what the plugins before this one made, and what this one did, in the version of the configuration.
func (v *verb) print(prev, own *types100.Result) error {
	if prev != nil {
		for _, ip := range own.IPs {
			*ip.Interface += len(prev.Interfaces)
		}
		prev.Interfaces = append(prev.Interfaces, own.Interfaces...)
		prev.IPs = append(prev.IPs, own.IPs...)
		own = prev
	}
	if newer, err := version.GreaterThanOrEqualTo(v.conf.Version, "1.1.0"); err != nil || !newer {
		plain(own)
	}
	out, err := own.GetAsVersion(v.conf.Version)
	if err != nil {
		return err
	}
	return out.PrintTo(v.out)
}

// plain takes out what CNI 1.1.0 added to a result; the library's conversion keeps it.
func plain(r *types100.Result) {
	for _, i := range r.Interfaces {
		i.Mtu, i.SocketPath, i.PciID = 0, "", ""
	}
	for _, t := range r.Routes {
		t.MTU, t.AdvMSS, t.Priority, t.Table, t.Scope = 0, 0, 0, nil, nil
	}
}
