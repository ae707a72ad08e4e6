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
	Subnets   []subnetState   `json:"subnets"`
	Groups    []string        `json:"groups"`
	Instances []instanceState `json:"instances"`
	ENIs      []eniState      `json:"enis"`
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
	v := regionState{Account: c.Account.ID, Region: c.Region.Name, Now: now.String(), Groups: m.SecurityGroups()}
	for _, s := range m.Subnets() {
		v.Subnets = append(v.Subnets, subnetState{s.ID, s.VPC, s.CIDR, s.Zone, m.FreeAddresses(s.ID)})
	}
	for _, n := range c.Nodes {
		in, _ := m.InstanceOf(n.ID)
		v.Instances = append(v.Instances, instanceState{in.ID, n.Name, in.Type, in.State, in.Subnet, in.PrimaryAddress, urls[n.ID]})
	}
	for _, e := range m.AllENIs() {
		v.ENIs = append(v.ENIs, showENI(&e))
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

// ledgerRow is how calls of an action ended in a region.
type ledgerRow struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	Action  string `json:"action"`
	ec2.Count
}

func (s *Server) ledger(r *http.Request) (any, error) {
	list, err := s.chosen(r)
	if err != nil {
		return nil, err
	}
	rows := []ledgerRow{}
	for _, c := range list {
		c.with(func(_ time.Duration, m *ec2.Cloud) {
			for a := range ec2.ActionCount {
				if n := m.Calls(a); n.Total > 0 {
					rows = append(rows, ledgerRow{c.Account.ID, c.Region.Name, a.String(), n})
				}
			}
		})
	}
	return map[string]any{"calls": rows}, nil
}
