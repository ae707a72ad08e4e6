package ec2

import (
	"testing"
	"time"
)

// A subnet is deleted when nobody has an address of it: neither an interface, attached or not, nor something else in the VPC.
func TestDeleteSubnet(t *testing.T) {
	w := newWorld(t)
	ask := Request{Action: DeleteSubnet, Subnet: tiny}
	e := w.create(tiny, 0)
	w.refused(ask, "DependencyViolation")
	w.do(Request{Action: DeleteNetworkInterface, ENI: e})
	w.DrainSubnet(w.now, tiny, 9)
	w.refused(ask, "DependencyViolation")
	w.DrainSubnet(w.now, tiny, 11)
	if left := w.FreeAddresses(tiny); left != 11 {
		t.Fatalf("%d addresses are free, expected 11", left)
	}
	w.do(ask)
	w.refused(ask, "InvalidSubnetID.NotFound")
	w.refused(Request{Action: DescribeSubnets, Subnet: tiny}, "InvalidSubnetID.NotFound")
	w.refused(Request{Action: CreateNetworkInterface, Subnet: tiny}, "InvalidSubnetID.NotFound")
	w.refused(Request{Action: CreateTags, Resources: []string{string(tiny)}, Tags: []Tag{{"k", "v"}}}, "InvalidSubnetID.NotFound")
	if n := len(w.do(Request{Action: DescribeSubnets}).Subnets); n != 2 || len(w.Subnets()) != 2 {
		t.Errorf("%d subnets are described, and there are %d: expected 2", n, len(w.Subnets()))
	}
	w.refused(Request{Action: DeleteSubnet}, "MissingParameter")
}

// The subnet of an instance that has ended can be deleted; who launches into none in particular is not given one that is gone.
func TestDeleteSubnetOfInstance(t *testing.T) {
	w := newWorld(t)
	i := w.launch("m5.large", "")
	ask := Request{Action: DeleteSubnet, Subnet: plenty}
	w.refused(ask, "DependencyViolation")
	w.Terminate(w.now, i)
	w.do(ask)
	if _, err := w.Launch(w.now, LaunchSpec{Type: "m5.large"}); err == nil {
		t.Error("an instance was launched into a subnet that is gone")
	}
	w.do(Request{Action: DescribeInstances, Instance: i})
	w.wait(time.Hour)
}

// A replica that is behind still shows a subnet that was deleted.
func TestDeletedSubnetIsShownForAWhile(t *testing.T) {
	w := newWorld(t)
	w.SetLag(Lag{Available: Always(2 * time.Second)})
	w.wait(time.Minute)
	w.do(Request{Action: DeleteSubnet, Subnet: tiny})
	w.wait(time.Second)
	w.do(Request{Action: DescribeSubnets, Subnet: tiny})
	w.wait(time.Second)
	w.refused(Request{Action: DescribeSubnets, Subnet: tiny}, "InvalidSubnetID.NotFound")
}
