package server

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// What the filters of each Describe compare, by their names in the API reference.

func (c *call) eniValues(e *ec2.ENI, name string) ([]string, bool) {
	switch name {
	case "network-interface-id":
		return one(string(e.ID)), true
	case "status":
		return one(statusOf(e)), true
	case "subnet-id":
		return one(string(e.Subnet)), true
	case "vpc-id":
		return one(e.VPC), true
	case "availability-zone":
		return one(e.Zone), true
	case "mac-address":
		return one(e.MAC), true
	case "owner-id":
		return one(e.Owner), true
	case "description":
		return one(e.Description), true
	case "interface-type":
		return one("interface"), true
	case "requester-managed":
		return one("false"), true
	case "source-dest-check":
		return one(strconv.FormatBool(e.SourceDestCheck)), true
	case "group-id":
		return e.SecurityGroups, true
	case "private-dns-name":
		return one(dnsName(e.Primary, e.Zone)), true
	}
	switch kind, _, _ := strings.Cut(name, "."); kind {
	case "private-ip-address", "addresses", "ipv6-addresses":
		return addressValues(e, name)
	case "attachment":
		return attachmentValues(e, name)
	}
	return tagValues(e.Tags, name)
}

func addressValues(e *ec2.ENI, name string) ([]string, bool) {
	switch name {
	case "private-ip-address":
		return one(text(e.Primary)), true
	case "addresses.private-ip-address":
		return append(one(text(e.Primary)), texts(e.Secondaries)...), true
	case "addresses.primary":
		if len(e.Secondaries) > 0 {
			return []string{"true", "false"}, true
		}
		return one("true"), true
	case "ipv6-addresses.ipv6-address":
		return texts(e.IPv6), true
	}
	return nil, false
}

func attachmentValues(e *ec2.ENI, name string) ([]string, bool) {
	v := ""
	switch name {
	case "attachment.attachment-id":
		v = e.Attachment
	case "attachment.instance-id":
		v = string(e.Instance)
	case "attachment.instance-owner-id":
		v = e.Owner
	case "attachment.status":
		v = attachmentStatus(e.Status)
	case "attachment.device-index":
		v = strconv.Itoa(e.DeviceIndex)
	case "attachment.delete-on-termination":
		v = strconv.FormatBool(e.DeleteOnTermination)
	default:
		return nil, false
	}
	if e.Attachment == "" {
		return nil, true
	}
	return one(v), true
}

func (c *call) subnetValues(s *ec2.Subnet, name string) ([]string, bool) {
	switch name {
	case "subnet-id":
		return one(string(s.ID)), true
	case "vpc-id":
		return one(s.VPC), true
	case "availability-zone", "availabilityZone":
		return one(s.Zone), true
	case "cidr-block", "cidr", "cidrBlock":
		return one(s.CIDR.String()), true
	case "available-ip-address-count":
		return one(strconv.Itoa(s.Available)), true
	case "owner-id":
		return one(c.account), true
	case "state":
		return one("available"), true
	case "default-for-az", "defaultForAz", "map-public-ip-on-launch", "ipv6-native":
		return one("false"), true
	case "ipv6-cidr-block-association.ipv6-cidr-block":
		return block(s.IPv6), true
	case "ipv6-cidr-block-association.state":
		if s.IPv6.IsValid() {
			return one("associated"), true
		}
		return nil, true
	}
	return tagValues(s.Tags, name)
}

func (c *call) vpcValues(v *ec2.VPC, name string) ([]string, bool) {
	switch name {
	case "vpc-id":
		return one(v.ID), true
	case "cidr":
		return blocks(v.CIDRs[:min(1, len(v.CIDRs))]), true
	case "cidr-block-association.cidr-block":
		return blocks(v.CIDRs), true
	case "ipv6-cidr-block-association.ipv6-cidr-block":
		return blocks(v.IPv6), true
	case "owner-id":
		return one(c.account), true
	case "state":
		return one("available"), true
	case "is-default":
		return one("false"), true
	}
	return tagValues(v.Tags, name)
}

