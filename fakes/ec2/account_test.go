package ec2

import (
	"fmt"
	"testing"
)

func TestAccountAttributes(t *testing.T) {
	w := newWorld(t)
	if n := len(w.do(Request{Action: DescribeAccountAttributes}).Account); n != 6 {
		t.Errorf("found %d attributes, expected 6", n)
	}
	found := w.do(Request{Action: DescribeAccountAttributes, Attributes: []string{"default-vpc", "vpc-max-security-groups-per-interface"}}).Account
	if s := fmt.Sprint(found); s != "[{default-vpc none} {vpc-max-security-groups-per-interface 5}]" {
		t.Errorf("found %s", s)
	}
	w.refused(Request{Action: DescribeAccountAttributes, Attributes: []string{"default-vpc", "colour"}}, "InvalidParameterValue")
}

// A VPC has one route table, whose routes follow its CIDRs.
func TestRouteTables(t *testing.T) {
	w := newWorld(t)
	ask := func(ids ...string) []RouteTable {
		return w.do(Request{Action: DescribeRouteTables, RouteTables: ids}).RouteTables
	}
	one := ask()
	if len(one) != 1 || one[0].VPC != w.VPCID() || fmt.Sprint(one[0].Local) != "[10.0.0.0/16 2001:db8:0:100::/56]" {
		t.Fatalf("found %+v", one)
	}
	w.AddCIDR(w.now, "", cidr("10.1.0.0/16"))
	if s := fmt.Sprint(ask(one[0].ID)[0].Local); s != "[10.0.0.0/16 10.1.0.0/16 2001:db8:0:100::/56]" {
		t.Errorf("found %s", s)
	}
	w.refused(Request{Action: DescribeRouteTables, RouteTables: []string{one[0].ID, "rtb-00000000"}}, "InvalidRouteTableID.NotFound")
	w.refused(Request{Action: DescribeVpcAttribute}, "MissingParameter")
	w.refused(Request{Action: DescribeVpcAttribute, VPCs: []string{"vpc-00000000"}}, "InvalidVpcID.NotFound")
}

// A replica that is behind shows an attribute as it was, and does not know an interface that is too young.
func TestENIAttribute(t *testing.T) {
	w := newWorld(t)
	e := w.create(plenty, 0)
	r := Request{Action: DescribeNetworkInterfaceAttribute, ENI: e}
	if got := w.do(r).ENI; got.ID != e || got.Subnet != plenty {
		t.Errorf("found %+v", got)
	}
	w.refused(Request{Action: DescribeNetworkInterfaceAttribute}, "MissingParameter")
	w.SetLag(Lag{Describe: Always(1 << 40)})
	w.refused(r, "InvalidNetworkInterfaceID.NotFound")
}
