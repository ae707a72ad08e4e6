package ec2

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// FaultKind says what goes wrong.
type FaultKind uint8

const (
	_ FaultKind = iota
	// Lose executes the request, but its answer never arrives.
	Lose
	// LoseRequest never executes it; the caller cannot tell it from Lose.
	LoseRequest
	// Fail answers Fault.Code (default InternalError) and executes nothing, or with Fault.Executed executes the request first.
	Fail
	// Slow delays the request by Fault.Slow: it is executed that much later.
	Slow
	// SlowAnswer delays the answer by Fault.Slow: it is executed in time.
	SlowAnswer
	// ThrottleBurst: another caller empties the bucket just before the call. Once, unless Times or Until.
	ThrottleBurst
	// Down answers Unavailable.
	Down
	// DenyPermission answers UnauthorizedOperation.
	DenyPermission
	// DetachHangs: detaches that start meanwhile stay "detaching" until the fault's Until or ClearFaults.
	// Instance is the one detached from; Action is ignored.
	DetachHangs
	// AttachHangs is the same for attaches: neither the status nor the link arrives.
	AttachHangs
	// DeleteInUse makes DeleteNetworkInterface answer that the interface is in use. Action is ignored.
	DeleteInUse
	// Duplicate delivers the request twice: both are executed, the caller sees the second answer.
	Duplicate
	// IMDSSilent keeps an instance's metadata from answering. Action is ignored.
	IMDSSilent
	// ClockSkew: the caller's clock is ahead by Fault.By, or behind when that is negative. A signature that is more than five minutes
	// off is refused ("Signature Version 4"): RequestExpired when the clock is behind, AuthFailure when it is ahead, Fault.Code if
	// there is one.
	ClockSkew
	// StaleReads makes Describe answers at least Fault.By older than they are anyway.
	StaleReads
	// DetachByStranger detaches the interface Fault.ENI; without one, one that is in use on Fault.Instance (or anywhere) at another
	// device than 0.
	DetachByStranger
	// DeleteByStranger detaches it with force and deletes it, in one go, as a caller that waits for the detach. Without
	// Fault.ENI also one that is attached to nothing.
	DeleteByStranger
	// UnassignByStranger unassigns the secondary address Fault.Address; without one, one of Fault.ENI's, or of Fault.Instance's.
	UnassignByStranger
	// DrainByStranger takes all addresses of Fault.Subnet (default: the first one) but Fault.Leave.
	DrainByStranger
	// AllowOnly is a role: its callers may do what Fault.Allow names and nothing else, and are answered UnauthorizedOperation. A caller has
	// one role: the next one takes its place, one for everybody that of all. It has neither Action nor Times.
	AllowOnly

	endOfKinds // one more than the last
)

// failExecuted is Fail with Fault.Executed where faults are looked for: it strikes at another instant of a call.
const failExecuted = endOfKinds

var kindNames = [endOfKinds]string{"", "Lose", "LoseRequest", "Fail", "Slow", "SlowAnswer", "ThrottleBurst", "Down",
	"DenyPermission", "DetachHangs", "AttachHangs", "DeleteInUse", "Duplicate", "IMDSSilent", "ClockSkew", "StaleReads",
	"DetachByStranger", "DeleteByStranger", "UnassignByStranger", "DrainByStranger", "AllowOnly"}

// String names the kind.
func (k FaultKind) String() string {
	if k < endOfKinds && k != 0 {
		return kindNames[k]
	}
	return "unknown"
}

// FaultKinds are all kinds.
func FaultKinds() []FaultKind {
	var out []FaultKind
	for k := Lose; k < endOfKinds; k++ {
		out = append(out, k)
	}
	return out
}

