package world_test

import (
	stderrors "errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/world"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/worlds"
)

// file is a world with a region's lines, and with lines of its own at the end. A region's lines begin in line 5.
func file(region, end string) string {
	return "accounts:\n  - id: \"111122223333\"\n    regions:\n      - name: us-west-2\n" + indented(region) + end
}

func indented(s string) string {
	return "        " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n        ") + "\n"
}

const (
	vpcs = "vpcs:\n- name: main\n  cidrs: [10.0.0.0/16]\n  groups: [{name: nodes}]\n  subnets:\n  - {name: a, cidr: 10.0.0.0/24}\n  - {name: b, cidr: 10.0.1.0/28, zone: us-west-2b}\n"
	// An instance's lines begin in line 12.
	one = vpcs + "instances:\n- name: node-1\n"
)

// TestRefuses: mistakes are told with their line, column and what to do.
func TestRefuses(t *testing.T) {
	in := func(lines string) string { return file(one+"  "+strings.ReplaceAll(lines, "\n", "\n  "), "") }
	subnet := func(line string) string { return file(vpcs+"  - "+line, "") }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "w.yaml: the file is empty (begin with an example of worlds/)"},
		{"comment", "# nothing\n", "w.yaml: the file is empty"},
		{"list", "- a\n", "w.yaml:1:1: the world: expected keys and values, such as `id: x`, found a list"},
		{"not YAML", "accounts: [\n", "w.yaml:"},
		{"tab", "accounts:\n\t- x\n", "w.yaml:2:1: "},
		{"no accounts", "seed: 1\n", "w.yaml:1:1: the world has no accounts"},
		{"no account", "accounts: []\n", "the world has no accounts"},
		{"two documents", file(vpcs, "---\nseed: 2\n"), "there is a second document"},
		{"unknown key", file(vpcs, "sede: 1\n"), `w.yaml:12:1: the world has no key "sede" (did you mean seed?)`},
		{"repeated key", file(vpcs, "seed: 1\nseed: 2\n"), `w.yaml:13:1: the world has the key "seed" twice, first in line 12 (keep one of them)`},
		{"anchor", file(vpcs, "seed: &x 1\n"), "w.yaml:12:7: anchors and aliases are not read (write the value out)"},
		{"empty value", file(vpcs, "seed:\n"), "w.yaml:12:6: seed is empty (give a whole number, or leave the key out)"},
		{"seed", file(vpcs, "seed: -1\n"), `w.yaml:12:7: seed: expected a whole number, found "-1"`},
		{"speed", file(vpcs, "speed: 0\n"), `w.yaml:12:8: speed: expected a number from 0.001 to 1000: how many seconds pass in a second, found "0"`},
		{"lag", file(vpcs, "lag: {describe: [2s, 1s, 3s]}\n"), "w.yaml:12:17: describe: expected three durations, the shortest first, found 3 (as [1s, 2500ms, 6s])"},
		{"lag's key", file(vpcs, "lag: {descripe: 1s}\n"), `lag has no key "descripe" (did you mean describe?)`},
		{"latency", file(vpcs, "latency: off\n"), `w.yaml:12:10: latency: expected none, published, or keys and values, found "off"`},
		{"action", file(vpcs, "throttle: {actions: {AttachNetworkInterfaces: {capacity: 1, refill: 1}}}\n"), `there is no action "AttachNetworkInterfaces" (did you mean AttachNetworkInterface?)`},
		{"bucket", file(vpcs, "throttle: {actions: {AttachNetworkInterface: {capacity: 1}}}\n"), "a bucket has no refill (as {capacity: 50, refill: 5}"},
		{"account", strings.Replace(file(vpcs, ""), `"111122223333"`, "1111", 1), `w.yaml:2:5: an account's id is 12 digits, found "1111"`},
		{"region's name", strings.Replace(file(vpcs, ""), "name: us-west-2", "enis: []", 1), "w.yaml:4:9: a region needs the key name"},
		{"no subnets", file("vpcs: []", ""), "w.yaml:5:9: the region us-west-2 has no subnets (give one under vpcs)"},
		{"overlapping subnets", subnet("{name: c, cidr: 10.0.0.128/25}"), "w.yaml:12:23: subnet c: 10.0.0.128/25 overlaps 10.0.0.0/24 of subnet a in line 10 (cut them apart)"},
		{"subnet outside", subnet("{name: c, cidr: 10.1.0.0/24}"), "w.yaml:12:23: subnet c: 10.1.0.0/24 lies in none of the vpc's CIDRs [10.0.0.0/16] (add its CIDR to the vpc)"},
		{"subnet's size", subnet("{name: c, cidr: 10.0.2.0/29}"), "w.yaml:12:23: subnet c: expected an IPv4 CIDR between /16 and /28, found 10.0.2.0/29"},
		{"subnet's name", subnet("{name: a, cidr: 10.0.2.0/24}"), "w.yaml:12:13: there is a subnet a already, in line 10"},
		{"host bits", subnet("{name: c, cidr: 10.0.2.1/24}"), "w.yaml:12:29: cidr: 10.0.2.1/24 has bits beyond its length (write 10.0.2.0/24)"},
		{"no CIDR", subnet("{name: c, cidr: 10.0.2/24}"), `w.yaml:12:29: cidr: expected a CIDR such as 10.0.0.0/24, found "10.0.2/24"`},
		{"reservation", subnet("{name: c, cidr: 10.0.2.0/24, reservations: [10.0.3.0/28]}"), "w.yaml:12:42: subnet c: the reservation 10.0.3.0/28 does not lie in 10.0.2.0/24 (cut it out of the subnet)"},
		{"nameless", subnet("{cidr: 10.0.2.0/24}"), "a subnet needs a name or an id"},
		{"vpc's CIDR", strings.Replace(file(vpcs, ""), "10.0.0.0/16", "10.0.0.0/8", 1), "w.yaml:7:11: vpc vpc-"},
		{"type", in("type: m5.lrage\nsubnet: a"), `w.yaml:14:11: there is no instance type "m5.lrage" in the table (did you mean m5.large?)`},
		{"no type", in("subnet: a"), "w.yaml:13:11: an instance needs the key type"},
		{"subnet", in("type: m5.large\nsubnet: d"), `w.yaml:15:11: there is no subnet "d" in us-west-2`},
		{"no subnet", in("type: m5.large"), "w.yaml:13:11: which subnet? the region has 2: give the key subnet"},
		{"addresses", in("type: m5.large\nsubnet: a\naddresses: 10"), "w.yaml:16:11: an interface of m5.large has up to 9 secondary addresses, found 10"},
		{"address", in("type: m5.large\nsubnet: a\naddress: 10.0.1.9"), "w.yaml:16:11: 10.0.1.9 is not in 10.0.0.0/24 of subnet a"},
		{"reserved address", in("type: m5.large\nsubnet: a\naddress: 10.0.0.1"), "w.yaml:13:11: node-1: ec2 launch: "},
		{"mac", in("type: m5.large\nsubnet: a\nmac: 02:00:00"), `w.yaml:16:11: mac: expected six pairs of digits such as 02:00:00:00:00:01, found "02:00:00"`},
		{"group", in("type: m5.large\nsubnet: a\ngroups: [node]"), `w.yaml:16:11: there is no group "node" in vpc vpc-`},
		{"too many enis", in("type: m5.large\nsubnet: a\nenis: [{}, {}, {}]"), "w.yaml:16:26: a network card of m5.large has up to 3 interfaces, and this one is one more on card 0"},
		{"device", in("type: m5.large\nsubnet: a\nenis: [{device: 1}, {device: 1}]"), "device 1 of card 0 of node-1 is taken in line 16"},
		{"eni's addresses", in("type: m5.large\nsubnet: a\nenis: [{addresses: 12}]"), "w.yaml:16:19: an interface of m5.large has up to 9 secondary addresses, found 12"},
		{"prefixes", in("type: m5.large\nsubnet: a\naddresses: 5\nprefixes: 5"), "w.yaml:17:11: an interface of m5.large has up to 9 secondary addresses and prefixes together, found 10"},
		{"ipv6", in("type: m5.large\nsubnet: a\nipv6: 1"), "w.yaml:16:11: subnet a has no IPv6 CIDR (give the subnet the key ipv6)"},
		{"card", in("type: m5.large\nsubnet: a\nenis: [{card: 1}]"), "w.yaml:16:19: a m5.large has 1 network cards, numbered from 0: found card 1"},
		{"primary's device", in("type: m5.large\nsubnet: a\nenis: [{device: 0}]"), "w.yaml:16:19: device 0 of card 0 of node-1 is taken in line 13"},
		{"launched", file(vpcs+"launched: {imds: {listen: 127.0.0.1:1}}", ""), "w.yaml:12:20: launched instances cannot all have the same address"},
		{"fault", file(vpcs+"faults: [Fial times=3]", ""), "w.yaml:12:18: ec2 fault: there is no kind \"Fial\""},
		{"fault's node", file(vpcs+"faults: [Lose node=node-7]", ""), `w.yaml:12:18: fault "Lose node=node-7": there is no instance "node-7" in account 111122223333, us-west-2`},
		{"fault's subnet", file(vpcs+"faults: [DrainByStranger subnet=c]", ""), `there is no subnet "c"`},
		{"eni's zone", in("type: m5.large\nsubnet: a\nenis: [{subnet: b}]"), "w.yaml:16:19: node-1 is in zone us-west-2a, and subnet b in us-west-2b"},
		{"room", in("type: m5.large\nsubnet: b\ncount: 12"), "w.yaml:13:11: subnet b has 11 addresses, and with this one 12 are asked for"},
		{"count and address", in("type: m5.large\nsubnet: a\ncount: 2\naddress: 10.0.0.9"), "2 instances cannot all have the same address"},
		{"name", file(one+"  type: m5.large\n  subnet: a\n- {name: node-1, type: m5.large, subnet: a}", ""), "w.yaml:16:11: there is the instance node-1 already, in line 13"},
		{"tokens", in("type: m5.large\nsubnet: a\nimds: {tokens: maybe}"), `tokens: expected required or optional, found "maybe"`},
		{"listen", in("type: m5.large\nsubnet: a\nimds: {listen: here}"), `listen: expected an address and a port such as 127.0.0.1:9001, found "here"`},
		{"tags", in("type: m5.large\nsubnet: a\ntags: [a]"), "tags: expected keys and values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := load("w.yaml", c.text)
			var list world.Errors
			if !stderrors.As(err, &list) {
				t.Fatalf("expected mistakes, found %v in\n%s", err, c.text)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("expected %q, found\n%v\nin\n%s", c.want, err, c.text)
			}
		})
	}
}

