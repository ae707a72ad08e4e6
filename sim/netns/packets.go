package netns

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

const (
	// pingPatience is how long, in real time, a pod may take to answer.
	pingPatience = 40 * time.Millisecond
	// doubtPatience is how long one may that answered before. The kernel's own timers do not jump with the laboratory's clock: a host veth
	// answers a pod's ARP for its gateway after up to proxy_delay, 0.8 s.
	doubtPatience = 1500 * time.Millisecond
)

// packets are what a node's pods are asked by: pings from the VPC, questions among themselves, and flows.
type packets struct {
	n      *instance
	silent map[netip.Addr]bool   // pods' addresses that did not answer at the last snapshot
	apart  map[netip.Addr]string // and those of which another pod of the node got no answer
	asked  time.Duration         // when that was looked at
	asks   bool                  // and will again
	flows  *vpc.Flows
}

// pods asks every pod that runs for an answer, from the far side of the VPC.
func (p *packets) pods(c *judge.Snapshot) {
	n := p.n
	var asked []netip.Addr
	var who []int
	for t := range n.CRI.Sandboxes() {
		if t.OwesDEL && !t.Running && !t.Ready {
			c.PendingDELs++
		}
		if t.Running {
			if t.Address.IsValid() {
				asked, who = append(asked, t.Address), append(who, len(c.Pods))
			}
		}
		c.Pods = append(c.Pods, judge.PodSnapshot{Att: ipam.Attachment{Network: "aws-cni", ContainerID: t.ID, IfName: "eth0"}, Name: t.Name, Address: t.Address, Ours: t.Running})
	}
	silent := map[netip.Addr]bool{}
	for i, answered := range p.reach(asked) {
		if !answered {
			c.Pods[who[i]].Fault = p.fault(asked[i])
			silent[asked[i]] = true
		}
	}
	p.silent = silent
	p.reconnect()
	for i := range c.Pods {
		if pod := &c.Pods[i]; pod.Ours && pod.Fault == "" {
			pod.Fault = p.apart[pod.Address]
		}
	}
}

// pairsPeriod is between two looks at how the pods of a node answer each other, while all do: a look takes some milliseconds, and is far more
// often than the bound in which an answer has to come back.
const pairsPeriod = 10 * time.Second

// reconnect has the pods of a node ask each other, and keeps who gave no answer.
func (p *packets) reconnect() {
	n, w := p.n, p.n.w
	if len(p.apart) == 0 && w.now() < p.asked+pairsPeriod {
		if !p.asks { // what has changed now is looked at then
			p.asks = true
			w.at(p.asked+pairsPeriod, func() { p.asks, n.Changed = false, true })
		}
		return
	}
	p.asked = w.now()
	pairs := slices.DeleteFunc(models.Pairs(w.Places(&n.Node)), func(a models.Pair) bool { return p.silent[a.From.Address] || p.silent[a.To.Address] })
	apart := map[netip.Addr]string{}
	for i, why := range p.connect(pairs, func(a models.Pair) time.Duration {
		if p.apart[a.To.Address] != "" {
			return pingPatience
		}
		return doubtPatience
	}) {
		if why != "" {
			apart[pairs[i].To.Address] = models.Unanswered(&pairs[i].From.Pod, why)
		}
	}
	p.apart = apart
}

// reach pings, and waits longer for pods that have not been out of reach before.
func (p *packets) reach(asked []netip.Addr) []bool {
	answered := p.ping(asked, probed(pingPatience))
	var doubted []netip.Addr
	var which []int
	for i, ok := range answered {
		if !ok && !p.silent[asked[i]] {
			doubted, which = append(doubted, asked[i]), append(which, i)
		}
	}
	for i, ok := range p.ping(doubted, probed(doubtPatience)) {
		answered[which[i]] = ok
	}
	p.n.w.rests()
	return answered
}

