package world

import (
	"maps"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// Cloud is what was made of an account's region.
type Cloud struct {
	*ec2.Cloud
	Account *Account
	Region  *Region
	Nodes   []Node // in the order of the file

	past []ec2.LedgerRow // what making it took
}

// Node is an instance of the file.
type Node struct {
	ID ec2.InstanceID
	*Instance
}

// How the past of a world passes: far longer than anything takes, so that all is settled at the first request.
const (
	settleStep = 200 * time.Millisecond
	settleTime = time.Hour
	mostSteps  = 1 << 20
)

// Make makes the clouds, with everything that the file says in place and settled at the instant that it returns: who asks later sees a world
// that has been there for a while. The error is an Errors.
func (w *World) Make() (clouds []Cloud, settled time.Duration, err error) {
	e := strictyaml.NewReader(w.Name)
	for i := range w.Accounts {
		a := &w.Accounts[i]
		for j := range a.Regions {
			m := maker{Reader: e, Cloud: Cloud{Account: a, Region: &a.Regions[j]}}
			m.Cloud.Cloud = ec2.New(a.Regions[j].Config, w.Seed+uint64(len(clouds)))
			m.populate()
			m.finish()
			settled = max(settled, m.now)
			clouds = append(clouds, m.Cloud)
		}
	}
	if err := e.Err(); err != nil {
		return nil, 0, err
	}
	settled += settleTime
	for i := range clouds {
		c := &clouds[i]
		c.Advance(settled)
		c.past = c.LedgerRows()
		for _, f := range c.Region.Faults {
			fault, err := c.ParseFault(settled, f.Text)
			if err != nil {
				e.Add(f.Begin, "", "%v", err)
				continue
			}
			c.Fault(fault)
		}
		c.Events()
	}
	if err := e.Err(); err != nil {
		return nil, 0, err
	}
	return clouds, settled, nil
}

// maker makes one cloud.
type maker struct {
	*strictyaml.Reader
	Cloud
	now   time.Duration
	steps int
}

func (m *maker) populate() {
	g := m.Region
	for i := range g.Instances {
		in := &g.Instances[i]
		tags := map[string]string{"Name": in.Name}
		maps.Copy(tags, in.Tags)
		id, err := m.Launch(m.now, ec2.LaunchSpec{Type: in.Type, Subnet: in.Subnet, SecondaryAddresses: in.Addresses, Tags: tags, Address: in.Address, MAC: in.MAC})
		if err != nil {
			m.Add(in.Begin, "", "%s: %v", in.Name, err)
			continue
		}
		m.Nodes = append(m.Nodes, Node{id, in})
		if primary := m.AttachedENIs(id); len(primary) > 0 {
			if len(in.Groups) > 0 {
				m.call(in.Begin, in.Name, &ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: primary[0], SecurityGroups: in.Groups})
			}
			m.assign(in.Begin, in.Name, primary[0], &in.Addressing)
		}
		for k := range in.ENIs {
			m.eni(&in.ENIs[k], in.Name, id)
		}
	}
	for i := range g.ENIs {
		m.eni(&g.ENIs[i], "eni "+g.ENIs[i].Name, "")
	}
}

// finish lets what is under way complete.
func (m *maker) finish() {
	for {
		at, ok := m.Next()
		if !ok || m.steps > mostSteps {
			return
		}
		m.steps++
		m.now = max(m.now, at)
		m.Advance(m.now)
	}
}

// eni makes a further interface and attaches it, unless the instance is "".
func (m *maker) eni(e *ENI, who string, id ec2.InstanceID) {
	p, ok := m.call(e.Begin, who, &ec2.Request{Action: ec2.CreateNetworkInterface, Subnet: e.Subnet, SecondaryCount: e.Addresses, SecurityGroups: e.Groups,
		Description: e.Description, Tags: tagList(e.Tags, e.Name)})
	if !ok || !m.assign(e.Begin, who, p.ENI.ID, &e.Addressing) || id == "" {
		return
	}
	a, ok := m.call(e.Begin, who, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: p.ENI.ID, Instance: id, DeviceIndex: e.Device, NetworkCard: e.Card})
	if !ok {
		return
	}
	m.call(e.Begin, who, &ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: p.ENI.ID, Attachment: a.Attachment, DeleteOnTermination: true})
}

// assign gives an interface its prefixes and its IPv6 addresses.
func (m *maker) assign(at place, who string, id ec2.ENIID, a *Addressing) (ok bool) {
	ok = true
	if a.Prefixes > 0 {
		_, ok = m.call(at, who, &ec2.Request{Action: ec2.AssignPrivateIpAddresses, ENI: id, PrefixCount: a.Prefixes})
	}
	if ok && a.IPv6 > 0 {
		_, ok = m.call(at, who, &ec2.Request{Action: ec2.AssignIpv6Addresses, ENI: id, IPv6Count: a.IPv6})
	}
	if ok && a.IPv6Prefixes > 0 {
		_, ok = m.call(at, who, &ec2.Request{Action: ec2.AssignIpv6Addresses, ENI: id, IPv6PrefixCount: a.IPv6Prefixes})
	}
	return ok
}

// call has a request served, and waits where a caller would have to: for a bucket to fill, for a replica to know what is new.
func (m *maker) call(at place, who string, r *ec2.Request) (ec2.Response, bool) {
	for {
		p := m.Serve(m.now, r)
		if p.Code == "" {
			return p, true
		}
		retry := p.Code == "RequestLimitExceeded" || p.Code == "InvalidNetworkInterfaceID.NotFound"
		if m.steps++; !retry || m.steps > mostSteps {
			m.Add(at, "", "%s: %v: %s: %s", who, r.Action, p.Code, p.Message)
			return p, false
		}
		m.now += settleStep
	}
}
