package cloud

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
)

// TestPrefixes: they are asked for by number, given back by name, and read from EC2's answers and from metadata.
func TestPrefixes(t *testing.T) {
	two := []netip.Prefix{netip.MustParsePrefix("10.0.0.32/28"), netip.MustParsePrefix("10.0.0.64/28")}
	const texts = `<item><ipv4Prefix>10.0.0.32/28</ipv4Prefix></item><item><ipv4Prefix>10.0.0.64/28</ipv4Prefix></item>`
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		action := form.Get("Action")
		body := "<return>true</return>"
		switch action {
		case "CreateNetworkInterface":
			body = "<networkInterface>" + eniXML("eni-9", "", "") + "<ipv4PrefixSet>" + texts + "</ipv4PrefixSet></networkInterface>"
		case "AssignPrivateIpAddresses":
			body = "<assignedIpv4PrefixSet>" + texts + "</assignedIpv4PrefixSet>" + body
		}
		_, _ = w.Write([]byte(answerOf(action, body)))
	})
	s.leaves["meta-data/"+macs+mac1+"/ipv4-prefix"] = "10.0.0.32/28\n10.0.0.64/28"
	c := s.cloud(Config{})
	for _, x := range []struct {
		call ipam.Call
		want url.Values
		got  func(ipam.Result) []netip.Prefix
	}{
		{ipam.Call{Action: ipam.CreateENI, Token: "t-1", Subnet: "subnet-1", Groups: []string{"sg-1"}, PrefixCount: 2, Owner: "i-1"},
			url.Values{"Ipv4PrefixCount": {"2"}}, func(r ipam.Result) []netip.Prefix { return r.ENI.Prefixes }},
		{ipam.Call{Action: ipam.AssignIPs, ENI: "eni-1", PrefixCount: 2},
			url.Values{"Ipv4PrefixCount": {"2"}, "NetworkInterfaceId": {"eni-1"}}, func(r ipam.Result) []netip.Prefix { return r.Prefixes }},
		{ipam.Call{Action: ipam.UnassignIPs, ENI: "eni-1", Prefixes: two},
			url.Values{"Ipv4Prefix.1": {"10.0.0.32/28"}, "Ipv4Prefix.2": {"10.0.0.64/28"}, "NetworkInterfaceId": {"eni-1"}}, nil},
	} {
		got := c.Call(bounded5(t), &x.call)
		if got.Class != ipam.OK || x.got != nil && !slices.Equal(x.got(got), two) {
			t.Errorf("%v: got %+v", x.call.Action, got)
		}
		asked := s.requests()
		form := asked[len(asked)-1]
		maps.DeleteFunc(form, func(key string, _ []string) bool {
			return x.want[key] == nil && key != "PrivateIpAddress.1" && key != "SecondaryPrivateIpAddressCount"
		})
		if !reflect.DeepEqual(form, x.want) {
			t.Errorf("%v: asked %v, expected %v", x.call.Action, form, x.want)
		}
	}
	v, err := c.Metadata(bounded5(t))
	if err != nil || !slices.Equal(v.ENIs[1].Prefixes, two) || len(v.ENIs[0].Prefixes) > 0 {
		t.Errorf("metadata has %+v, %v", v, err)
	}
	s.leaves["meta-data/"+macs+mac1+"/ipv4-prefix"] = "10.0.0.33/28"
	if v, err := c.Metadata(bounded5(t)); err == nil {
		t.Errorf("a prefix off its boundary is read: %+v", v)
	}
}

// TestTypesWithPrefixes: those of the Nitro system and bare metal, by the table, else by EC2.
func TestTypesWithPrefixes(t *testing.T) {
	for name, want := range map[string]bool{"m5.large": true, "t3.micro": true, "m4.large": false, "t2.medium": false, "i3.large": false, "i3.metal": true,
		"p3.2xlarge": false, "p3dn.24xlarge": true, "r4.large": false, "a1.medium": true, "x1e.xlarge": false} {
		if nitro(name) != want {
			t.Errorf("%s has prefixes: %t", name, !want)
		}
	}
	for answer, want := range map[string]bool{"<hypervisor>nitro</hypervisor>": true, "<hypervisor>xen</hypervisor>": false,
		"<bareMetal>true</bareMetal>": true, "": false} {
		s := start(t, say("DescribeInstanceTypes", `<instanceTypeSet><item><instanceType>z9.huge</instanceType>`+answer+`<networkInfo>
<maximumNetworkInterfaces>2</maximumNetworkInterfaces><ipv4AddressesPerInterface>4</ipv4AddressesPerInterface></networkInfo></item></instanceTypeSet>`))
		s.leaves["meta-data/instance-type"] = "z9.huge"
		if v, err := s.cloud(Config{}).Metadata(bounded5(t)); err != nil || v.Instance.Limits.Prefixes != want {
			t.Errorf("%s: %+v, %v", answer, v, err)
		}
	}
}