// ping asks from the far side of the VPC, and for addresses that are no VPC's, a network of the node's own, from the node.
func (p *packets) ping(asked []netip.Addr, patience time.Duration) []bool {
	w := p.n.w
	var inside []netip.Addr
	for _, a := range asked {
		if !w.Cluster.InVPC(a) {
			inside = append(inside, a)
		}
	}
	if len(inside) == 0 {
		return w.network.Ping(asked, patience)
	}
	near, err := w.network.PingFrom(p.n.box.Netns(), inside, patience)
	w.fail(err)
	far := w.network.Ping(slices.DeleteFunc(slices.Clone(asked), func(a netip.Addr) bool { return slices.Contains(inside, a) }), patience)
	out := make([]bool, len(asked))
	for i, a := range asked {
		from := &far
		if slices.Contains(inside, a) {
			from = &near
		}
		if len(*from) > 0 {
			out[i], *from = (*from)[0], (*from)[1:]
		}
	}
	return out
}

// fault says why a pod may be out of reach.
func (p *packets) fault(a netip.Addr) string {
	n, w := p.n, p.n.w
	id, ok := w.EC2.HasAddress(n.Instance, a)
	if !ok && w.Cluster.InVPC(a) {
		return "the address is on no ENI that is attached to the node"
	}
	if w.parts.WithoutBooks {
		return "it does not answer a ping"
	}
	if why, ok := n.mirror.Trace(a, w.EC2.MAC(id)); !ok {
		return "it does not answer a ping: " + why
	}
	return "it does not answer a ping, although the model sees no reason"
}

// Reach pings.
func (p *packets) Reach(pods []cri.Truth) []bool {
	asked := make([]netip.Addr, len(pods))
	for i := range pods {
		asked[i] = pods[i].Address
	}
	return p.reach(asked)
}

// Connect asks by TCP: the answer says which source address arrived.
func (p *packets) Connect(pairs []models.Pair) []string {
	return p.connect(pairs, func(models.Pair) time.Duration { return doubtPatience })
}

// askedAtOnce bounds how many pods of a node ask at a time: each takes a thread of its helper.
const askedAtOnce = 16

func (p *packets) connect(pairs []models.Pair, patience func(models.Pair) time.Duration) []string {
	n, out := p.n, make([]string, len(pairs))
	n.w.costs.pairs += len(pairs)
	var all sync.WaitGroup
	places := make(chan struct{}, askedAtOnce)
	for i, a := range pairs {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			to := netip.AddrPortFrom(a.To.Address, node.ResponderPort)
			switch text, _, err := n.box.Ask(a.From.Pod.Netns, to, probed(patience(a))); {
			case err != nil:
				out[i] = "nothing answers on TCP port " + strconv.Itoa(node.ResponderPort)
			case text != a.From.Address.String():
				out[i] = "it is taken for " + text
			}
		})
	}
	all.Wait()
	n.w.rests()
	return out
}

// OpenFlows dials, one after the other: pods that answer do so at once.
func (p *packets) OpenFlows(pods []cri.Truth) []bool {
	n, out := p.n, make([]bool, len(pods))
	for i, pod := range pods {
		ctx, cancel := context.WithTimeout(n.w.ctx, probed(doubtPatience))
		err := p.flows.Open(ctx, pod.Address)
		cancel()
		if err != nil {
			n.w.log("%s: no flow to %s yet: %v", n.Name(), pod.Name, err)
			continue
		}
		out[i] = true
		n.w.costs.flows++
	}
	n.w.rests()
	return out
}

// CloseFlow closes the laboratory's end.
func (p *packets) CloseFlow(pod cri.Truth) { p.flows.Close(pod.Address) }

// Echo writes to all, and then waits for each.
func (p *packets) Echo(pods []cri.Truth, last bool) []models.Answer {
	patience := probed(doubtPatience)
	if last {
		patience = slowed(models.LastPatience)
	}
	out := machine.Echo(p.flows, pods, patience)
	p.n.w.rests()
	return out
}
