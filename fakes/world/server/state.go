package server

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// regionState is a cloud as it is.
type regionState struct {
	Account   string          `json:"account"`
	Region    string          `json:"region"`
	Now       string          `json:"now"` // since the world began
	VPCs      []vpcState      `json:"vpcs"`
	Subnets   []subnetState   `json:"subnets"`
	Groups    []string        `json:"groups"`
	Instances []instanceState `json:"instances"`
	ENIs      []eniState      `json:"enis"`
	Faults    []string        `json:"faults"`
}

type vpcState struct {
	ID    string         `json:"id"`
	CIDRs []netip.Prefix `json:"cidrs"`
	IPv6  []netip.Prefix `json:"ipv6,omitempty"`
}

type subnetState struct {
	ID   ec2.SubnetID `json:"id"`
	VPC  string       `json:"vpc"`
	CIDR netip.Prefix `json:"cidr"`
	Zone string       `json:"zone"`
	Free int          `json:"free"`
}

type instanceState struct {
	ID       ec2.InstanceID `json:"id"`
	Name     string         `json:"name,omitempty"`
	Type     string         `json:"type"`
	State    string         `json:"state"`
	Subnet   ec2.SubnetID   `json:"subnet"`
	Address  netip.Addr     `json:"address"`
	Metadata string         `json:"metadata,omitempty"` // its URL
}

type eniState struct {
	ID           ec2.ENIID         `json:"id"`
	Status       string            `json:"status"`
	MAC          string            `json:"mac"`
	Subnet       ec2.SubnetID      `json:"subnet"`
	Addresses    []netip.Addr      `json:"addresses"` // the primary one first
	Prefixes     []netip.Prefix    `json:"prefixes,omitempty"`
	IPv6         []netip.Addr      `json:"ipv6,omitempty"`
	IPv6Prefixes []netip.Prefix    `json:"ipv6Prefixes,omitempty"`
	Instance     ec2.InstanceID    `json:"instance,omitempty"`
	Device       *int              `json:"device,omitempty"`
	Card         int               `json:"card,omitempty"`
	Description  string            `json:"description,omitempty"`
	Groups       []string          `json:"groups"`
	Tags         map[string]string `json:"tags,omitempty"`
}

func (s *Server) state(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	urls := map[ec2.InstanceID]string{}
	for _, m := range s.Endpoints().Metadata {
		urls[m.Instance] = m.URL
	}
	var out struct {
		Regions []regionState `json:"regions"`
	}
	for _, c := range list {
		c.with(func(now time.Duration, m *ec2.Cloud) { out.Regions = append(out.Regions, c.show(now, m, urls)) })
	}
	return out, nil
}

// show is the cloud as it is; the lock is held.
func (c *cloud) show(now time.Duration, m *ec2.Cloud, urls map[ec2.InstanceID]string) regionState {
	v := regionState{Account: c.Account.ID, Region: c.Region.Name, Now: now.String(), Groups: m.SecurityGroups(), Faults: []string{}}
	for _, p := range c.Region.Config.VPCs {
		v.VPCs = append(v.VPCs, vpcState{p.ID, p.CIDRs, p.IPv6})
	}
	for _, s := range m.Subnets() {
		v.Subnets = append(v.Subnets, subnetState{s.ID, s.VPC, s.CIDR, s.Zone, m.FreeAddresses(s.ID)})
	}
	for _, id := range c.ids {
		in, ok := m.InstanceOf(id)
		if !ok {
			continue // it ended long ago
		}
		v.Instances = append(v.Instances, instanceState{in.ID, c.name(id), in.Type, in.State, in.Subnet, in.PrimaryAddress, urls[id]})
	}
	for _, e := range m.AllENIs() {
		v.ENIs = append(v.ENIs, showENI(&e))
	}
	for _, f := range m.Faults() {
		v.Faults = append(v.Faults, f.String())
	}
	return v
}

func showENI(e *ec2.ENI) eniState {
	v := eniState{ID: e.ID, Status: e.Status.String(), MAC: e.MAC, Subnet: e.Subnet, Addresses: append([]netip.Addr{e.Primary}, e.Secondaries...),
		Prefixes: e.Prefixes, IPv6: e.IPv6, IPv6Prefixes: e.IPv6Prefixes, Instance: e.Instance, Card: e.NetworkCard, Description: e.Description,
		Groups: e.SecurityGroups}
	if e.Instance != "" {
		v.Device = &e.DeviceIndex
	}
	for _, t := range e.Tags {
		if v.Tags == nil {
			v.Tags = map[string]string{}
		}
		v.Tags[t.Key] = t.Value
	}
	return v
}

// ledgerRow is how often a caller's calls of an action ended one way.
type ledgerRow struct {
	Account string         `json:"account"`
	Region  string         `json:"region"`
	Action  string         `json:"action"`
	Node    string         `json:"node,omitempty"` // its name; none: a caller that is no instance
	ID      ec2.InstanceID `json:"instance,omitempty"`
	Outcome string         `json:"outcome"`
	Code    string         `json:"code,omitempty"`
	Calls   int            `json:"calls"`
}

func (s *Server) ledger(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	rows := []ledgerRow{}
	for _, c := range list {
		c.with(func(time.Duration, *ec2.Cloud) {
			for _, v := range c.Ledger() {
				row := ledgerRow{c.Account.ID, c.Region.Name, v.Action.String(), "", v.Node, v.Outcome.String(), v.Code, v.Calls}
				if v.Node != "" {
					row.Node = c.name(v.Node)
				}
				rows = append(rows, row)
			}
		})
	}
	return map[string]any{"calls": rows}, nil
}
