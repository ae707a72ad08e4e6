package ipam

import "time"

// sighting of an available ENI that this node has no record of.
type sighting struct {
	ID    string
	Since time.Duration // found so at every look since
	Gone  int           // consecutive looks by which its instance does not live
}

// sight is the sighting of an ENI with a look at now.
func (sv *survey) sight(now time.Duration, v *ENI) sighting {
	seen := sighting{v.ID, now, 0}
	for _, s := range sv.Sightings {
		if s.ID == v.ID {
			seen = s
		}
	}
	return seen.again(v)
}

// again is a sighting with one more look.
func (s sighting) again(v *ENI) sighting {
	if s.Gone++; !v.OwnerGone {
		s.Gone = 0
	}
	return s
}

// leak is what a node knows of an available ENI at now.
func (sv *survey) leak(now time.Duration, v *ENI, seen sighting) Leak {
	l := Leak{Ours: v.Owner == sv.Inst.ID, Near: v.Near, Gone: seen.Gone, Age: -1, Seen: now - seen.Since,
		Used: sv.pool.uses(v), Kept: v.kept()}
	if v.Created != 0 {
		l.Age = time.Duration(sv.wall(now)-v.Created) * time.Second
	}
	return l
}

// seenLeaked looks for ENIs that died between Create and Attach, or between Detach and Delete (amazon-vpc-cni-k8s #69, #608).
func (sv *survey) seenLeaked(now time.Duration, in *Seen, whole bool) {
	if !whole || sv.Phase != serving {
		return
	}
	sv.evidence.want(LookLeaked, now+leakedPeriod+time.Duration(sv.random()*float64(leakedPeriod)/4))
	var next []sighting
	for i := range in.ENIs {
		v := &in.ENIs[i]
		if _, known := sv.enis.eniByID(v.ID); known || v.Status != "available" {
			continue
		}
		seen := sv.sight(now, v)
		l := sv.leak(now, v, seen)
		if !sv.policy.Sweep(l) {
			next = append(next, seen)
			if l.Ours || l.Near { // a neighbour's is not ours to delete, however often it is looked at
				sv.evidence.want(LookLeaked, now+leakedAgain)
			}
			continue
		}
		sv.note(Note{Point: ENISwept, Warn: true, ENI: v.ID, Text: "of " + v.Owner})
		soon := now + time.Duration(sv.random()*float64(firstPause))
		sv.enis.newENI(eni{ENI: *v, Stage: Tombstoned, Foreign: true, mutation: mutation{Next: soon}, Since: now})
	}
	sv.Sightings = next
}

// SweptBy is the instant, by the node's clock, by which it takes an available ENI of which it has no record for leaked and deletes it, if EC2 goes on
// answering and nothing else happens to the ENI. False: it never does.
func (n *Node) SweptBy(now time.Duration, v *ENI) (at time.Duration, ok bool) {
	if n.Phase != serving || !n.configured(LookLeaked) {
		return 0, false
	}
	if at = now; n.Looks[LookLeaked].ID == 0 {
		at = max(now, n.Looks[LookLeaked].Want)
	}
	for seen := n.sight(at, v); at <= now+3*leakedPeriod; seen = seen.again(v) {
		l := n.leak(at, v, seen)
		if n.policy.Sweep(l) {
			return at + firstPause, true
		}
		if !l.Ours && !l.Near {
			return 0, false
		}
		at += leakedAgain
	}
	return 0, false
}
