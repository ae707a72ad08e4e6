package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
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
	Movable     bool           // where this machine uses the Subnets' addresses they have others: their sizes are what matters
	Zones       int            // without Subnets: the workers are in so many zones in turn, a subnet in each; default 1
	Latency     ec2.Latency    // of the calls
	Throttle    ec2.Throttle   // of the account
	Kubeconfig  string         // where it is written; default: a temporary file that Close removes
	Log         func(string)   // told what happens, a line each; nil: nobody is
	Leave       func() bool    // whether another process removes the cluster when Close has no time for it (see Down); nil: none does
	Seed        uint64         // of the models
	Hooks       Hooks          // who watches the cloud; nil functions are not called
}

// Hooks watch the cloud. They run in the goroutine that owns it: they may use the model, and must not block.
type Hooks struct {
	// Arrived is asked about a request before and after it is executed; true: its caller dies now, and there is no answer.
	Arrived func(n *Node, a ec2.Action, after bool) bool
	// Asked is told of a request that is about to be executed.
	Asked func(n *Node, r *ec2.Request)
	// Served is told of a request and its answer.
	Served func(n *Node, r *ec2.Request, resp *ec2.Response)
	// Happened is told what happened, before the VPC follows it. The Node is nil for an ENI that is on none.
	Happened func(n *Node, e *ec2.Event)
	// Rebooted is told that a machine's processes and namespaces have ended.
	Rebooted func(n *Node)
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// longestName leaves room for "-control-plane" in a host name of 63 bytes.
const longestName = 40

// withDefaults fills what is zero and refuses what cannot be.
func (c Config) withDefaults() (Config, error) {
	c.Name, c.Proxy, c.Type = cmp.Or(c.Name, "enilab"), cmp.Or(c.Proxy, "iptables"), cmp.Or(c.Type, "m5.large")
	c.NodeImage = cmp.Or(c.NodeImage, os.Getenv("KIND_NODE_IMAGE"), defaults.Image)
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
	if c.Workers < 0 || c.Workers > MostWorkers {
		errs = append(errs, fmt.Errorf("%d workers: 0 to %d are possible", c.Workers, MostWorkers))
	}
	if len(c.Subnets) > 0 && len(c.VPC) == 0 {
		errs = append(errs, fmt.Errorf("subnet %v: the CIDR of its VPC is needed too", c.Subnets[0].CIDR))
	}
	if c.Zones < 0 || c.Zones > mostZones {
		errs = append(errs, fmt.Errorf("%d zones: 1 to %d are possible", c.Zones, mostZones))
	}
	for i, s := range c.Subnets {
		if !c.Movable && (i == 0 || s.Nodes) && (s.CIDR.Bits() > smallestHome || !s.CIDR.Addr().Is4()) {
			errs = append(errs, fmt.Errorf("subnet %v: an IPv4 prefix of /%d or larger is needed, for half of a smaller one would not do for the nodes' own addresses",
				s.CIDR, smallestHome))
		}
	}
	return c, errors.Join(errs...)
}

// mostZones is how many zones the model's region has.
const mostZones = 6

// MostWorkers bounds what one machine carries.
const MostWorkers = 9

// chooseLayout takes the VPC that was asked for, or one that neither a route of the machine nor a Docker network uses.
func (c *Config) chooseLayout(used []netip.Prefix) (layout, error) {
	if c.Movable {
		vpc, subnets, err := relocate(c.VPC, c.Subnets, used)
		if err != nil {
			return layout{}, err
		}
		if from, to := c.Subnets[0].CIDR, subnets[0].CIDR; from != to {
			c.Log(fmt.Sprintf("the subnet %v is %v on this machine", from, to))
		}
		return layOut(vpc, subnets), nil
	}
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
