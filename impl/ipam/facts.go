package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// Facts are what a daemon has heard of its node. They are on record with the addresses, on a tmpfs, so that the next daemon of this boot
// serves from its records while instance metadata does not answer: what an ENI carries is on record anyway, and the kernel says whether it is
// still there. Until metadata is heard such a daemon changes nothing at EC2, and gives away nothing that is not on record.
type Facts struct {
	Instance Instance
	ENIs     []ENI // in service, by device; without their addresses, which have rows of their own

	// Found are the ENIs that metadata listed with secondary addresses when the first daemon of this boot started with ENABLE_IMDS_ONLY_MODE:
	// without it the next daemon knows of none that is not in service yet whether it is ours. Where EC2 is asked it says so, and there are none.
	Found []string
}

// tellNext records the facts for the next daemon, if they are others than those on record.
func (es *enis) tellNext() {
	own := es.Inst.Address
	if es.Phase != serving || es.Deaf || !own.IsValid() {
		return
	}
	f := &Facts{Instance: es.Inst}
	if es.Set.IMDSOnly {
		f.Found = slices.Clone(es.evidence.Found)
		if es.ledger.Facts != nil && len(f.Found) == 0 {
			f.Found = es.ledger.Facts.Found
		}
	}
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage == Ready && !e.Foreign {
			f.ENIs = append(f.ENIs, ENI{ID: e.ID, MAC: e.MAC, Device: e.Device, Subnet: e.Subnet, CIDR: e.CIDR, Primary: e.Primary})
		}
	}
	slices.SortFunc(f.ENIs, func(a, b ENI) int { return a.Device - b.Device })
	if es.ledger.Facts != nil && f.equal(es.ledger.Facts) {
		return
	}
	f.Instance.VPC = slices.Clone(f.Instance.VPC)
	es.ledger.Facts = f
	es.ledger.putRow(RunStore, es.ledger.beginning())
}

// beginning is the row of the node's own address, which is never a pod's: since when releases are on record, and the facts.
func (lg *ledger) beginning() Row {
	return Row{Address: lg.Inst.Address, State: Departed, ReleasedAt: lg.Recorded, Node: lg.Facts}
}

func (f *Facts) equal(o *Facts) bool {
	a, b := &f.Instance, &o.Instance
	same := func(a, b ENI) bool {
		return a.ID == b.ID && a.MAC == b.MAC && a.Device == b.Device && a.Subnet == b.Subnet && a.CIDR == b.CIDR && a.Primary == b.Primary
	}
	return a.ID == b.ID && a.Type == b.Type && a.Zone == b.Zone && a.Subnet == b.Subnet && a.PrimaryMAC == b.PrimaryMAC && a.Address == b.Address &&
		a.Limits == b.Limits && slices.Equal(a.VPC, b.VPC) && slices.EqualFunc(f.ENIs, o.ENIs, same) && slices.Equal(f.Found, o.Found)
}

// usable says whether the facts are possible; a damaged record is not believed.
func (f *Facts) usable() bool {
	if f == nil || f.Instance.ID == "" || f.Instance.PrimaryMAC == "" || !f.Instance.Address.Is4() || len(f.ENIs) > mostENIs || len(f.Found) > mostENIs {
		return false
	}
	ids, primary := map[string]bool{}, false
	for i := range f.ENIs {
		e := &f.ENIs[i]
		if e.ID == "" || e.MAC == "" || ids[e.ID] || e.Device < 0 || e.Device > mostENIs || !e.CIDR.IsValid() || !e.Primary.IsValid() {
			return false
		}
		ids[e.ID] = true
		primary = primary || e.Device == 0 && e.MAC == f.Instance.PrimaryMAC
	}
	return primary
}

// FactsOf are the facts among the rows of RunStore that can be believed, or nil.
func FactsOf(rows []Row) *Facts {
	for i := range rows {
		if f := rows[i].Node; f.usable() {
			return f
		}
	}
	return nil
}

// putFacts writes what is in no other row; what the record knew beyond it went with the facts that it spoke of.
func (f fields) putFacts(v *Facts) error {
	i, m := &v.Instance, fields{}
	err := firstError(m.put("instance", i.ID), m.put("type", i.Type), m.put("zone", i.Zone), m.put("subnet", i.Subnet), m.put("mac", i.PrimaryMAC),
		m.put("address", i.Address.WithZone("")), m.put("vpc", append([]netip.Prefix{}, i.VPC...)), m.put("maxENIs", i.Limits.ENIs), m.put("maxAddresses", i.Limits.Addresses), m.putIf(i.Limits.Prefixes, "prefixes", true))
	list := []fields{}
	for j := range v.ENIs {
		e, in := &v.ENIs[j], fields{}
		err = firstError(err, in.put("id", e.ID), in.put("mac", e.MAC), in.put("device", e.Device), in.put("subnet", e.Subnet),
			in.put("cidr", e.CIDR), in.put("primary", e.Primary.WithZone("")))
		list = append(list, in)
	}
	if len(v.Found) > 0 {
		err = firstError(err, m.put("found", v.Found))
	}
	return firstError(err, m.put("enis", list), f.put("node", m))
}

func (f fields) takeFacts(to **Facts) error {
	if _, ok := f["node"]; !ok {
		return nil
	}
	m, err := f.nested("node")
	if err != nil {
		return err
	}
	v := &Facts{}
	i := &v.Instance
	if err := firstError(m.take("instance", &i.ID), m.take("type", &i.Type), m.take("zone", &i.Zone), m.take("subnet", &i.Subnet), m.take("mac", &i.PrimaryMAC),
		m.takeAddress("address", &i.Address), m.take("vpc", &i.VPC), m.take("maxENIs", &i.Limits.ENIs), m.take("maxAddresses", &i.Limits.Addresses), m.take("prefixes", &i.Limits.Prefixes)); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if _, ok := m["found"]; ok {
		if err := m.take("found", &v.Found); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	list, err := m.list("enis")
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	for j, raw := range list {
		in, err := object(raw)
		if err != nil {
			return fmt.Errorf("node: ENI %d of %d: %w", j+1, len(list), err)
		}
		e := ENI{}
		if err := firstError(in.take("id", &e.ID), in.take("mac", &e.MAC), in.take("device", &e.Device), in.take("subnet", &e.Subnet),
			in.takePrefix("cidr", &e.CIDR), in.takeAddress("primary", &e.Primary)); err != nil {
			return fmt.Errorf("node: ENI %d of %d: %w", j+1, len(list), err)
		}
		v.ENIs = append(v.ENIs, e)
	}
	if len(i.VPC) == 0 {
		i.VPC = nil
	}
	*to = v
	return nil
}
