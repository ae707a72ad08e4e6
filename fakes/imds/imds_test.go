package imds

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// view is an instance with an interface, a second one with two addresses, and a third whose leaves are not there yet.
func view() *View {
	first, second := "02:00:00:00:00:99", "02:00:00:00:00:11"
	return &View{IMDS: ec2.IMDS{
		Instance: ec2.Instance{ID: "i-0123456789abcdef0", Type: "m5.large", Zone: "us-west-2a", Subnet: "subnet-1", VPC: "vpc-1", PrimaryMAC: first,
			PrimaryAddress: netip.MustParseAddr("10.0.0.4"), VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.1.0.0/16")}},
		Region: "us-west-2",
		ENIs: []ec2.IMDSENI{
			{MAC: first, ENI: "eni-1", SubnetIPv6: netip.MustParsePrefix("2001:db8:0:1::/64"), IPv6: []netip.Addr{netip.MustParseAddr("2001:db8:0:1::7")},
				IPv6Prefixes: []netip.Prefix{netip.MustParsePrefix("2001:db8:0:1:5::/80")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28"), netip.MustParsePrefix("10.0.0.48/28")},
				Subnet: "subnet-1", SubnetCIDR: netip.MustParsePrefix("10.0.0.0/24"), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, Groups: []string{"sg-1", "sg-2"}},
			{MAC: second, ENI: "eni-2", Device: 2, Subnet: "subnet-2", SubnetCIDR: netip.MustParsePrefix("10.1.0.0/24"),
				Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.1.0.4")}, Groups: []string{"sg-1"}},
			{MAC: "02:00:00:00:00:22", Partial: true},
		},
		VPCIPv6: []netip.Prefix{netip.MustParsePrefix("2001:db8::/56")},
		Groups:  []ec2.SecurityGroup{{ID: "sg-1", Name: "nodes"}, {ID: "sg-3", Name: "others"}},
	}, Role: "node", Updated: time.Unix(0, 0), Expires: time.Unix(3600, 0)}
}

func TestGet(t *testing.T) {
	const data, macs = "/latest/meta-data/", "/latest/meta-data/network/interfaces/macs/"
	const one, two, three = macs + "02:00:00:00:00:99/", macs + "02:00:00:00:00:11/", macs + "02:00:00:00:00:22/"
	const missing = "404"
	every := "device-number\ninterface-id\nlocal-hostname\nlocal-ipv4s\nmac\nowner-id\nsecurity-group-ids\nsecurity-groups\nsubnet-id\n" +
		"subnet-ipv4-cidr-block\nvpc-id\nvpc-ipv4-cidr-block\nvpc-ipv4-cidr-blocks"
	all := "device-number\ninterface-id\nipv4-prefix\nipv6-prefix\nipv6s\nlocal-hostname\nlocal-ipv4s\nmac\nowner-id\nsecurity-group-ids\nsecurity-groups\nsubnet-id\n" +
		"subnet-ipv4-cidr-block\nsubnet-ipv6-cidr-blocks\nvpc-id\nvpc-ipv4-cidr-block\nvpc-ipv4-cidr-blocks\nvpc-ipv6-cidr-blocks"
	rows := []struct{ path, want string }{
		{"/", strings.Join(versions[:], "\n")},
		{"/latest", "dynamic\nmeta-data"},
		{"/latest/", "dynamic\nmeta-data"},
		{"/latest/dynamic/", "fws/\ninstance-identity/"},
		{"/latest/dynamic/fws/instance-monitoring", "disabled"},
		{"/latest/dynamic/instance-identity", "document"},
		{"/latest/meta-data/network", "interfaces/"},
		{macs, "02:00:00:00:00:11/\n02:00:00:00:00:22/\n02:00:00:00:00:99/"},
		{data, "ami-id\nami-launch-index\nami-manifest-path\nblock-device-mapping/\nevents/\nhibernation/\nhostname\niam/\nidentity-credentials/\n" +
			"instance-action\ninstance-id\ninstance-life-cycle\ninstance-type\nipv6\nlocal-hostname\nlocal-ipv4\nmac\nnetwork/\nplacement/\nprofile\n" +
			"reservation-id\nsecurity-groups\nservices/\nsystem"},
		{data + "ami-id", "ami-0abcdef1234567890"},
		{data + "block-device-mapping/", "ami\nroot"},
		{data + "events/", "maintenance/"},
		{data + "events/maintenance/scheduled", "[]"},
		{data + "iam/", "info\nsecurity-credentials/"},
		{data + "instance-id", "i-0123456789abcdef0"},
		{data + "instance-life-cycle", "on-demand"},
		{data + "instance-type", "m5.large"},
		{data + "ipv6", "2001:db8:0:1::7"},
		{data + "mac", "02:00:00:00:00:99"},
		{data + "local-ipv4", "10.0.0.4"},
		{data + "local-hostname", "ip-10-0-0-4.us-west-2.compute.internal"},
		{data + "reservation-id", "r-0123456789abcdef0"},
		{data + "security-groups", "nodes\nsg-2"},
		{data + "services/domain", "amazonaws.com"},
		{data + "services/partition", "aws"},
		{data + "system", "nitro"},
		{data + "placement/", "availability-zone\navailability-zone-id\nregion"},
		{data + "placement/availability-zone", "us-west-2a"},
		{data + "placement/availability-zone-id", "usw2-az1"},
		{data + "placement/region", "us-west-2"},
		{data + "iam/security-credentials/", "node"},
		{data + "identity-credentials/ec2/security-credentials/", "ec2-instance"},
		{one, all},
		{strings.TrimSuffix(one, "/"), all},
		{one + "device-number", "0"},
		{one + "ipv4-prefix", "10.0.0.16/28\n10.0.0.48/28"},
		{one + "ipv6-prefix", "2001:db8:0:1:5::/80"},
		{one + "ipv6s", "2001:db8:0:1::7"},
		{one + "subnet-ipv6-cidr-blocks", "2001:db8:0:1::/64"},
		{one + "vpc-ipv6-cidr-blocks", "2001:db8::/56"},
		{two, every},
		{two + "device-number", "2"},
		{two + "interface-id", "eni-2"},
		{two + "local-ipv4s", "10.1.0.5\n10.1.0.4"},
		{two + "subnet-id", "subnet-2"},
		{two + "subnet-ipv4-cidr-block", "10.1.0.0/24"},
		{two + "vpc-id", "vpc-1"},
		{two + "vpc-ipv4-cidr-block", "10.0.0.0/16"},
		{two + "vpc-ipv4-cidr-blocks", "10.0.0.0/16\n10.1.0.0/16"},
		{two + "security-group-ids", "sg-1"},
		{two + "security-groups", "nodes"},
		{two + "owner-id", ec2.Account},
		{two + "mac", "02:00:00:00:00:11"},
		{two + "local-hostname", "ip-10-1-0-5.us-west-2.compute.internal"},

		// An interface whose leaves are not there yet: the folder lists them (ec2-net-utils#38).
		{three, every},
		{three + "device-number", missing},
		{three + "mac", missing},
		{three + "ipv6s", missing},
		{three + "vpc-ipv6-cidr-blocks", missing},

		// What an instance of this kind does not have.
		{one + "network-card", missing},
		{two + "ipv4-prefix", missing},
		{two + "ipv6-prefix", missing},
		{two + "ipv6s", missing},
		{two + "subnet-ipv6-cidr-blocks", missing},
		{two + "vpc-ipv6-cidr-blocks", missing},
		{one + "public-ipv4s", missing},
		{one + "ipv4-associations/", missing},
		{data + "public-ipv4", missing},
		{data + "public-hostname", missing},
		{data + "public-keys/", missing},
		{data + "public-keys/0/openssh-key", missing},
		{data + "product-codes", missing},
		{data + "spot/", missing},
		{data + "spot/instance-action", missing},
		{data + "spot/termination-time", missing},
		{data + "events/recommendations/", missing},
		{data + "events/recommendations/rebalance", missing},
		{data + "autoscaling/target-lifecycle-state", missing},
		{data + "tags/instance", missing},
		{data + "tags/instance/Name", missing},
		{data + "iam/security-credentials/other", missing},
		{"/latest/user-data", missing},
		{"/latest/dynamic/instance-identity/signature", missing},
		{"/latest/dynamic/instance-identity/pkcs7", missing},
		{macs + "02:00:00:00:00:33/", missing},
		{macs + "02:00:00:00:00:33/device-number", missing},

		// A build has what there was when it was released.
		{"/2021-07-15/meta-data/mac", "02:00:00:00:00:99"},
		{"/1.0/", "meta-data"},
		{"/1.0/meta-data/instance-id", "i-0123456789abcdef0"},
		{"/1.0/meta-data/instance-type", missing},
		{"/1.0/dynamic/instance-identity/document", missing},
		{"/2008-02-01/meta-data/", "ami-id\nami-launch-index\nami-manifest-path\nblock-device-mapping/\nhostname\ninstance-id\ninstance-type\n" +
			"local-hostname\nlocal-ipv4\nplacement/\nprofile\nreservation-id\nsecurity-groups"},
		{"/2008-02-01/meta-data/placement/", "availability-zone"},
		{"/2016-04-19/meta-data/network/interfaces/macs/02:00:00:00:00:99/ipv6s", missing},
		{"/2016-06-30/meta-data/network/interfaces/macs/02:00:00:00:00:99/ipv6s", "2001:db8:0:1::7"},
		{"/2021-07-16/meta-data/mac", missing},
		{"/latest2/meta-data/mac", missing},

		// A slash behind a value, as amazon-vpc-cni-k8s asks up to 1.6.
		{data + "mac/", "02:00:00:00:00:99"},
		{data + "placement/availability-zone/", "us-west-2a"},
		{one + "owner-id/", "111122223333"},

		// Paths are literal.
		{data + "mac//", missing},
		{data + "mac/x", missing},
		{data + "instance-identity/document", missing},
		{"//latest/meta-data/mac", missing},
		{"//", missing},
		{"/latest//", missing},
		{"/latest//meta-data/mac", missing},
		{"/latest/meta-data//", missing},
		{"/latest/meta-data/../meta-data/mac", missing},
		{"/latest/meta-data/./mac", missing},
		{"/latest/meta-data/placement/..", missing},
		{"/../latest/meta-data/mac", missing},
		{"/latest/meta-data/%6dac", missing},
		{"/latestmeta-data", missing},
		{"latest/meta-data", missing},
		{"/LATEST/meta-data/mac", missing},
		{macs + strings.ToUpper("02:00:00:00:00:aa"), missing},
	}
	v := view()
	for _, r := range rows {
		p := Get(v, r.path)
		got := p.Text
		if p.Status != 200 {
			got = missing
		}
		if got != r.want || p.Status == 200 && p.Type != "text/plain" {
			t.Errorf("%s: found %q (%s), expected %q", r.path, got, p.Type, r.want)
		}
	}
}

// TestOptionalLeaves: what is there only when there is something to say.
func TestOptionalLeaves(t *testing.T) {
	const data = "/latest/meta-data/"
	at := time.Date(2026, 11, 21, 8, 22, 0, 0, time.UTC)
	terminate := Extras{Spot: true, Interruption: &Interruption{"terminate", at}, Rebalance: at}
	stop := Extras{Interruption: &Interruption{"stop", at}}
	tagged, keyed := Extras{Tags: true}, Extras{KeyName: "mine", Key: "ssh-ed25519 AAAA mine", UserData: "#!/bin/sh\n"}
	events := Extras{Past: []Event{{"instance-event-1", "system-reboot", "[Completed] reboot", "completed", at, at.Add(time.Hour)}}, Lifecycle: "Terminated"}
	for _, r := range []struct {
		extras     Extras
		path, want string
	}{
		{terminate, data + "instance-life-cycle", "spot"},
		{terminate, data + "spot/", "instance-action\ntermination-time"},
		{terminate, data + "spot/instance-action", `{"action":"terminate","time":"2026-11-21T08:22:00Z"}`},
		{terminate, data + "spot/termination-time", "2026-11-21T08:22:00Z"},
		{terminate, data + "events/", "maintenance/\nrecommendations/"},
		{terminate, data + "events/recommendations/rebalance", `{"noticeTime":"2026-11-21T08:22:00Z"}`},
		{terminate, "/2014-02-25/meta-data/spot/termination-time", ""},
		{stop, data + "spot/", "instance-action"},
		{stop, data + "spot/termination-time", ""},
		{events, data + "autoscaling/", "target-lifecycle-state"},
		{events, data + "autoscaling/target-lifecycle-state", "Terminated"},
		{events, data + "events/maintenance/history", "[\n  {\n    \"NotBefore\": \"21 Nov 2026 08:22:00 GMT\",\n    \"Code\": \"system-reboot\",\n" +
			"    \"Description\": \"[Completed] reboot\",\n    \"EventId\": \"instance-event-1\",\n    \"NotAfter\": \"21 Nov 2026 09:22:00 GMT\",\n    \"State\": \"completed\"\n  }\n]"},
		{tagged, data + "tags/", "instance/"},
		{tagged, data + "tags/instance", "Environment\nName"},
		{tagged, data + "tags/instance/Name", "node-0"},
		{tagged, data + "tags/instance/kubernetes.io/cluster/x", ""},
		{tagged, data + "tags/instance/Owner", ""},
		{tagged, "/2021-01-03/meta-data/tags/instance", ""},
		{keyed, data + "public-keys", "0=mine"},
		{keyed, data + "public-keys/0", "openssh-key"},
		{keyed, data + "public-keys/0/openssh-key", "ssh-ed25519 AAAA mine"},
		{keyed, data + "public-keys/1/openssh-key", ""},
		{keyed, data + "public-keys/0=mine/openssh-key", ""},
		{keyed, "/latest", "dynamic\nmeta-data\nuser-data"},
		{keyed, "/latest/user-data", "#!/bin/sh\n"},
	} {
		v := view()
		v.Extras = r.extras
		v.Instance.Tags = []ec2.Tag{{Key: "Name", Value: "node-0"}, {Key: "Environment", Value: "test"}, {Key: "kubernetes.io/cluster/x", Value: "owned"}}
		if p := Get(v, r.path); p.Text != r.want || (p.Status == 200) != (r.want != "") {
			t.Errorf("%s: status %d, %q; expected %q", r.path, p.Status, p.Text, r.want)
		}
	}
}

// TestInterfaceNamesItsNetworkCard: an interface says which network card it is on when there are several.
func TestInterfaceNamesItsNetworkCard(t *testing.T) {
	v := view()
	v.ENIs[1].Card = 1
	for mac, want := range map[string]string{"02:00:00:00:00:99": "0", "02:00:00:00:00:11": "1", "02:00:00:00:00:22": ""} {
		if p := Get(v, "/latest/meta-data/network/interfaces/macs/"+mac+"/network-card"); p.Text != want {
			t.Errorf("%s: %+v, expected %q", mac, p, want)
		}
	}
}

// TestTypeComesFromTheCatalogue: what the catalogue of types knows of the instance's own.
func TestTypeComesFromTheCatalogue(t *testing.T) {
	for _, r := range []struct{ kind, system, arch, card string }{
		{"m5.large", "nitro", "x86_64", ""},
		{"m6g.large", "nitro", "arm64", ""},
		{"p4d.24xlarge", "nitro", "x86_64", "0"},
		{"t2.micro", "xen", "x86_64", ""},
		{"z9.huge", "nitro", "x86_64", ""},
	} {
		v := view()
		v.Instance.Type = r.kind
		card := Get(v, "/latest/meta-data/network/interfaces/macs/02:00:00:00:00:99/network-card").Text
		document := Get(v, "/latest/dynamic/instance-identity/document").Text
		if s := Get(v, "/latest/meta-data/system").Text; s != r.system || card != r.card || !strings.Contains(document, `"architecture": "`+r.arch+`"`) {
			t.Errorf("%s: found %s, card %q, %s; expected %+v", r.kind, s, card, document, r)
		}
	}
}

func TestRegions(t *testing.T) {
	for _, r := range []struct{ region, zone, id, partition, host string }{
		{"us-east-1", "us-east-1c", "use1-az3", "aws", "ip-10-0-0-4.ec2.internal"},
		{"ap-southeast-2", "ap-southeast-2b", "apse2-az2", "aws", "ip-10-0-0-4.ap-southeast-2.compute.internal"},
		{"us-gov-west-1", "us-gov-west-1a", "usgw1-az1", "aws-us-gov", "ip-10-0-0-4.us-gov-west-1.compute.internal"},
		{"cn-north-1", "cn-north-1a", "cnn1-az1", "aws-cn", "ip-10-0-0-4.cn-north-1.compute.internal"},
		{"eu-central-1", "elsewhere", "", "aws", "ip-10-0-0-4.eu-central-1.compute.internal"},
	} {
		v := view()
		v.Region, v.Instance.Zone = r.region, r.zone
		for path, want := range map[string]string{"placement/availability-zone-id": r.id, "services/partition": r.partition, "hostname": r.host} {
			if p := Get(v, "/latest/meta-data/"+path); p.Text != want {
				t.Errorf("%s: %s is %q, expected %q", r.region, path, p.Text, want)
			}
		}
	}
}

// TestEveryListedPathCanBeRead: what a listing names can be read, to the last leaf, and nothing is listed without
// slash that is a folder.
func TestEveryListedPathCanBeRead(t *testing.T) {
	v, read := view(), 0
	v.ENIs = v.ENIs[:2]
	v.Extras = Extras{Tags: true, Lifecycle: "InService", Interruption: &Interruption{Action: "terminate"}, Rebalance: time.Unix(1, 0)}
	v.Instance.Tags = []ec2.Tag{{Key: "Name", Value: "node-0"}}
	v.Sign = func(Signature, string) string { return "signed" }
	var walk func(path string)
	walk = func(path string) {
		p := Get(v, path)
		if p.Status != 200 || p.Text == "" || strings.HasSuffix(p.Text, "\n") {
			t.Errorf("%s: status %d, %q", path, p.Status, p.Text)
			return
		}
		read++
		if bare := path == "/latest/dynamic" || path == "/latest/meta-data"; bare {
			path += "/" // the only folders that are listed without
		} else if !strings.HasSuffix(path, "/") {
			return
		}
		names := strings.Split(p.Text, "\n")
		if !slices.IsSorted(names) {
			t.Errorf("%s is not sorted: %q", path, names)
		}
		for _, name := range names {
			walk(path + name)
		}
	}
	walk("/latest/")
	if read < 75 {
		t.Errorf("only %d paths", read)
	}
}

func TestDocuments(t *testing.T) {
	v := view()
	var d struct{ AccountID, AvailabilityZone, InstanceID, InstanceType, PrivateIP, Region string }
	p := Get(v, "/latest/dynamic/instance-identity/document")
	if err := json.Unmarshal([]byte(p.Text), &d); err != nil || d.AccountID != ec2.Account || d.InstanceID != "i-0123456789abcdef0" || d.Region != "us-west-2" || d.PrivateIP != "10.0.0.4" {
		t.Errorf("%v: %s", err, p.Text)
	}
	var c struct{ Code, AccessKeyID, SecretAccessKey, Token, Expiration string }
	p = Get(v, "/latest/meta-data/iam/security-credentials/node")
	if err := json.Unmarshal([]byte(p.Text), &c); err != nil || c.Code != "Success" || c.Expiration != "1970-01-01T01:00:00Z" || c.SecretAccessKey == "" {
		t.Errorf("%v: %s", err, p.Text)
	}
	if id, ok := InstanceOf(c.AccessKeyID); !ok || id != v.Instance.ID {
		t.Errorf("the key %s is %q's, expected %s", c.AccessKeyID, id, v.Instance.ID)
	}
	var i struct{ InstanceProfileArn, InstanceProfileID string }
	p = Get(v, "/latest/meta-data/iam/info")
	if err := json.Unmarshal([]byte(p.Text), &i); err != nil || i.InstanceProfileArn != "arn:aws:iam::"+ec2.Account+":instance-profile/node" || len(i.InstanceProfileID) != 21 {
		t.Errorf("%v: %s", err, p.Text)
	}
	p = Get(v, "/latest/meta-data/identity-credentials/ec2/security-credentials/ec2-instance")
	if err := json.Unmarshal([]byte(p.Text), &c); err != nil || len(c.AccessKeyID) != 20 {
		t.Errorf("%v: %s", err, p.Text)
	}
	if id, ok := InstanceOf(c.AccessKeyID); ok {
		t.Errorf("the identity's key %s is %s's, which may do what its role may", c.AccessKeyID, id)
	}
	v.Role = ""
	for _, path := range []string{"", "info", "security-credentials/", "security-credentials/node", "security-credentials"} {
		if p := Get(v, "/latest/meta-data/iam/"+path); p.Status != 404 {
			t.Errorf("iam/%s without a role: %+v", path, p)
		}
	}
}

func TestInstanceOf(t *testing.T) {
	for _, key := range []string{"", "ASIA", "AKIA0123456789ABCDEF", "ASIA0123456789ABCDEG", "ASIA0123456789abcdef", "ASIA0123456789ABCDEF0"} {
		if id, ok := InstanceOf(key); ok {
			t.Errorf("%q is %s's", key, id)
		}
	}
	c := ec2.New(ec2.Config{}, 3)
	for range 20 {
		want := must.Get(c.Launch(0, ec2.LaunchSpec{Type: "m5.large"}))(t)
		if id, ok := InstanceOf(AccessKey(want)); !ok || id != want {
			t.Errorf("found %s, expected %s", id, want)
		}
	}
}

// FuzzPath: no path makes Get panic; what is found is not empty, and the path is a literal one.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"", "/", "/latest/meta-data/", "/latest/meta-data/network/interfaces/macs/02:00:00:00:00:22/mac", "/latest/../..", "/latest/meta-data/mac\x00"} {
		f.Add(path)
	}
	v := view()
	f.Fuzz(func(t *testing.T, path string) {
		p := Get(v, path)
		switch {
		case p.Status == 404 && p.Text == "":
		case p.Status != 200 || p.Text == "" || strings.Contains(path, "..") || strings.Contains(path, "//"):
			t.Errorf("%q: %+v", path, p)
		}
	})
}

// BenchmarkGet reads one leaf.
func BenchmarkGet(b *testing.B) {
	v := view()
	for b.Loop() {
		Get(v, "/latest/meta-data/network/interfaces/macs/02:00:00:00:00:11/local-ipv4s")
	}
}
