package cloud

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func items(list ...string) string {
	var b strings.Builder
	for _, x := range list {
		b.WriteString("<item>" + x + "</item>")
	}
	return "<networkInterfaceSet>" + b.String() + "</networkInterfaceSet>"
}

func attachmentXML(status, instance string, device, card int) string {
	return fmt.Sprintf(`<attachment><attachmentId>eni-attach-1</attachmentId><instanceId>%s</instanceId><deviceIndex>%d</deviceIndex><status>%s</status>
<networkCardIndex>%d</networkCardIndex><deleteOnTermination>true</deleteOnTermination></attachment>`, instance, device, status, card)
}

// ids are what a request asks for by ID.
func ids(form url.Values) []string {
	var out []string
	for i := 1; form.Has(fmt.Sprint("NetworkInterfaceId.", i)); i++ {
		out = append(out, form.Get(fmt.Sprint("NetworkInterfaceId.", i)))
	}
	return out
}

func TestENIs(t *testing.T) {
	s := start(t, say(describeENIs, items(eniXML("eni-1", attachmentXML("detaching", "i-7", 2, 0), tagXML("Name", "x")+tagXML(tagCreated, "12")))))
	c := s.cloud(Config{})
	got, err := c.ENIs(bounded5(t), []string{"eni-1"})
	want := []ipam.ENI{{ID: "eni-1", MAC: mac1, Device: 2, Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.20"), Addresses: addresses("10.0.0.21", "10.0.0.22"),
		Status: "detaching", Attachment: "eni-attach-1", Instance: "i-7", Created: 12, DOT: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if got, err := c.ENIs(bounded5(t), nil); err != nil || len(got) != 0 || len(s.requests()) != 1 {
		t.Errorf("no IDs: %v, %v, %d requests", got, err, len(s.requests()))
	}
}

// EC2 names the IDs that it does not know; the others are asked for without them.
func TestUnknownIDs(t *testing.T) {
	known := []string{"eni-1", "eni-22"}
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		var list []string
		asked := ids(form)
		if len(asked) == 0 {
			asked = known // EC2 describes every interface to who names none
		}
		for _, id := range asked {
			if !slices.Contains(known, id) {
				refuse(400, "InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '"+id+"' does not exist")(w, form)
				return
			}
			list = append(list, eniXML(id, "", ""))
		}
		say(describeENIs, items(list...))(w, form)
	})
	c := s.cloud(Config{})
	for _, tc := range []struct{ ask, want []string }{
		{[]string{"eni-2", "eni-22", "eni-3", "eni-1"}, []string{"eni-22", "eni-1"}}, // eni-2 is the beginning of eni-22
		{[]string{"eni-4", "eni-5"}, nil},
	} {
		got, err := c.ENIs(bounded5(t), tc.ask)
		var have []string
		for _, e := range got {
			have = append(have, e.ID)
		}
		if err != nil || !slices.Equal(have, tc.want) {
			t.Errorf("asked for %v: got %v, %v; want %v", tc.ask, have, err, tc.want)
		}
	}
	s.mu.Lock()
	s.answer = refuse(400, "InvalidNetworkInterfaceID.NotFound", "something does not exist")
	s.mu.Unlock()
	before := len(s.requests())
	if got, err := c.ENIs(bounded5(t), []string{"eni-1"}); err == nil || got != nil || len(s.requests()) != before+1 {
		t.Errorf("a refusal without a name: got %v, %v", got, err)
	}
}

func TestManyIDs(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		var list []string
		for _, id := range ids(form) {
			list = append(list, eniXML(id, "", ""))
		}
		say(describeENIs, items(list...))(w, form)
	})
	var ask []string
	for i := range pageSize + 1 {
		ask = append(ask, fmt.Sprint("eni-", i))
	}
	got, err := s.cloud(Config{}).ENIs(bounded5(t), ask)
	if err != nil || len(got) != len(ask) || len(s.requests()) != 2 {
		t.Errorf("got %d, %v, in %d requests", len(got), err, len(s.requests()))
	}
}

// filters are what a request filters by.
func filters(form url.Values) map[string]string {
	out := map[string]string{}
	for i := 1; form.Has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		out[form.Get(fmt.Sprintf("Filter.%d.Name", i))] = form.Get(fmt.Sprintf("Filter.%d.Value.1", i))
	}
	return out
}

