package judge

import (
	"fmt"
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// pool is a node's addresses as the warm targets see them, counted from the cloud.
type pool struct {
	per   int                  // slots of one ENI, each an address or a prefix
	enis  int                  // attached
	most  int                  // ENIs that the node may have
	total int                  // addresses for pods on attached ENIs
	room  map[ec2.SubnetID]int // slots that attached ENIs still have, by subnet
	block int                  // prefixes
	free  int
}

func poolOf(c *Snapshot) pool {
	p := pool{per: c.Limits.Addresses - 1, most: c.Limits.ENIs, free: c.View.Free, room: map[ec2.SubnetID]int{}}
	if m := c.Settings.MaxENI; m > 0 && m < p.most {
		p.most = m
	}
	for i := range c.Cloud {
		switch {
		case c.Cloud[i].NotOurs:
			p.most--
		case c.Cloud[i].Attached:
			p.enis++
			if c.Cloud[i].Reserved {
				continue
			}
			p.total += len(c.Cloud[i].Secondaries)
			p.block += c.Cloud[i].Prefixes
			p.room[c.Cloud[i].Subnet] += max(0, p.per-len(c.Cloud[i].Secondaries)+(blockSize-1)*c.Cloud[i].Prefixes)
		}
	}
	return p
}

// warm says how a settled node misses its warm targets; "" is not at all. It is amazon-vpc-cni-k8s's arithmetic
// (README, WARM_ENI_TARGET, WARM_IP_TARGET, MINIMUM_IP_TARGET, MAX_ENI), written again and not shared with the node, so that
// a mistake there does not excuse itself here. band is how many addresses too many are tolerated.
func warm(c *Snapshot, band int) string {
	s := &c.Settings
	if s.NoProvisioning || s.IMDSOnly || s.Cordoned && !s.ManageWhenCordon || c.Limits.ENIs < 1 || c.Limits.Addresses < 2 {
		return "" // the pool is not managed, or nothing is known of its limits
	}
	p := poolOf(c)
	on := c.View.Prefixes
	if n := p.short(s, on.On); n > 0 {
		for _, subnet := range c.Subnets {
			if p.canGrow(n, &subnet, on.On) {
				return fmt.Sprintf("has %d free of %s on %s, %d fewer than %s ask for, and could have more: %d ENIs of %d addresses, %d free in the subnet",
					p.free, count(p.total, "address"), count(p.enis, "ENI"), n, targets(s), p.most, p.per, subnet.Free)
			}
		}
	}
	if on.On && !on.Bare {
		return p.overBlocks(c, band)
	}
	if on.On {
		return "" // single addresses meanwhile, of which those of the next prefix are too many
	}
	band += (blockSize - 1) * p.block // of one that a pod has an address of the others stay
	if byAddress(s) {
		// Quarantined addresses count for a shortage and not for an excess: they may come back, and cannot be given away.
		if over := min(p.free-s.WarmIPTarget, p.free+c.View.Assigned-s.MinimumIPTarget); over > band {
			return fmt.Sprintf("has %d free of %s, %d more than %s let it keep", p.free, count(p.total, "address"), over, targets(s))
		}
		return ""
	}
	if eni := p.spare(c, band); eni != "" {
		return fmt.Sprintf("has %d free addresses and nothing on %s: %s let it keep fewer than %d", p.free, eni, targets(s), (s.WarmENITarget+1)*p.per)
	}
	return ""
}

// byAddress says that WARM_IP_TARGET or MINIMUM_IP_TARGET is set, which WARM_ENI_TARGET then yields to.
func byAddress(s *ipam.Settings) bool { return s.WarmIPTarget > 0 || s.MinimumIPTarget > 0 }

// blockSize is how many addresses a prefix has.
const blockSize = 16

// overBlocks says how prefixes are too many of which no pod has an address.
func (p pool) overBlocks(c *Snapshot, band int) string {
	s, free := &c.Settings, c.View.Prefixes.Free
	over := free - max(s.WarmPrefixTarget, 1)
	if byAddress(s) {
		over = min(free, min(p.free-s.WarmIPTarget, p.free+c.View.Assigned-s.MinimumIPTarget)/blockSize)
	}
	if over > band/blockSize {
		return fmt.Sprintf("has %s of which nobody has an address, and %d addresses free of %d: %d prefixes more than %s let it keep",
			count(free, "prefix"), p.free, p.total, over, targets(s))
	}
	return ""
}

func targets(s *ipam.Settings) string {
	if byAddress(s) {
		return fmt.Sprintf("WARM_IP_TARGET=%d MINIMUM_IP_TARGET=%d MAX_ENI=%d", s.WarmIPTarget, s.MinimumIPTarget, s.MaxENI)
	}
	if s.PrefixDelegation {
		return fmt.Sprintf("WARM_PREFIX_TARGET=%d WARM_ENI_TARGET=%d MAX_ENI=%d", s.WarmPrefixTarget, s.WarmENITarget, s.MaxENI)
	}
	return fmt.Sprintf("WARM_ENI_TARGET=%d MAX_ENI=%d", s.WarmENITarget, s.MaxENI)
}

// short is how many free addresses are missing. A node that has as many addresses as it may have pods needs no more.
func (p pool) short(s *ipam.Settings, prefixes bool) int {
	switch {
	case s.MaxPods > 0 && p.total >= s.MaxPods:
		return 0
	case byAddress(s):
		return max(s.WarmIPTarget-p.free, s.MinimumIPTarget-p.total)
	case prefixes:
		return max(s.WarmPrefixTarget*blockSize, 1) - p.free
	}
	return s.WarmENITarget*p.per - p.free
}

// canGrow says whether EC2 could grant the next step towards n more addresses whole in a subnet: on ENIs that have room, or on a new
// one, which takes an address for itself.
func (p pool) canGrow(n int, s *CloudSubnet, prefixes bool) bool {
	room := p.room[s.ID]
	if prefixes && s.Blocks > 0 { // EC2 gives as many prefixes as it has
		return room > 0 && !s.Excluded || s.Suits && p.enis < p.most && s.Free > blockSize
	}
	if room > 0 && !s.Excluded && s.Free >= min(n, room) {
		return true
	}
	return s.Suits && p.enis < p.most && s.Free >= min(n, p.per)+1
}

// spare is an ENI without use whose addresses the target does not ask for. The primary one can never be given back.
func (p pool) spare(c *Snapshot, band int) string {
	target := c.Settings.WarmENITarget * p.per
	if p.free < target+p.per+band {
		return ""
	}
	for _, e := range c.View.ENIs {
		if slices.ContainsFunc(c.Cloud, func(k CloudENI) bool { return k.ID == e.ID && k.Prefixes > 0 }) {
			continue // pods may have addresses of its prefixes that no record of ours has
		}
		if e.Device > 0 && e.Stage == ipam.Ready && e.InUse == 0 && p.free-e.Available >= target {
			return e.ID
		}
	}
	return ""
}
