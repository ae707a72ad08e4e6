package ec2

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

const (
	noInstance = InstanceID("i-00000000000000000")
	image      = "ami-0123456789abcdef0"
)

func runOf(s SubnetID, least, most int) Request {
	return Request{Action: RunInstances, Type: "m5.large", Image: image, Subnet: s, MinCount: least, MaxCount: most}
}

// otherVPC is a subnet in zone a of a second VPC, with a group of its own, sg-other.
const otherVPC = SubnetID("subnet-other")

// twoVPCs makes the world anew, with a second VPC that overlaps the first, and gives its m5.large.
func (w *world) twoVPCs(multi bool) InstanceID {
	w.t.Helper()
	cfg := exact(testConfig())
	cfg.MultiVPC = multi
	cfg.VPCs = append(cfg.VPCs, VPC{ID: "vpc-2"}) // 10.0.0.0/16 as well
	cfg.Subnets = append(cfg.Subnets, SubnetConfig{ID: otherVPC, VPC: "vpc-2", CIDR: cfg.Subnets[0].CIDR})
	cfg.SecurityGroups = append(cfg.SecurityGroups, SecurityGroup{ID: "sg-other", VPC: "vpc-2"})
	must.Do(w.t, cfg.Validate())
	w.Cloud = New(cfg, 7)
	return w.launch("m5.large", plenty)
}

// stoppedWith stops an m5.large and starts it under a quota of processors.
func (w *world) stoppedWith(i InstanceID, quota int) Request {
	w.t.Helper()
	w.do(Request{Action: StopInstances, Instance: i})
	w.wait(time.Minute)
	w.cfg.VCPUQuota = quota
	return Request{Action: StartInstances, Instance: i}
}

// One row per way to be refused that is about instances, network cards, networks and tags.
func TestInstanceCodes(t *testing.T) { checkCodes(t, instanceRows()) }

func instanceRows() []codeRow {
	rows := []codeRow{
		{"attach: malformed instance", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: "i-0", DeviceIndex: 1}
		}, "InvalidInstanceID.Malformed"},
		{"attach: a card that the type has not", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1, NetworkCard: 1}
		}, "InvalidParameterValue"},
		{"attach: negative card", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1, NetworkCard: -1}
		}, "InvalidParameterValue"},
		{"attach: the second card", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: w.launch("p5.48xlarge", plenty), NetworkCard: 1}
		}, ""},
		{"attach: the same index on another card", func(w *world, i InstanceID) Request {
			p5 := w.launch("p5.48xlarge", plenty)
			w.attach(w.create(plenty, 0), p5, 1)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p5, NetworkCard: 1, DeviceIndex: 1}
		}, ""},
		{"attach: the same index on the same card", func(w *world, i InstanceID) Request {
			p5 := w.launch("p5.48xlarge", plenty)
			w.do(Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p5, NetworkCard: 1, DeviceIndex: 1})
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p5, NetworkCard: 1, DeviceIndex: 1}
		}, "InvalidParameterValue"},
		{"attach: one card is full", func(w *world, i InstanceID) Request {
			p5 := w.launch("p5.48xlarge", plenty)
			w.attach(w.create(plenty, 0), p5, 1)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p5, DeviceIndex: 2}
		}, "AttachmentLimitExceeded"},
		{"attach: one card is full, another is not", func(w *world, i InstanceID) Request {
			p5 := w.launch("p5.48xlarge", plenty)
			w.attach(w.create(plenty, 0), p5, 1)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p5, DeviceIndex: 2, NetworkCard: 31}
		}, ""},
		{"attach: other VPC", func(w *world, _ InstanceID) Request {
			there := w.twoVPCs(false)
			return Request{Action: AttachNetworkInterface, ENI: w.create(otherVPC, 0), Instance: there, DeviceIndex: 1}
		}, "InvalidParameterValue"},
		{"attach: other VPC, where that is allowed", func(w *world, _ InstanceID) Request {
			there := w.twoVPCs(true)
			return Request{Action: AttachNetworkInterface, ENI: w.create(otherVPC, 0), Instance: there, DeviceIndex: 1}
		}, ""},
		{"attach: pending instance", func(w *world, i InstanceID) Request {
			p := w.do(runOf(plenty, 1, 1))
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: p.Instances[0].ID, DeviceIndex: 1}
		}, "IncorrectInstanceState"},
		{"attach: instance that is shutting down", func(w *world, i InstanceID) Request {
			w.do(Request{Action: TerminateInstances, Instance: i})
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, "IncorrectInstanceState"},
		{"attach: instance terminated long ago", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			w.wait(time.Hour)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, "InvalidInstanceID.NotFound"},
		{"create: a group of another VPC", func(w *world, i InstanceID) Request {
			w.twoVPCs(false)
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: []string{"sg-other"}}
		}, "InvalidParameterValue"},
		{"create: the same tag twice", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Tags: []Tag{{"a", "1"}, {"a", "1"}}}
		}, "InvalidParameterValue"},
	}
	rows = append(rows, modifyRows()...)
	rows = append(rows, runRows()...)
	rows = append(rows, lifeRows()...)
	return append(rows, resourceRows()...)
}

