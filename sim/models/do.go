package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
)

// Do carries out an action, now, and gives its number.
func (h *Host) Do(a *sim.Act) (id int) {
	id = h.Acts.Begin(actions.Describe(a))
	switch a.Subject.Kind {
	case scn.Node:
		h.doNode(h.Nodes[a.Subject.Node], a, id)
	case scn.AllNodes:
		for _, n := range h.Nodes[1:] {
			one := *a
			one.Subject = scn.Subject{Kind: scn.Node, Node: int(n.No)}
			part := h.Acts.Part(id, actions.Describe(&one))
			if n.Gone {
				h.Acts.Void(part, "the instance is terminated")
				continue
			}
			h.doNode(n, &one, part)
		}
	case scn.Pod:
		h.doPod(a, id)
	case scn.Kube:
		s, _ := h.api().Do(a)
		h.took(id, s)
	case scn.EC2, scn.IMDS:
		c := actions.Cloud{Model: h.EC2, Cluster: h.Cluster.Name, Now: h.World.Clock(), Instance: func(i int) ec2.InstanceID { return h.Nodes[i].Instance },
			Address: actions.AddressIn(h.Kube)}
		if p, ok := h.Kube.Find(a.Text("pod")); ok {
			h.Acts.Means(id, a.Text("pod"), p.Name)
		}
		h.took(id, c.Do(a, id))
	}
	h.Pump()
	return id
}

// Strike is what has become of an action by now.
func (h *Host) Strike(id int) sim.Strike { return h.Acts.Of(id) }

func (h *Host) api() *actions.API {
	return &actions.API{Model: h.Kube, Now: h.World.Clock(), Nodes: h.living(), HoldFlows: h.holdFlows}
}

// NodeVerbs and PodVerbs are the verbs of nodes and of pods that are carried out here, in any world.
func NodeVerbs() []string { return slices.Sorted(maps.Keys(nodeVerbs)) }

// PodVerbs are those of pods, see NodeVerbs.
func PodVerbs() []string { return slices.Sorted(maps.Keys(podVerbs)) }

var nodeVerbs = map[string]func(h *Host, n *Node, a *sim.Act, id int) sim.Strike{
	"socket":       (*Host).socket,
	"restart":      (*Host).restart,
	"upgrade":      (*Host).upgrade,
	"kill":         (*Host).kill,
	"kill-at":      (*Host).killAt,
	"hold":         (*Host).hold,
	"unhold":       (*Host).unhold,
	"terminate":    (*Host).terminate,
	"reboot":       (*Host).reboot,
	"gc":           (*Host).gc,
	"fail-dels":    (*Host).failDELs,
	"lose-records": (*Host).loseRecords,
	"flush-rules": func(_ *Host, n *Node, _ *sim.Act, _ int) sim.Strike {
		return actions.Flushed(n.Machine.FlushRules(), "rules")
	},
	"flush-routes": func(_ *Host, n *Node, a *sim.Act, _ int) sim.Strike {
		return actions.Flushed(n.Machine.FlushRoutes(a.Int("table")), "routes")
	},
	"flush-nat":       func(_ *Host, n *Node, _ *sim.Act, _ int) sim.Strike { return actions.FlushedNAT(n.Machine.FlushNAT()) },
	"add-third-party": (*Host).addThirdParty,
	"restart-kubelet": func(h *Host, n *Node, _ *sim.Act, id int) sim.Strike { return h.restartBox(n, cri.RestartKubelet, id) },
	"restart-runtime": func(h *Host, n *Node, _ *sim.Act, id int) sim.Strike { return h.restartBox(n, cri.RestartRuntime, id) },
}

func (h *Host) doNode(n *Node, a *sim.Act, id int) {
	if n.Gone {
		h.took(id, sim.Miss("the instance is terminated"))
		return
	}
	n.Dirty = true
	if do := nodeVerbs[a.Verb]; do != nil {
		h.took(id, do(h, n, a, id))
		n.spoiled(a.Verb)
	} else if s, ok := n.Machine.Do(a, id); ok {
		h.took(id, s)
	} else {
		h.took(id, sim.Miss("this world does not know the verb"))
	}
}

func (h *Host) socket(n *Node, a *sim.Act, id int) sim.Strike {
	to := ParseSocket(a.Text("cri"))
	if n.Socket == to {
		return sim.Miss("the runtime socket is %v already", to)
	}
	n.Socket, n.socketBy = to, id
	n.Machine.Exchanged()
	return sim.Wait("the daemon did not ask for the runtime's list")
}