// load parses and makes.
func load(name, text string) error {
	w, err := world.Parse(name, []byte(text))
	if err != nil {
		return err
	}
	_, _, err = w.Make()
	return err
}

// TestManyMistakes: all are told at once, in the order of the lines, and not more than anybody reads.
func TestManyMistakes(t *testing.T) {
	err := load("w.yaml", file(vpcs, "sede: 1\nsped: 2\n"))
	var list world.Errors
	if !stderrors.As(err, &list) || len(list) != 2 || list[0].Line != 12 || list[1].Line != 13 {
		t.Errorf("expected two mistakes, found %v", err)
	}
	err = load("w.yaml", strings.Repeat("- a\n", 2)+strings.Repeat("x: 1\n", 1000))
	if stderrors.As(err, &list); len(list) > 50 {
		t.Errorf("expected up to 50 mistakes, found %d", len(list))
	}
}

// TestExamples: every example is made, and settled: nothing is under way when somebody comes.
func TestExamples(t *testing.T) {
	names, err := fs.Glob(worlds.Files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		data, _ := fs.ReadFile(worlds.Files, name)
		w := must.Get(world.Parse(name, data))(t)
		clouds, settled, err := w.Make()
		must.Do(t, err)
		for _, c := range clouds {
			if at, ok := c.Next(); ok {
				t.Errorf("%s: %s: something happens at %v, after %v", name, c.Region.Name, at, settled)
			}
			for _, n := range c.Nodes {
				if got := len(c.AttachedENIs(n.ID)); got != 1+len(n.ENIs) {
					t.Errorf("%s: %s has %d interfaces, expected %d", name, n.Name, got, 1+len(n.ENIs))
				}
			}
			for _, e := range c.AllENIs() {
				if (e.Status != ec2.InUse) != (e.Instance == "") {
					t.Errorf("%s: %s is %v", name, e.ID, e.Status)
				}
			}
		}
	}
}