func modifyRows() []codeRow {
	modify := func(change func(w *world, r *Request)) func(*world, InstanceID) Request {
		return func(w *world, _ InstanceID) Request {
			r := Request{Action: ModifyNetworkInterfaceAttribute, ENI: w.create(plenty, 0)}
			change(w, &r)
			return r
		}
	}
	return []codeRow{
		{"modify: description to nothing", modify(func(w *world, r *Request) { r.Attribute = AttributeDescription }), ""},
		{"modify: source/destination check", modify(func(w *world, r *Request) { r.Attribute = AttributeSourceDestCheck }), ""},
		{"modify: groups", modify(func(w *world, r *Request) { r.SecurityGroups = []string{"sg-1", "sg-2"} }), ""},
		{"modify: no attribute", modify(func(w *world, r *Request) {}), "InvalidParameterCombination"},
		{"modify: an attribute that is none", modify(func(w *world, r *Request) { r.Attribute = 77 }), "InvalidParameterValue"},
		{"modify: groups, but none", modify(func(w *world, r *Request) { r.Attribute = AttributeGroups }), "MissingParameter"},
		{"modify: attachment, but none", modify(func(w *world, r *Request) { r.Attribute = AttributeAttachment }), "MissingParameter"},
		{"modify: attachment that is over", modify(func(w *world, r *Request) { r.Attachment = "eni-attach-00000000000000000" }),
			"InvalidAttachmentID.NotFound"},
		{"modify: one attribute named, fields of another", modify(func(w *world, r *Request) {
			r.Attribute, r.SecurityGroups = AttributeDescription, []string{"sg-1"}
		}), "InvalidParameterCombination"},
		{"modify: too many groups", modify(func(w *world, r *Request) { r.SecurityGroups = w.SecurityGroups() }),
			"SecurityGroupsPerInterfaceLimitExceeded"},
		{"modify: malformed group", modify(func(w *world, r *Request) { r.SecurityGroups = []string{"default"} }), "InvalidGroupId.Malformed"},
		{"modify: a group of another VPC", func(w *world, i InstanceID) Request {
			w.twoVPCs(false)
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: w.create(plenty, 0), SecurityGroups: []string{"sg-other"}}
		}, "InvalidParameterValue"},
	}
}