func (h *Host) restart(n *Node, a *sim.Act, id int) sim.Strike {
	for _, k := range a.Keys {
		_ = n.Settings.Put(k.Key, k.Value) // checked by Bind
	}
	if !n.Machine.Runs() {
		return sim.Miss("no daemon runs")
	}
	n.Machine.Restart()
	return n.Starters.Any(id)
}

func (h *Host) upgrade(n *Node, a *sim.Act, id int) sim.Strike {
	if strings.Contains(a.Text("to"), "@") {
		return h.exchange(n, a, id)
	}
	to, part := a.Int("to"), a.Text("part")
	if (part == "plugin" || n.Version == to) && (part == "daemon" || n.Plugin == to) {
		return sim.Miss("version %d runs already", to)
	}
	if part != "daemon" {
		n.Plugin = to
		n.Machine.Installed()
	}
	if part == "plugin" {
		n.pluginBy = id
		return sim.Wait("the new plugin was not run")
	}
	n.Version = to
	if n.Machine.Runs() {
		n.Machine.Restart()
	}
	return n.Starters.Any(id)
}

// exchange is upgrade to another system.
func (h *Host) exchange(n *Node, a *sim.Act, id int) sim.Strike {
	to, part := a.Text("to"), a.Text("part")
	if !n.Machine.Exchange(to, part, a.Text("env") == "keep") {
		return sim.Miss("%s runs already", to)
	}
	if part == "plugin" {
		n.pluginBy = id
		return sim.Wait("the new plugin was not run")
	}
	return n.Starters.Any(id)
}

func (h *Host) kill(n *Node, _ *sim.Act, id int) sim.Strike {
	if !n.Machine.Lives() {
		return sim.Miss("no daemon runs")
	}
	return n.Machine.Kill(id, "the daemon dies")
}

func (h *Host) killAt(n *Node, a *sim.Act, id int) sim.Strike {
	action, _ := ec2.ParseAction(a.Text("call"))
	h.Traps.Set(n.No, action, a.Text("when") == "after", id)
	return sim.Wait("the daemon made no %s", a.Text("call"))
}

// hold also strikes where it keeps a daemon from starting.
func (h *Host) hold(n *Node, _ *sim.Act, id int) sim.Strike {
	if n.Down {
		return sim.Miss("the daemon is kept down already")
	}
	n.Down = true
	if !n.Machine.Lives() {
		n.heldBy = id
		return sim.Wait("no daemon ran or was to start")
	}
	return n.Machine.Kill(id, "the daemon dies and is not started again")
}

func (h *Host) unhold(n *Node, _ *sim.Act, id int) sim.Strike {
	if !n.Down {
		return sim.Miss("nobody keeps the daemon down")
	}
	n.Down, n.heldBy = false, 0
	n.Machine.Start()
	return n.Starters.Any(id)
}

func (h *Host) terminate(n *Node, _ *sim.Act, id int) sim.Strike {
	n.endedBy = id
	h.EC2.Terminate(h.World.Clock(), n.Instance)
	return sim.Wait("EC2 did not terminate the instance")
}

func (h *Host) reboot(n *Node, _ *sim.Act, id int) sim.Strike {
	n.Machine.Reboot()
	return n.Starters.Any(id)
}

// gc calls GC with all attachments, with none, or without the key.
func (h *Host) gc(n *Node, a *sim.Act, id int) sim.Strike {
	if !n.Machine.Runs() {
		return sim.Miss("no daemon runs")
	}
	var list []ipam.Attachment
	valid := a.Text("valid")
	if valid == "all" {
		for t := range n.CRI.Sandboxes() {
			list = append(list, ipam.Attachment{ContainerID: t.ID, IfName: "eth0"})
		}
	}
	n.Machine.GC(list, valid == "missing", id)
	return sim.Wait("nobody answered")
}

func (h *Host) failDELs(n *Node, a *sim.Act, id int) sim.Strike {
	n.CRI.Number(id)
	n.CRI.FailDELs(a.Int("times"), a.Duration("after"))
	return sim.Wait("no DEL was run")
}

func (h *Host) loseRecords(n *Node, _ *sim.Act, id int) sim.Strike {
	if !n.Machine.LoseRecords() {
		return sim.Miss("there are no records")
	}
	return n.Starters.Bare(id)
}