// FuzzParse: no file makes it panic, and what it accepts can be made or says why not.
func FuzzParse(f *testing.F) {
	f.Add(file(one+"  type: m5.large\n  subnet: a\n", "lag: none\nlatency: {call: 1ms, calls: {CreateTags: [1s, 2s, 3s]}}\nthrottle: none\n"))
	f.Add(file(vpcs, "throttle: {actions: {CreateTags: {capacity: 1, refill: 0}}}\n"))
	names, _ := fs.Glob(worlds.Files, "*.yaml")
	for _, name := range names {
		data, _ := fs.ReadFile(worlds.Files, name)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := world.Parse("w.yaml", []byte(text))
		if err != nil {
			if _, ok := err.(world.Errors); !ok || err.Error() == "" {
				t.Errorf("expected Errors, found %#v", err)
			}
			return
		}
		instances := 0
		for i := range w.Accounts {
			for _, g := range w.Accounts[i].Regions {
				instances += len(g.Instances)
			}
		}
		if instances > 100 {
			return // as good as fewer, and faster
		}
		if _, _, err := w.Make(); err != nil {
			if _, ok := err.(world.Errors); !ok {
				t.Errorf("expected Errors, found %#v", err)
			}
		}
	})
}

// TestKnobs: every knob of the model has a word in the file.
func TestKnobs(t *testing.T) {
	z := ec2.Always(0)
	for _, text := range []string{"lag: none\nlatency: none\n", "lag: {monotonic: true}\nlatency: {call: 0s}\n"} {
		latency, lag := ec2.Latency{}, ec2.Lag{}
		must.Do(t, world.ReadKnobs("knobs", []byte(text), &latency, &lag))
		if !lag.Monotonic || latency.Call[ec2.CreateTags] != z {
			t.Errorf("%s: found %+v", text, lag)
		}
		if strings.HasPrefix(text, "lag: none") {
			for _, v := range []reflect.Value{reflect.ValueOf(lag), reflect.ValueOf(latency)} {
				for i := range v.NumField() {
					if s, ok := v.Field(i).Interface().(ec2.Span); ok && s != z {
						t.Errorf("`none` leaves %s.%s at %v", v.Type().Name(), v.Type().Field(i).Name, s)
					}
				}
			}
		}
	}
	if err := world.ReadKnobs("knobs", []byte("throttle: none"), &ec2.Latency{}, &ec2.Lag{}); err == nil {
		t.Error("buckets of a running world cannot be changed, and yet they were")
	}
}