func runRows() []codeRow {
	run := func(change func(w *world, r *Request)) func(*world, InstanceID) Request {
		return func(w *world, _ InstanceID) Request {
			r := runOf(plenty, 1, 1)
			change(w, &r)
			return r
		}
	}
	return []codeRow{
		{"run", run(func(w *world, r *Request) { r.SecondaryCount, r.Tags = 9, []Tag{{"a", "b"}} }), ""},
		{"run: no image", run(func(w *world, r *Request) { r.Image = "" }), "MissingParameter"},
		{"run: malformed image", run(func(w *world, r *Request) { r.Image = "ubuntu" }), "InvalidAMIID.Malformed"},
		{"run: no type", run(func(w *world, r *Request) { r.Type = "" }), "MissingParameter"},
		{"run: unknown type", run(func(w *world, r *Request) { r.Type = "z9.huge" }), "InvalidParameterValue"},
		{"run: no counts", run(func(w *world, r *Request) { r.MinCount = 0 }), "MissingParameter"},
		{"run: no largest count", run(func(w *world, r *Request) { r.MaxCount = 0 }), "MissingParameter"},
		{"run: negative count", run(func(w *world, r *Request) { r.MinCount = -1 }), "InvalidParameterValue"},
		{"run: more at least than at most", run(func(w *world, r *Request) { r.MinCount = 2 }), "InvalidParameterValue"},
		{"run: more than a call may", run(func(w *world, r *Request) {
			w.cfg.Throttle.Resources[RunInstances] = Bucket{5000, 1}
			r.MinCount, r.MaxCount = 1001, 1001
		}), "InstanceLimitExceeded"},
		{"run: no subnet", run(func(w *world, r *Request) { r.Subnet = "" }), "VPCIdNotSpecified"},
		{"run: unknown subnet", run(func(w *world, r *Request) { r.Subnet = "subnet-x" }), "InvalidSubnetID.NotFound"},
		{"run: unknown group", run(func(w *world, r *Request) { r.SecurityGroups = []string{"sg-x"} }), "InvalidGroup.NotFound"},
		{"run: a group of another VPC", func(w *world, i InstanceID) Request {
			w.twoVPCs(false)
			r := runOf(plenty, 1, 1)
			r.SecurityGroups = []string{"sg-other"}
			return r
		}, "InvalidParameter"},
		{"run: AWS's own tag", run(func(w *world, r *Request) { r.ENITags = []Tag{{"aws:x", ""}} }), "InvalidParameterValue"},
		{"run: more addresses than the type has", run(func(w *world, r *Request) { r.SecondaryCount = 10 }), "PrivateIpAddressLimitExceeded"},
		{"run: negative addresses", run(func(w *world, r *Request) { r.SecondaryCount = -1 }), "InvalidParameterValue"},
		{"run: a chosen address", run(func(w *world, r *Request) { r.Addresses = ips("10.0.0.77") }), ""},
		{"run: a chosen address that is taken", run(func(w *world, r *Request) { r.Addresses = ips("10.0.0.4") }), "InvalidIPAddress.InUse"},
		{"run: a chosen address elsewhere", run(func(w *world, r *Request) { r.Addresses = ips("10.0.1.7") }), "InvalidParameterValue"},
		{"run: one address for two", run(func(w *world, r *Request) { r.Addresses, r.MaxCount = ips("10.0.0.77"), 2 }),
			"InvalidParameterCombination"},
		{"run: fewer addresses than instances", run(func(w *world, r *Request) { r.Subnet, r.MinCount, r.MaxCount = tiny, 12, 12 }),
			"InsufficientFreeAddressesInSubnet"},
		{"run: as many as there are addresses", run(func(w *world, r *Request) { r.Subnet, r.MaxCount = tiny, 12 }), ""},
		{"run: quota of interfaces", run(func(w *world, r *Request) { w.cfg.ENIQuota = 1 }), "NetworkInterfaceLimitExceeded"},
		{"run: quota of processors", run(func(w *world, r *Request) { w.cfg.VCPUQuota = 3 }), "VcpuLimitExceeded"},
		{"run: quota of processors, exactly", run(func(w *world, r *Request) { w.cfg.VCPUQuota = 4 }), ""},
		{"run: no capacity", run(func(w *world, r *Request) { w.SetCapacity([]Capacity{{"m5.large", "us-west-2a", 1}}) }),
			"InsufficientInstanceCapacity"},
		{"run: no capacity for another type", run(func(w *world, r *Request) { w.SetCapacity([]Capacity{{"m5.xlarge", "", 0}}) }), ""},
		{"run: no capacity in another zone", run(func(w *world, r *Request) { w.SetCapacity([]Capacity{{"", "us-west-2b", 0}}) }), ""},
		{"run: not offered", run(func(w *world, r *Request) { w.SetCapacity([]Capacity{{"m5.large", "", -1}}) }), "Unsupported"},
		{"run: no capacity, by a fault", run(func(w *world, r *Request) {
			w.Fault(Fault{Kind: Fail, Action: RunInstances, Code: "InsufficientInstanceCapacity"})
		}), "InsufficientInstanceCapacity"},
		{"run: same token, same parameters", run(func(w *world, r *Request) { r.ClientToken = "t"; w.do(*r) }), ""},
		{"run: same token, other parameters", run(func(w *world, r *Request) { r.ClientToken = "t"; w.do(*r); r.MaxCount = 2 }),
			"IdempotentParameterMismatch"},
		{"run: the token of an interface", run(func(w *world, r *Request) {
			w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t"})
			r.ClientToken = "t"
		}), ""},
		{"run: dry", run(func(w *world, r *Request) { r.DryRun = true }), "DryRunOperation"},
	}
}

