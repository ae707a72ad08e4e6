package judge

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Believes is who can say what a daemon believes after a step.
type Believes interface{ View(*ipam.View) }

// Makes judges I15 on what a step wanted, after Effects. A token that an earlier step, or an earlier daemon, has asked for is repeated until EC2
// has answered, and the demand may go meanwhile.
func (a *Auditor) Makes(now time.Duration, node int, effs []ipam.Effect, daemon Believes) {
	fresh := false
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Save:
			for i := range e.Put {
				if in := e.Put[i].Intent; in != nil && in.Doing == ipam.CreateENI {
					fresh = a.asks(node, in.Token) || fresh
				}
			}
		case *ipam.Call:
			if e.Action == ipam.CreateENI {
				fresh = a.asks(node, e.Token) || fresh
			}
		}
	}
	if !fresh {
		return
	}
	a.look(I15)
	var v ipam.View
	daemon.View(&v)
	if demand, enis, places := needed(&v); places >= demand {
		a.breaks(I15, now, node, "node-%d makes an ENI although it needs %s (%d assigned, %d ADDs wait, %s) and %s, attached or under way, can carry %d: expected none",
			node, count(demand, "address"), v.Assigned, v.Waiting, targets(&v.Settings), count(enis, "other"), places)
	}
}

// asks says whether that ENI was not asked for before.
func (a *Auditor) asks(node int, token string) bool {
	n := a.node(node)
	if slices.Contains(n.made, token) {
		return false
	}
	n.made = append(n.made, token)
	return true
}

// needed is how many addresses a node needs, and how many its ENIs, without the one that is to be made, have places for. It is not the node's
// arithmetic, so that a mistake there does not excuse itself here: what EC2 has been asked for and what it can be asked for is all one. Places of
// addresses that cool down or are set aside are none, nor are those of ENIs that leave, or that EC2 will not attach.
func needed(v *ipam.View) (demand, enis, places int) {
	s, per := &v.Settings, v.Limits.Addresses-1
	demand = v.Assigned + v.Waiting + s.WarmENITarget*per
	if v.Prefixes.On {
		warm := max(s.WarmPrefixTarget*blockSize, 1)
		demand = v.Assigned + v.Waiting + warm
		// With fewer, as many prefixes are missing as there are no whole ones (upstream's getPrefixesNeeded).
		if !v.Prefixes.Bare && v.Free < warm {
			demand = max(demand, (prefixesInUse(v)+s.WarmPrefixTarget)*blockSize)
		}
	}
	if byAddress(s) {
		demand = max(v.Assigned+v.Waiting+s.WarmIPTarget, s.MinimumIPTarget)
	}
	if s.MaxPods > 0 {
		demand = min(demand, s.MaxPods)
	}
	places = -v.Cooling - v.Quarantined
	for i := range v.ENIs {
		switch e := &v.ENIs[i]; {
		case e.Stage > ipam.Ready || e.Barred:
		case e.Excluded: // what is free there goes back
			enis, places = enis+1, places+e.InUse
		case e.Exhausted: // EC2 gives no more
			enis, places = enis+1, places+e.Total
		default:
			enis, places = enis+1, places+carries(e, v, per)
		}
	}
	return demand, enis - 1, places - carries(&ipam.ViewENI{}, v, per)
}

// prefixesInUse is how many prefixes are not wholly free.
func prefixesInUse(v *ipam.View) int {
	n := -v.Prefixes.Free
	for i := range v.ENIs {
		if e := &v.ENIs[i]; e.Stage <= ipam.Ready && !e.Barred && !e.Excluded {
			n += e.Prefixes
		}
	}
	return n
}

// carries is how many addresses for pods an ENI can have, where so many slots are its own: what it has beside prefixes stays
// where pods have it, and prefixes that are there although none are to be had bring nothing.
func carries(e *ipam.ViewENI, v *ipam.View, slots int) int {
	switch single := e.Total - e.Prefixed; {
	case v.Prefixes.On && v.Prefixes.Bare:
		return slots - e.Prefixes + e.Prefixed
	case v.Prefixes.On:
		return single + max(slots-single, 0)*blockSize
	}
	return slots - e.Prefixes
}
