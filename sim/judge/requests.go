package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// ask begins the wait for a Reply. A Req that is open already, or 0, is the caller's mistake: it
// gets no Reply of its own.
func (c *Contract) ask(now time.Duration, req ipam.Req, verb ipam.Verb, att ipam.Attachment, deadline time.Duration) {
	if req == 0 || !c.started || c.open(req) != nil {
		return
	}
	deadline = cmp.Or(deadline, now+patience)
	r := request{verb: verb, att: att, due: min(max(deadline, now), never-c.Slack-1) + c.Slack}
	switch verb {
	case ipam.VerbAdd:
		r.holder = c.hold(att)
		c.holders[r.holder].adds++ // which keeps it
	case ipam.VerbDel:
		h := c.holder(att)
		r.removal = h != nil && (h.address.IsValid() || c.working(h) || h.plan != 0)
	}
	c.asked, c.reqs, c.lastReq = append(c.asked, r), append(c.reqs, req), max(c.lastReq, req)
	c.due = min(c.due, r.due)
}

// open is the request of that number that awaits its Reply, or nil.
func (c *Contract) open(req ipam.Req) *request {
	if req > c.lastReq {
		return nil
	}
	if i := slices.Index(c.reqs, req); i >= 0 {
		return &c.asked[i]
	}
	return nil
}

// gone: a Reply may come until the deadline and need not.
func (c *Contract) gone(req ipam.Req) {
	if r := c.open(req); r != nil {
		r.gone = true
	}
}

// reply checks that it answers an open request, and that a success rests on something.
func (c *Contract) reply(e *ipam.Reply) {
	r := c.open(e.Req)
	if r == nil {
		c.breaks("%v of %v replied to request %d, which is not open: expected one reply to each request", e.Verb, e.Att, e.Req)
		return
	}
	if e.Verb != r.verb || r.verb != ipam.VerbGC && e.Att != r.att {
		c.breaks("reply to request %d says %v of %v: expected %v of %v", e.Req, e.Verb, e.Att, r.verb, r.att)
	}
	if e.Err == nil {
		switch r.verb {
		case ipam.VerbAdd:
			c.added(e, r)
		case ipam.VerbDel:
			c.deleted(r)
		}
	}
	c.close(e.Req)
}

func (c *Contract) close(req ipam.Req) {
	i, last := slices.Index(c.reqs, req), len(c.reqs)-1
	r := c.asked[i]
	c.asked[i], c.reqs[i] = c.asked[last], c.reqs[last]
	c.asked[last] = request{}
	c.asked, c.reqs = c.asked[:last], c.reqs[:last]
	if r.verb != ipam.VerbAdd {
		return
	}
	h := &c.holders[r.holder]
	h.adds--
	c.release(h)
}

// added checks a successful ADD.
func (c *Contract) added(e *ipam.Reply, r *request) {
	h := &c.holders[r.holder]
	switch {
	case h.address != e.Address || !e.Address.IsValid():
		c.breaks("ADD of %v succeeded with %v: expected a durable row that gives it exactly this address", r.att, e.Address)
	case c.unsaved(h):
		c.breaks("ADD of %v succeeded with %v while a change of its row is not durable: expected to wait for Saved", r.att, e.Address)
	case !h.wired:
		c.breaks("ADD of %v succeeded with %v before a plan that followed the Saved was applied: expected Save, Saved, Apply, Applied, Reply", r.att, e.Address)
	}
}

// deleted checks a successful DEL.
func (c *Contract) deleted(r *request) {
	h := c.holder(r.att)
	switch {
	case h == nil:
	case h.address.IsValid():
		c.breaks("DEL of %v succeeded while %v is assigned to it in the durable records: expected Saved(cooling) before", r.att, h.address)
	case c.unsaved(h):
		c.breaks("DEL of %v succeeded while a change of its row is not durable: expected to wait for Saved", r.att)
	case r.removal && h.left.IsValid():
		c.breaks("DEL of %v succeeded before the removal of %v was applied: expected Save, Saved, Apply, Applied, Reply", r.att, h.left)
	}
}

// overdue reports requests without a Reply in time and forgets those that are not awaited. It looks for the next one
// that is due, so it is called once per request at most.
func (c *Contract) overdue(now time.Duration) {
	var late []ipam.Req
	c.due = never
	for i := range c.asked {
		if r := &c.asked[i]; r.due < now {
			late = append(late, c.reqs[i])
		} else {
			c.due = min(c.due, r.due)
		}
	}
	slices.Sort(late)
	for _, req := range late {
		r := c.open(req)
		if r.gone {
			c.close(req)
			continue
		}
		c.breaks("%v of %v (request %d) had no reply by its deadline %v", r.verb, r.att, req, r.due-c.Slack)
		r.due = never // reported once; its Reply may still come
	}
}
