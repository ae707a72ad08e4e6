package server

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/fakes/ec2"
)

const absent = "eni-00000000000000000"

// TestRefusalsReachTheSDKWithCodeAndStatus: what the model refuses, and the daemon tells apart by its code, is what
// the SDK reports, with the status that EC2 has.
func TestRefusalsReachTheSDKWithCodeAndStatus(t *testing.T) {
	type ask = func(w *world) error
	fill := func(w *world) { // what an m5.large can carry: three interfaces
		w.attach(w.create(plenty, 0), 1)
		w.attach(w.create(plenty, 0), 2)
	}
	create := func(w *world, s string, n int32) error {
		_, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: &s, SecondaryPrivateIpAddressCount: &n})
		return err
	}
	attach := func(w *world, id string, device int32) error {
		_, err := w.AttachNetworkInterface(w.ctx(), &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: w.instance(), DeviceIndex: &device})
		return err
	}
	assign := func(w *world, id string, n int32) error {
		_, err := w.AssignPrivateIpAddresses(w.ctx(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: &n})
		return err
	}
	detach := func(w *world, id string) error {
		_, err := w.DetachNetworkInterface(w.ctx(), &sdk.DetachNetworkInterfaceInput{AttachmentId: &id})
		return err
	}
	remove := func(w *world, id string) error {
		_, err := w.DeleteNetworkInterface(w.ctx(), &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
		return err
	}
	subnets := func(w *world) error {
		_, err := w.DescribeSubnets(w.ctx(), &sdk.DescribeSubnetsInput{})
		return err
	}
	failing := func(f ec2.Fault) ask {
		return func(w *world) error {
			w.fault(f)
			return subnets(w)
		}
	}
	rows := []struct {
		code   string
		status int
		ask    ask
	}{
		{"InvalidSubnetID.NotFound", 400, func(w *world) error { return create(w, "subnet-none", 0) }},
		{"InsufficientFreeAddressesInSubnet", 400, func(w *world) error { return create(w, string(tiny), 11) }},
		{"PrivateIpAddressLimitExceeded", 400, func(w *world) error { return create(w, string(plenty), 50) }},
		{"NetworkInterfaceLimitExceeded", 400, func(w *world) error { fill(w); return create(w, string(plenty), 0) }},
		{"InvalidNetworkInterfaceID.NotFound", 400, func(w *world) error { return attach(w, absent, 1) }},
		{"InvalidNetworkInterfaceId.Malformed", 400, func(w *world) error { return attach(w, "eni-x", 1) }},
		{"InvalidInstanceID.NotFound", 400, func(w *world) error {
			_, err := w.AttachNetworkInterface(w.ctx(), &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: aws.String(w.create(plenty, 0)), InstanceId: aws.String("i-00000000000000000"), DeviceIndex: aws.Int32(1)})
			return err
		}},
		{"InvalidParameterValue", 400, func(w *world) error { return attach(w, w.create(plenty, 0), 0) }},
		{"InvalidNetworkInterface.InUse", 400, func(w *world) error {
			id := w.create(plenty, 0)
			w.attach(id, 1)
			return attach(w, id, 2)
		}},
		{"AttachmentLimitExceeded", 400, func(w *world) error {
			w.attach(w.create(plenty, 0), 1)
			w.attach(w.create(tiny, 0), 2)
			return overfull(w)
		}},
		{"InvalidInterface.IpAddressLimitExceeded", 400, func(w *world) error { return attach(w, w.create(plenty, 10), 1) }},
		{"PrivateIpAddressLimitExceeded", 400, func(w *world) error {
			id := w.create(plenty, 8)
			w.attach(id, 1)
			return assign(w, id, 2)
		}},
		{"InsufficientFreeAddressesInSubnet", 400, func(w *world) error { return assign(w, w.create(tiny, 10), 1) }},
		{"InvalidAttachmentID.NotFound", 400, func(w *world) error { return detach(w, "eni-attach-00000000000000000") }},
		{"OperationNotPermitted", 400, func(w *world) error { return detach(w, primaryAttachment(w)) }},
		{"InvalidParameterValue", 400, func(w *world) error {
			id := w.create(plenty, 0)
			w.attach(id, 1)
			return remove(w, id)
		}},
		{"InvalidNetworkInterfaceID.NotFound", 400, func(w *world) error { return remove(w, absent) }},
		{"InvalidParameterValue", 400, func(w *world) error {
			_, err := w.UnassignPrivateIpAddresses(w.ctx(), &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: aws.String(w.create(plenty, 0)), PrivateIpAddresses: []string{"10.0.3.3"}})
			return err
		}},
		{"RequestLimitExceeded", 503, func(w *world) error {
			w.fault(ec2.Fault{Kind: ec2.ThrottleBurst})
			return subnets(w)
		}},
		{"UnauthorizedOperation", 403, failing(ec2.Fault{Kind: ec2.DenyPermission})},
		{"Unavailable", 503, failing(ec2.Fault{Kind: ec2.Down})},
		{"InternalError", 500, failing(ec2.Fault{Kind: ec2.Fail})},
		{"AuthFailure", 401, failing(ec2.Fault{Kind: ec2.Fail, Code: "AuthFailure"})},
		{"RequestExpired", 400, failing(ec2.Fault{Kind: ec2.Fail, Code: "RequestExpired"})},
		{"InsufficientCidrBlocks", 400, failing(ec2.Fault{Kind: ec2.Fail, Code: "InsufficientCidrBlocks"})},
		{"DryRunOperation", 412, func(w *world) error {
			_, err := w.DeleteNetworkInterface(w.ctx(), &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(absent), DryRun: aws.Bool(true)})
			return err
		}},
		{"UnauthorizedOperation", 403, func(w *world) error {
			w.fault(ec2.Fault{Kind: ec2.DenyPermission})
			_, err := w.DescribeNetworkInterfaces(w.ctx(), &sdk.DescribeNetworkInterfacesInput{DryRun: aws.Bool(true)})
			return err
		}},
		{"UnsupportedOperation", 400, func(w *world) error {
			_, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), InterfaceType: types.NetworkInterfaceCreationTypeEfa})
			return err
		}},
		{"UnsupportedOperation", 400, func(w *world) error {
			_, err := w.DescribeKeyPairs(w.ctx(), &sdk.DescribeKeyPairsInput{})
			return err
		}},
		{"InvalidParameterValue", 400, func(w *world) error {
			_, err := w.CreateTags(w.ctx(), &sdk.CreateTagsInput{Resources: []string{w.create(plenty, 0)}, Tags: []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("")}}})
			return err
		}},
	}
	for _, r := range rows {
		t.Run(r.code, func(t *testing.T) {
			w := newWorld(t, func(c *ec2.Config) { c.ENIQuota = 5 })
			if r.code == "NetworkInterfaceLimitExceeded" {
				w = newWorld(t, func(c *ec2.Config) { c.ENIQuota = 3 })
			}
			w.refused("the call", r.ask(w), r.code, r.status)
		})
	}
}