// parseFaultKind is the kind with that name, exact in case.
func parseFaultKind(name string) (FaultKind, bool) {
	for k := Lose; k < endOfKinds; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// Fault is something that goes wrong from now on. It ends after Times calls it hit (0: any number) or at
// Until (0: never), whichever is first, or by ClearFaults. What third parties do (…ByStranger) is done once
// (unless Times), at once when Action is AnyAction, else just before the next such call.
type Fault struct {
	ID       int // what Met calls it; 0: Met does not tell of it
	Kind     FaultKind
	Action   Action     // AnyAction: all
	Instance InstanceID // whose calls, or whose interfaces third parties change; "": all
	Code     string     // Fail, ClockSkew
	Executed bool       // Fail: EC2 answers so after it has done the work. Who repeats the request then has it done twice
	Slow     time.Duration
	By       time.Duration // ClockSkew, StaleReads
	Times    int
	Until    time.Duration
	ENI      ENIID      // …ByStranger
	Address  netip.Addr // UnassignByStranger
	Subnet   SubnetID   // DrainByStranger
	Leave    int        // DrainByStranger: how many stay free
	Allow    ActionSet  // AllowOnly
}

// mostFaults bounds how many faults can be in force; any more are not added.
const mostFaults = 1 << 12

// Fault adds a fault. Several may hit one call. A time that it needs is that of the latest step.
func (c *Cloud) Fault(f Fault) {
	if (f.Kind == ThrottleBurst || f.Kind.byThirdParty()) && f.Times <= 0 && f.Until == 0 {
		f.Times = 1
	}
	if f.Kind.byThirdParty() && f.Action == AnyAction {
		for range min(max(f.Times, 1), mostAtOnce) {
			if c.thirdPartyActs(&f) {
				c.meets(&f, AnyAction, f.Instance)
			}
		}
		return
	}
	if f.Kind == AllowOnly {
		f.Action, f.Times = AnyAction, 0
		c.faults = slices.DeleteFunc(c.faults, func(old Fault) bool {
			return old.Kind == AllowOnly && (f.Instance == "" || f.Instance == old.Instance)
		})
	}
	if len(c.faults) < mostFaults {
		c.faults = append(c.faults, f)
	}
}

// Faults are the faults in force.
func (c *Cloud) Faults() []Fault { return append([]Fault(nil), c.faults...) }

// ClearFaults ends all faults: what hung completes as if it had begun now.
func (c *Cloud) ClearFaults(now time.Duration) {
	c.Advance(now)
	c.faults = nil
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		if e := &c.enis[slot]; e.hung {
			e.hung = false
			c.resume(c.now, slot)
		}
	}
}

// SetLag changes how far views trail behind, from now on.
func (c *Cloud) SetLag(l Lag) {
	cfg := *c.cfg
	cfg.Lag = l.withDefaults()
	c.cfg, c.lag = &cfg, lagFault{}
}

// lagFault is a lag of metadata that Met tells of.
type lagFault struct {
	id        int
	since, by time.Duration
}

// LagIMDS makes instance metadata trail by that much, from now on. The first read of an instance's that shows an older state for it is
// told by Met under that ID.
func (c *Cloud) LagIMDS(now, by time.Duration, id int) {
	c.Advance(now)
	l := c.cfg.Lag
	l.IMDSAttach, l.IMDSAddress, l.IMDSDetach = Always(by), Always(by), Always(by)
	c.SetLag(l)
	c.lag = lagFault{id, c.now, by}
}

// hides says whether a lag still hides what metadata will show at an instant: it began that much before.
func (l *lagFault) hides(now, shown time.Duration) bool {
	return l.id != 0 && now < shown && shown != always && shown-l.by >= l.since
}

// SetLatency changes how long things take, from now on.
func (c *Cloud) SetLatency(l Latency) {
	cfg := *c.cfg
	cfg.Latency = l.withDefaults()
	c.cfg = &cfg
}

// hang says whether an attach or detach that starts now on an instance is not to complete by itself, and
// until when (0: until ClearFaults).
func (c *Cloud) hang(kind FaultKind, n int32) (until time.Duration, hangs bool) {
	if len(c.faults) == 0 {
		return 0, false
	}
	f, hangs := c.hit(kind, AnyAction, c.instances[n].id)
	return f.Until, hangs
}

