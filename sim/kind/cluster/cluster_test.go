package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/registry"
)

func TestDefaults(t *testing.T) {
	t.Setenv("KIND_NODE_IMAGE", "example/node:1")
	c := must.Get(Config{}.withDefaults())(t)
	if c.Name != "enilab" || c.NodeImage != "example/node:1" || c.Workers != 1 || c.Type != "m5.large" || c.maxPods() != 29 {
		t.Errorf("the defaults are %+v with %d pods", c, c.maxPods())
	}
}

func TestWhatCannotBe(t *testing.T) {
	_, err := Config{Name: "My Cluster", Proxy: "ipvs", Type: "m5.huge", Workers: 99, Zones: 7, Subnets: []sim.Subnet{
		{CIDR: netip.MustParsePrefix("10.0.0.0/28")}, {CIDR: netip.MustParsePrefix("10.0.1.0/28"), Nodes: true}, {CIDR: netip.MustParsePrefix("10.0.2.0/28")}}}.withDefaults()
	for _, want := range []string{`"My Cluster"`, `"ipvs"`, `"m5.huge"`, "99 workers", "7 zones", "subnet 10.0.0.0/28: an", "subnet 10.0.1.0/28: an", "its VPC is needed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not speak of %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "10.0.2.0/28") {
		t.Errorf("%v: no node is in 10.0.2.0/28", err)
	}
}

// Nobody's addresses overlap: the router is where EC2 has the VPC's, the Docker host where it has the resolver, both in what EC2 never
// gives away, and the machines are apart from them.
func TestLayout(t *testing.T) {
	for _, s := range []string{"10.0.0.0/20", "10.0.10.0/24", "192.168.128.0/24", "10.1.2.64/26", "10.1.2.96/27", "172.26.0.0/16"} {
		subnet := netip.MustParsePrefix(s)
		network := layOut([]netip.Prefix{netip.PrefixFrom(subnet.Addr(), 12).Masked()}, []sim.Subnet{{CIDR: subnet}})
		l := network.homes[0]
		if last := network.address(MostWorkers); !l.machines.Contains(last) || !l.machines.Contains(last.Next()) || network.wire != subnet {
			t.Errorf("%v: the last machine is %v of %v, on the wire %v", subnet, last, l.machines, network.wire)
		}
		if !subnet.Contains(l.machines.Addr()) || !subnet.Overlaps(l.machines) || l.machines.Bits() <= subnet.Bits() || l.machines != l.machines.Masked() {
			t.Errorf("%v: the machines are in %v", subnet, l.machines)
		}
		first := subnet.Addr().Next()
		if l.router != first || network.host != first.Next() || l.machines.Contains(l.router) || l.machines.Contains(network.host) {
			t.Errorf("%v: router %v, host %v, machines %v", subnet, l.router, network.host, l.machines)
		}
	}
}

// Workers take turns in the zones; the wire reaches all of them, and no subnet without nodes.
func TestLayoutOfZones(t *testing.T) {
	c := Config{Zones: 3}
	l, err := c.chooseLayout(nil)
	if err != nil || l.wire != netip.MustParsePrefix("10.0.0.0/18") {
		t.Fatalf("the wire is %v, %v", l.wire, err)
	}
	for n, want := range []string{"10.0.0.36", "10.0.0.37", "10.0.16.38", "10.0.32.39", "10.0.0.40"} {
		if a, h := l.address(n), l.homeOf(n); a.String() != want || !h.subnet.Contains(a) || !h.machines.Contains(a) {
			t.Errorf("node %d has the address %v, expected %s in %v", n, a, want, h.machines)
		}
	}
	vpc := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("100.64.0.0/16")}
	l = layOut(vpc, []sim.Subnet{{CIDR: netip.MustParsePrefix("10.1.0.0/27")}, {CIDR: netip.MustParsePrefix("100.64.0.0/16")},
		{CIDR: netip.MustParsePrefix("10.1.2.0/24"), Zone: "b", Nodes: true}})
	if l.wire != netip.MustParsePrefix("10.1.0.0/22") || l.homeOf(0).no != 0 || l.homeOf(1).no != 0 || l.homeOf(2).no != 2 || l.homeOf(3).no != 0 {
		t.Errorf("the wire is %v, the homes are %v", l.wire, l.homes)
	}
}

