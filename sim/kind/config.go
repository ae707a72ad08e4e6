package kind

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
)

// Config is a cluster. Its zero value is one control plane and one worker.
type Config struct {
	Name      string // default "enilab"
	NodeImage string // default: KIND_NODE_IMAGE, or kind's own
	File      string // a configuration of kind's, see kind-config; empty: made from the fields below
	Workers   int    // beside the control plane; default 1
	Proxy     string // of kube-proxy: iptables (default) or nftables
	MaxPods   int    // per node; 0: kubelet's own

	Type        string         // of the instances; default m5.large: 3 ENIs with 10 addresses each
	Secondaries int            // addresses beside the primary one that an instance has when it is launched
	VPC         []netip.Prefix // its CIDR blocks; default: the first of a few /16 that nothing on this machine uses
	Subnets     []sim.Subnet   // default: the VPC's first /20. The control plane is in the first one, workers as sim.Cluster.HomeOf says
	Zones       int            // without Subnets: the workers are in so many zones in turn, a subnet in each; default 1
	Latency     ec2.Latency    // of the calls
	Throttle    ec2.Throttle   // of the account
	Kubeconfig  string         // where it is written; default: a temporary file that Close removes
	Log         func(string)   // told what happens, a line each; nil: nobody is
	Leave       func() bool    // whether another process removes the cluster when Close has no time for it (see Down); nil: none does
	Seed        uint64         // of the models
	Hooks       Hooks          // who watches the cloud; nil functions are not called
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// longestName leaves room for "-control-plane" in a host name of 63 bytes.
const longestName = 40

// withDefaults fills what is zero and refuses what cannot be.
func (c Config) withDefaults() (Config, error) {
	or(&c.Name, "enilab")
	or(&c.NodeImage, os.Getenv("KIND_NODE_IMAGE"))
	or(&c.NodeImage, defaults.Image)
	or(&c.Proxy, "iptables")
	or(&c.Type, "m5.large")
	if c.Workers == 0 && c.File == "" {
		c.Workers = 1
	}
	if c.Log == nil {
		c.Log = func(string) {}
	}
	var errs []error
	if !namePattern.MatchString(c.Name) || len(c.Name) > longestName {
		errs = append(errs, fmt.Errorf("cluster name %q: up to %d lower-case letters, digits and dashes are a name", c.Name, longestName))
	}
	if c.Proxy != "iptables" && c.Proxy != "nftables" {
		errs = append(errs, fmt.Errorf("kube-proxy mode %q: iptables and nftables are possible", c.Proxy))
	}
	if _, ok := ec2.LimitsOf(c.Type); !ok {
		errs = append(errs, fmt.Errorf("instance type %q is not in the table of limits", c.Type))
	}
	if c.Workers < 0 || c.Workers > mostWorkers {
		errs = append(errs, fmt.Errorf("%d workers: 0 to %d are possible", c.Workers, mostWorkers))
	}
	if len(c.Subnets) > 0 && len(c.VPC) == 0 {
		errs = append(errs, fmt.Errorf("subnet %v: the CIDR of its VPC is needed too", c.Subnets[0].CIDR))
	}
	if c.Zones < 0 || c.Zones > mostZones {
		errs = append(errs, fmt.Errorf("%d zones: 1 to %d are possible", c.Zones, mostZones))
	}
	for i, s := range c.Subnets {
		if (i == 0 || s.Nodes) && (s.CIDR.Bits() > smallestHome || !s.CIDR.Addr().Is4()) {
			errs = append(errs, fmt.Errorf("subnet %v: an IPv4 prefix of /%d or larger is needed, for half of a smaller one would not do for the nodes' own addresses",
				s.CIDR, smallestHome))
		}
	}
	return c, errors.Join(errs...)
}

// mostZones is how many zones the model's region has.
const mostZones = 6

// smallestHome is how small a subnet with nodes may be: see newHome.
const smallestHome = 27

// mostWorkers bounds what one machine carries.
const mostWorkers = 9

func or(s *string, otherwise string) {
	if *s == "" {
		*s = otherwise
	}
}

// layout is who has which address. All nodes are on one Docker network, whatever subnet each is in.
type layout struct {
	vpc     []netip.Prefix
	subnets []sim.Subnet
	homes   []home       // the subnets that nodes are in
	wire    netip.Prefix // the Docker network's: all homes
	host    netip.Addr   // the Docker host's: the third address of the first home, where EC2 has the VPC's resolver
}

// home is a subnet that nodes are in.
type home struct {
	no       int // of the layout's subnets
	subnet   netip.Prefix
	router   netip.Addr   // the VPC's: the second address, as in EC2
	machines netip.Prefix // device 0 of the nodes has addresses of it, and EC2's model gives out none
}

func newHome(no int, s *sim.Subnet) home {
	h := home{no: no, subnet: s.CIDR, router: s.CIDR.Addr().Next()}
	// The second sixteenth of a large subnet is far from EC2's own addresses; a small one gives a quarter, or half of it.
	b := h.subnet.Addr().As4()
	b[3] += 32
	h.machines = netip.PrefixFrom(netip.AddrFrom4(b), 27)
	if h.subnet.Bits() >= 26 {
		b[3] -= 16
		h.machines = netip.PrefixFrom(netip.AddrFrom4(b), 28)
	}
	return h
}

// dockers is how many of a home's machine addresses Docker may give to containers that are no nodes, such as the load balancer of several control planes.
const dockers = 4

// address is that of device 0 of the n-th worker, or of a control plane: the first one is 0, and further ones, below 0, have what Docker leaves.
func (l *layout) address(n int) netip.Addr {
	a := l.homeOf(n).machines.Addr()
	for range dockers + n {
		a = a.Next()
	}
	return a
}

// homeOf is where the n-th worker is, from 1; control planes, 0 and below, are in the first home.
func (l *layout) homeOf(n int) *home {
	c := sim.Cluster{Subnets: l.subnets}
	at := c.HomeOf(max(n, 1))
	return &l.homes[max(0, slices.IndexFunc(l.homes, func(h home) bool { return n > 0 && h.no == at }))]
}

// layOut is a VPC with these subnets, the first of which nodes are in.
func layOut(vpc []netip.Prefix, subnets []sim.Subnet) layout {
	l := layout{vpc: vpc, subnets: subnets}
	for i := range subnets {
		if s := &subnets[i]; i == 0 || s.Nodes {
			l.homes = append(l.homes, newHome(i, s))
		}
	}
	l.host = l.homes[0].router.Next()
	l.wire = l.homes[0].subnet
	for _, h := range l.homes[1:] {
		for !l.wire.Contains(h.subnet.Addr()) || l.wire.Bits() > h.subnet.Bits() {
			l.wire = netip.PrefixFrom(l.wire.Addr(), l.wire.Bits()-1).Masked()
		}
	}
	return l
}

// candidates are VPCs to choose from.
var candidates = strings.Fields("10.0.0.0/16 10.96.0.0/16 10.160.0.0/16 10.224.0.0/16 172.26.0.0/16 192.168.0.0/16")

// chooseLayout takes the VPC that was asked for, or one that neither a route of the machine nor a Docker network uses.
func (c *Config) chooseLayout(used []netip.Prefix) (layout, error) {
	if len(c.VPC) > 0 {
		subnets := c.Subnets
		if len(subnets) == 0 {
			subnets = c.zones(c.VPC[0])
		}
		l := layOut(c.VPC, subnets)
		if p, ok := overlap(l.wire, used); ok {
			return l, fmt.Errorf("subnet %v overlaps %v, which this machine uses: choose another one", l.wire, p)
		}
		if c.VPC[0].Bits() >= l.homes[0].subnet.Bits() {
			return l, fmt.Errorf("subnet %v: the VPC %v is not larger: there is no room for who looks at the pods from outside of the subnet", l.homes[0].subnet, c.VPC[0])
		}
		return l, nil
	}
	for _, s := range candidates {
		vpc := netip.MustParsePrefix(s)
		if _, ok := overlap(vpc, used); !ok {
			return layOut([]netip.Prefix{vpc}, c.zones(vpc)), nil
		}
	}
	return layout{}, fmt.Errorf("choose a VPC: this machine uses all of %s: name a free one", strings.Join(candidates, ", "))
}

// zones are the VPC's first subnets, of a sixteenth of a /16 each, in zones of their own.
func (c *Config) zones(vpc netip.Prefix) (out []sim.Subnet) {
	bits := max(vpc.Bits(), 20)
	a := vpc.Masked().Addr().As4()
	for i := range max(c.Zones, 1) {
		out = append(out, sim.Subnet{CIDR: netip.PrefixFrom(netip.AddrFrom4(a), bits), Nodes: true})
		if i > 0 {
			out[i].Zone = string(rune('a' + i))
		}
		a[2] += 16
	}
	return out
}

func overlap(p netip.Prefix, used []netip.Prefix) (netip.Prefix, bool) {
	for _, u := range used {
		if u.Overlaps(p) {
			return u, true
		}
	}
	return netip.Prefix{}, false
}