func lifeRows() []codeRow {
	return []codeRow{
		{"terminate", func(w *world, i InstanceID) Request { return Request{Action: TerminateInstances, Instance: i} }, ""},
		{"terminate: nothing", plain(Request{Action: TerminateInstances}), "MissingParameter"},
		{"terminate: one of two is unknown", func(w *world, i InstanceID) Request {
			return Request{Action: TerminateInstances, Instances: []InstanceID{i, noInstance}}
		}, "InvalidInstanceID.NotFound"},
		{"terminate: malformed", func(w *world, i InstanceID) Request {
			return Request{Action: TerminateInstances, Instances: []InstanceID{i, "web-1"}}
		}, "InvalidInstanceID.Malformed"},
		{"terminate: twice", func(w *world, i InstanceID) Request {
			w.do(Request{Action: TerminateInstances, Instance: i})
			return Request{Action: TerminateInstances, Instance: i}
		}, ""},
		{"terminate: already terminated", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: TerminateInstances, Instance: i}
		}, ""},
		{"terminate: forgotten", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			w.wait(time.Hour)
			return Request{Action: TerminateInstances, Instance: i}
		}, "InvalidInstanceID.NotFound"},
		{"stop: nothing", plain(Request{Action: StopInstances}), "MissingParameter"},
		{"stop: unknown", plain(Request{Action: StopInstances, Instance: noInstance}), "InvalidInstanceID.NotFound"},
		{"stop: terminated", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: StopInstances, Instance: i}
		}, "IncorrectInstanceState"},
		{"start: terminated", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: StartInstances, Instance: i}
		}, "IncorrectInstanceState"},
		{"start: quota of processors", func(w *world, i InstanceID) Request { return w.stoppedWith(i, 1) }, "VcpuLimitExceeded"},
		{"start: quota of processors, exactly", func(w *world, i InstanceID) Request { return w.stoppedWith(i, 2) }, ""},
		{"reboot", func(w *world, i InstanceID) Request { return Request{Action: RebootInstances, Instance: i} }, ""},
		{"reboot: nothing", plain(Request{Action: RebootInstances}), "MissingParameter"},
		{"reboot: unknown", plain(Request{Action: RebootInstances, Instance: noInstance}),
			"InvalidInstanceID.NotFound"},
		{"reboot: terminated is ignored", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: RebootInstances, Instance: i}
		}, ""},
		{"reboot: pending", func(w *world, i InstanceID) Request {
			return Request{Action: RebootInstances, Instances: []InstanceID{i, w.do(runOf(plenty, 1, 1)).Instances[0].ID}}
		}, "IncorrectState"},
		{"describe instances: malformed", plain(Request{Action: DescribeInstances, Instance: "i-x"}),
			"InvalidInstanceID.Malformed"},
		{"describe instances: one of two is unknown", func(w *world, i InstanceID) Request {
			return Request{Action: DescribeInstances, Instances: []InstanceID{i, noInstance}}
		}, "InvalidInstanceID.NotFound"},
		{"describe instances: terminated", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: DescribeInstances, Instances: []InstanceID{i}}
		}, ""},
		{"describe instances: terminated an hour ago", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			w.wait(time.Hour)
			return Request{Action: DescribeInstances, Instances: []InstanceID{i}}
		}, "InvalidInstanceID.NotFound"},
	}
}