// TestNodesHaveTheAddressesOfTheirENIs: kind's containers are given them by what kind takes for Docker's client, wherever the real one is, and are
// found in the order in which their instances have their IDs.
func TestNodesHaveTheAddressesOfTheirENIs(t *testing.T) {
	where := filepath.Join(t.TempDir(), "it's a folder")
	must.Do(t, os.Mkdir(where, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(where, "docker"), []byte("#!/bin/sh\n[ \"$1\" = path ] && set -- \"$PATH\"\nprintf '%s|' \"$@\"\n"), 0o700))
	path := where + ":" + os.Getenv("PATH")
	t.Setenv("PATH", path)
	c := &Cluster{cfg: Config{Name: "x", Zones: 2}, temp: t.TempDir()}
	c.layout = must.Get(c.cfg.chooseLayout(nil))(t)
	nodes := []v1alpha4.Node{{Role: "control-plane"}, {Role: "worker"}, {Role: "control-plane"}, {Role: "worker"}}
	folder := must.Get(c.addressNodes(&v1alpha4.Cluster{Nodes: nodes}))(t)
	t.Setenv("PATH", folder+":"+path)
	for args, want := range map[string]string{
		"run --name x-control-plane -d":         "run|--ip|10.0.0.36|--name|x-control-plane|-d|",
		"run --name x-worker -d":                "run|--ip|10.0.0.37|--name|x-worker|-d|",
		"run --name x-control-plane2 -d":        "run|--ip|10.0.0.35|--name|x-control-plane2|-d|",
		"run --name x-worker2 -d":               "run|--ip|10.0.16.38|--name|x-worker2|-d|",
		"run --name x-external-load-balancer a": "run|--name|x-external-load-balancer|a|",
		"ps --name x-worker":                    "ps|--name|x-worker|",
		"path":                                  path + "|", // a client that is a script, and looks for the next one, would come here again
	} {
		out, err := exec.Command(filepath.Join(folder, "docker"), strings.Fields(args)...).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("docker %s: %s, %v; expected %s", args, out, err, want)
		}
	}
	for i, number := range numbers(nodes) {
		if got := launched(number, 2); got != []int{0, 1, 3, 2}[i] {
			t.Errorf("%s %d is instance %d", nodes[i].Role, number, got)
		}
	}
	var found []string
	for _, m := range machinesIn("x-worker2 worker\nx-worker10 worker\nx-external-load-balancer external-load-balancer\nx-control-plane control-plane\n" +
		"x-worker worker\nx-control-plane2 control-plane") {
		found = append(found, fmt.Sprint(m.name, " ", c.layout.homeOf(m.number).no))
	}
	if got := strings.Join(found, ", "); got != "x-control-plane 0, x-worker 0, x-worker2 1, x-worker10 0, x-control-plane2 0" {
		t.Errorf("found %s", got)
	}
}

func TestChooseLayout(t *testing.T) {
	used := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12")}
	c := &Config{}
	if l, err := c.chooseLayout(used); err != nil || l.vpc[0] != netip.MustParsePrefix("192.168.0.0/16") {
		t.Errorf("chose %v, %v", l.vpc, err)
	}
	if _, err := c.chooseLayout(append(used, netip.MustParsePrefix("192.168.7.0/24"))); err == nil {
		t.Error("chose a VPC where everything is in use")
	}
	c.VPC, c.Subnets = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, []sim.Subnet{{CIDR: netip.MustParsePrefix("10.0.10.0/24")}}
	if _, err := c.chooseLayout(used); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
		t.Errorf("a subnet that is in use: %v", err)
	}
	if l, err := c.chooseLayout(nil); err != nil || l.wire != c.Subnets[0].CIDR {
		t.Errorf("the subnet %v is %v, %v", c.Subnets[0], l.wire, err)
	}
	c.Movable, c.Log = true, func(string) {}
	if l, err := c.chooseLayout(used); err != nil || l.wire != netip.MustParsePrefix("192.168.10.0/24") {
		t.Errorf("a subnet that is in use, and may be moved, is %v, %v", l.wire, err)
	}
	c.VPC[0], c.Movable = c.Subnets[0].CIDR, false
	if _, err := c.chooseLayout(nil); err == nil {
		t.Error("the VPC is no larger than its subnet")
	}
}