func TestAttached(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		switch {
		case form.Get("Action") == "DescribeSubnets" && form.Get("SubnetId.1") == "subnet-1":
			say("DescribeSubnets", "<subnetSet><item><subnetId>subnet-1</subnetId><cidrBlock>10.0.0.0/24</cidrBlock></item></subnetSet>")(w, form)
		case form.Get("NextToken") == "":
			say(describeENIs, items(eniXML("eni-1", attachmentXML("attaching", "i-1", 1, 0), ""), eniXML("eni-2", attachmentXML("attached", "i-1", 1, 1), ""))+"<nextToken>n</nextToken>")(w, form)
		default:
			say(describeENIs, items(eniXML("eni-3", attachmentXML("attached", "i-1", 2, 0), "")))(w, form)
		}
	})
	got, err := s.cloud(Config{}).Attached(bounded5(t))
	if err != nil || len(got) != 2 || got[0].ID != "eni-1" || got[0].Status != "attaching" || got[1].ID != "eni-3" || got[1].Status != "in-use" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if want := netip.MustParsePrefix("10.0.0.0/24"); got[0].CIDR != want || got[1].CIDR != want {
		t.Errorf("CIDRs %v, %v", got[0].CIDR, got[1].CIDR)
	}
	asked := s.requests()
	if len(asked) != 3 || asked[0].Get("MaxResults") != "100" || !reflect.DeepEqual(filters(asked[0]), map[string]string{"attachment.instance-id": "i-1"}) {
		t.Errorf("asked %v", asked)
	}
}

// Without the permission to describe subnets the list is whole all the same.
func TestAttachedWithoutSubnets(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		if form.Get("Action") == "DescribeSubnets" {
			refuse(403, "UnauthorizedOperation", "no")(w, form)
			return
		}
		say(describeENIs, items(eniXML("eni-1", attachmentXML("attached", "i-1", 1, 0), "")))(w, form)
	})
	if got, err := s.cloud(Config{}).Attached(bounded5(t)); err != nil || len(got) != 1 || got[0].CIDR.IsValid() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Subnets are those of the VPC and the zone, page by page, with what their tags say of this cluster; their CIDRs are known from then on.