// TestMakes: what a file asks for is there, the calls that made it are not in the ledger, and its faults are in force.
func TestMakes(t *testing.T) {
	text := strings.Replace(file(vpcs+`
instances:
- {name: node, count: 2, type: m5.large, subnet: a, groups: [nodes], addresses: 2, prefixes: 1, ipv6: 2, tags: {a: b},
   enis: [{addresses: 1, ipv6-prefixes: 1, description: more}]}
enis: [{name: spare, subnet: b}]
faults: [Fail action=CreateTags node=node-2 times=2, DrainByStranger subnet=b leave=3]
`, "seed: 3\nthrottle: {actions: {AttachNetworkInterface: {capacity: 1, refill: 1}}}\n"), "cidrs: [10.0.0.0/16]", "cidrs: [10.0.0.0/16]\n          ipv6: [2001:db8::/56]", 1)
	text = strings.Replace(text, "cidr: 10.0.0.0/24}", "cidr: 10.0.0.0/24, ipv6: 2001:db8::/64}", 1)
	w := must.Get(world.Parse("w.yaml", []byte(text)))(t)
	clouds, _, err := w.Make()
	must.Do(t, err)
	c := clouds[0]
	id, ok := c.Instance("node-2")
	in, _ := c.InstanceOf(id)
	if !ok || len(in.Interfaces) != 2 || !slices.Contains(in.Tags, ec2.Tag{Key: "Name", Value: "node-2"}) || !slices.Contains(in.Tags, ec2.Tag{Key: "a", Value: "b"}) {
		t.Errorf("node-2: found %+v", in)
	}
	primary, _ := c.ENI(in.Interfaces[0].ENI)
	if len(primary.Secondaries) != 2 || len(primary.Prefixes) != 1 || len(primary.IPv6) != 2 || len(primary.SecurityGroups) != 1 {
		t.Errorf("its primary interface: found %+v", primary)
	}
	further, _ := c.ENI(in.Interfaces[1].ENI)
	if len(further.Secondaries) != 1 || len(further.IPv6Prefixes) != 1 || further.Description != "more" || !further.DeleteOnTermination {
		t.Errorf("its other interface: found %+v", further)
	}
	if n := c.CountENIs(ec2.Available); n != 1 {
		t.Errorf("found %d free interfaces, expected 1", n)
	}
	if rows := c.Ledger(); len(rows) != 0 {
		t.Errorf("the ledger of a new world has %v", rows)
	}
	if f := c.Faults(); len(f) != 1 || f[0].Instance != id {
		t.Errorf("found the faults %v", f)
	}
	if n := c.FreeAddresses(c.Region.SubnetID("b")); n != 3 {
		t.Errorf("found %d free addresses in b, expected 3", n)
	}
	c.Serve(time.Hour*3, &ec2.Request{Action: ec2.DescribeSubnets, Caller: id})
	if rows := c.Ledger(); len(rows) != 1 || rows[0].Calls != 1 {
		t.Errorf("after one call the ledger has %v", rows)
	}
}