// TestTwoClustersAtOnce: where another process takes the addresses between the look and the deed, the cluster has others; where it takes the name,
// there is none, and the other one's stays. What else Docker refuses is an error.
func TestTwoClustersAtOnce(t *testing.T) {
	const client = `#!/bin/sh
cd "${0%/*}"
refuse() { echo "Error response from daemon: $*" >&2; exit 1; }
case "$*" in
"network ls "*) cat ids 2>/dev/null || :;;
"network inspect "*) if [ -e going ]; then rm going ids; refuse no such network: n1; fi; cat taken;;
"network create "*) echo "$6" >>asked
	if [ -e first ]; then mv first ids; echo "$6" >taken; refuse Pool overlaps with other one on this address space; fi
	if [ -e unlisted ]; then rm unlisted; refuse Pool overlaps with other one on this address space; fi
	if [ -e named ]; then refuse network with name second already exists; fi
	if [ -e full ]; then refuse no space left on device; fi;;
"container ps "*) touch removed;;
esac`
	subnet := netip.MustParsePrefix("198.18.10.0/24")
	for name, c := range map[string]struct {
		files   string
		fixed   bool
		asked   int    // how often
		want    string // of the error
		removed bool
	}{
		"nobody else":         {asked: 1, removed: true},
		"the addresses":       {files: "first", asked: 2, removed: true},
		"and cannot be moved": {files: "first", fixed: true, asked: 1, want: "choose another one"},
		"not listed yet":      {files: "unlisted", asked: 2, removed: true},
		"the name":            {files: "named", asked: 1, want: "enilab down --name second"},
		"addresses and name":  {files: "first named", asked: 2, want: "enilab down --name second"},
		"another reason":      {files: "full", asked: 1, want: "no space left"},
		"one goes meanwhile":  {files: "first going", asked: 2, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(client), 0o700))
			for _, f := range strings.Fields(c.files) {
				must.Do(t, os.WriteFile(filepath.Join(bin, f), []byte("n1\n"), 0o600))
			}
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			k := &Cluster{temp: t.TempDir(), cfg: Config{Name: "second", VPC: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/16")},
				Subnets: []sim.Subnet{{CIDR: subnet}}, Movable: !c.fixed, Log: func(string) {}}}
			err := k.makeNetwork(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("expected %q, found %v", c.want, err)
			}
			asked := strings.Fields(string(must.Get(os.ReadFile(filepath.Join(bin, "asked")))(t)))
			if len(asked) != c.asked || asked[0] != subnet.String() || asked[len(asked)-1] != k.layout.wire.String() && !c.fixed {
				t.Errorf("asked Docker for %q, expected %d times, and to have %v", asked, c.asked, k.layout.wire)
			}
			must.Do(t, k.Close())
			if _, err := os.Stat(filepath.Join(bin, "removed")); (err == nil) != c.removed {
				t.Errorf("what Docker has of that name was removed: %t, expected %t", err == nil, c.removed)
			}
		})
	}
}

// TestInterruptedWhileDockerMakesIt: Docker goes on when its client is ended, and what it made then would be left.
func TestInterruptedWhileDockerMakesIt(t *testing.T) {
	bin := t.TempDir()
	begun, done := filepath.Join(bin, "begun"), filepath.Join(bin, "done")
	must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), fmt.Appendf(nil, `#!/bin/sh
if [ "$2" = create ]; then touch %s; until [ -e %s ]; do sleep 0.01; done; fi`, begun, done), 0o700))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	ctx, interrupt := context.WithCancel(t.Context())
	k := &Cluster{cfg: Config{Name: "t", VPC: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/16")},
		Subnets: []sim.Subnet{{CIDR: netip.MustParsePrefix("198.18.10.0/24")}}, Log: func(string) {}}}
	ended := make(chan error)
	go func() { ended <- k.makeNetwork(ctx) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("Docker was not asked for a network for a minute")
		}
	}
	interrupt()
	must.Do(t, os.WriteFile(done, nil, 0o600))
	if err := <-ended; err != nil || !k.made {
		t.Errorf("it is %t that the network is known: %v", k.made, err)
	}
}

