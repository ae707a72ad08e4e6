package cloud

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func noEC2(t *testing.T) func(http.ResponseWriter, url.Values) {
	return func(w http.ResponseWriter, form url.Values) {
		t.Errorf("EC2 was asked %v", form)
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func wantMetadata() *ipam.IMDS {
	cidr := netip.MustParsePrefix("10.0.0.0/24")
	return &ipam.IMDS{
		Instance: ipam.Instance{ID: "i-1", Type: "m5.large", Zone: "eu-central-1a", Subnet: "subnet-1", PrimaryMAC: mac0, Address: netip.MustParseAddr("10.0.0.10"),
			VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("100.64.0.0/16")}, Limits: ipam.Limits{ENIs: 3, Addresses: 10, Prefixes: true}},
		Groups: []string{"sg-1", "sg-2"},
		ENIs: []ipam.ENI{
			{ID: "eni-0", MAC: mac0, Subnet: "subnet-1", CIDR: cidr, Primary: netip.MustParseAddr("10.0.0.10"), Addresses: addresses("10.0.0.11")},
			{ID: "eni-1", MAC: mac1, Device: 1, Subnet: "subnet-1", CIDR: cidr, Primary: netip.MustParseAddr("10.0.0.20")},
		},
	}
}

func TestMetadata(t *testing.T) {
	s := start(t, noEC2(t))
	c := s.cloud(Config{})
	for range 3 {
		got, err := c.Metadata(bounded5(t))
		if err != nil || !reflect.DeepEqual(got, wantMetadata()) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, wantMetadata())
		}
	}
	if s.tokens != 1 {
		t.Errorf("%d tokens were fetched", s.tokens)
	}
	// First everything, then only what can change: CIDRs, groups, the list, and three leaves per ENI.
	if len(s.read) != 6+3+2*7+2*(3+2*4) {
		t.Errorf("%d reads: %v", len(s.read), s.read)
	}
	if n := s.together.Load(); n != 1 {
		t.Errorf("%d requests under way at once", n)
	}
}

// A MAC that is listed before its leaves are, whichever is missing, has nothing but its MAC, and stands last (ec2-net-utils#38). Where only the
// addresses are missing, it may be an interface that has none, and EC2 can be asked about it.
func TestPartial(t *testing.T) {
	for _, leaf := range []string{"interface-id", "device-number", "subnet-id", "subnet-ipv4-cidr-block", "local-ipv4s"} {
		s := start(t, noEC2(t))
		delete(s.leaves, "meta-data/"+macs+mac1+"/"+leaf)
		c, want := s.cloud(Config{}), ipam.ENI{MAC: mac1, Partial: true}
		if leaf == "local-ipv4s" {
			want = wantMetadata().ENIs[1]
			want.Primary, want.Addresses, want.Partial = netip.Addr{}, nil, true
		}
		got, err := c.Metadata(bounded5(t))
		if err != nil || len(got.ENIs) != 2 || !reflect.DeepEqual(got.ENIs[1], want) {
			t.Errorf("without %s: got %+v, %v", leaf, got, err)
		}
		s.mu.Lock()
		s.leaves = instance()
		s.mu.Unlock()
		if got, err := c.Metadata(bounded5(t)); err != nil || !reflect.DeepEqual(got, wantMetadata()) {
			t.Errorf("%s came: got %+v, %v", leaf, got, err)
		}
	}
}