// start schedules the completion of an attach or detach that begins now, unless a fault makes it hang.
func (c *Cloud) start(kind FaultKind, slot int32) {
	e := &c.enis[slot]
	until, hangs := c.hang(kind, e.att.instance)
	e.hung = hangs && until == 0
	if !e.hung {
		c.resume(max(c.now, until), slot)
	}
}

// resume schedules the steps of an attach or detach as if it began at an instant.
func (c *Cloud) resume(at time.Duration, slot int32) {
	e := &c.enis[slot]
	s := &c.instances[e.att.instance].rand
	if e.att.status == Attaching {
		takes := s.draw(c.cfg.Latency.Attach)
		c.schedule(at+takes, attachDone, slot)
		c.schedule(at+takes/2+s.draw(c.cfg.Latency.Link), linkArrives, slot)
		return
	}
	c.schedule(at+s.draw(c.cfg.Latency.Detach), detachDone, slot)
}

// hit uses up one fault of a kind that concerns the action and the instance.
func (c *Cloud) hit(kind FaultKind, a Action, i InstanceID) (Fault, bool) {
	for k := 0; k < len(c.faults); k++ {
		f := &c.faults[k]
		if f.Until > 0 && f.Until <= c.now {
			c.faults = append(c.faults[:k], c.faults[k+1:]...)
			k--
			continue
		}
		if !f.concerns(kind, a, i) {
			continue
		}
		found := *f
		if kind != ClockSkew && !kind.byThirdParty() { // these may come to nothing
			c.meets(&found, a, i)
		}
		if f.Times > 0 {
			f.Times--
			if f.Times == 0 {
				c.faults = append(c.faults[:k], c.faults[k+1:]...)
			}
		}
		return found, true
	}
	return Fault{}, false
}

func (f *Fault) concerns(kind FaultKind, a Action, i InstanceID) bool {
	own := f.Kind
	if own == Fail && f.Executed {
		own = failExecuted
	}
	return own == kind && (f.Action == AnyAction || a == AnyAction || f.Action == a) &&
		(f.Instance == "" || f.Instance == i)
}

// serveFaulty is Serve while faults are in force.
func (c *Cloud) serveFaulty(from int32, r *Request) Response {
	p := c.answerFaulty(from, r)
	if !p.Lost && p.Code == "" { // what was refused was not executed
		if f, ok := c.hit(failExecuted, r.Action, r.Caller); ok {
			orString(&f.Code, codeInternal)
			p = failure(f.Code, "An error has occurred.")
		}
	}
	if !p.Lost {
		if _, ok := c.hit(Lose, r.Action, r.Caller); ok {
			p = Response{Lost: true}
		}
	}
	c.record(from, r.Action, &p)
	return p
}

func (c *Cloud) answerFaulty(from int32, r *Request) Response {
	if _, ok := c.hit(LoseRequest, r.Action, r.Caller); ok {
		return Response{Lost: true}
	}
	if _, ok := c.hit(Down, r.Action, r.Caller); ok {
		return failure(codeUnavailable, "The service is unavailable. Please try again shortly.")
	}
	if _, ok := c.hit(ThrottleBurst, r.Action, r.Caller); ok && r.Action.known() {
		l, b := c.bucket(r)
		l.drain(c.now, b)
	}
	for k := DetachByStranger; k <= DrainByStranger; k++ {
		if f, ok := c.hit(k, r.Action, r.Caller); ok && c.thirdPartyActs(&f) {
			c.meets(&f, r.Action, r.Caller)
		}
	}
	if p, refused := c.refuse(r); refused {
		return p
	}
	if _, ok := c.hit(Duplicate, r.Action, r.Caller); ok {
		p := c.answer(from, r)
		c.record(from, r.Action, &p)
	}
	return c.answer(from, r)
}

