package ipam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// clone copies what a step changes in place; what steps only replace is shared.
func (s *state) clone() state {
	c := *s
	c.Addrs = slices.Clone(s.Addrs)
	c.Holes = slices.Clone(s.Holes)
	c.FreeQueue = slices.Clone(s.FreeQueue)
	c.Cooling = slices.Clone(s.Cooling)
	c.ENIs = slices.Clone(s.ENIs)
	c.Waiting = slices.Clone(s.Waiting)
	c.Queued = slices.Clone(s.Queued)
	c.Checks = slices.Clone(s.Checks)
	c.Agains = slices.Clone(s.Agains)
	c.Open = slices.Clone(s.Open)
	c.Pending = slices.Clone(s.Pending)
	for i := range c.Lanes {
		c.Lanes[i].Waits = slices.Clone(s.Lanes[i].Waits)
	}
	c.Sightings = slices.Clone(s.Sightings)
	c.Departures = slices.Clone(s.Departures)
	c.Others = slices.Clone(s.Others)
	c.Found = slices.Clone(s.Found)
	c.Candidates, c.Grouped, c.Gone = slices.Clone(s.Candidates), slices.Clone(s.Grouped), slices.Clone(s.Gone)
	c.blocks = slices.Clone(s.blocks)
	c.out, c.put, c.drop = nil, [stores][]Row{}, [stores][]Key{} // the step's
	c.last, c.calm, c.moved = nil, false, nil
	return c
}

// encoding is the version of what Encode writes. It changes with any field of state.
const encoding = "enilab-node/3"

type encoded struct {
	Encoding string
	State    *state
}

// Encode is the whole Node as JSON. The policy is not part of it.
func (n *Node) Encode() ([]byte, error) {
	return json.Marshal(encoded{encoding, &n.state})
}

// Decode is a Node as Encode wrote it, under that policy.
func Decode(data []byte, p *Policy) (*Node, error) {
	if err := p.valid(); err != nil {
		return nil, fmt.Errorf("decode node: %w", err)
	}
	n := &Node{}
	n.connect()
	n.policy = p
	e := encoded{State: &n.state}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("decode node: %w", err)
	}
	if e.Encoding != encoding {
		return nil, fmt.Errorf("decode node: it is %q, this program reads %q; use the enilab that wrote it", e.Encoding, encoding)
	}
	if err := n.valid(); err != nil {
		return nil, fmt.Errorf("decode node: %w", err)
	}
	n.reindex()
	n.dueNext()
	return n, nil
}

