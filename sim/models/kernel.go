package models

import (
	"net/netip"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/verb"
)

// kernelOf is a node's machine and its kernel, for one action.
type kernelOf struct{ onNode }

var _ verb.Kernel = kernelOf{}

func (k kernelOf) Interfere(a kernel.Accident) int {
	count := k.n.Machine.Interfere(a, cri.Truth{})
	k.n.spoiled()
	return count
}

func (k kernelOf) InterfereAt(p verb.Pod, a kernel.Accident) int {
	s, ok := k.n.sandbox(p.UID)
	if !ok {
		return 0
	}
	if a.What == kernel.AddAddresses {
		k.n.claimed = append(k.n.claimed, s.Netns)
	}
	return k.n.Machine.Interfere(a, s)
}

func (k kernelOf) MoreAddresses(p verb.Pod, count int) []netip.Addr {
	s, ok := k.n.sandbox(p.UID)
	if !ok {
		return nil
	}
	return actions.More(k.h.EC2, k.n.Instance, s.Address, count)
}

func (k kernelOf) InterruptDumps(times int) verb.Strike {
	return k.n.Machine.InterruptDumps(times, k.id)
}

func (k kernelOf) Reboot() verb.Strike {
	k.n.Machine.Reboot()
	k.n.foreign = nil
	return k.n.Starters.Any(k.id)
}

func (k kernelOf) Terminate() verb.Strike {
	k.n.endedBy = k.id
	k.h.EC2.Terminate(k.h.World.Clock(), k.n.Instance)
	return verb.Wait("EC2 did not terminate the instance")
}