// resourceRows are about networks, groups and tags.
func resourceRows() []codeRow {
	tag := func(id string, tags ...Tag) func(*world, InstanceID) Request {
		return func(*world, InstanceID) Request {
			return Request{Action: CreateTags, Resources: []string{id}, Tags: tags}
		}
	}
	describe := func(r Request) func(*world, InstanceID) Request {
		return func(*world, InstanceID) Request { return r }
	}
	a := Tag{"a", "b"}
	return []codeRow{
		{"describe VPCs: unknown", describe(Request{Action: DescribeVpcs, VPCs: []string{"vpc-0123456789abcdef0"}}), "InvalidVpcID.NotFound"},
		{"describe VPCs: malformed", describe(Request{Action: DescribeVpcs, VPCs: []string{"main"}}), "InvalidVpcId.Malformed"},
		{"describe VPCs: nothing's name", describe(Request{Action: DescribeVpcs, VPCs: []string{""}}), "InvalidVpcId.Malformed"},
		{"describe groups", describe(Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"sg-2", "sg-1"}}), ""},
		{"describe groups: one of two is unknown", describe(Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"sg-1", "sg-x"}}),
			"InvalidGroup.NotFound"},
		{"describe groups: malformed", describe(Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"default"}}),
			"InvalidGroupId.Malformed"},
		{"describe subnets: several", describe(Request{Action: DescribeSubnets, Subnets: []SubnetID{far, plenty}}), ""},
		{"describe subnets: one of two is unknown", describe(Request{Action: DescribeSubnets, Subnets: []SubnetID{far, "subnet-x"}}),
			"InvalidSubnetID.NotFound"},
		{"tags: subnet", tag(string(plenty), a), ""},
		{"tags: group", tag("sg-1", a), ""},
		{"tags: unknown group", tag("sg-x", a), "InvalidGroup.NotFound"},
		{"tags: unknown subnet", tag("subnet-x", a), "InvalidSubnetID.NotFound"},
		{"tags: unknown VPC", tag("vpc-x", a), "InvalidVpcID.NotFound"},
		{"tags: unknown instance", tag(string(noInstance), a), "InvalidInstanceID.NotFound"},
		{"tags: no resource's name", tag("web-1", a), "InvalidID"},
		{"tags: empty name", tag("", a), "InvalidID"},
		{"tags: one of two is unknown", func(w *world, i InstanceID) Request {
			return Request{Action: CreateTags, Resources: []string{string(w.AttachedENIs(i)[0]), "vpc-x"}, Tags: []Tag{a}}
		}, "InvalidVpcID.NotFound"},
		{"tags: a key twice", tag("sg-1", a, Tag{"a", "c"}), "InvalidParameterValue"},
		{"tags: the longest key and value", tag("sg-1", Tag{strings.Repeat("ü", 128), strings.Repeat("ü", 256)}), ""},
		{"tags: a key too long", tag("sg-1", Tag{strings.Repeat("k", 129), ""}), "InvalidParameterValue"},
		{"tags: a value too long", tag("sg-1", Tag{"k", strings.Repeat("v", 257)}), "InvalidParameterValue"},
		{"tags: AWS's own on an instance", func(w *world, i InstanceID) Request {
			return Request{Action: CreateTags, Resources: []string{string(i)}, Tags: []Tag{{"aws:autoscaling", "x"}}}
		}, "InvalidParameterValue"},
		{"delete tags", func(w *world, i InstanceID) Request {
			return Request{Action: DeleteTags, Resources: []string{string(i)}, TagKeys: []string{"never there"}}
		}, ""},
		{"delete tags: no resource", plain(Request{Action: DeleteTags, TagKeys: []string{"a"}}), "MissingParameter"},
		{"delete tags: unknown resource", func(w *world, i InstanceID) Request {
			return Request{Action: DeleteTags, Resources: []string{"sg-1", string(noInstance)}, TagKeys: []string{"a"}}
		}, "InvalidInstanceID.NotFound"},
		{"delete tags: empty key", plain(Request{Action: DeleteTags, Resources: []string{"sg-1"}, Tags: []Tag{{}}}),
			"MissingParameter"},
		{"delete tags: AWS's own", func(w *world, i InstanceID) Request {
			return Request{Action: DeleteTags, Resources: []string{"sg-1"}, TagKeys: []string{"aws:x"}}
		}, "InvalidParameterValue"},
	}
}

// A launch of the world's 12 m5.large in a subnet with room for 11 gives 11.
func TestRunAsManyAsFit(t *testing.T) {
	w := newWorld(t)
	if p := w.do(runOf(tiny, 3, 12)); len(p.Instances) != 11 {
		t.Errorf("%d instances, want the 11 that the subnet has room for", len(p.Instances))
	}
	w.SetCapacity([]Capacity{{"m5.large", "us-west-2a", 15}, {"", "", 13}})
	if p := w.do(runOf(plenty, 1, 5)); len(p.Instances) != 2 {
		t.Errorf("%d instances, want the 2 that the narrower capacity leaves", len(p.Instances))
	}
	w.refused(runOf(plenty, 1, 5), codeNoCapacity)
}

func ips(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, ip(s))
	}
	return out
}
