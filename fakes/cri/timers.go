package cri

import "time"

// timer is one owner's only deadline. An owner is a pod, a sandbox or one of the node's own jobs.
type timer struct {
	at  time.Duration
	seq uint64
	key int32 // 2*slot of a pod, 2*slot+1 of a sandbox, or a negative job
}

const (
	jobGC      = int32(-1)
	jobRuntime = int32(-2) // the runtime is up again
	jobKubelet = int32(-3) // kubelet is up again
	jobReplay  = int32(-4)
	nodeTimers = 4
)

func podKey(slot int32) int32 { return 2 * slot }
func boxKey(slot int32) int32 { return 2*slot + 1 }

// place is where an owner keeps its position in the heap, or none.
func (n *Node) place(key int32) *int32 {
	switch {
	case key < 0:
		return &n.nodeAt[-key-1]
	case key&1 == 0:
		return &n.pods[key/2].timer
	default:
		return &n.sandboxes[key/2].timer
	}
}

// wake sets the owner's deadline, replacing an earlier one.
func (n *Node) wake(key int32, at time.Duration) {
	n.seq++
	t := timer{at: max(at, n.now), seq: n.seq, key: key}
	i := *n.place(key)
	if i == none {
		i = int32(len(n.timers))
		n.timers = append(n.timers, t)
		*n.place(key) = i
	} else {
		n.timers[i] = t
	}
	n.down(n.up(i))
}

// calm takes the owner's deadline away.
func (n *Node) calm(key int32) {
	p := n.place(key)
	i := *p
	if i == none {
		return
	}
	*p = none
	last := int32(len(n.timers) - 1)
	if i != last {
		n.timers[i] = n.timers[last]
		*n.place(n.timers[i].key) = i
	}
	n.timers = n.timers[:last]
	if i != last {
		n.down(n.up(i))
	}
}

func (n *Node) sooner(i, j int32) bool {
	a, b := &n.timers[i], &n.timers[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (n *Node) swap(i, j int32) {
	n.timers[i], n.timers[j] = n.timers[j], n.timers[i]
	*n.place(n.timers[i].key) = i
	*n.place(n.timers[j].key) = j
}

func (n *Node) up(i int32) int32 {
	for i > 0 {
		parent := (i - 1) / 2
		if !n.sooner(i, parent) {
			break
		}
		n.swap(i, parent)
		i = parent
	}
	return i
}

func (n *Node) down(i int32) {
	for {
		c := 2*i + 1
		if c >= int32(len(n.timers)) {
			return
		}
		if r := c + 1; r < int32(len(n.timers)) && n.sooner(r, c) {
			c = r
		}
		if !n.sooner(c, i) {
			return
		}
		n.swap(i, c)
		i = c
	}
}

// fire runs everything that is due. Each turn either ends a wait or sets one that is later, so it ends.
func (n *Node) fire() {
	for len(n.timers) > 0 && n.timers[0].at <= n.now {
		key := n.timers[0].key
		n.calm(key)
		switch {
		case key == jobGC:
			n.evictSandboxes()
		case key == jobRuntime:
			n.runtimeUp()
		case key == jobKubelet:
			n.kubeletUp()
		case key == jobReplay:
			n.replayDue()
		case key&1 == 0:
			n.podDue(key / 2)
		default:
			n.sandboxDue(key / 2)
		}
	}
}
