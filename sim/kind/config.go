package kind

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/enilab/enilab/fakes/ec2"
)

// Config is a cluster. Its zero value is one control plane and one worker.
type Config struct {
	Name      string // default "enilab"
	NodeImage string // default: KIND_NODE_IMAGE, or kind's own
	File      string // a configuration of kind's, see kind-config; empty: made from the fields below
	Workers   int    // beside the control plane; default 1
	Proxy     string // of kube-proxy: iptables (default) or nftables
	MaxPods   int    // per node; 0: kubelet's own

	Type        string       // of the instances; default m5.large: 3 ENIs with 10 addresses each
	Secondaries int          // addresses beside the primary one that an instance has when it is launched
	VPC         netip.Prefix // default: the first of a few /16 that nothing on this machine uses
	Subnet      netip.Prefix // default: the VPC's first /20
	Latency     ec2.Latency  // of the calls
	Throttle    ec2.Throttle // of the account
	Kubeconfig  string       // where it is written; default: a temporary file that Close removes
	Log         func(string) // told what happens, a line each; nil: nobody is
	Leave       func() bool  // whether another process removes the cluster when Close has no time for it (see Down); nil: none does
	Seed        uint64       // of the models
	Hooks       Hooks        // who watches the cloud; nil functions are not called
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
	if c.Subnet.IsValid() && (c.Subnet.Bits() > 26 || !c.Subnet.Addr().Is4()) {
		errs = append(errs, fmt.Errorf("subnet %v: an IPv4 prefix of /26 or larger is needed, since Docker gives the nodes' addresses from one of its quarters", c.Subnet))
	}
	return c, errors.Join(errs...)
}

// mostWorkers bounds what one machine carries.
const mostWorkers = 9

func or(s *string, otherwise string) {
	if *s == "" {
		*s = otherwise
	}
}

// layout is who has which address of the subnet.
type layout struct {
	vpc, subnet netip.Prefix
	router      netip.Addr   // the VPC's: the first address, as in EC2
	host        netip.Addr   // the Docker host's: the second, where EC2 has the VPC's resolver
	machines    netip.Prefix // device 0 of the nodes: Docker chooses there, and EC2's model nowhere else
}

func layOut(vpc, subnet netip.Prefix) layout {
	l := layout{vpc: vpc.Masked(), subnet: subnet.Masked()}
	l.router = l.subnet.Addr().Next()
	l.host = l.router.Next()
	// The second sixteenth of a large subnet is far from EC2's own addresses; a small one gives its last quarter.
	b := l.subnet.Addr().As4()
	b[3] += 32
	l.machines = netip.PrefixFrom(netip.AddrFrom4(b), 27)
	if l.subnet.Bits() >= 26 {
		b[3] -= 16
		l.machines = netip.PrefixFrom(netip.AddrFrom4(b), 28)
	}
	return l
}

// candidates are VPCs to choose from.
var candidates = strings.Fields("10.0.0.0/16 10.96.0.0/16 10.160.0.0/16 10.224.0.0/16 172.26.0.0/16 192.168.0.0/16")

// chooseLayout takes the VPC that was asked for, or one that neither a route of the machine nor a Docker network uses.
func (c *Config) chooseLayout(used []netip.Prefix) (layout, error) {
	if c.VPC.IsValid() || c.Subnet.IsValid() {
		vpc, subnet := c.VPC, c.Subnet
		if !subnet.IsValid() {
			subnet = netip.PrefixFrom(vpc.Masked().Addr(), max(vpc.Bits(), 20))
		}
		if !vpc.IsValid() {
			vpc = netip.PrefixFrom(subnet.Addr(), min(subnet.Bits(), 16)).Masked()
		}
		if p, ok := overlap(subnet, used); ok {
			return layout{}, fmt.Errorf("subnet %v overlaps %v, which this machine uses: choose another one", subnet, p)
		}
		if vpc.Bits() >= subnet.Bits() {
			return layout{}, fmt.Errorf("subnet %v: the VPC %v is not larger: there is no room for who looks at the pods from outside of the subnet", subnet, vpc)
		}
		return layOut(vpc, subnet), nil
	}
	for _, s := range candidates {
		vpc := netip.MustParsePrefix(s)
		if _, ok := overlap(vpc, used); !ok {
			return layOut(vpc, netip.PrefixFrom(vpc.Addr(), 20)), nil
		}
	}
	return layout{}, fmt.Errorf("choose a VPC: this machine uses all of %s: name a free one", strings.Join(candidates, ", "))
}

func overlap(p netip.Prefix, used []netip.Prefix) (netip.Prefix, bool) {
	for _, u := range used {
		if u.Overlaps(p) {
			return u, true
		}
	}
	return netip.Prefix{}, false
}
