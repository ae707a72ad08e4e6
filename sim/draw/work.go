package draw

import (
	"fmt"
	"slices"
	"time"
)

// names of workloads, in the order in which they are made.
var Names = []string{"web", "db", "app", "job", "api"}

// crowd is how many pods are drawn at most, on one node and in all: what there is room for, and mostPods or one for
// each node.
func (p *Plan) Crowd() (perNode, all int) {
	perNode, all = p.Shape.Room()
	return min(perNode, MostPods), min(all, max(MostPods, p.Shape.Nodes))
}

// startPods draws what runs when time begins: well below what there is room for.
func (p *Plan) StartPods() {
	p.Pinned = p.Doomed > 0 || p.Shape.Nodes > 1 && p.Chance(40)
	perNode, all := p.Crowd()
	left := all * p.Between(20, 80) / 100
	if !p.Pinned {
		left = min(left, perNode) // the scheduler goes round, but what is deleted comes back on the next node
		count := p.Between(1, max(1, left/p.Shape.Nodes))
		p.Loads = append(p.Loads, Workload{Name: Names[0], Count: count * p.Shape.Nodes})
		p.Start = append(p.Start, fmt.Sprintf("start   pods %s %d on node-*", Names[0], count))
		return
	}
	for n := 1; n <= p.Shape.Nodes && n <= len(Names) && left > 0; n++ {
		count := p.Between(1, min(perNode, max(1, left/p.Shape.Nodes)))
		p.Loads = append(p.Loads, Workload{Name: Names[n-1], Count: count, Node: n})
		p.Start = append(p.Start, fmt.Sprintf("start   pods %s %d on node-%d", Names[n-1], count, n))
	}
}

// operate does what people and controllers do to workloads.
func (p *Plan) Operate(at time.Duration) {
	p.Wanted = max(p.Wanted, at)
	perNode, _ := p.Crowd()
	if len(p.Loads) < len(Names) && p.Chance(30) {
		p.Create(at, p.Between(1, max(1, perNode*3/4)))
		return
	}
	l := p.SomeLoad()
	if l == nil {
		return
	}
	switch p.Between(1, 5) {
	case 1, 2:
		l.Count = p.Between(0, max(2, perNode*11/10)) // also more than there is room for
		p.Must(at, "kube scale %s %d", l.Name, l.Count)
	case 3:
		p.Write(at, "kube roll %s %d", l.Name, p.Between(1, max(1, l.Count)))
	case 4:
		if p.Chance(50) {
			p.Churn(at, l)
			return
		}
		p.Write(at, "pod %s delete", p.PodOf(l))
	case 5:
		p.Write(at, "pod %s %s", p.PodOf(l), Pick(&p.Source, "delete", "force-delete"))
	}
}

// churn rolls a workload again and again.
func (p *Plan) Churn(at time.Duration, l *Workload) {
	until := p.Later(at, 20*time.Second, 2*time.Minute)
	p.Wanted = max(p.Wanted, until)
	every := p.Span(3*time.Second, 20*time.Second, time.Second)
	if p.Chance(20) {
		every = p.Span(500*time.Millisecond, 2*time.Second, 100*time.Millisecond)
	}
	p.Lines = append(p.Lines, Planned{at, fmt.Sprintf("maybe at %s every %s until %s kube roll %s %d", Short(at),
		Short(every), Short(until),
		l.Name, p.Between(1, max(1, l.Count/2)))})
}

func (p *Plan) Create(at time.Duration, count int) {
	w := Workload{Name: Names[len(p.Loads)], Count: count, Stateful: p.Chance(35), Made: at}
	args := ""
	if w.Stateful {
		args = " kind=statefulset"
	}
	if p.Pinned || p.Shape.Nodes > 1 && p.Chance(30) {
		w.Node = p.AliveNode()
		args += fmt.Sprintf(" node=%d", w.Node)
	}
	p.Loads = append(p.Loads, w)
	p.Must(at, "kube create %s %d%s", w.Name, w.Count, args)
}

// someLoad is a workload that still has a node; nil when there is none.
func (p *Plan) SomeLoad() *Workload {
	var left []*Workload
	for i := range p.Loads {
		if l := &p.Loads[i]; !p.Gone || l.Node != p.Doomed {
			left = append(left, l)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return Pick(&p.Source, left...)
}

// podOf names one of a workload's pods.
func (p *Plan) PodOf(l *Workload) string {
	return fmt.Sprintf("%s-%d", l.Name, p.Between(0, max(0, l.Count-1)))
}

func (p *Plan) AliveNode() int {
	n := p.Between(1, p.Shape.Nodes)
	if p.Gone && n == p.Doomed {
		n = n%p.Shape.Nodes + 1
	}
	return n
}

// bringBack scales workloads down at the end of the safety phase until all of their pods have room for good.
func (p *Plan) BringBack() {
	before := make([]int, len(p.Loads))
	for i := range p.Loads {
		before[i] = p.Loads[i].Count
	}
	for l := Overloaded(&p.Shape, p.Loads, p.Hidden); l != nil; l = Overloaded(&p.Shape, p.Loads, p.Hidden) {
		l.Count = l.Count * 3 / 4
	}
	for i := range p.Loads {
		if l := &p.Loads[i]; l.Count != before[i] {
			p.Must(p.Safety, "kube scale %s %d", l.Name, l.Count)
		}
	}
}

// overloaded is the largest workload of those whose pods have no room together; nil when all have. hidden are
// sandboxes that nobody ends, wherever they are.
func Overloaded(h *Shape, loads []Workload, hidden int) *Workload {
	perNode, all := h.Room()
	on, everywhere := make([]int, h.Nodes+1), hidden
	sum := hidden
	for i := range loads {
		l := &loads[i]
		sum += l.Count
		if l.Node == 0 { // round robin, but what is deleted comes back on the next node: at worst all are on one
			everywhere += l.Count
		} else if l.Node < len(on) {
			on[l.Node] += l.Count
		}
	}
	if fullest := slices.Max(on); fullest+everywhere <= perNode && sum <= all {
		return nil
	}
	var most *Workload
	for i := range loads {
		if l := &loads[i]; l.Count > 0 && (most == nil || l.Count > most.Count) {
			most = l
		}
	}
	return most
}
