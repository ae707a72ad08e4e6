package kube

// links are a pod's neighbours in one order; ends are an order's first and last pod. Linked slots
// keep every deletion O(1) and copy with the slice they live in.
type links struct{ prev, next int32 }
type ends struct{ first, last int32 }

// order chooses which links of a pod an operation follows.
type order bool

const (
	nodeOrder     order = false // also the order of pods that wait for a node
	workloadOrder order = true
)

func (c *Cluster) links(i int32, o order) *links {
	if o == workloadOrder {
		return &c.pods[i].ofWorkload
	}
	return &c.pods[i].onNode
}

// push appends.
func (c *Cluster) push(e *ends, i int32, o order) {
	*c.links(i, o) = links{e.last, none}
	if e.last != none {
		c.links(e.last, o).next = i
	} else {
		e.first = i
	}
	e.last = i
}

// drop takes out.
func (c *Cluster) drop(e *ends, i int32, o order) {
	l := c.links(i, o)
	if l.prev != none {
		c.links(l.prev, o).next = l.next
	} else {
		e.first = l.next
	}
	if l.next != none {
		c.links(l.next, o).prev = l.prev
	} else {
		e.last = l.prev
	}
	*l = links{none, none}
}
