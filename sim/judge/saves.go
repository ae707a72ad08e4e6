package judge

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/ipam"
)

// save checks the order of Saves and what their rows say together with those before.
func (c *Contract) save(e *ipam.Save) {
	if !c.started {
		c.breaks("Save %d was wanted before Start: expected none", e.Seq)
	}
	if int(e.Store) >= len(c.stores) {
		c.breaks("Save %d names store %d: expected run or lib", e.Seq, e.Store)
		return
	}
	s := &c.stores[e.Store]
	if e.Seq != s.sent+1 {
		c.breaks("Save %d of store %v follows Save %d: expected %d", e.Seq, e.Store, s.sent, s.sent+1)
	}
	s.sent = max(s.sent, e.Seq)
	s.waiting = append(s.waiting, e)
	for i := range e.Put {
		r := &e.Put[i]
		if (r.Intent != nil) != (e.Store == ipam.LibStore) || r.Intent == nil && !r.Address.IsValid() {
			c.breaks("Save %d puts the row of %v into store %v: expected address rows in run and intents in lib", e.Seq, r.Key(), e.Store)
		} else if r.Intent == nil {
			c.saveRow(e.Seq, r.Address, holding{r.State, r.Att})
		}
	}
	if e.Store == ipam.RunStore {
		for _, k := range e.Drop {
			c.saveRow(e.Seq, k.Address, holding{})
		}
		c.one(e)
	}
}

// one checks that an attachment which a Save assigns an address to has no other one after it.
func (c *Contract) one(e *ipam.Save) {
	for i := range e.Put {
		r := &e.Put[i]
		if r.State != ipam.Assigned {
			continue
		}
		h := c.holder(r.Att)
		if h == nil || h.latest == r.Address {
			continue
		}
		if row := c.rows[h.latest]; row.latest.by(&r.Att) && !h.found {
			c.breaks("Save %d gives %v the address %v while it has %v: expected one address", e.Seq, r.Att, r.Address, h.latest)
		}
		h.latest = r.Address
	}
}

// saveRow takes a row's new content. A row that comes to or leaves an attachment begins an operation on it.
func (c *Contract) saveRow(seq uint64, addr netip.Addr, to holding) {
	row := c.rows[addr]
	from := row.latest
	if from.state == ipam.Assigned && !to.by(&from.att) {
		if h := c.holder(from.att); h != nil {
			c.begin(h, seq, addr)
		}
	}
	if to.state == ipam.Assigned && !from.by(&to.att) {
		h := &c.holders[c.hold(to.att)]
		h.coming, h.found = seq, h.found || h.adds == 0
		if !h.found {
			c.begin(h, seq, addr)
		}
		if from.state == ipam.Assigned && !h.found { // a recovered row may correct a record; an ADD may not
			c.breaks("Save %d gives address %v of %v to %v: expected it to be given up before", seq, addr, from.att, to.att)
		}
	}
	row.latest = keepAttachment(row.latest, to)
	c.rows[addr] = row
}

// begin an operation, unless one runs. All rows of one Save are one operation.
func (c *Contract) begin(h *holder, seq uint64, addr netip.Addr) {
	if h.op != seq && c.working(h) {
		c.breaks("Save %d changes address %v of %v while another operation on it runs: expected it to wait", seq, addr, h.att)
	}
	h.op, h.coming = seq, seq
}

// keepAttachment remembers who had an address while its row is not free, whether the row says so or not.
func keepAttachment(from, to holding) holding {
	if to.att == (ipam.Attachment{}) && (to.state == ipam.Cooling || to.state == ipam.Quarantined) {
		to.att = from.att
	}
	return to
}

// saved makes rows durable, or takes them back.
func (c *Contract) saved(in ipam.Saved) {
	if int(in.Store) >= len(c.stores) {
		return
	}
	s := &c.stores[in.Store]
	if in.Seq > s.sent { // of another life: it says nothing about this one's Saves
		return
	}
	n := 0
	for n < len(s.waiting) && s.waiting[n].Seq <= in.Seq {
		n++
	}
	if n == 0 {
		return
	}
	s.ended = max(s.ended, s.waiting[n-1].Seq)
	for _, e := range s.waiting[:n] {
		switch {
		case in.Err == "" && in.Store == ipam.LibStore:
			c.settleIntents(e)
		case in.Err == "":
			eachRow(e, c.settleRow)
		case in.Store == ipam.RunStore:
			c.takeBack(e)
		}
	}
	left := copy(s.waiting, s.waiting[n:])
	clear(s.waiting[left:])
	s.waiting = s.waiting[:left]
	if in.Err != "" && in.Store == ipam.RunStore {
		c.replay()
	}
}