func (c *call) groupValues(g *ec2.SecurityGroup, name string) ([]string, bool) {
	switch name {
	case "group-id":
		return one(g.ID), true
	case "group-name":
		return one(g.Name), true
	case "description":
		return one(g.Description), true
	case "vpc-id":
		return one(g.VPC), true
	case "owner-id":
		return one(c.account), true
	}
	return tagValues(g.Tags, name)
}

func (c *call) instanceValues(i *ec2.Instance, name string) ([]string, bool) {
	switch name {
	case "instance-id":
		return one(string(i.ID)), true
	case "instance-state-name":
		return one(i.State), true
	case "instance-state-code":
		return one(strconv.Itoa(stateCode(i.State))), true
	case "instance-type":
		return one(i.Type), true
	case "availability-zone":
		return one(i.Zone), true
	case "subnet-id":
		return one(string(i.Subnet)), true
	case "vpc-id":
		return one(i.VPC), true
	case "private-ip-address":
		return one(text(i.PrimaryAddress)), true
	case "private-dns-name":
		return one(dnsName(i.PrimaryAddress, i.Zone)), true
	case "owner-id":
		return one(i.Owner), true
	case "reservation-id":
		return one(i.Reservation), true
	case "tenancy":
		return one("default"), true
	case "group-id", "instance.group-id":
		return i.SecurityGroups, true
	case "launch-time":
		if c.epoch.IsZero() {
			return nil, false
		}
		return one(c.instant(i.Launched)), true
	}
	if name, ok := strings.CutPrefix(name, "network-interface."); ok {
		return interfaceValues(i, name)
	}
	return tagValues(i.Tags, name)
}

// interfaceValues are the filters network-interface.*, of any of an instance's interfaces.
func interfaceValues(i *ec2.Instance, name string) ([]string, bool) {
	if _, ok := interfaceValue(&ec2.Interface{}, name); !ok {
		return nil, false
	}
	var out []string
	for k := range i.Interfaces {
		v, _ := interfaceValue(&i.Interfaces[k], name)
		out = append(out, v)
	}
	return out, true
}

func interfaceValue(e *ec2.Interface, name string) (string, bool) {
	switch name {
	case "network-interface-id":
		return string(e.ENI), true
	case "attachment.attachment-id":
		return e.Attachment, true
	case "attachment.device-index":
		return strconv.Itoa(e.Device), true
	case "attachment.status":
		return attachmentStatus(e.Status), true
	case "status":
		return "in-use", true
	}
	return "", false
}

func (c *call) statusValues(s *ec2.InstanceStatus, name string) ([]string, bool) {
	switch name {
	case "availability-zone":
		return one(s.Zone.Name), true
	case "availability-zone-id":
		return one(s.Zone.ID), true
	case "instance-state-name":
		return one(s.State), true
	case "instance-state-code":
		return one(strconv.Itoa(stateCode(s.State))), true
	case "instance-status.status", "system-status.status":
		return one(s.Status), true
	case "instance-status.reachability", "system-status.reachability":
		return one(reachability(s)), true
	}
	return nil, false
}

func (c *call) tagOfValues(t *ec2.TagOf, name string) ([]string, bool) {
	switch name {
	case "key":
		return one(t.Key), true
	case "value":
		return one(t.Value), true
	case "resource-id":
		return one(t.Resource), true
	case "resource-type":
		return one(t.Kind), true
	case "tag-key":
		return nil, false // other Describes have it
	}
	return tagValues([]ec2.Tag{t.Tag}, name)
}

func (c *call) zoneValues(z *ec2.Zone, name string) ([]string, bool) {
	switch name {
	case "zone-name":
		return one(z.Name), true
	case "zone-id":
		return one(z.ID), true
	case "zone-type":
		return one("availability-zone"), true
	case "region-name":
		return one(z.Region), true
	case "group-name":
		return one(zoneGroup(z)), true
	case "state":
		return one("available"), true
	case "opt-in-status":
		return one(notOptional), true
	case "message", "parent-zone-id", "parent-zone-name":
		return nil, true
	}
	return nil, false
}

