package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// mutation is what EC2 is asked to do about an ENI, from the intent to EC2's answer. Between two tries it waits for nothing but the time; when
// its answer is lost it is in doubt until EC2 has been asked (doubt.go).
type mutation struct {
	Doing    Action // intended or under way; 0 none
	Count    int
	Before   []netip.Addr
	Prefixed bool `json:",omitzero"` // Count is of /28 prefixes, and Before are all addresses of some
	Wall     int64
	Give     []string // GroupENI: what EC2 was asked for
	Stored   bool     // LibStore has its intent
	Extra    string   // of that intent: fields of another version

	Wait   waitKind
	Lost   bool          // whether Doing happened is not known
	Open   time.Duration `json:",omitzero"` // until then a creation, or a call of an earlier daemon, may still land; 0: none
	Tries  int           // in a row
	Barred int           // attaches that EC2 refused, in a row
	Next   time.Duration // when to go on, if Wait is idle
}

type waitKind uint8

const (
	idle waitKind = iota
	storing
	calling
	applying
)

// busy says whether something is being done to an ENI, or will be.
func (m *mutation) busy() bool { return m.Wait != idle || m.Doing != 0 }

// ends ends the wait for an outcome, if it is the one that is awaited.
func (m *mutation) ends(w waitKind) bool {
	if m.Wait != w {
		return false
	}
	m.Wait = idle
	return true
}

// retry pauses before the next try.
func (dr *driver) retry(now time.Duration, e *eni) {
	e.Tries++
	e.Next = now + dr.backoff(e.Tries)
}

// mutate makes the intent durable and then calls (rule I), when the node's pace allows it.
func (dr *driver) mutate(now time.Duration, ix int32, a Action) {
	e := &dr.enis.ENIs[ix]
	if dr.Deaf || dr.Set.IMDSOnly { // until metadata is heard, or EC2 may be called
		e.Next = never
		return
	}
	if at := dr.Pace.next(now); at > now {
		e.Next = at
		return
	}
	e.Doing, e.Lost, e.Tag = a, false, dr.Steps
	if a != CreateENI { // what was open before is over; a creation is repeated with its token
		e.Open = 0
	}
	if e.Token == "" {
		e.Token = dr.token()
	}
	if !dr.policy.Intend(a) {
		dr.call(now, ix)
		return
	}
	e.Wait, e.Stored = storing, true
	dr.ledger.putRow(LibStore, Row{Intent: e.intent()})
	dr.ledger.waitSaved(LibStore, saveIntent, ix, e.Tag)
}

func (e *eni) intent() *Intent {
	v := e.ENI
	v.Addresses, v.Prefixes = slices.Clone(v.Addresses), slices.Clone(v.Prefixes)
	return &Intent{Token: e.Token, Stage: e.Stage, ENI: v, Doing: e.Doing, Count: e.Count, Before: slices.Clone(e.Before),
		Prefixed: e.Prefixed, Wall: e.Wall, Foreign: e.Foreign, Extra: e.Extra}
}

func (dr *driver) intentSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	e := &dr.enis.ENIs[ix]
	if e.Tag != tag || !e.ends(storing) {
		return
	}
	if !ok {
		dr.retry(now, e)
		return
	}
	if e.Doing == DetachENI && !e.Unwired {
		dr.applyENI(ix, dataplane.ENIRemoval(dr.enis.eniSpec(e)))
		return
	}
	dr.call(now, ix)
}

func (dr *driver) call(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	e.Wait = calling
	dr.Pace.spend(now)
	c := &Call{ID: dr.ledger.await(eniCall, ix), Action: e.Doing, ENI: e.ID, Token: e.Token, Subnet: e.Subnet,
		Device: e.Device, Attachment: e.Attachment, Count: e.Count}
	if e.Prefixed {
		c.Count, c.PrefixCount = 0, e.Count
	}
	switch e.Doing {
	case CreateENI:
		if len(e.Groups) == 0 { // an intent of a version that did not record them
			e.Groups = slices.Clone(dr.enis.primarysGroups())
		}
		c.Owner, c.Cluster, c.Created, c.Groups = dr.Inst.ID, dr.Cluster, e.Wall, e.Groups
	case GroupENI:
		e.Give = slices.Clone(dr.enis.primarysGroups())
		c.Groups = e.Give
	case UnassignIPs:
		if e.Prefixed {
			c.Prefixes = prefixesOf(e.Before)
		} else {
			c.Addresses = slices.Clone(e.Before)
		}
	}
	dr.emit(c)
}