func (h *Host) restartBox(n *Node, what cri.InputKind, id int) sim.Strike {
	n.CRI.Number(id)
	h.Kubelet(n, &cri.Input{Kind: what})
	return sim.Wait("it did not come up again")
}

// podVerbs are those about a pod's node; the API server has others.
var podVerbs = map[string]func(h *Host, n *Node, p *kube.Pod, a *sim.Act) sim.Strike{
	"hang":          (*Host).hang,
	"unhang":        (*Host).unhang,
	"hide":          (*Host).hide,
	"lose-gateway":  (*Host).loseGateway,
	"change-mac":    (*Host).changeMAC,
	"lose-alias":    (*Host).loseAlias,
	"add-addresses": (*Host).addAddresses,
	"replay-del": func(h *Host, n *Node, p *kube.Pod, a *sim.Act) sim.Strike {
		return n.history.ReplayDEL(n.CRI, h.World.Clock(), p.Name, p.UID, a)
	},
}

func (h *Host) doPod(a *sim.Act, id int) {
	p, ok := h.Kube.Find(a.Subject.Pod)
	n := h.at(p.Node) // nil where there is no such pod: node 0 is none
	if !ok || n == nil || n.Gone {
		h.took(id, actions.NoPod(a.Subject.Pod, ok))
		return
	}
	n.Dirty = true
	n.CRI.Number(id)
	h.Acts.Means(id, a.Subject.Pod, p.Name)
	if s, ours := h.api().Do(a); ours {
		h.took(id, s)
	} else if do := podVerbs[a.Verb]; do != nil {
		h.took(id, do(h, n, &p, a))
	}
	h.ArmKubelet(n)
}

func (h *Host) hang(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.CRI.Hang(h.World.Clock(), p.UID) {
		return sim.Miss("a process of pod %s is in D state already, or its node does not know it", p.Name)
	}
	return sim.Wait("nobody tried to stop the pod")
}

func (h *Host) unhang(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.CRI.Unhang(h.World.Clock(), p.UID) {
		return sim.Miss("no process of pod %s is in D state", p.Name)
	}
	return sim.Hit("the process ends")
}

func (h *Host) hide(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.CRI.Hide(h.World.Clock(), p.UID) {
		return sim.Miss("the runtime lists no sandbox of pod %s", p.Name)
	}
	return sim.Wait("nobody asked for the runtime's list")
}

func (h *Host) loseGateway(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	s, ok := n.sandbox(p.UID)
	return actions.LostGateway(p.Name, ok && n.Machine.LoseGateway(s.Netns))
}

func (h *Host) changeMAC(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	s, ok := n.sandbox(p.UID)
	return actions.ChangedMAC(p.Name, ok && n.Machine.ChangeMAC(s.ID, strangeMAC))
}

func (h *Host) loseAlias(n *Node, p *kube.Pod, _ *sim.Act) sim.Strike {
	s, ok := n.sandbox(p.UID)
	return actions.LostAlias(p.Name, ok && n.Machine.LoseAlias(s.ID))
}

func (h *Host) addAddresses(n *Node, p *kube.Pod, a *sim.Act) sim.Strike {
	count := 0
	if s, ok := n.sandbox(p.UID); ok {
		n.greedy = append(n.greedy, s.Netns)
		count = n.Machine.AddAddresses(s.Netns, actions.More(h.EC2, n.Instance, s.Address, a.Int("count")))
	}
	return actions.AddedAddresses(p.Name, count)
}

// EndFaults ends what actions broke. An action that nothing has met yet stays what it is: armed, and told as missed in the end.
func (h *Host) EndFaults() {
	now := h.World.Clock()
	h.Auditor.FaultsEnded(now)
	h.EC2.ClearFaults(now)
	actions.Grant(h.EC2, h.Cluster)
	h.EC2.SetLag(ec2.Lag{})
	h.Traps = nil
	for _, n := range h.Nodes[1:] {
		if n.Gone {
			continue
		}
		if n.Socket != Right {
			n.Socket = Right
			n.Machine.Exchanged()
		}
		n.CRI.FailDELs(0, 0)
		n.CRI.EndHangs(now)
		if n.Down {
			n.Down = false
			n.Machine.Start()
		}
		h.ArmKubelet(n)
	}
	h.Pump()
}
