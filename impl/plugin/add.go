package plugin

import (
	"errors"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// add gives a namespace an interface and an address.
func (v *verb) add() error {
	if err := v.names(); err != nil {
		return err
	}
	prev, err := v.prevResult()
	if err != nil {
		return err
	}
	ns, err := v.namespace()
	if err != nil {
		return err
	}
	defer ns.Close()
	again, err := v.vacant(ns)
	if err != nil {
		return err
	}
	r, err := v.ask(&ipc.Request{Inode: ns.inode}, v.conf.Timeout, ns.file, ns.passed)
	if err != nil {
		return v.again(err)
	}
	if err := v.refused(r); err != nil {
		return err
	}
	made, err := ns.link(v.args.IfName)
	if err == nil && made == nil {
		err = errors.New("it is not there")
	}
	if err == nil && !r.Address.IsValid() {
		err = errors.New("ipamd names no address")
	}
	if err != nil {
		return v.giveBack(errorf(ipam.CodeIO, "%s: ipamd made %s in CNI_NETNS=%s, but: %v", v, v.args.IfName, v.args.Netns, err))
	}
	if err := v.enforce(r); err != nil {
		if again { // it is a living pod's interface
			return err
		}
		return v.giveBack(err)
	}
	v.compare(r, made)
	if err := v.print(prev, v.result(r, made)); err != nil {
		return v.giveBack(errorf(ipam.CodeIO, "%s: print the result: %v", v, err))
	}
	return nil
}

// vacant refuses an interface that exists, unless it is this very attachment's: then the ADD is a repetition, and the
// daemon knows what to answer. The kernel knows whose it is, by the alias of the host's end (rule E).
func (v *verb) vacant(ns *namespace) (again bool, err error) {
	there, err := ns.link(v.args.IfName)
	if err != nil {
		return false, errorf(ipam.CodeIO, "%s: look for %s in CNI_NETNS=%s: %v", v, v.args.IfName, v.args.Netns, err)
	}
	if there == nil || v.ours(there) {
		return there != nil, nil
	}
	return false, errorf(types.ErrInvalidEnvironmentVariables, "%s: CNI_IFNAME=%s: an interface of that name exists in CNI_NETNS=%s and is not of this attachment; "+
		"use another name, or another namespace", v, v.args.IfName, v.args.Netns)
}

// ours says whether the other end of a link in the pod carries the attachment's key.
func (v *verb) ours(in *link) bool {
	if !in.crosses {
		return false
	}
	s, err := dialRoute()
	if err != nil {
		return false
	}
	defer s.Close()
	host, err := s.linkByIndex(in.peer)
	if err != nil || host == nil || host.peer != in.index {
		return false
	}
	network, id, ifName, _, ok := dataplane.ParseAlias(host.alias)
	return ok && v.att == ipam.Attachment{Network: network, ContainerID: id, IfName: ifName}
}

// giveBack ends an ADD that the daemon did and that will not be reported: nothing of it stays. A daemon that does not
// answer any more finds the intent.
func (v *verb) giveBack(why error) error {
	d := *v
	d.name = ipc.Del
	if r, err := d.ask(&ipc.Request{}, v.conf.Timeout); err != nil || r.Code != 0 {
		if err := ipc.WriteIntent(v.intents(), d.intent()); err != nil {
			v.log.Error("an ADD that failed could not be given back", "error", err.Error())
		}
	}
	return why
}

// compare logs where the daemon's settings and the conflist disagree: only one of them was changed.
func (v *verb) compare(r *ipc.Response, made *link) {
	if p := v.conf.VethPrefix; p != "" && r.Veth != "" && !strings.HasPrefix(r.Veth, p) {
		v.log.Warn("vethPrefix of the conflist is not ipamd's", "conflist", p, "veth", r.Veth)
	}
	if m := v.conf.MTU; m != 0 && made.mtu != m {
		v.log.Warn("mtu of the conflist is not ipamd's", "conflist", m, "mtu", made.mtu)
	}
}