func (dr *driver) called(now time.Duration, in Called) {
	p, ok := dr.ledger.take(in.ID, eniCall)
	if !ok {
		return
	}
	e := &dr.enis.ENIs[p.Ix]
	if e.Stage == 0 || !e.ends(calling) {
		return
	}
	e.Tag = dr.Steps
	dr.doubts(now, e, in.Result.Class)
	switch in.Result.Class {
	case OK:
		dr.Pace.quicken()
		e.Tries = 0
		dr.trouble(troubleEC2, "")
		dr.done(now, p.Ix, &in.Result)
	case Lost:
		dr.note(Note{Point: CallLost, Warn: true, ENI: e.ID})
		dr.trouble(troubleEC2, "EC2 has not answered "+e.Doing.String())
		e.lose(now)
		e.Next = now
	case Throttled:
		dr.note(Note{Point: CallThrottled, ENI: e.ID})
		dr.trouble(troubleEC2, "EC2 throttles "+e.Doing.String())
		dr.retry(now, e)
		dr.Pace.slow(dr.policy.Backoff(e.Tries).Gap)
		if e.Doing == GroupENI {
			dr.regroupLater(p.Ix, Throttled)
		}
	default:
		early := e.Doing == DeleteENI && in.Result.Class == InUse && e.Tries < deleteTries // EC2's states lag: no trouble yet
		dr.note(Note{Point: CallRefused, Warn: !early, ENI: e.ID, Text: in.Result.Code})
		if !early {
			dr.trouble(troubleEC2, "EC2 refuses "+e.Doing.String()+": "+in.Result.Code)
		}
		dr.retry(now, e)
		dr.refused(now, p.Ix, &in.Result)
	}
}

// doubts: EC2 may fail, or throttle a request, when it has done the work. The next try tells. Until then nothing that was to be given
// back is given to a pod: not before EC2's answers are of after a failure; and once EC2, asked, has what it throttled, for that is
// refused before the work but for a rare time, and pods would wait for as long as an account is throttled.
func (dr *driver) doubts(now time.Duration, e *eni, c Class) {
	switch {
	case e.Doing != UnassignIPs || dr.policy.Lost(UnassignIPs) == Forget:
	case c == Unavailable:
		e.unsure(now)
	case c == Throttled:
		e.Doubt = max(e.Doubt, now)
	}
}

// lose notes that it is not known whether EC2 did it.
func (e *eni) lose(now time.Duration) {
	e.Lost = true
	switch e.Doing {
	case CreateENI:
		e.Open = now + landing
	case UnassignIPs:
		e.unsure(now)
	}
}

// unsure: addresses of an unassignment may be gone already, and EC2 may list them for a while.
func (e *eni) unsure(now time.Duration) { e.Doubt = max(e.Doubt, now+consistency) }

// rest ends an assignment or a trim.
func (e *eni) rest() {
	e.Doing, e.Count, e.Before, e.Give, e.Prefixed, e.Trimming, e.Lost = 0, 0, nil, nil, false, false, false
}

// atRest ends an assignment or a trim: the ENI is at rest and needs no intent.
func (dr *driver) atRest(ix int32) {
	e := &dr.enis.ENIs[ix]
	e.rest()
	e.Next = never
	dr.dropIntent(ix)
}

func (dr *driver) dropIntent(ix int32) {
	e := &dr.enis.ENIs[ix]
	if e.Stored {
		dr.ledger.dropRow(LibStore, Key{Token: e.Token})
		e.Stored = false
	}
	e.Extra = "" // the token stays: the drop may fail, and an ENI must not have two intents
}