// TestConfigIsWhole: a file can say everything that the model can be told.
func TestConfigIsWhole(t *testing.T) {
	w := must.Get(world.Parse("world.yaml", []byte(`
latency: none
lag: none
throttle: none
eni-quota: 7
vcpu-quota: 8
terminated-for: 5m
multi-vpc-attach: true
full-is-invalid-value: true
capacity: [{type: m5.large, instances: 3}]
accounts:
  - id: "111122223333"
    regions:
      - name: us-west-2
        vpcs: [{name: v, cidrs: [10.0.0.0/16], subnets: [{name: s, cidr: 10.0.0.0/24}], groups: [{name: g}]}]
`)))(t)
	c := reflect.ValueOf(w.Accounts[0].Regions[0].Config)
	for i := range c.NumField() {
		if c.Field(i).IsZero() {
			t.Errorf("no word of the file sets %s", c.Type().Field(i).Name)
		}
	}
}

// TestUsualLag: a world that says nothing of its lag shows what was made by the time an answer and the next request take; published is up to 2 s.
func TestUsualLag(t *testing.T) {
	for text, most := range map[string]time.Duration{"": 25 * time.Millisecond, "lag: usual\n": 25 * time.Millisecond, "lag: published\n": 0} {
		w := must.Get(world.Parse("w.yaml", []byte(file(vpcs, text))))(t)
		if lag := w.Accounts[0].Regions[0].Config.Lag; lag.Describe.Max != most || lag.Mutation.Max != most {
			t.Errorf("%q: expected at most %v, 0 being the model's own, found %+v", text, most, lag)
		}
	}
}
