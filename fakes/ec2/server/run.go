package server

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
)

// run takes what a new instance is made of. The model has no images, disks, keys or profiles: an image must be named, as the API
// wants it, and may be any; the others are refused unless they say what is so anyway.
func (c *call) run(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	r.Image = q.identifier("InvalidAMIID", "ami-", q.required("ImageId"))
	r.Type = q.required("InstanceType")
	q.required("MinCount")
	q.required("MaxCount")
	r.MinCount = q.number("MinCount", 1, most)
	if r.MaxCount = q.number("MaxCount", 1, most); r.MaxCount < r.MinCount {
		q.fail(bad("InvalidParameterValue", "Value for parameter maxCount must not be smaller than minCount"))
	}
	c.clientToken(q)
	c.runNetwork(q)
	c.runTags(q)
	for _, same := range [...][2]string{
		{"DisableApiStop", "false"}, {"DisableApiTermination", "false"}, {"EbsOptimized", "false"}, {"Monitoring.Enabled", "false"},
		{"Placement.Tenancy", "default"}, {"Ipv6AddressCount", "0"}, {"EnablePrimaryIpv6", "false"}, {"HibernationOptions.Configured", "false"},
		{"EnclaveOptions.Enabled", "false"},
	} {
		q.only(same[0], same[1])
	}
	q.without("AdditionalInfo", "BlockDeviceMapping", "CapacityReservationSpecification", "CpuOptions", "CreditSpecification", "ElasticGpuSpecification",
		"ElasticInferenceAccelerator", "EnclaveOptions", "HibernationOptions", "IamInstanceProfile", "InstanceInitiatedShutdownBehavior", "InstanceMarketOptions",
		"Ipv6Address", "KernelId", "KeyName", "LaunchTemplate", "LicenseSpecification", "MaintenanceOptions", "MetadataOptions", "Monitoring",
		"NetworkInterface", "NetworkPerformanceOptions", "Operator", "Placement", "PrivateDnsNameOptions", "RamdiskId", "SecondaryInterface",
		"SecurityGroup", "UserData")
}

// runNetwork takes where the primary interface goes: of the instance, or of the interface at device 0, but not of both.
func (c *call) runNetwork(q *form) {
	r := &c.req
	r.Subnet = ec2.SubnetID(q.text("SubnetId"))
	r.SecurityGroups = q.texts("SecurityGroupId")
	if q.find("PrivateIpAddress") >= 0 {
		r.Addresses = []netip.Addr{q.address("PrivateIpAddress")}
	}
	cards := q.members("NetworkInterface")
	if len(cards) == 0 {
		return
	}
	if r.Subnet != "" || len(r.SecurityGroups) > 0 || len(r.Addresses) > 0 {
		q.fail(bad("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request"))
	}
	if len(cards) > 1 {
		q.fail(bad("UnsupportedOperation", "More than one network interface at launch is not modelled: attach them."))
	}
	under := cards[0] + "."
	q.required(under + "DeviceIndex")
	q.only(under+"DeviceIndex", "0")
	q.only(under+"NetworkCardIndex", "0")
	q.only(under+"DeleteOnTermination", "true")
	q.only(under+"AssociatePublicIpAddress", "false")
	q.only(under+"InterfaceType", "interface")
	r.Subnet = ec2.SubnetID(q.text(under + "SubnetId"))
	r.SecurityGroups = q.texts(under + "SecurityGroupId")
	r.SecondaryCount = q.count(under+"SecondaryPrivateIpAddressCount", 0)
	if q.find(under+"PrivateIpAddress") >= 0 {
		r.Addresses = []netip.Addr{q.address(under + "PrivateIpAddress")}
	}
}

// runTags takes the tags of the instances and of their interfaces.
func (c *call) runTags(q *form) {
	r := &c.req
	for _, name := range q.members("TagSpecification") {
		kind, tags := q.required(name+".ResourceType"), q.tags(name+".Tag")
		switch kind {
		case "instance":
			q.once(r.Tags, tags)
			r.Tags = append(r.Tags, tags...)
		case "network-interface":
			q.once(r.ENITags, tags)
			r.ENITags = append(r.ENITags, tags...)
		case "":
		default:
			if slices.Contains([]string{"volume", "spot-instances-request", "elastic-gpu"}, kind) {
				q.fail(bad("UnsupportedOperation", "The resource type "+kind+" is not modelled."))
			}
			q.fail(notTaggable(kind))
		}
	}
}