func TestSubnetsOfVPCAndZone(t *testing.T) {
	subnet := func(id, cidr, free string, tags ...string) string {
		return "<item><subnetId>" + id + "</subnetId><cidrBlock>" + cidr + "</cidrBlock><availableIpAddressCount>" + free +
			"</availableIpAddressCount><tagSet>" + strings.Join(tags, "") + "</tagSet></item>"
	}
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		if form.Get("NextToken") == "" {
			say(describeSubnets, "<subnetSet>"+subnet("subnet-1", "10.0.0.0/24", "7")+
				subnet("subnet-2", "10.0.1.0/24", "200", tagXML("kubernetes.io/role/cni", "1"), tagXML("cni.networking.k8s.aws/cluster/"+"c2", "shared"))+
				"</subnetSet><nextToken>n</nextToken>")(w, form)
			return
		}
		say(describeSubnets, "<subnetSet>"+subnet("subnet-3", "10.0.2.0/24", "0", tagXML("kubernetes.io/role/cni", "0"), tagXML("cni.networking.k8s.aws/cluster/"+"c2", ""),
			tagXML("cni.networking.k8s.aws/cluster/"+"c1", ""))+"</subnetSet>")(w, form)
	})
	s.mu.Lock()
	s.leaves["meta-data/"+macs+mac0+"/vpc-id"] = "vpc-1"
	s.mu.Unlock()
	c := s.cloud(Config{Cluster: "c1"})
	got, err := c.Subnets(bounded5(t))
	p := netip.MustParsePrefix
	want := []ipam.Subnet{{ID: "subnet-1", CIDR: p("10.0.0.0/24"), Free: 7}, {ID: "subnet-2", CIDR: p("10.0.1.0/24"), Free: 200, Role: "1", Others: true},
		{ID: "subnet-3", CIDR: p("10.0.2.0/24"), Role: "0"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if asked := s.requests(); len(asked) != 2 || !reflect.DeepEqual(filters(asked[0]), map[string]string{"vpc-id": "vpc-1", "availability-zone": "eu-central-1a"}) {
		t.Errorf("asked %v", asked)
	}
	if got, err := s.cloud(Config{}).Subnets(bounded5(t)); err != nil || got[1].Others { // a cluster without a name asks for none
		t.Errorf("got %+v, %v", got, err)
	}
}

// Without the permission that is said, whatever else it may be is another matter: a wrong clock passes.
func TestSubnetsDenied(t *testing.T) {
	for code, want := range map[string][2]bool{"UnauthorizedOperation": {true, false}, "AccessDenied": {true, false}, "AuthFailure": {false, true},
		"RequestExpired": {false, true}, "InternalError": {false, false}} {
		s := start(t, refuse(403, code, "no"))
		s.mu.Lock()
		s.leaves["meta-data/"+macs+mac0+"/vpc-id"] = "vpc-1"
		s.mu.Unlock()
		_, err := s.cloud(Config{}).Subnets(bounded5(t))
		if denied, refused := Denied(err); err == nil || [2]bool{denied, refused} != want {
			t.Errorf("%s: %v, denied is %v and refused %v", code, err, denied, refused)
		}
	}
}

// TestLeaked: which interfaces are of instances that are gone, and which of this cluster and VPC. Where EC2 does not say which instances live,
// none is.
func TestLeaked(t *testing.T) {
	leak := func(id, owner, cluster, vpc string) string {
		tags := tagXML(tagOwner, owner) + tagXML(tagCreated, "2026-01-02T03:04:05Z")
		if cluster != "" {
			tags += tagXML(tagCluster, cluster)
		}
		return eniXML(id, "<vpcId>"+vpc+"</vpcId>", tags)
	}
	all := items(leak("eni-1", "i-1", "", "vpc-1"), leak("eni-2", "i-ended", "", "vpc-1"), leak("eni-3", "i-gone", "", "vpc-1"), leak("eni-4", "i-lives", "", "vpc-1"),
		leak("eni-5", "i-ended", "c1", "vpc-1"), leak("eni-6", "i-ended", "c2", "vpc-1"), leak("eni-7", "i-gone", "", "vpc-2"), leak("eni-8", "i-gone", "c1", "vpc-2"), leak("eni-10", "i-gone", "", ""), eniXML("eni-9", "", ""))
	in := func(vpc, id, state string) string {
		return "<item><instancesSet><item><instanceId>" + id + "</instanceId><vpcId>" + vpc + "</vpcId><instanceState><name>" + state + "</name></instanceState></item></instancesSet></item>"
	}
	state := func(id, state string) string { return in("vpc-1", id, state) }
	others := state("i-ended", "terminated") + state("i-lives", "stopping")
	answers := say("DescribeInstances", "<reservationSet>"+state("i-1", "running")+others+"</reservationSet>")
	const unknown = "eni-1 eni-2 eni-3 eni-4 eni-5 eni-6 eni-7 eni-8 eni-10"
	for name, c := range map[string]struct {
		cluster   string
		filters   map[string]string
		instances func(http.ResponseWriter, url.Values)
		want      string // "!" is of an instance that is gone, "+" of this cluster and VPC
	}{
		"a cluster":  {"c1", map[string]string{"status": "available", "tag:" + tagCluster: "c1"}, answers, "eni-1 eni-2! eni-3! eni-4 eni-5!+ eni-6! eni-7! eni-8! eni-10!"},
		"no cluster": {"", map[string]string{"status": "available", "tag-key": tagOwner}, answers, "eni-1+ eni-2!+ eni-3!+ eni-4+ eni-5! eni-6! eni-7! eni-8! eni-10!"},
		"others are in another VPC": {"c1", nil, say("DescribeInstances", "<reservationSet>"+in("vpc-2", "i-ended", "terminated")+state("i-1", "running")+
			in("vpc-2", "i-lives", "running")+"</reservationSet>"), "eni-1 eni-2! eni-3! eni-4 eni-5!+ eni-6! eni-7! eni-8! eni-10!"},
		"denied":                    {"", nil, refuse(403, "UnauthorizedOperation", "You are not authorized"), unknown},
		"cut off":                   {"", nil, hangUp, unknown},
		"without the one asks":      {"", nil, say("DescribeInstances", "<reservationSet>"+others+"</reservationSet>"), unknown},
		"the one that asks is gone": {"", nil, say("DescribeInstances", "<reservationSet>"+state("i-1", "terminated")+others+"</reservationSet>"), unknown},
		"not whole":                 {"", nil, say("DescribeInstances", "<reservationSet>"+state("i-1", "running")+"</reservationSet><nextToken>n</nextToken>"), unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(w http.ResponseWriter, form url.Values) {
				if form.Get("Action") == describeENIs {
					say(describeENIs, all)(w, form)
					return
				}
				c.instances(w, form)
			})
			list := must.Get(s.cloud(Config{Cluster: c.cluster}).Leaked(bounded5(t)))(t)
			var got []string
			for i := range list {
				if got = append(got, list[i].ID); list[i].OwnerGone {
					got[i] += "!"
				}
				if list[i].Near {
					got[i] += "+"
				}
				if list[i].Created != 1767323045 {
					t.Errorf("%s is created at %d", list[i].ID, list[i].Created)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
			asked := s.requests()
			if f := filters(asked[0]); c.filters != nil && !reflect.DeepEqual(f, c.filters) {
				t.Errorf("filters %v, want %v", f, c.filters)
			}
			if len(asked) != 2 || filters(asked[1])["instance-id"] != "i-1" || asked[1].Get("Filter.1.Value.2") != "i-ended" {
				t.Errorf("asked %v, want interfaces, and then instances once", asked)
			}
		})
	}
}

// A list that is not whole is an error in EC2's words.
func TestDescribeErrors(t *testing.T) {
	whole := answerOf(describeENIs, items(eniXML("eni-1", "", ""), eniXML("eni-2", "", "")))
	second := func(w http.ResponseWriter, form url.Values) {
		if form.Get("NextToken") == "" {
			say(describeENIs, items(eniXML("eni-1", "", tagXML(tagOwner, "i-1")))+"<nextToken>n</nextToken>")(w, form)
			return
		}
		hangUp(w, form)
	}
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, url.Values)
		want   string
	}{
		"throttled":     {refuse(503, "RequestLimitExceeded", "Request limit exceeded."), "ec2 DescribeNetworkInterfaces: RequestLimitExceeded: Request limit exceeded."},
		"denied":        {refuse(403, "UnauthorizedOperation", "You are not authorized"), "UnauthorizedOperation: You are not authorized"},
		"cut off":       {raw(200, whole[:len(whole)-10]), "not a whole DescribeNetworkInterfacesResponse"},
		"bad address":   {raw(200, strings.Replace(whole, "10.0.0.22", "10.0.0", 1)), "interface eni-1"},
		"no ID":         {say(describeENIs, items(eniXML("", "", ""))), "without an ID"},
		"same page":     {say(describeENIs, items()+"<nextToken>n</nextToken>"), "names itself as the next one"},
		"second page":   {second, "no answer"},
		"broken XML":    {raw(200, "<"+describeENIs+"Response><a></b></"+describeENIs+"Response>"), ""},
		"number is not": {raw(200, strings.Replace(whole, "<tagSet>", "<attachment><deviceIndex>x</deviceIndex></attachment><tagSet>", 1)), ""},
	} {
		s := start(t, tc.answer)
		got, err := s.cloud(Config{Cluster: "c1"}).Leaked(bounded5(t))
		if err == nil || got != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", name, got, err, tc.want)
		}
	}
}

