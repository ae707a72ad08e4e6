package imds

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// view is an instance with an interface, a second one with two addresses, and a third whose leaves are not there yet.
func view() *View {
	first, second := "02:00:00:00:00:99", "02:00:00:00:00:11"
	return &View{IMDS: ec2.IMDS{
		Instance: ec2.Instance{ID: "i-0123456789abcdef0", Type: "m5.large", Zone: "us-west-2a", Subnet: "subnet-1", VPC: "vpc-1", PrimaryMAC: first,
			PrimaryAddress: netip.MustParseAddr("10.0.0.4"), VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.1.0.0/16")}},
		Region: "us-west-2",
		ENIs: []ec2.IMDSENI{
			{MAC: first, ENI: "eni-1", Subnet: "subnet-1", SubnetCIDR: netip.MustParsePrefix("10.0.0.0/24"), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, Groups: []string{"sg-1", "sg-2"}},
			{MAC: second, ENI: "eni-2", Device: 2, Subnet: "subnet-2", SubnetCIDR: netip.MustParsePrefix("10.1.0.0/24"),
				Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.1.0.4")}, Groups: []string{"sg-1"}},
			{MAC: "02:00:00:00:00:22", Partial: true},
		},
	}, Role: "node", Updated: time.Unix(0, 0), Expires: time.Unix(3600, 0)}
}

func TestGet(t *testing.T) {
	const data, macs = "/latest/meta-data/", "/latest/meta-data/network/interfaces/macs/"
	const one, two, three = macs + "02:00:00:00:00:99/", macs + "02:00:00:00:00:11/", macs + "02:00:00:00:00:22/"
	const missing = "404"
	all := strings.Join(leaves[:], "\n")
	rows := []struct{ path, want string }{
		{"/", "latest"},
		{"/latest", "dynamic/\nmeta-data/"},
		{"/latest/", "dynamic/\nmeta-data/"},
		{"/latest/meta-data/network", "interfaces/"},
		{macs, "02:00:00:00:00:11/\n02:00:00:00:00:22/\n02:00:00:00:00:99/"},
		{data + "instance-id", "i-0123456789abcdef0"},
		{data + "instance-type", "m5.large"},
		{data + "mac", "02:00:00:00:00:99"},
		{data + "local-ipv4", "10.0.0.4"},
		{data + "local-hostname", "ip-10-0-0-4.us-west-2.compute.internal"},
		{data + "security-groups", "sg-1\nsg-2"},
		{data + "placement/", "availability-zone\nregion"},
		{data + "placement/availability-zone", "us-west-2a"},
		{data + "placement/region", "us-west-2"},
		{data + "iam/security-credentials/", "node"},
		{one, all},
		{strings.TrimSuffix(one, "/"), all},
		{one + "device-number", "0"},
		{two + "device-number", "2"},
		{two + "interface-id", "eni-2"},
		{two + "local-ipv4s", "10.1.0.5\n10.1.0.4"},
		{two + "subnet-id", "subnet-2"},
		{two + "subnet-ipv4-cidr-block", "10.1.0.0/24"},
		{two + "vpc-id", "vpc-1"},
		{two + "vpc-ipv4-cidr-block", "10.0.0.0/16"},
		{two + "vpc-ipv4-cidr-blocks", "10.0.0.0/16\n10.1.0.0/16"},
		{two + "security-group-ids", "sg-1"},
		{two + "owner-id", ec2.Account},
		{two + "mac", "02:00:00:00:00:11"},
		{two + "local-hostname", "ip-10-1-0-5.us-west-2.compute.internal"},

		// An interface whose leaves are not there yet: the folder lists them (ec2-net-utils#38).
		{three, all},
		{three + "device-number", missing},
		{three + "mac", missing},

		// What an instance of this kind does not have.
		{one + "network-card", missing},
		{one + "ipv6s", missing},
		{one + "ipv4-prefix", missing},
		{data + "public-ipv4", missing},
		{"/latest/user-data", missing},
		{"/2021-07-15/meta-data/mac", missing},
		{macs + "02:00:00:00:00:33/", missing},
		{macs + "02:00:00:00:00:33/device-number", missing},

		// Paths are literal.
		{data + "mac/", missing},
		{data + "mac/x", missing},
		{data + "instance-identity/document", missing},
		{"//latest/meta-data/mac", missing},
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
		if got != r.want || p.JSON {
			t.Errorf("%s: found %q, expected %q", r.path, got, r.want)
		}
	}
}

// TestListed: what a listing names can be read, to the last leaf, and nothing is listed without slash that is a folder.
func TestListed(t *testing.T) {
	v, read := view(), 0
	v.ENIs = v.ENIs[:2]
	var walk func(path string)
	walk = func(path string) {
		p := Get(v, path)
		if p.Status != 200 || p.Text == "" || strings.HasSuffix(p.Text, "\n") {
			t.Errorf("%s: status %d, %q", path, p.Status, p.Text)
			return
		}
		read++
		if !strings.HasSuffix(path, "/") {
			return
		}
		names := strings.Split(p.Text, "\n")
		if !slices.IsSorted(names) && path != "/latest/meta-data/network/interfaces/macs/" {
			t.Errorf("%s is not sorted: %q", path, names)
		}
		for _, name := range names {
			walk(path + name)
		}
	}
	walk("/latest/")
	if read < 40 {
		t.Errorf("only %d paths", read)
	}
}

func TestDocuments(t *testing.T) {
	v := view()
	var d struct{ AccountID, AvailabilityZone, InstanceID, InstanceType, PrivateIP, Region string }
	p := Get(v, "/latest/dynamic/instance-identity/document")
	if err := json.Unmarshal([]byte(p.Text), &d); err != nil || !p.JSON || d.AccountID != ec2.Account || d.InstanceID != "i-0123456789abcdef0" || d.Region != "us-west-2" || d.PrivateIP != "10.0.0.4" {
		t.Errorf("%v: %s", err, p.Text)
	}
	var c struct{ Code, AccessKeyID, SecretAccessKey, Token, Expiration string }
	p = Get(v, "/latest/meta-data/iam/security-credentials/node")
	if err := json.Unmarshal([]byte(p.Text), &c); err != nil || !p.JSON || c.Code != "Success" || c.Expiration != "1970-01-01T01:00:00Z" || c.SecretAccessKey == "" {
		t.Errorf("%v: %s", err, p.Text)
	}
	if id, ok := InstanceOf(c.AccessKeyID); !ok || id != v.Instance.ID {
		t.Errorf("the key %s is %q's, expected %s", c.AccessKeyID, id, v.Instance.ID)
	}
	v.Role = ""
	if p := Get(v, "/latest/meta-data/iam/security-credentials/"); p.Status != 404 {
		t.Errorf("credentials without a role: %+v", p)
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
		want, err := c.Launch(0, ec2.LaunchSpec{Type: "m5.large"})
		if err != nil {
			t.Fatal(err)
		}
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