func (c *Contract) settleIntents(e *ipam.Save) {
	for i := range e.Put {
		if e.Put[i].Intent != nil {
			c.putIntent(e.Put[i].Intent)
		}
	}
	for _, k := range e.Drop {
		c.dropIntent(k.Token)
	}
}

// eachRow hands over what a Save makes of addresses.
func eachRow(e *ipam.Save, do func(netip.Addr, holding)) {
	for i := range e.Put {
		if r := &e.Put[i]; r.Intent == nil && r.Address.IsValid() {
			do(r.Address, holding{r.State, r.Att})
		}
	}
	for _, k := range e.Drop {
		do(k.Address, holding{})
	}
}

// settleRow makes one row durable, and moves what is known of the attachments that it leaves and comes to.
func (c *Contract) settleRow(addr netip.Addr, to holding) {
	row, ok := c.rows[addr]
	if !ok && to.state == 0 {
		return
	}
	from := row.durable
	to = keepAttachment(from, to)
	row.durable = to
	if row == (addressRow{}) {
		delete(c.rows, addr)
	} else {
		c.rows[addr] = row
	}
	if from.state != 0 && !to.by(&from.att) {
		c.leaves(addr, from, to)
	}
	if to.state == ipam.Assigned && !from.by(&to.att) {
		h := &c.holders[c.hold(to.att)]
		h.address, h.wired = addr, h.found
	}
}

// leaves takes the address from the attachment that had it. Its removal is awaited until it is done, or until the address
// is free for others.
func (c *Contract) leaves(addr netip.Addr, from, to holding) {
	h := c.holder(from.att)
	if h == nil {
		return
	}
	if from.state == ipam.Assigned && h.address == addr {
		h.address, h.wired, h.found = netip.Addr{}, false, false
		if h.touched {
			h.left = addr
		}
	}
	if h.left == addr && to.state != ipam.Cooling && to.state != ipam.Quarantined {
		h.left, h.touched = netip.Addr{}, false
	}
	c.release(h)
}

// takeBack gives the rows of a failed Save what is durable of them. What it assigned was not recovered, unless a Save after it says that again.
func (c *Contract) takeBack(e *ipam.Save) {
	back := func(addr netip.Addr) {
		row, ok := c.rows[addr]
		if !ok {
			return
		}
		att := row.latest.att
		row.latest = row.durable
		if c.rows[addr] = row; row == (addressRow{}) {
			delete(c.rows, addr)
		}
		if h := c.holder(att); h != nil {
			c.release(h)
		}
	}
	for i := range e.Put {
		r := &e.Put[i]
		if h := c.holder(r.Att); h != nil && r.State == ipam.Assigned && !h.address.IsValid() {
			seq, again := c.assigns(r)
			h.found, h.coming = h.found && again, max(h.coming, seq)
		}
		back(r.Address)
	}
	for _, k := range e.Drop {
		back(k.Address)
	}
}

// assigns is the Save still under way that gives the row's address to its attachment.
func (c *Contract) assigns(r *ipam.Row) (seq uint64, ok bool) {
	s := &c.stores[ipam.RunStore]
	for _, e := range s.waiting {
		if e.Seq > s.ended && slices.ContainsFunc(e.Put, func(p ipam.Row) bool {
			return p.Intent == nil && p.Address == r.Address && p.State == ipam.Assigned && p.Att == r.Att
		}) {
			return e.Seq, true
		}
	}
	return 0, false
}

// replay gives rows what Saves say that are still under way.
func (c *Contract) replay() {
	for _, e := range c.stores[ipam.RunStore].waiting {
		eachRow(e, c.redo)
	}
}

func (c *Contract) redo(addr netip.Addr, to holding) {
	row := c.rows[addr]
	row.latest = keepAttachment(row.latest, to)
	if c.rows[addr] = row; row == (addressRow{}) {
		delete(c.rows, addr)
	}
}