// refuse answers in the place of the API what a fault has it answer. A refusal costs a token, like any call.
func (c *Cloud) refuse(r *Request) (Response, bool) {
	p, ok := c.refusal(r)
	if !ok || !r.Action.known() {
		return p, ok
	}
	if l, b := c.bucket(r); !l.take(c.now, b) {
		return failure(codeThrottled, "Request limit exceeded."), true
	}
	return p, true
}

func (c *Cloud) refusal(r *Request) (Response, bool) {
	if f, ok := c.hit(ClockSkew, r.Action, r.Caller); ok {
		if p, refused := skewed(&f); refused {
			c.meets(&f, r.Action, r.Caller)
			return p, true
		}
	}
	if _, ok := c.hit(DenyPermission, r.Action, r.Caller); ok {
		return failure(codeUnauthorized, "You are not authorized to perform this operation."), true
	}
	if lacks, ok := c.lacks(r); ok {
		return notAllowed(c.cfg.Account, r.Caller, lacks), true
	}
	if f, ok := c.hit(Fail, r.Action, r.Caller); ok {
		orString(&f.Code, codeInternal)
		return failure(f.Code, "An error has occurred."), true
	}
	if r.Action == DeleteNetworkInterface {
		if _, ok := c.hit(DeleteInUse, AnyAction, r.Caller); ok {
			return stillInUse(r.ENI), true
		}
	}
	return Response{}, false
}

// lacks is the action that the caller's role leaves out of those that a request needs. An interface that is tagged when it is made needs
// two ("Grant permission to tag resources during creation").
func (c *Cloud) lacks(r *Request) (Action, bool) {
	if !r.Action.known() {
		return 0, false
	}
	for _, f := range slices.Backward(c.faults) { // the latest of those that are about the caller
		if !f.concerns(AllowOnly, AnyAction, r.Caller) || f.Until > 0 && f.Until <= c.now {
			continue
		}
		lacks := r.Action
		if f.Allow.Has(r.Action) {
			if r.Action != CreateNetworkInterface || len(r.Tags) == 0 || f.Allow.Has(CreateTags) {
				return 0, false
			}
			lacks = CreateTags
		}
		c.meets(&f, lacks, r.Caller)
		return lacks, true
	}
	return 0, false
}

// mostSkew is how far off a signature's time may be ("Signature Version 4": five minutes).
const mostSkew = 5 * time.Minute

// skewed is the refusal that a caller's wrong clock earns it.
func skewed(f *Fault) (Response, bool) {
	switch {
	case f.By < -mostSkew:
		return failure(cmp.Or(f.Code, codeExpired), "Request has expired."), true
	case f.By > mostSkew:
		return failure(cmp.Or(f.Code, codeAuthFailure), "AWS was not able to validate the provided access credentials"), true
	}
	return Response{}, false
}

// slow is the delay that a fault of the kind adds to a request.
func (c *Cloud) slow(kind FaultKind, r *Request) time.Duration {
	f, _ := c.hit(kind, r.Action, r.Caller)
	return max(f.Slow, 0)
}

// MetadataSilent says whether a fault keeps an instance's metadata from answering now.
func (c *Cloud) MetadataSilent(now time.Duration, i InstanceID) bool { return c.silence(now, i) != nil }

// silence is the fault that keeps an instance's metadata from answering; nil: none does.
func (c *Cloud) silence(now time.Duration, i InstanceID) *Fault {
	for k := range c.faults {
		if f := &c.faults[k]; f.concerns(IMDSSilent, AnyAction, i) && (f.Until == 0 || now < f.Until) {
			return f
		}
	}
	return nil
}

// silent says whether a fault keeps an instance's metadata from answering. It uses nothing up: a read of
// the view changes nothing but what Met tells.
func (c *Cloud) silent(now time.Duration, i InstanceID) bool {
	f := c.silence(now, i)
	if f != nil {
		c.meets(f, AnyAction, i)
	}
	return f != nil
}