// valid checks the references of a decoded state, so that a damaged one is refused and does not panic later.
func (n *Node) valid() error {
	addr := func(what string, list []int32) error {
		for _, i := range list {
			if i < 0 || int(i) >= len(n.Addrs) {
				return fmt.Errorf("%s names address %d of %d", what, i, len(n.Addrs))
			}
		}
		return nil
	}
	if err := firstError(addr("Holes", n.Holes), addr("FreeQueue", n.FreeQueue), addr("Cooling", n.Cooling)); err != nil {
		return err
	}
	for i := range n.Addrs {
		if a := &n.Addrs[i]; a.ENI < -1 || int(a.ENI) >= len(n.ENIs) || a.State > Quarantined {
			return fmt.Errorf("address %d has ENI %d of %d, state %d", i, a.ENI, len(n.ENIs), a.State)
		}
	}
	for _, p := range n.Pending {
		size := len(n.Addrs)
		if p.Kind == eniPlan || p.Kind == eniCall {
			size = len(n.ENIs)
		}
		if p.Ix < 0 || int(p.Ix) >= max(size, 1) {
			return fmt.Errorf("effect %d is about number %d of %d", p.ID, p.Ix, size)
		}
	}
	for s := range n.Lanes {
		for _, w := range n.Lanes[s].Waits {
			size := len(n.Addrs)
			if w.Kind == saveIntent || w.Kind == saveTaken {
				size = len(n.ENIs)
			}
			if w.Ix < 0 || int(w.Ix) >= size {
				return fmt.Errorf("save %d is about number %d of %d", w.Seq, w.Ix, size)
			}
		}
	}
	for _, q := range n.Queued {
		if (q.Add == nil) == (q.Del == nil) {
			return fmt.Errorf("a queued request is neither an ADD nor a DEL")
		}
	}
	return n.consistent()
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// View fills v, whose slices are used again.
func (n *Node) View(v *View) {
	v.Serving, v.Stopping, v.Surveyed = n.Phase == serving, n.Phase == stopping, n.Surveyed
	v.Free, v.Assigned, v.Cooling, v.Quarantined, v.Covered = 0, n.Count[Assigned], n.Count[Cooling], n.Count[Quarantined], 0
	v.Waiting, v.Running, v.Intents = len(n.Waiting), len(n.Pending)+len(n.Lanes[RunStore].Waits)+len(n.Lanes[LibStore].Waits), 0
	v.Settings, v.Limits, v.Named = n.Set, n.Inst.Limits, n.Known || n.Facts.usable()
	for _, i := range n.Cooling { // what EC2 has taken back cools on, and is nothing that we have
		if a := &n.Addrs[i]; a.State == Cooling && a.ENI < 0 && n.Phase == serving {
			v.Cooling--
		}
	}
	v.Taken, v.Homeless, v.Prefixes = 0, 0, Delegation{On: n.delegates(), Bare: n.Warm.Bare}
	for i := range n.Addrs {
		switch a := &n.Addrs[i]; {
		case a.ENI >= 0 || n.Phase != serving:
		case a.State == Quarantined:
			v.Taken++
		case a.State == Assigned:
			v.Homeless++
		}
	}
	v.ENIs, v.Others, v.Reasons = v.ENIs[:0], v.Others[:0], v.Reasons[:0]
	for i := range n.Others {
		o := &n.Others[i]
		v.Others = append(v.Others, ViewOther{ID: o.ID, MAC: o.MAC, Device: o.Device, Why: o.Why})
	}
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage == 0 {
			continue
		}
		if e.Stored {
			v.Intents++
		}
		if e.Foreign {
			continue
		}
		available := e.Has[Free]
		switch {
		case e.Stage == Ready && e.Trimming:
			available -= len(e.Before)
			v.Covered += len(e.Before)
		case e.Stage < Ready:
			v.Covered += max(0, e.size()-e.total()) + available
			available = 0
		case e.Stage > Ready || n.enis.excluded(e): // what is not given to pods goes back
			v.Covered += available
			available = 0
		}
		v.Free += available
		if e.Stage == Ready {
			_, whole := n.warm.spare(e)
			v.Prefixes.Free += whole
		}
		v.ENIs = append(v.ENIs, ViewENI{ID: e.ID, MAC: e.MAC, Device: e.Device, Stage: e.Stage, Total: e.total(), Available: available, InUse: e.total() - e.Has[Free],
			Prefixes: e.blocks, Prefixed: e.blocked.addresses, Barred: e.Barred >= attachTries, Subnet: e.Subnet,
			Excluded: n.enis.excluded(e), Exhausted: n.subnets.exhausted(e.Subnet)})
	}
	v.Reasons = n.reasons(v.Reasons)
}

// reasons say why pods cannot be taken, or how the node is impaired (rule J).
func (n *Node) reasons(to []string) []string {
	if n.Phase == recovering {
		to = append(to, "recovering: "+n.host.waitsFor())
	}
	for _, t := range n.Troubles {
		if t != "" {
			to = append(to, t)
		}
	}
	if n.Unread != "" {
		to = append(to, "the checkpoint was rebuilt: "+n.Unread)
	}
	if n.evidence.unread() > 0 && !n.evidence.asksWhose() || len(n.Others) > 0 && len(n.Waiting) > 0 {
		to = append(to, "attached ENIs that are not ours occupy device indexes: "+n.evidence.others())
	}
	if why := n.subnets.problem(len(n.Waiting) > 0); why != "" {
		to = append(to, why)
	}
	if why := n.enis.shutOut(); why != "" && len(n.Waiting) > 0 {
		to = append(to, why)
	}
	if len(n.Waiting) > 0 {
		to = append(to, strconv.Itoa(len(n.Waiting))+" pods wait for an address")
	}
	return to
}

// Rows calls f for each address row in slot order.
func (n *Node) Rows(f func(Row)) {
	for i := range n.Addrs {
		if n.Addrs[i].State != 0 {
			f(n.Addrs[i].row())
		}
	}
}

// Find is the row of an attachment.
func (n *Node) Find(att Attachment) (Row, bool) {
	ix, ok := n.pool.rowOf(att)
	if !ok {
		return Row{}, false
	}
	return n.Addrs[ix].row(), true
}
