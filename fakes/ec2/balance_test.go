package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// accounts is what requests change, without buckets and ledger.
func accounts(c *Cloud) string {
	return fmt.Sprintf("%+v %+v %+v", c.AllENIs(), c.Subnets(), c.due)
}

// balance checks from both sides that everything is where its counterpart says it is.
func balance(t *testing.T, c *Cloud) {
	t.Helper()
	if err := imbalance(c); err != "" {
		t.Fatal(err)
	}
}

func imbalance(c *Cloud) string {
	owned, owned6, blocks6 := make([]int, len(c.subnets)), make([]int, len(c.subnets)), make([]int, len(c.subnets))
	living := 0
	var previous int32 = -1
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		e := &c.enis[slot]
		if e.number <= previous {
			return fmt.Sprintf("%s: out of order of creation", e.id)
		}
		previous = e.number
		if e.dead {
			continue
		}
		living++
		if c.slots[e.number] != slot || c.slotOf(e.id) != slot {
			return fmt.Sprintf("%s: not found under its own ID", e.id)
		}
		for _, o := range e.current() {
			owned[e.subnet]++
			if c.subnets[e.subnet].owner[o] != slot+1 {
				return fmt.Sprintf("%s: address %v belongs to %d", e.id, c.subnets[e.subnet].addr(o), c.subnets[e.subnet].owner[o])
			}
		}
		x := e.extra()
		for _, o := range x.prefixes {
			owned[e.subnet] += prefixSize
			for k := range uint16(prefixSize) {
				if owner := c.subnets[e.subnet].owner[o+k]; o%prefixSize != 0 || owner != slot+1 {
					return fmt.Sprintf("%s: %v of prefix %v belongs to %d", e.id, c.subnets[e.subnet].addr(o+k), c.subnets[e.subnet].prefix(o), owner)
				}
			}
		}
		six := &c.subnets[e.subnet].six
		for _, low := range x.six {
			owned6[e.subnet]++
			if owner, ok := six.owner[low]; !ok || owner != slot+1 || six.ownerOf(low) != slot+1 {
				return fmt.Sprintf("%s: %v belongs to %d", e.id, six.addr(low), owner)
			}
		}
		for _, b := range x.prefixes6 {
			blocks6[e.subnet]++
			if six.blocks[b] != (block6{owner: slot + 1}) {
				return fmt.Sprintf("%s: prefix %v belongs to %+v", e.id, six.prefix(b), six.blocks[b])
			}
		}
		if (e.att.status == Available) != (e.att.instance == none) {
			return fmt.Sprintf("%s: %v on instance %d", e.id, e.att.status, e.att.instance)
		}
		if e.att.instance == none {
			if e.plugged || e.hung {
				return fmt.Sprintf("%s: available, yet plugged %v or hung %v", e.id, e.plugged, e.hung)
			}
			continue
		}
		if !slices.Contains(c.instances[e.att.instance].enis, slot) {
			return fmt.Sprintf("%s: its instance does not know it", e.id)
		}
		if c.attached[e.att.number] != slot || c.attachmentSlot(e.att.id) != slot {
			return fmt.Sprintf("%s: attachment %s leads elsewhere", e.id, e.att.id)
		}
		if limit := c.instances[e.att.instance].limits.IPv4PerENI; e.places() > limit {
			return fmt.Sprintf("%s: %d addresses and prefixes, limit %d", e.id, e.places(), limit)
		}
		if limit := c.instances[e.att.instance].limits.IPv6PerENI; e.places6() > limit {
			return fmt.Sprintf("%s: %d IPv6 addresses and prefixes, limit %d", e.id, e.places6(), limit)
		}
	}
	if living != c.living || living+len(c.spare)+len(c.graves) != len(c.enis) {
		return fmt.Sprintf("%d ENIs live, %d counted, %d spare, %d buried, %d slots", living, c.living, len(c.spare), len(c.graves), len(c.enis))
	}
	for n := range c.instances {
		i := &c.instances[n]
		if (i.primary == none) != (i.state == terminated) || i.state == terminated && len(i.enis) > 0 {
			return fmt.Sprintf("%s: %v with %d interfaces, primary in slot %d", i.id, i.state, len(i.enis), i.primary)
		}
		for k, slot := range i.enis {
			if c.enis[slot].att.instance != int32(n) {
				return fmt.Sprintf("%s: %s is not on it", i.id, c.enis[slot].id)
			}
			if k > 0 && c.enis[i.enis[k-1]].att.place() >= c.enis[slot].att.place() {
				return fmt.Sprintf("%s: device indexes out of order", i.id)
			}
			if card := c.enis[slot].att.card; c.onCard(i, card) > i.limits.ENIs {
				return fmt.Sprintf("%s: %d interfaces on card %d, limit %d", i.id, c.onCard(i, card), card, i.limits.ENIs)
			}
		}
	}
	for n := range c.subnets {
		if err := subnetImbalance(&c.subnets[n], owned[n]); err != "" {
			return err
		}
		if err := sixImbalance(&c.subnets[n].six, owned6[n], blocks6[n]); err != "" {
			return string(c.subnets[n].id) + ": " + err
		}
	}
	return ""
}