func TestEndlessPages(t *testing.T) {
	n := 0
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		n++
		say(describeENIs, items()+fmt.Sprintf("<nextToken>%d</nextToken>", n))(w, form)
	})
	if got, err := s.cloud(Config{Cluster: "c1"}).Leaked(bounded5(t)); err == nil || got != nil || n != mostPages {
		t.Errorf("got %v, %v after %d pages", got, err, n)
	}
}

// Whatever stands between the tags of an answer, there is no panic, and half of it is never taken for all.
func FuzzDescribe(f *testing.F) {
	f.Add(items(eniXML("eni-1", attachmentXML("attached", "i-1", 1, 0), tagXML(tagCreated, "2026-01-02T03:04:05Z"))))
	f.Add("<networkInterfaceSet><item/></networkInterfaceSet>")
	f.Add("<networkInterfaceSet><item><attachment/><privateIpAddressesSet><item/></privateIpAddressesSet></item>")
	clearEnvironment(f)
	f.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	f.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	c := must.Get(New(f.Context(), Config{Region: "eu-west-1"}))(f)
	f.Fuzz(func(t *testing.T, body string) {
		c.outer.Transport = answering(answerOf(describeENIs, body))
		got, err := c.known(t.Context(), []string{"eni-1"})
		for _, e := range got {
			if err != nil || e.ID == "" || e.Status == "" {
				t.Errorf("%q: %+v, %v", body, e, err)
			}
		}
	})
}

// answering is a network on which everybody says the same.
type answering string

func (a answering) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: q, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func TestCreatedTag(t *testing.T) {
	for text, want := range map[string]int64{"2026-01-02T03:04:05Z": 1767323045, "2026-01-02T04:04:05+01:00": 1767323045, "1767323045": 1767323045, "": 0, "soon": 0, "-5": 0} {
		if got := parseCreated(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	if got := parseCreated(formatCreated(1767323045)); got != 1767323045 {
		t.Errorf("written and read: %d", got)
	}
}