func westA(int) string { return "us-west-2a" }

// numbered are IDs that show which instance they are.
func numbered(n int) ec2.InstanceID { return ec2.InstanceID(fmt.Sprintf("i-%d", n)) }

// Every committed configuration is one that kind takes, and says what its name says.
func TestKindConfigs(t *testing.T) {
	files, err := filepath.Glob("../../../kind-config/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	l := must.Get((&Config{}).chooseLayout(nil))(t)
	for _, f := range files {
		c := must.Get(Config{File: f}.withDefaults())(t)
		got, err := c.kindConfig(&l, westA, numbered)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		mode, workers := v1alpha4.IPTablesProxyMode, 1
		if strings.Contains(f, "nftables") {
			mode = v1alpha4.ProxyMode("nftables")
		}
		if strings.Contains(f, "two-workers") {
			workers = 2
		}
		if got.Networking.KubeProxyMode != mode || len(got.Nodes) != workers+1 || got.Networking.PodSubnet != "10.0.0.0/16" {
			t.Errorf("%s: %d nodes, kube-proxy in mode %s, pods in %s", f, len(got.Nodes), got.Networking.KubeProxyMode, got.Networking.PodSubnet)
		}
		for i, n := range got.Nodes {
			if id := fmt.Sprintf("provider-id: aws:///us-west-2a/i-%d\n", i); len(n.KubeadmConfigPatches) != 2 || !strings.Contains(n.KubeadmConfigPatches[0], id) ||
				!strings.Contains(n.KubeadmConfigPatches[1], id) || n.Labels["topology.kubernetes.io/region"] != "us-west-2" {
				t.Errorf("%s: node %d is patched with %q, and has the labels %v", f, i, n.KubeadmConfigPatches, n.Labels)
			}
		}
	}
}

func TestKindConfigThatCannotBe(t *testing.T) {
	l := must.Get((&Config{}).chooseLayout(nil))(t)
	for text, want := range map[string]string{
		"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n":                "disableDefaultCNI",
		"kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworkin: {}\n": "networkin",
		"\x00": "configuration of kind's",
	} {
		file := filepath.Join(t.TempDir(), "cluster.yaml")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		c := Config{File: file}
		if _, err := c.kindConfig(&l, westA, numbered); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, expected %s and the file's name", text, err, want)
		}
	}
}

