package ipam

import "time"

// follows says which stage may follow which, and who does it. A stage 0 before is an empty slot, a stage 0 after is the
// end. Nothing is refused by this table: EC2's word counts, whatever was expected. It is what all tests hold the ENI
// machine to (enis.moved).
var follows = [Tombstoned + 1][]Stage{
	0: {
		Intended,   // grow; resume: an earlier daemon had it made
		Created,    // reclaim: records name it, and it is not attached; resume: it was being attached
		Attached,   // adoptENI: a source lists it, and it is set up anew; resume
		Ready,      // adoptENI: the primary; resume: addresses were being assigned or unassigned
		Draining,   // resume: it was being detached
		Tombstoned, // seenLeaked: without an owner; resume: it was being deleted
	},
	Intended: {
		Created, // done
		0,       // unplan: it is needed no more; refused; done: the sweep or metadata knew it first
	},
	Created: {
		Attached,   // done; resolveRising: EC2 says so
		Tombstoned, // giveUp: EC2 will not attach it; attach: the ENIConfig has changed
		0,          // resolveUnknown, resolveRising: deleted or taken by a third party
	},
	Attached: {
		Configured, // eniApplied
		Ready,      // believe, if the policy takes what is on record for set up (Policy.Serves)
		Created,    // resolveRising: a third party has detached it
		0,          // resolveUnknown, resolveRising: a third party has deleted or taken it; disown
	},
	Configured: { // a node that serves goes on in the same step; one that stops may hear EC2 before it ends
		Ready,   // ready
		Created, // resolveRising, as from Attached
		0,       // likewise
	},
	Ready: {
		Draining, // shrink
		Created,  // missing: a third party has detached it, and pods live on it
		0,        // missing: and none does; disown
	},
	Draining: {
		Ready,      // stay: it is used, or the evidence takes too long
		Detached,   // done; resolveFalling: it is being detached
		Tombstoned, // resolveFalling: it is detached, by a call of ours whose answer was lost or by a third party
		0,          // resolveUnknown, resolveFalling: a third party has deleted or taken it; disown
	},
	Detached: {
		Tombstoned, // resolveFalling: EC2 has ended the detach
		Draining,   // resolveFalling: it is attached after all
		0,          // as from Draining
	},
	Tombstoned: {
		0,        // done; refused: it was not there; resolveUnknown
		Detached, // resolveFalling: a detach is under way, of an attach that landed late
		Draining, // resolveFalling: an attach of an earlier daemon landed late
	},
}

// move puts an ENI into a stage that it is in since then; that is e.Since where what is measured from there goes on.
func (es *enis) move(e *eni, to Stage, since time.Duration) {
	es.tellMove(e.Stage, to)
	e.Stage, e.Since = to, since
}

// newENI begins an ENI in the first empty slot.
func (es *enis) newENI(e eni) int32 {
	es.tellMove(0, e.Stage)
	e.Tag = es.Steps
	es.evidence.calm = false
	for i := range es.ENIs {
		if es.ENIs[i].Stage == 0 {
			es.ENIs[i] = e
			return int32(i)
		}
	}
	es.ENIs = append(es.ENIs, e)
	return int32(len(es.ENIs) - 1)
}

// vacate ends an ENI.
func (es *enis) vacate(ix int32) {
	es.tellMove(es.ENIs[ix].Stage, 0)
	es.ENIs[ix] = eni{mutation: mutation{Next: never}}
}

func (es *enis) tellMove(from, to Stage) {
	if es.moved != nil && from != to {
		es.moved(from, to)
	}
}
