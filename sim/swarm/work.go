package swarm

import (
	"fmt"
	"slices"
	"time"
)

// names of workloads, in the order in which they are made.
var names = []string{"web", "db", "app", "job", "api"}

// crowd is how many pods are drawn at most, on one node and in all: what there is room for, and mostPods or one for each node.
func (p *plan) crowd() (perNode, all int) {
	perNode, all = p.shape.room()
	return min(perNode, mostPods), min(all, max(mostPods, p.shape.nodes))
}

// startPods draws what runs when time begins: well below what there is room for.
func (p *plan) startPods() {
	p.pinned = p.doomed > 0 || p.shape.nodes > 1 && p.chance(40)
	perNode, all := p.crowd()
	left := all * p.between(20, 80) / 100
	if !p.pinned {
		left = min(left, perNode) // the scheduler goes round, but what is deleted comes back on the next node
		count := p.between(1, max(1, left/p.shape.nodes))
		p.loads = append(p.loads, workload{name: names[0], count: count * p.shape.nodes})
		p.start = append(p.start, fmt.Sprintf("start   pods %s %d on node-*", names[0], count))
		return
	}
	for n := 1; n <= p.shape.nodes && n <= len(names) && left > 0; n++ {
		count := p.between(1, min(perNode, max(1, left/p.shape.nodes)))
		p.loads = append(p.loads, workload{name: names[n-1], count: count, node: n})
		p.start = append(p.start, fmt.Sprintf("start   pods %s %d on node-%d", names[n-1], count, n))
	}
}

// operate does what people and controllers do to workloads.
func (p *plan) operate(at time.Duration) {
	p.wanted = max(p.wanted, at)
	perNode, _ := p.crowd()
	if len(p.loads) < len(names) && p.chance(30) {
		p.create(at, p.between(1, max(1, perNode*3/4)))
		return
	}
	l := p.someLoad()
	if l == nil {
		return
	}
	switch p.between(1, 5) {
	case 1, 2:
		l.count = p.between(0, max(2, perNode*11/10)) // also more than there is room for
		p.must(at, "kube scale %s %d", l.name, l.count)
	case 3:
		p.write(at, "kube roll %s %d", l.name, p.between(1, max(1, l.count)))
	case 4:
		if p.chance(50) {
			p.churn(at, l)
			return
		}
		p.write(at, "pod %s delete", p.podOf(l))
	case 5:
		p.write(at, "pod %s %s", p.podOf(l), pick(&p.source, "delete", "force-delete"))
	}
}

// churn rolls a workload again and again.
func (p *plan) churn(at time.Duration, l *workload) {
	until := p.later(at, 20*time.Second, 2*time.Minute)
	p.wanted = max(p.wanted, until)
	every := p.span(3*time.Second, 20*time.Second, time.Second)
	if p.chance(20) {
		every = p.span(500*time.Millisecond, 2*time.Second, 100*time.Millisecond)
	}
	p.lines = append(p.lines, planned{at, fmt.Sprintf("maybe at %s every %s until %s kube roll %s %d", short(at), short(every), short(until),
		l.name, p.between(1, max(1, l.count/2)))})
}

func (p *plan) create(at time.Duration, count int) {
	w := workload{name: names[len(p.loads)], count: count, stateful: p.chance(35), made: at}
	args := ""
	if w.stateful {
		args = " kind=statefulset"
	}
	if p.pinned || p.shape.nodes > 1 && p.chance(30) {
		w.node = p.aliveNode()
		args += fmt.Sprintf(" node=%d", w.node)
	}
	p.loads = append(p.loads, w)
	p.must(at, "kube create %s %d%s", w.name, w.count, args)
}

// someLoad is a workload that still has a node; nil when there is none.
func (p *plan) someLoad() *workload {
	var left []*workload
	for i := range p.loads {
		if l := &p.loads[i]; !p.gone || l.node != p.doomed {
			left = append(left, l)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return pick(&p.source, left...)
}

// podOf names one of a workload's pods.
func (p *plan) podOf(l *workload) string {
	return fmt.Sprintf("%s-%d", l.name, p.between(0, max(0, l.count-1)))
}

func (p *plan) aliveNode() int {
	n := p.between(1, p.shape.nodes)
	if p.gone && n == p.doomed {
		n = n%p.shape.nodes + 1
	}
	return n
}

// bringBack scales workloads down at the end of the safety phase until all of their pods have room for good.
func (p *plan) bringBack() {
	before := make([]int, len(p.loads))
	for i := range p.loads {
		before[i] = p.loads[i].count
	}
	for l := overloaded(&p.shape, p.loads, p.hidden); l != nil; l = overloaded(&p.shape, p.loads, p.hidden) {
		l.count = l.count * 3 / 4
	}
	for i := range p.loads {
		if l := &p.loads[i]; l.count != before[i] {
			p.must(p.safety, "kube scale %s %d", l.name, l.count)
		}
	}
}

// overloaded is the largest workload of those whose pods have no room together; nil when all have. hidden are sandboxes that nobody
// ends, wherever they are.
func overloaded(h *shape, loads []workload, hidden int) *workload {
	perNode, all := h.room()
	on, everywhere := make([]int, h.nodes+1), hidden
	sum := hidden
	for i := range loads {
		l := &loads[i]
		sum += l.count
		if l.node == 0 { // round robin, but what is deleted comes back on the next node: at worst all are on one
			everywhere += l.count
		} else if l.node < len(on) {
			on[l.node] += l.count
		}
	}
	if fullest := slices.Max(on); fullest+everywhere <= perNode && sum <= all {
		return nil
	}
	var most *workload
	for i := range loads {
		if l := &loads[i]; l.count > 0 && (most == nil || l.count > most.count) {
			most = l
		}
	}
	return most
}