// An ENI on another network card is none of ours, an index is nothing without its card.
func TestENIOnOtherCardIsNotOurs(t *testing.T) {
	s := start(t, noEC2(t))
	s.leaves["meta-data/"+macs+mac0+"/network-card"] = "0"
	s.leaves["meta-data/"+macs+mac1+"/network-card"] = "1"
	delete(s.leaves, "meta-data/"+macs+mac1+"/local-ipv4s") // as for EFA alone
	got, err := s.cloud(Config{}).Metadata(bounded5(t))
	if err != nil || len(got.ENIs) != 1 || got.ENIs[0].ID != "eni-0" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// count is how often a path was read.
func count(read []string, path string) (n int) {
	for _, p := range read {
		if p == path {
			n++
		}
	}
	return n
}

// An ENI may leave another card for ours: where it was is not believed once its index is another.
func TestENIThatComesToOurCardIsOurs(t *testing.T) {
	s := start(t, noEC2(t))
	const leaves = "meta-data/" + macs + mac1
	s.leaves[leaves+"/network-card"] = "1"
	c := s.cloud(Config{})
	for range 2 {
		if got := must.Get(c.Metadata(bounded5(t)))(t); len(got.ENIs) != 1 {
			t.Errorf("on another card: got %+v", got.ENIs)
		}
	}
	if n := count(s.read, leaves+"/network-card"); n != 1 {
		t.Errorf("an ENI's card was read %d times while its index was the same", n)
	}
	s.mu.Lock()
	s.leaves[leaves+"/network-card"], s.leaves[leaves+"/device-number"] = "0", "2"
	s.mu.Unlock()
	got := must.Get(c.Metadata(bounded5(t)))(t)
	if len(got.ENIs) != 2 || got.ENIs[1].ID != "eni-1" || got.ENIs[1].Device != 2 {
		t.Errorf("on our card: got %+v", got.ENIs)
	}
}

// Another ENI may come with a MAC, and an ENI at another index: what is remembered is not believed then.
func TestPlacesChange(t *testing.T) {
	s := start(t, noEC2(t))
	c := s.cloud(Config{})
	must.Get(c.Metadata(bounded5(t)))(t)
	s.mu.Lock()
	s.leaves["meta-data/"+macs+mac1+"/interface-id"] = "eni-7"
	s.leaves["meta-data/"+macs+mac1+"/subnet-id"] = "subnet-7"
	s.leaves["meta-data/"+macs+mac1+"/subnet-ipv4-cidr-block"] = "10.0.7.0/24"
	s.mu.Unlock()
	got, err := c.Metadata(bounded5(t))
	if err != nil || got.ENIs[1].ID != "eni-7" || got.ENIs[1].Subnet != "subnet-7" || got.ENIs[1].CIDR != netip.MustParsePrefix("10.0.7.0/24") {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(c.places) != 2 {
		t.Errorf("%d places are remembered, want 2", len(c.places))
	}
}

// Metadata judges a token's age by its own clock.
func TestTokenTooOld(t *testing.T) {
	s := start(t, noEC2(t))
	c := s.cloud(Config{})
	for range 2 {
		s.mu.Lock()
		s.tooOld = true
		s.mu.Unlock()
		if got, err := c.Metadata(bounded5(t)); err != nil || !reflect.DeepEqual(got, wantMetadata()) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if s.tokens != 3 {
		t.Errorf("%d tokens were fetched, want 3", s.tokens)
	}
}

// Each leaf missing or nonsense: an error that names it, or a Partial ENI; never a view that is wrong, never a panic.
func TestBadMetadata(t *testing.T) {
	for path := range instance() {
		for _, text := range []string{"", "x", "\x00", "<html>", "99999999999999999999", "10.0.0.0/99", "1\n2\n3", strings.Repeat("9", mostMetadata+1)} {
			s := start(t, raw(500, ""))
			s.leaves[path] = text
			got, err := s.cloud(Config{}).Metadata(bounded5(t))
			if err == nil && slices.ContainsFunc(got.ENIs, func(e ipam.ENI) bool { return !e.Partial && (e.ID == "" || !e.Primary.IsValid() || !e.CIDR.IsValid()) }) {
				t.Errorf("%s is %.20q: got %+v", path, text, got)
			}
			if err != nil && (got != nil || err.Error() == "") {
				t.Errorf("%s is %.20q: got %+v, %v", path, text, got, err)
			}
			s.ec2.Close()
			s.md.Close()
		}
	}
}

func TestMetadataErrors(t *testing.T) {
	const md = "meta-data/"
	for name, tc := range map[string]struct {
		path, text, want string
	}{
		"no instance":     {md + "instance-id", "", "metadata has no instance-id"},
		"bad MAC":         {md + "mac", "x", "metadata mac"},
		"bad address":     {md + "local-ipv4", "x", "metadata local-ipv4"},
		"no subnet":       {md + macs + mac0 + "/subnet-id", "", "metadata has no"},
		"no CIDR":         {md + macs + mac0 + "/vpc-ipv4-cidr-blocks", "", "expected at least one CIDR"},
		"bad CIDR":        {md + macs + mac0 + "/vpc-ipv4-cidr-blocks", "10.0.0.0/99", "vpc-ipv4-cidr-blocks"},
		"no groups":       {md + macs + mac0 + "/security-group-ids", "", "no security groups"},
		"primary missing": {md + macs, mac1 + "/", "is not in the list"},
		"MAC of the list": {md + macs, mac0 + "/\nx/", "invalid MAC"},
		"index below 0":   {md + macs + mac1 + "/device-number", "-1", "expected a number"},
		"bad device":      {md + macs + mac1 + "/device-number", "x", "expected a number"},
		"bad secondary":   {md + macs + mac1 + "/local-ipv4s", "10.0.0.20\nx", "local-ipv4s"},
		"large":           {md + macs, strings.Repeat("x", mostMetadata+1), "larger than"},
	} {
		s := start(t, noEC2(t))
		s.leaves[tc.path] = tc.text
		got, err := s.cloud(Config{}).Metadata(bounded5(t))
		if err == nil || got != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %+v, %v; want an error with %q", name, got, err, tc.want)
		}
	}
}

// Silence, refusal and nobody: errors that name the address, soon enough, and without a request in the old protocol.
func TestMetadataUnreachable(t *testing.T) {
	s := start(t, noEC2(t))
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // accepts and says nothing
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = closed.Close()
	for name, tc := range map[string]struct{ endpoint, want string }{
		"silent":  {"http://" + l.Addr().String(), "Timeout"},
		"refused": {"http://" + closed.Addr().String(), "refused"},
	} {
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", tc.endpoint)
		ctx := bounded5(t)
		got, err := s.cloud(Config{Timeout: 100 * time.Millisecond}).Metadata(ctx)
		if err == nil || got != nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.endpoint) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if ctx.Err() != nil {
			t.Errorf("%s: took all of its caller's time", name)
		}
	}
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.md.URL)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if _, err := s.cloud(Config{}).Metadata(bounded5(t)); err == nil || !strings.Contains(err.Error(), "AWS_EC2_METADATA_DISABLED") {
		t.Errorf("disabled: %v", err)
	}
}