func (c *call) regionValues(region *string, name string) ([]string, bool) {
	switch name {
	case "region-name":
		return one(*region), true
	case "endpoint":
		return one(endpointOf(*region)), true
	case "opt-in-status":
		return one(notOptional), true
	}
	return nil, false
}

func (c *call) reservationValues(r *ec2.Reservation, name string) ([]string, bool) {
	switch name {
	case "reservationType":
		return one(r.Type), true
	case "subnet-id":
		return one(string(r.Subnet)), true
	}
	return tagValues(nil, name)
}

// elasticFilter says whether DescribeAddresses has a filter: there is nothing to compare it with.
func elasticFilter(name string) bool {
	switch name {
	case "allocation-id", "association-id", "instance-id", "network-border-group", "network-interface-id", "network-interface-owner-id",
		"private-ip-address", "public-ip":
		return true
	}
	_, ok := tagValues(nil, name)
	return ok
}

func (c *call) routeTableValues(t *ec2.RouteTable, name string) ([]string, bool) {
	switch name {
	case "route-table-id", "association.route-table-id":
		return one(t.ID), true
	case "vpc-id":
		return one(t.VPC), true
	case "owner-id":
		return one(c.account), true
	case "association.main":
		return one("true"), true
	case "association.route-table-association-id":
		return one(t.Association), true
	case "association.subnet-id":
		return nil, true // the main table's association is with none
	case "route.destination-cidr-block":
		return blocksOf(t.Local, true), true
	case "route.destination-ipv6-cidr-block":
		return blocksOf(t.Local, false), true
	case "route.gateway-id":
		return one("local"), true
	case "route.origin":
		return one("CreateRouteTable"), true
	case "route.state":
		return one("active"), true
	}
	return tagValues(nil, name)
}

// blocksOf are the prefixes of one family.
func blocksOf(list []netip.Prefix, four bool) (out []string) {
	for _, p := range list {
		if p.Addr().Is4() == four {
			out = append(out, p.String())
		}
	}
	return out
}

func (c *call) typeValues(t *ec2.Type, name string) ([]string, bool) {
	switch name {
	case "instance-type":
		return one(t.Name), true
	case "bare-metal":
		return one(strconv.FormatBool(t.Hypervisor == "")), true
	case "hypervisor":
		return one(t.Hypervisor), true
	case "processor-info.supported-architecture":
		return one(t.Arch), true
	case "vcpu-info.default-vcpus":
		return one(strconv.Itoa(t.VCPUs)), true
	case "memory-info.size-in-mib":
		return one(strconv.Itoa(t.MemoryMiB)), true
	case "network-info.maximum-network-interfaces":
		return one(strconv.Itoa(t.MaximumENIs())), true
	case "network-info.maximum-network-cards":
		return one(strconv.Itoa(max(t.Cards, 1))), true
	case "network-info.ipv4-addresses-per-interface":
		return one(strconv.Itoa(t.IPv4PerENI)), true
	case "network-info.ipv6-addresses-per-interface":
		return one(strconv.Itoa(t.IPv6PerENI)), true
	case "network-info.ipv6-supported":
		return one(strconv.FormatBool(t.IPv6PerENI > 0)), true
	}
	return nil, false
}

// tagValues are the filters tag:KEY and tag-key.
func tagValues(tags []ec2.Tag, name string) ([]string, bool) {
	key, ok := strings.CutPrefix(name, "tag:")
	if (!ok || key == "") && name != "tag-key" {
		return nil, false
	}
	var out []string
	for _, t := range tags {
		switch {
		case name == "tag-key":
			out = append(out, t.Key)
		case t.Key == key:
			out = append(out, t.Value)
		}
	}
	return out, true
}

func one(s string) []string { return []string{s} }

// text is an address, "" for none.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func texts(list []netip.Addr) []string {
	out := make([]string, 0, len(list))
	for _, a := range list {
		out = append(out, text(a))
	}
	return out
}

// block is a prefix, nothing for none.
func block(p netip.Prefix) []string {
	if !p.IsValid() {
		return nil
	}
	return one(p.String())
}

func blocks(list []netip.Prefix) (out []string) {
	for _, p := range list {
		out = append(out, block(p)...)
	}
	return out
}
