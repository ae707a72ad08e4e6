package models

import (
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/verb"
)

// runtime is a node's kubelet and container runtime, for one action.
type runtime struct{ onNode }

var _ verb.Runtime = runtime{}

func (r runtime) Socket(cri string) verb.Strike {
	n, to := r.n, ParseSocket(cri)
	if n.Socket == to {
		return verb.Miss("the runtime socket is %v already", to)
	}
	n.Socket, n.socketBy = to, r.id
	n.Machine.Exchanged()
	return verb.Wait("the daemon did not ask for the runtime's list")
}

func (r runtime) RestartKubelet() verb.Strike { return r.restart(cri.RestartKubelet) }
func (r runtime) RestartRuntime() verb.Strike { return r.restart(cri.RestartRuntime) }

func (r runtime) restart(what cri.InputKind) verb.Strike {
	r.n.CRI.Number(r.id)
	r.h.Kubelet(r.n, &cri.Input{Kind: what})
	return verb.Wait("it did not come up again")
}

func (r runtime) FailDELs(times int, after time.Duration) verb.Strike {
	r.n.CRI.Number(r.id)
	r.n.CRI.FailDELs(times, after)
	return verb.Wait("no DEL was run")
}

func (r runtime) GC(valid string) verb.Strike {
	if !r.n.Machine.Runs() {
		return verb.Miss("no daemon runs")
	}
	var list []ipam.Attachment
	if valid == "all" {
		for t := range r.n.CRI.Sandboxes() {
			list = append(list, ipam.Attachment{ContainerID: t.ID, IfName: "eth0"})
		}
	}
	r.n.Machine.GC(list, valid == "missing", r.id)
	return verb.Wait("nobody answered")
}

func (r runtime) Hang(p verb.Pod) verb.Strike {
	if !r.n.CRI.Hang(r.h.World.Clock(), p.UID) {
		return verb.Miss("a process of pod %s is in D state already, or its node does not know it", p.Name)
	}
	return verb.Wait("nobody tried to stop the pod")
}

func (r runtime) Unhang(p verb.Pod) verb.Strike {
	if !r.n.CRI.Unhang(r.h.World.Clock(), p.UID) {
		return verb.Miss("no process of pod %s is in D state", p.Name)
	}
	return verb.Hit("the process ends")
}

func (r runtime) Hide(p verb.Pod) verb.Strike {
	if !r.n.CRI.Hide(r.h.World.Clock(), p.UID) {
		return verb.Miss("the runtime lists no sandbox of pod %s", p.Name)
	}
	return verb.Wait("nobody asked for the runtime's list")
}

func (r runtime) ReplayDEL(p verb.Pod, after []time.Duration) verb.Strike {
	return r.n.history.ReplayDEL(r.n.CRI, r.h.World.Clock(), p, after)
}