// TestWhatMetadataSaid: what is wrong is named with the path that was asked for, by its innermost cause.
func TestWhatMetadataSaid(t *testing.T) {
	err := fmt.Errorf("operation GetMetadata: %w", fmt.Errorf("exceeded: %w", io.ErrUnexpectedEOF))
	if got := said("mac", err).Error(); got != "metadata mac: unexpected EOF" {
		t.Errorf("found %q", got)
	}
}

// Without AWS_REGION it is the identity document's.
func TestRegionComesFromTheIdentityDocument(t *testing.T) {
	s := start(t, consent)
	o := must.Get(New(t.Context(), Config{}))(t)
	t.Cleanup(o.Close)
	q := calls()[4]
	delete(s.leaves, "dynamic/instance-identity/document")
	if got := o.Call(bounded5(t), &q); got.Class != ipam.Unavailable || !strings.Contains(got.Code, "AWS_REGION is not set") {
		t.Errorf("without a region: %+v", got)
	}
	if _, err := o.describeSubnets(bounded5(t), nil, ""); err == nil || !strings.Contains(err.Error(), "AWS_REGION is not set") {
		t.Errorf("subnets without a region: %v", err)
	}
	if len(s.read) != 2 {
		t.Errorf("a document that is not there is asked for %d times: %q", len(s.read), s.read)
	}
	s.mu.Lock()
	s.leaves, s.tooOld = instance(), true
	s.mu.Unlock()
	for range 2 {
		if got := o.Call(bounded5(t), &q); got.Class != ipam.OK {
			t.Fatalf("got %+v", got)
		}
	}
	for _, h := range s.signed {
		if !strings.Contains(h, "/eu-central-1/ec2/") {
			t.Errorf("signed for %q", h)
		}
	}
	t.Setenv("AWS_REGION", "us-west-2")
	o = must.Get(New(t.Context(), Config{}))(t)
	t.Cleanup(o.Close)
	if o.Call(bounded5(t), &q); !strings.Contains(s.signed[len(s.signed)-1], "/us-west-2/ec2/") {
		t.Errorf("signed for %q", s.signed[len(s.signed)-1])
	}
}