// sixImbalance checks that what is not free in IPv6 is an interface's or held, once, and that /80s count their addresses.
func sixImbalance(s *subnet6, owned, blocks int) string {
	heldAddresses, heldBlocks := 0, 0
	for _, h := range s.held {
		if h.block {
			heldBlocks++
		} else {
			heldAddresses++
		}
	}
	inBlock := map[uint16]int32{}
	for low, owner := range s.owner {
		if owner == addressFree || reserved6(low) {
			return fmt.Sprintf("%v is %d", s.addr(low), owner)
		}
		inBlock[blockOf(low)]++
	}
	given := 0
	for b, v := range s.blocks {
		if v.owner != addressFree && v.owner != addressThirdParty {
			given++
		}
		if v.addresses != inBlock[b] || v.owner != addressFree && v.addresses != 0 {
			return fmt.Sprintf("%v: %+v, counted %d", s.prefix(b), v, inBlock[b])
		}
		delete(inBlock, b)
	}
	if len(inBlock) > 0 || len(s.owner) != owned+heldAddresses || given != blocks+heldBlocks {
		return fmt.Sprintf("%d addresses not free, %d owned, %d held; %d prefixes not free, %d owned, %d held; not counted: %v",
			len(s.owner), owned, heldAddresses, given, blocks, heldBlocks, inBlock)
	}
	return ""
}

func subnetImbalance(s *subnet, owned int) string {
	var free, held, reserved, strangers, enis int
	busy := make([]uint8, len(s.busy))
	if n := len(busy); n > 0 && n*prefixSize == s.size {
		busy[n-1] = 1 // the last address
	}
	for at, o := range s.owner {
		home := s.homeOf(uint16(at))
		if o != addressFree && (o != addressForPrefix || home != addressForPrefix) {
			busy[at/prefixSize]++
		}
		switch {
		case o == addressSetAside || o == addressForPrefix:
			if home != o {
				return fmt.Sprintf("%s: %v is set aside, but in no such reservation", s.id, s.addr(uint16(at)))
			}
			continue
		case o == addressFree && home != addressFree:
			return fmt.Sprintf("%s: %v has left its reservation", s.id, s.addr(uint16(at)))
		}
		switch {
		case o == addressFree:
			free++
		case o == addressHeld:
			held++
		case o == addressReserved:
			reserved++
		case o == addressThirdParty:
			strangers++
		default:
			enis++
		}
	}
	ring := 0
	for o := s.next[0]; o != 0; o = s.next[o] {
		ring++
		if s.owner[o] != addressFree || s.prev[s.next[o]] != o {
			return fmt.Sprintf("%s: %v in the ring is not free or its links are broken", s.id, s.addr(o))
		}
	}
	if !slices.Equal(busy, s.busy) || len(s.busy) != (len(s.owner)+prefixSize-1)/prefixSize {
		return fmt.Sprintf("%s: blocks' busy addresses are %v, counted %v", s.id, s.busy, busy)
	}
	fresh := s.size - 1 - len(s.owner)
	reserved++ // the last one never enters the table
	if ring != free || s.free != free+fresh || held != len(s.held) || strangers != len(s.drained) || reserved != 5 || enis != owned {
		return fmt.Sprintf("%s: free %d and %d, counted %d, in the ring %d; held %d/%d; strangers %d/%d; reserved %d; on ENIs %d/%d",
			s.id, free, fresh, s.free, ring, held, len(s.held), strangers, len(s.drained), reserved, enis, owned)
	}
	return ""
}

// strife checks from outside that every address, alone or in a prefix, has one owner, which is the one that the cloud names, and that no
// subnet has more of them than it can.
func strife(c *Cloud) string {
	type place struct {
		vpc  string
		addr netip.Addr
	}
	owners, blocks, taken := map[place]ENIID{}, map[netip.Prefix]ENIID{}, map[SubnetID]int{}
	for _, e := range c.AllENIs() {
		all := append([]netip.Addr{e.Primary}, e.Secondaries...)
		for _, p := range e.Prefixes {
			for a := p.Addr(); p.Contains(a); a = a.Next() {
				all = append(all, a)
			}
		}
		taken[e.Subnet] += len(all)
		all = append(all, e.IPv6...)
		for _, p := range e.IPv6Prefixes {
			all = append(all, p.Addr())
		}
		for _, a := range all {
			at := place{e.VPC, a}
			if other, ok := owners[at]; ok {
				return fmt.Sprintf("%v belongs to %s and %s", a, other, e.ID)
			}
			owners[at] = e.ID
			if id, on, ok := c.OwnerIn(e.VPC, a); !ok || id != e.ID || on != e.Instance {
				return fmt.Sprintf("%v of %s on %q is said to belong to %s on %q", a, e.ID, e.Instance, id, on)
			}
		}
		for _, p := range e.IPv6Prefixes {
			blocks[p] = e.ID
		}
	}
	for _, e := range c.AllENIs() {
		for _, a := range e.IPv6 {
			p, _ := a.Prefix(prefix6Bits)
			if id, ok := blocks[p]; ok {
				return fmt.Sprintf("%v of %s lies in %v of %s", a, e.ID, p, id)
			}
		}
	}
	for _, s := range c.Subnets() {
		if most := 1<<(32-s.CIDR.Bits()) - 5; taken[s.ID]+c.FreeAddresses(s.ID) > most {
			return fmt.Sprintf("%s: %d taken and %d free of %d", s.ID, taken[s.ID], c.FreeAddresses(s.ID), most)
		}
	}
	return ""
}