// overfull attaches to an instance that has all that it can have.
func overfull(w *world) error {
	_, err := w.AttachNetworkInterface(w.ctx(), &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: aws.String(w.create(plenty, 0)), InstanceId: w.instance(), DeviceIndex: aws.Int32(3)})
	return err
}

// primaryAttachment is the attachment of the instance's own interface.
func primaryAttachment(w *world) (id string) {
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		e, _ := c.ENI(c.AttachedENIs(w.inst)[0])
		id = e.Attachment
	})
	return id
}

// TestDryRunChangesNothing changes nothing.
func TestDryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	_, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), DryRun: aws.Bool(true)})
	w.refused("a creation", err, "DryRunOperation", 412)
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		if n := c.CountENIs(ec2.Available); n != 0 {
			t.Errorf("it made %d interfaces", n)
		}
	})
}

// TestBackendKnowsTheSigner: the Backend knows who calls.
func TestBackendKnowsTheSigner(t *testing.T) {
	w := newWorld(t)
	w.create(plenty, 0)
	w.b.mu.Lock()
	signer, caller := w.b.signer, w.b.last.Caller
	w.b.mu.Unlock()
	if signer.Region != "us-west-2" || signer.Token != "session" || caller != w.inst {
		t.Errorf("found %+v, caller %s; expected the caller %s", signer, caller, w.inst)
	}
}
