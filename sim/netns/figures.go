package netns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/systems"
)

// Figures are what the run has cost until now.
func (w *World) Figures() *sim.Figures {
	f := &sim.Figures{Adds: len(w.costs.adds), Dels: len(w.costs.dels), Add: w.costs.adds.P50(), Del: w.costs.dels.P50(), Failed: w.costs.failed,
		Start: w.costs.start, Ready: w.Epoch(), Calls: map[string]int64{}, Errors: map[string]int64{}, Facts: w.facts(),
		Pods: w.costs.lives(w.Epoch()), Flows: w.costs.flows, Pairs: w.costs.pairs}
	for a, c := range actions.Ledger(w.EC2) {
		if n := c.Total; n > 0 {
			f.Calls[ec2.Action(a).String()] = int64(n)
		}
	}
	for _, r := range w.EC2.LedgerRows() {
		if r.Outcome == ec2.CallFailed || r.Outcome == ec2.CallThrottled {
			f.Errors[cmp.Or(r.Code, "another code")] += int64(r.Calls)
		}
	}
	for n := range w.nodes.living() {
		f.ENIs += len(w.EC2.AttachedENIs(n.Instance))
		if !n.Runs() || n.unmanned() || w.broken != nil {
			continue
		}
		if size, err := n.box.Memory(); err == nil { // it may end at this moment
			f.Memory = max(f.Memory, size)
		}
	}
	return f
}

// facts are what a system's nodes look like to others: to firewalls and network policy agents, which know host veths by the begin of their names, to
// whatever answers a pod, and to the runtime. Of our own daemon with its books they are not compared.
func (w *World) facts() map[string]string {
	if w.parts.System == nil || w.broken != nil {
		return nil
	}
	all := map[string]map[string]bool{}
	saw := func(fact, value string) {
		if all[fact] == nil {
			all[fact] = map[string]bool{}
		}
		all[fact][value] = true
	}
	for n := range w.nodes.living() {
		saw(sim.FactConfiguration, n.configuration())
		seen, err := n.box.Observe()
		w.fail(err)
		places := w.Places(&n.Node)
		for _, p := range places {
			name := n.linkTo(p.Address)
			if name == "" {
				continue
			}
			saw(sim.FactVeth, strings.TrimRight(name, "0123456789abcdef"))
			if i := slices.IndexFunc(seen.Links, func(l dataplane.Link) bool { return l.Name == name }); i >= 0 {
				saw(sim.FactMTU, strconv.Itoa(seen.Links[i].MTU))
			}
		}
		in, _ := w.EC2.InstanceOf(n.Instance)
		asked := map[string]bool{}
		for _, p := range places {
			if asked[p.ENI] || !w.Cluster.InVPC(p.Address) {
				continue
			}
			asked[p.ENI] = true
			switch text, _, err := n.box.Ask(p.Pod.Netns, w.network.InternetAddr(), slowed(doubtPatience)); {
			case err != nil:
				saw(sim.FactSource, "no answer")
			case text == in.PrimaryAddress.String():
				saw(sim.FactSource, "the node's address")
			case text == p.Address.String():
				saw(sim.FactSource, "the pod's address")
			default:
				saw(sim.FactSource, "another address")
			}
		}
	}
	out := map[string]string{}
	for fact, values := range all {
		out[fact] = strings.Join(slices.Sorted(maps.Keys(values)), ", ")
	}
	return out
}

// configuration is what a runtime would take: the first file of its folder, as canonical JSON.
func (n *instance) configuration() string {
	folder := filepath.Join(n.box.Root(), systems.ConfigFolder)
	list, err := os.ReadDir(folder) // sorted
	if err != nil && !os.IsNotExist(err) {
		return "unreadable: " + err.Error()
	}
	for _, e := range list {
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		var any any
		if err == nil {
			err = json.Unmarshal(data, &any)
		}
		if err != nil {
			return fmt.Sprintf("%s: unreadable: %v", e.Name(), err)
		}
		text, _ := json.Marshal(any) // it has just been read
		return e.Name() + " " + string(text)
	}
	return sim.NoConfiguration
}
