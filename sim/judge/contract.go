package judge

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Contract checks the effect contract (I13) over one life of a daemon, from its inputs and effects alone. It remembers
// what is outstanding and the rows, and nothing that has ended.
//
// Saves are kept until they are Saved, by pointer: an effect is not changed once it was returned.
type Contract struct {
	Slack time.Duration // how late after its deadline a reply may leave

	started bool
	used    idSet
	flights []flight // effects that await their outcome, in no order
	stores  [2]store
	rows    map[netip.Addr]addressRow
	intents []intent
	asked   []request     // open, in no order
	reqs    []ipam.Req    // theirs: what is searched lies together
	lastReq ipam.Req      // the highest so far
	due     time.Duration // no open request is due before
	holders []holder
	byAtt   map[string]int32 // the first holder of a container ID; they are chained
	spare   []int32          // free places in holders

	broken []string // of the running Input or Effects
}

// flight is an effect that awaits its outcome.
type flight struct {
	id     ipam.ID
	kind   flightKind
	lane   ipam.LaneKind
	eni    string     // ENILane
	holder int32      // PodLane
	proves netip.Addr // PodLane: the address whose row was durable when the plan was wanted; invalid is none
}

type flightKind uint8

const (
	calling flightKind = iota + 1
	looking
	applying
)

// store is what was saved and what is durable of one store.
type store struct {
	sent, ended uint64 // Seq of the last Save, and of the last that is durable or has failed
	waiting     []*ipam.Save
}

// holding says who has an address.
type holding struct {
	state ipam.State // 0 is no row
	att   ipam.Attachment
}

func (h *holding) by(att *ipam.Attachment) bool { return h.state == ipam.Assigned && h.att == *att }

// addressRow is the row of an address as it is durable, and as it was last saved.
type addressRow struct{ durable, latest holding }

// intent is a durable one.
type intent struct {
	token, eni string
	doing      ipam.Action
}

// request awaits its Reply.
type request struct {
	verb    ipam.Verb
	att     ipam.Attachment
	holder  int32 // ADD: the attachment's
	due     time.Duration
	gone    bool // the Reply will not be read
	removal bool // DEL of an attachment that was held or being worked on: its removal has to be done
}

// patience is how long a caller waits that does not say: the plugin's 30 s.
const patience = 30 * time.Second

// never is after every deadline.
const never = time.Duration(math.MaxInt64)

// NewContract begins a life.
func NewContract() *Contract {
	c := &Contract{}
	c.Reset()
	return c
}

// Reset begins another life and keeps the memory.
func (c *Contract) Reset() {
	clear(c.rows)
	clear(c.asked)
	c.asked, c.reqs, c.lastReq = c.asked[:0], c.reqs[:0], 0
	clear(c.byAtt)
	clear(c.flights)
	clear(c.holders)
	c.started, c.used, c.due = false, idSet{}, never
	c.flights, c.holders, c.spare, c.intents = c.flights[:0], c.holders[:0], c.spare[:0], c.intents[:0]
	for i := range c.stores {
		clear(c.stores[i].waiting)
		c.stores[i] = store{waiting: c.stores[i].waiting[:0]}
	}
	if c.rows == nil {
		c.rows, c.byAtt = map[netip.Addr]addressRow{}, map[string]int32{}
	}
}

// Clone copies the contract; the two never influence each other.
func (c *Contract) Clone() *Contract {
	d := *c
	d.used = c.used.clone()
	d.flights, d.holders, d.spare, d.intents = slices.Clone(c.flights), slices.Clone(c.holders), slices.Clone(c.spare), slices.Clone(c.intents)
	d.rows, d.asked, d.reqs, d.byAtt = maps.Clone(c.rows), slices.Clone(c.asked), slices.Clone(c.reqs), maps.Clone(c.byAtt)
	for i := range d.stores {
		d.stores[i].waiting = slices.Clone(c.stores[i].waiting)
	}
	d.broken = nil
	return &d
}

// Outstanding counts the effects that await an outcome, Saves included.
func (c *Contract) Outstanding() int {
	return len(c.flights) + len(c.stores[0].waiting) + len(c.stores[1].waiting)
}

// Open counts the requests that await a Reply.
func (c *Contract) Open() int { return len(c.asked) }