// A type that the table does not know is asked for, once.
func TestUnknownType(t *testing.T) {
	s := start(t, say("DescribeInstanceTypes", `<instanceTypeSet><item><instanceType>z9.huge</instanceType><networkInfo><maximumNetworkInterfaces>30</maximumNetworkInterfaces>
<ipv4AddressesPerInterface>50</ipv4AddressesPerInterface><defaultNetworkCardIndex>0</defaultNetworkCardIndex>
<networkCards><item><networkCardIndex>0</networkCardIndex><maximumNetworkInterfaces>15</maximumNetworkInterfaces></item>
<item><networkCardIndex>1</networkCardIndex><maximumNetworkInterfaces>14</maximumNetworkInterfaces></item></networkCards></networkInfo></item></instanceTypeSet>`))
	s.leaves["meta-data/instance-type"] = "z9.huge"
	c := s.cloud(Config{})
	for range 2 {
		got, err := c.Metadata(bounded5(t))
		if err != nil || got.Instance.Limits != (ipam.Limits{ENIs: 15, Addresses: 50}) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	s.mu.Lock()
	s.answer = say("DescribeInstanceTypes", `<instanceTypeSet><item><instanceType>z9.huge</instanceType><networkInfo><maximumNetworkInterfaces>1</maximumNetworkInterfaces>
<ipv4AddressesPerInterface>1</ipv4AddressesPerInterface></networkInfo></item></instanceTypeSet>`)
	s.mu.Unlock()
	if got, err := s.cloud(Config{}).Metadata(bounded5(t)); err != nil || got.Instance.Limits != (ipam.Limits{ENIs: 1, Addresses: 1}) {
		t.Errorf("a type with one interface of one address: %+v, %v", got, err)
	}
	for _, answer := range []string{"", "<instanceTypeSet><item><instanceType>z9.huge</instanceType></item></instanceTypeSet>",
		"<instanceTypeSet><item><instanceType>z9.huge</instanceType><networkInfo/></item></instanceTypeSet>"} {
		s.mu.Lock()
		s.answer = func(w http.ResponseWriter, _ url.Values) {
			_, _ = io.WriteString(w, answerOf("DescribeInstanceTypes", answer))
		}
		s.mu.Unlock()
		if got, err := s.cloud(Config{}).Metadata(bounded5(t)); err == nil || !strings.Contains(err.Error(), "limits of instance type z9.huge") {
			t.Errorf("%q: got %+v, %v", answer, got, err)
		}
	}
}

// With NoEC2 nothing reaches EC2, and a type that the table does not know has no limits: they are for those who make something.
func TestNoEC2SendsNothing(t *testing.T) {
	s := start(t, say("DescribeInstanceTypes", ""))
	s.leaves["meta-data/instance-type"] = "z9.huge"
	c := s.cloud(Config{NoEC2: true})
	got, err := c.Metadata(bounded5(t))
	if err != nil || got.Instance.Type != "z9.huge" || got.Instance.Limits != (ipam.Limits{}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := c.Attached(bounded5(t)); err == nil || !strings.Contains(err.Error(), "ENABLE_IMDS_ONLY_MODE") {
		t.Errorf("EC2 is asked: %v", err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestTable(t *testing.T) {
	for i := range table {
		if r := table[i]; i > 0 && table[i-1].name >= r.name || r.enis < 2 || r.enis > 15 || r.addresses < 2 || r.addresses > 50 {
			t.Errorf("row %d, %+v, is out of order or out of bounds", i, r)
		}
	}
	if len(table) < 60 {
		t.Errorf("only %d types", len(table))
	}
	c := &Cloud{}
	// Pods per node as EKS publishes them: ENIs × (addresses - 1) + 2.
	for name, pods := range map[string]int{"t3.micro": 4, "t3.small": 11, "t3.medium": 17, "t3.large": 35, "t3a.small": 8, "m5.large": 29, "m5.xlarge": 58, "c5.4xlarge": 234,
		"m7g.16xlarge": 737, "p4d.24xlarge": 737, "g5.48xlarge": 345, "m4.large": 20, "inf1.xlarge": 38, "p5.48xlarge": 100, "t2.xlarge": 44} {
		if l, err := c.limitsOf(t.Context(), name); err != nil || l.ENIs*(l.Addresses-1)+2 != pods {
			t.Errorf("%s: %+v, %v; want %d pods", name, l, err, pods)
		}
	}
}