// TestTooManyNodesInAFile: a configuration of kind's may have more nodes than their subnet has addresses for machines.
func TestTooManyNodesInAFile(t *testing.T) {
	l := must.Get((&Config{}).chooseLayout(nil))(t)
	for nodes, want := range map[string]string{
		strings.Repeat("- role: worker\n", 27):                            "",
		strings.Repeat("- role: worker\n", 28):                            "28 nodes: subnet 10.0.0.0/20 has room for 27 workers and 5 control planes",
		strings.Repeat("- role: control-plane\n", 5):                      "",
		"- role: worker\n" + strings.Repeat("- role: control-plane\n", 6): "7 nodes",
	} {
		file := filepath.Join(t.TempDir(), "cluster.yaml")
		must.Do(t, os.WriteFile(file, []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking:\n  disableDefaultCNI: true\nnodes:\n"+nodes), 0o600))
		c := Config{File: file, Type: "m5.large"}
		if _, err := c.kindConfig(&l, westA, numbered); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", nodes, err, want)
		}
	}
}

// TestRelocate: a subnet that is taken keeps its size.
func TestRelocate(t *testing.T) {
	p := netip.MustParsePrefix
	for _, c := range []struct {
		subnet string
		used   []netip.Prefix
		want   string
	}{
		{"10.0.10.0/24", nil, "10.0.10.0/24"},
		{"10.0.10.0/24", []netip.Prefix{p("172.17.0.0/16")}, "10.0.10.0/24"},
		{"10.0.10.0/24", []netip.Prefix{p("10.0.0.0/20")}, "10.96.10.0/24"},
		{"10.0.0.0/16", nil, "10.0.0.0/17"},
		{"10.0.0.0/16", []netip.Prefix{p("10.0.0.0/20"), p("10.96.0.0/20")}, "10.160.0.0/17"},
		{"192.168.176.0/26", []netip.Prefix{p("192.168.0.0/16")}, "10.0.176.0/26"},
	} {
		in := netip.PrefixFrom(p(c.subnet).Addr(), 16).Masked()
		vpc, subnets, err := relocate([]netip.Prefix{in}, []sim.Subnet{{CIDR: p(c.subnet)}}, c.used)
		if err != nil || subnets[0].CIDR.String() != c.want || !vpc[0].Contains(subnets[0].CIDR.Addr()) {
			t.Errorf("%s beside %v: %v in %v, %v; want %s", c.subnet, c.used, subnets, vpc, err, c.want)
		}
	}
	// Of several subnets, those in the block that moves move, and what is reserved in them.
	blocks, subnets := []netip.Prefix{p("10.1.0.0/16"), p("10.96.0.0/16")}, []sim.Subnet{
		{CIDR: p("10.1.0.0/27")}, {CIDR: p("10.96.1.0/24")}, {CIDR: p("10.1.2.0/24"), Nodes: true, Prefixes: []netip.Prefix{p("10.1.2.128/25")}}}
	vpc, got, err := relocate(blocks, subnets, []netip.Prefix{p("10.0.0.0/15")})
	if err != nil || vpc[0] != p("10.160.0.0/16") || got[0].CIDR != p("10.160.0.0/27") || got[1].CIDR != p("10.96.1.0/24") ||
		got[2].CIDR != p("10.160.2.0/24") || got[2].Prefixes[0] != p("10.160.2.128/25") || subnets[2].Prefixes[0] != p("10.1.2.128/25") {
		t.Errorf("moved to %v, %v, %v; the scenario has %v", vpc, got, err, subnets)
	}
	// A VPC that is smaller than a /16 goes where its subnet goes.
	vpc, got, err = relocate([]netip.Prefix{p("10.1.7.0/24")}, []sim.Subnet{{CIDR: p("10.1.7.64/26")}}, []netip.Prefix{p("10.0.0.0/15")})
	if err != nil || vpc[0] != p("10.96.7.0/24") || got[0].CIDR != p("10.96.7.64/26") {
		t.Errorf("moved to %v, %v, %v", vpc, got, err)
	}
	// One that is larger would have its subnets fall together.
	large := []sim.Subnet{{CIDR: p("10.1.0.0/24")}, {CIDR: p("10.2.0.0/24"), Nodes: true}}
	_, got, err = relocate([]netip.Prefix{p("10.0.0.0/8")}, large, []netip.Prefix{p("10.0.0.0/15")})
	if err == nil || !strings.Contains(err.Error(), "/16 or smaller") {
		t.Errorf("moved to %v, %v", got, err)
	}
	small := []sim.Subnet{{CIDR: p("10.1.0.0/28")}}
	if _, _, err := relocate(blocks, small, nil); err == nil || !strings.Contains(err.Error(), "/27 or larger") {
		t.Errorf("nodes in %v: %v", small, err)
	}
	// The machines' block may be reserved for nothing else, nor may what a halved subnet has lost.
	for _, reserved := range []string{"10.1.0.0/25", "10.1.128.0/17"} {
		full := []sim.Subnet{{CIDR: p("10.1.0.0/16"), Prefixes: []netip.Prefix{p(reserved)}}}
		if _, _, err := relocate(blocks, full, nil); err == nil || !strings.Contains(err.Error(), "reserves") {
			t.Errorf("prefixes of %s: %v", reserved, err)
		}
	}
	subnets[1].Nodes = true
	if _, _, err := relocate(blocks, subnets, nil); err == nil || !strings.Contains(err.Error(), "first CIDR block") {
		t.Errorf("nodes in both blocks: %v", err)
	}
	var all []netip.Prefix
	for _, s := range candidates {
		all = append(all, p(s))
	}
	if _, _, err := relocate([]netip.Prefix{p("10.0.0.0/16")}, []sim.Subnet{{CIDR: p("10.0.0.0/24")}}, all); err == nil || !strings.Contains(err.Error(), "remove a Docker network") {
		t.Errorf("nothing is free: %v", err)
	}
}

// TestSource: the module is found from inside, and nowhere else.
func TestSource(t *testing.T) {
	if dir, err := Source(t.TempDir(), "."); err == nil {
		t.Errorf("a relative path led to %s", dir)
	}
	here := must.Get(filepath.Abs("."))(t)
	if dir, err := Source(t.TempDir(), here); err != nil || dir != filepath.Dir(filepath.Dir(filepath.Dir(here))) {
		t.Errorf("%s, %v", dir, err)
	}
	if _, err := Source(t.TempDir()); err == nil || !strings.Contains(err.Error(), "run it inside of a clone") {
		t.Errorf("elsewhere: %v", err)
	}
}

// A cluster goes when its process is gone, and only then.
func TestOrphans(t *testing.T) {
	self, err := registry.Self()
	if err != nil {
		t.Skip(err)
	}
	child := exec.Command("true")
	must.Do(t, child.Run())
	dead := registry.Process{PID: child.Process.Pid, Begun: self.Begun}
	removed, folder := filepath.Join(t.TempDir(), "removed"), filepath.Join(t.TempDir(), folderName+"1")
	must.Do(t, os.Mkdir(folder, 0o700))
	t.Setenv("FOLDER", folder)
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), fmt.Appendf(nil, "#!/bin/sh\n"+`case "$*" in
"network ls"*=old*) echo "n-old $FOLDER";;
*--format*) printf '%%s\n' "old %s" "mine %s" "odd what" "";;
"container ps"*=old) echo c-old;;
"container rm"*|"network rm"*) echo "$*" >>%s;;
*) ;;
esac`, ownerText(dead), ownerText(self), removed), 0o700))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	var said []string
	must.Do(t, removeOrphans(context.Background(), func(s string) { said = append(said, s) }))
	data := must.Get(os.ReadFile(removed))(t)
	if got, want := string(data), "container rm --force --volumes c-old c-old\nnetwork rm n-old\n"; got != want {
		t.Errorf("removed:\n%s\nexpected:\n%s", got, want)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the dead process's folder is still there (%v)", err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "cluster old") {
		t.Errorf("said %q; expected one line about the cluster old", said)
	}
}

// TestAMachineThatEndsLateRestarts: Docker gives up a container that has not ended ten seconds after it was killed. It is started once it has; what
// else Docker refuses is an error.
func TestAMachineThatEndsLateRestarts(t *testing.T) {
	bin := t.TempDir()
	called := filepath.Join(bin, "called")
	must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), fmt.Appendf(nil, "#!/bin/sh\n"+`echo "$*" >>%s
case "$*" in
"restart late") echo "Error response from daemon: Cannot restart container late: tried to kill container, but did not receive an exit event" >&2; exit 1;;
"restart gone") echo "Error response from daemon: No such container: gone" >&2; exit 1;;
esac`, called), 0o700))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	must.Do(t, restartContainer(t.Context(), "ready"))
	must.Do(t, restartContainer(t.Context(), "late"))
	if err := restartContainer(t.Context(), "gone"); err == nil || !missing(err) {
		t.Errorf("one that is not there: %v", err)
	}
	if got, want := string(must.Get(os.ReadFile(called))(t)), "restart ready\nrestart late\nwait late\nstart late\nrestart gone\n"; got != want {
		t.Errorf("called:\n%s\nexpected:\n%s", got, want)
	}
}