func (c *Contract) breaks(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// Input takes an input at time now, before the node is stepped with it; nil is the tick. It returns what is broken, one
// sentence each, and nil when all is well.
func (c *Contract) Input(now time.Duration, in ipam.Input) []string {
	c.broken = nil
	if now > c.due {
		c.overdue(now)
	}
	switch in := in.(type) {
	case ipam.Start:
		c.start(&in)
	case ipam.Add:
		c.ask(now, in.Req, ipam.VerbAdd, in.Att, in.Deadline)
	case ipam.Del:
		c.ask(now, in.Req, ipam.VerbDel, in.Att, in.Deadline)
	case ipam.Check:
		c.ask(now, in.Req, ipam.VerbCheck, in.Att, in.Deadline)
	case ipam.GC:
		c.ask(now, in.Req, ipam.VerbGC, ipam.Attachment{}, in.Deadline)
	case ipam.Gone:
		c.gone(in.Req)
	case ipam.Seen:
		c.land(in.ID, looking)
	case ipam.Called:
		c.land(in.ID, calling)
	case ipam.Applied:
		c.applied(in)
	case ipam.Saved:
		c.saved(in)
	}
	return c.broken
}

// Effects takes what the step returned.
func (c *Contract) Effects(effs []ipam.Effect) []string {
	c.broken = nil
	for _, e := range effs { // first: a Note may follow the Save of the row of which it says that it was recovered
		if e, ok := e.(*ipam.Note); ok {
			c.note(e)
		}
	}
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Reply:
			c.reply(e)
		case *ipam.Call:
			c.call(e)
		case *ipam.Look:
			c.fly(flight{id: e.ID, kind: looking})
		case *ipam.Apply:
			c.apply(e)
		case *ipam.Save:
			c.save(e)
		}
	}
	return c.broken
}

func (c *Contract) start(in *ipam.Start) {
	if c.started {
		return // a world's mistake: the Node takes it for nothing, too
	}
	c.started = true
	for i := range in.Rows {
		r := &in.Rows[i]
		if r.Intent != nil {
			c.putIntent(r.Intent)
			continue
		}
		if in.Rebooted {
			continue // the pods that it speaks of are gone
		}
		now := holding{r.State, r.Att}
		c.rows[r.Address] = addressRow{now, now}
		if r.State == ipam.Assigned {
			h := &c.holders[c.hold(r.Att)]
			h.address, h.latest, h.wired, h.touched = r.Address, r.Address, true, true
		}
	}
}

// fly begins the wait for an outcome, unless none can be told from another's.
func (c *Contract) fly(f flight) bool {
	if !c.started {
		c.breaks("effect %d was wanted before Start: expected none", f.id)
	}
	if f.id == 0 || !c.used.add(f.id) {
		c.breaks("effect ID %d was used before or is 0: expected a new one", f.id)
		return false
	}
	c.flights = append(c.flights, f)
	return true
}

// land ends the wait. An outcome that is not awaited, or of another kind, is ignored.
func (c *Contract) land(id ipam.ID, kind flightKind) (flight, bool) {
	for i := range c.flights {
		if f := c.flights[i]; f.id == id && f.kind == kind {
			last := len(c.flights) - 1
			c.flights[i] = c.flights[last]
			c.flights[last] = flight{}
			c.flights = c.flights[:last]
			return f, true
		}
	}
	return flight{}, false
}

// call checks that the mutation's intent is durable.
func (c *Contract) call(e *ipam.Call) {
	if !c.intended(e) {
		c.breaks("%v (token %q, ENI %q) was called without a durable intent for it: expected Save, Saved, then Call", e.Action, e.Token, e.ENI)
	}
	c.fly(flight{id: e.ID, kind: calling})
}

func (c *Contract) intended(e *ipam.Call) bool {
	for i := range c.intents {
		w := &c.intents[i]
		if w.doing == e.Action && (e.Token != "" && w.token == e.Token || e.ENI != "" && w.eni == e.ENI) {
			return true
		}
	}
	return false
}

func (c *Contract) putIntent(in *ipam.Intent) {
	w := intent{in.Token, in.ENI.ID, in.Doing}
	for i := range c.intents {
		if c.intents[i].token == w.token {
			c.intents[i] = w
			return
		}
	}
	c.intents = append(c.intents, w)
}

func (c *Contract) dropIntent(token string) {
	for i := range c.intents {
		if c.intents[i].token == token {
			c.intents = slices.Delete(c.intents, i, i+1)
			return
		}
	}
}
