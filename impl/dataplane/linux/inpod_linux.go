package linux

import (
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// checkPod says whether the caller passed the namespace that an operation is about.
func (a *applier) checkPod(inode uint64) error {
	switch {
	case a.pod == nil:
		return failed(dataplane.NoNamespace, "the pod's namespace was not passed")
	case a.pod.inode != inode:
		return failed(dataplane.NoNamespace, "another namespace was passed")
	}
	return nil
}

// applyPod is the pod's end of a veth: the socket is inside, and the host's end knows the other's index.
func (a *applier) applyPod(op *dataplane.Op) error {
	d, err := a.veth(op.Alias)
	if err != nil {
		return err
	}
	if err = a.checkPod(op.Netns); err != nil {
		return err
	}
	if err = a.leadsToPod(&d); err != nil {
		return err
	}
	r := a.r.Reset()
	switch op.Kind {
	case dataplane.PodRoute:
		if !op.Dst.IsValid() {
			return failed(dataplane.Invalid, "a route needs a destination")
		}
		ensureRoute(r, op, d.peer, unix.RT_TABLE_MAIN)
	case dataplane.PodAddress:
		if !op.Addr.IsValid() {
			return failed(dataplane.Invalid, "the address is missing")
		}
		r.Address(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, 32, d.peer)
		r.IP(unix.IFA_LOCAL, op.Addr)
	case dataplane.PodNeighbour:
		mac, ok := parseMAC(op.MAC)
		if !ok || op.Addr != dataplane.Gateway() {
			return failed(dataplane.Invalid, "a pod's neighbour is its gateway, with a MAC")
		}
		r.Neighbour(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK, d.peer, unix.NUD_PERMANENT, 0)
		r.IP(unix.NDA_DST, op.Addr)
		r.Bytes(unix.NDA_LLADDR, mac[:])
	}
	err = a.pod.s.Do(r)
	if op.Kind == dataplane.PodAddress && netlink.Is(err, unix.EEXIST) {
		err = nil
	}
	return err
}

// leadsToPod says whether a veth's peer is in the namespace that was passed: their numbers, as the
// host counts namespaces, are the same. A veth of this plan was made there.
func (a *applier) leadsToPod(d *device) error {
	if a.inPod == d.index {
		return nil
	}
	r := a.r.Reset()
	r.Message(unix.RTM_GETNSID, 0)
	r.Raw(unix.AF_UNSPEC, 0, 0, 0)
	r.U32(unix.NETNSA_FD, uint32(a.pod.netns.Fd()))
	body, err := a.s.Get(r)
	if err != nil {
		return err
	}
	netnsid := -1
	if len(body) >= 4 {
		for c := netlink.Attributes(body[4:]); c.Next(); {
			if c.Kind == unix.NETNSA_NSID {
				netnsid = int(int32(c.U32()))
			}
		}
	}
	if netnsid < 0 || netnsid != d.netnsid {
		return failed(dataplane.NoNamespace, "the link leads to another namespace")
	}
	a.inPod = d.index
	return nil
}
