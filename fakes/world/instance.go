package world

import (
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// mostInstances bounds what one file makes, which `count` lets a few lines do.
const mostInstances = 20000

func (r *reader) instance(n *yaml.Node, g *Region) {
	i := Instance{}
	var subnetName string
	var groups []string
	var enis, metadata *yaml.Node
	count := 1
	i.object = r.object(n, "an instance", append(r.addressing(&i.Addressing), r.text("name", &i.Name), r.number("count", 1, mostInstances, &count), r.text("type", &i.Type),
		r.text("subnet", &subnetName), r.address("address", &i.Address), r.text("mac", &i.MAC),
		r.texts("groups", &groups), r.tags("tags", &i.Tags), r.text("role", &i.Role), r.text("image", &i.Image), r.flag("spot", &i.Spot),
		r.text("lifecycle", &i.Lifecycle),
		field{"user-data", func(n *yaml.Node) {
			r.Scalar(n, "user-data", "a text of up to 16 KiB", func(s string) bool {
				i.UserData = s
				return len(s) <= 16<<10 // "Run commands when you launch an EC2 instance with user data input"
			})
		}},
		field{"key", func(n *yaml.Node) {
			o := r.object(n, "key", r.text("name", &i.Key.Name), field{"public", func(n *yaml.Node) {
				r.Scalar(n, "public", "a key as in authorized_keys", func(s string) bool {
					i.Key.Public = s
					return s != "" && len(s) <= 8<<10
				})
			}})
			r.Need(n, &o, "key", "name", "public")
		}},
		field{"enis", func(n *yaml.Node) { enis = n }}, field{"imds", func(n *yaml.Node) { metadata = n }})...)
	r.Need(n, &i.object, "an instance", "name", "type")
	limits, known := ec2.LimitsOf(i.Type)
	if !known && i.Type != "" {
		r.Add(i.At("type"), strictyaml.Meant(i.Type, types()), "there is no instance type %q in the table", strictyaml.Shortened(i.Type))
	}
	s := r.findSubnet(g, &i.object, subnetName)
	if s == nil || !known {
		return
	}
	i.Subnet, i.Groups = s.ID, r.findGroups(g, &i.object, s, groups)
	r.withinType(&i.object, i.Type, limits, &i.Addressing, s)
	if i.Address.IsValid() && !s.CIDR.Contains(i.Address) {
		r.Add(i.At("address"), "", "%v is not in %v of subnet %s", i.Address, s.CIDR, s.label())
	}
	if i.MAC != "" {
		r.mac(&i)
	}
	if enis != nil {
		r.List(enis, "enis", func(n *yaml.Node) {
			var e ENI
			r.eni(n, g, &e, true)
			i.ENIs = append(i.ENIs, e)
		})
		r.checkENIs(g, &i, limits, s)
	}
	if metadata != nil {
		i.Metadata = r.metadata(metadata)
	}
	r.repeat(g, &i, count)
}

func types() (out []string) {
	p := ec2.New(ec2.Config{}, 1).Serve(0, &ec2.Request{Action: ec2.DescribeInstanceTypes})
	for _, t := range p.Types {
		out = append(out, t.Name)
	}
	return out
}

// addressing reads how many addresses an interface has.
func (r *reader) addressing(a *Addressing) []field {
	return []field{r.number("addresses", 0, 49, &a.Addresses), r.number("prefixes", 0, 49, &a.Prefixes), r.number("ipv6", 0, 50, &a.IPv6),
		r.number("ipv6-prefixes", 0, 50, &a.IPv6Prefixes)}
}

// withinType refuses more addresses than an interface of the type has; a prefix uses as much as an address.
func (r *reader) withinType(o *object, kind string, l ec2.Limits, a *Addressing, s *subnet) {
	if most, n := l.IPv4PerENI-1, a.Addresses+a.Prefixes; n > most {
		key, what := "addresses", "secondary addresses"
		if a.Prefixes > 0 {
			key, what = "prefixes", "secondary addresses and prefixes together"
		}
		r.Add(o.At(key), "", "an interface of %s has up to %d %s, found %d", kind, most, what, n)
	}
	n := a.IPv6 + a.IPv6Prefixes
	if n > l.IPv6PerENI {
		r.Add(o.At("ipv6"), "", "an interface of %s has up to %d IPv6 addresses and prefixes together, found %d", kind, l.IPv6PerENI, n)
	}
	if n > 0 && !s.IPv6.IsValid() {
		r.Add(o.At("ipv6"), "give the subnet the key ipv6", "subnet %s has no IPv6 CIDR", s.label())
	}
}

// mac checks and normalizes a MAC.
func (r *reader) mac(i *Instance) {
	octets := strings.Split(strings.ToLower(i.MAC), ":")
	ok := len(octets) == 6
	for _, o := range octets {
		ok = ok && len(o) == 2 && strings.Trim(o, "0123456789abcdef") == ""
	}
	if !ok {
		r.Add(i.At("mac"), "", "mac: expected six pairs of digits such as 02:00:00:00:00:01, found %q", strictyaml.Shortened(i.MAC))
	}
	i.MAC = strings.ToLower(i.MAC)
}

// eni reads a further interface, or with attached false one that is on no instance.
func (r *reader) eni(n *yaml.Node, g *Region, e *ENI, attached bool) {
	var subnetName string
	var groups []string
	fields := []field{r.text("name", &e.Name), r.text("subnet", &subnetName), r.texts("groups", &groups),
		r.text("description", &e.Description), r.tags("tags", &e.Tags)}
	fields = append(fields, r.addressing(&e.Addressing)...)
	what := "a free eni"
	if attached {
		what = "an eni"
		fields = append(fields, r.number("device", 0, 1<<10, &e.Device), r.number("card", 0, 1<<10, &e.Card))
	}
	e.object = r.object(n, what, fields...)
	if attached && subnetName == "" {
		e.Groups = groups // of the instance's subnet, see checkENIs
		return
	}
	if s := r.findSubnet(g, &e.object, subnetName); s != nil {
		e.Subnet, e.Groups = s.ID, r.findGroups(g, &e.object, s, groups)
	}
}

// plug is where an interface is attached.
type plug struct{ card, device int }

// checkENIs fills in the further interfaces of an instance and holds them against its type.
func (r *reader) checkENIs(g *Region, i *Instance, l ec2.Limits, home *subnet) {
	taken := map[plug]int{{}: i.Begin.Line}
	onCard := map[int]int{0: 1}
	for k := range i.ENIs {
		e := &i.ENIs[k]
		if _, given := e.Keys["device"]; !given {
			for taken[plug{e.Card, e.Device}] != 0 || e.Device == 0 {
				e.Device++
			}
		}
		at := plug{e.Card, e.Device}
		if line := taken[at]; line != 0 {
			r.Add(e.At("device"), "", "device %d of card %d of %s is taken in line %d", e.Device, e.Card, i.Name, line)
		}
		taken[at] = e.Begin.Line
		if onCard[e.Card]++; onCard[e.Card] == l.ENIs+1 {
			r.Add(e.Begin, "", "a network card of %s has up to %d interfaces, and this one is one more on card %d", i.Type, l.ENIs, e.Card)
		}
		if cards := max(l.Cards, 1); e.Card >= cards {
			r.Add(e.At("card"), "", "a %s has %d network cards, numbered from 0: found card %d", i.Type, cards, e.Card)
		}
		s := home
		if e.Subnet == "" {
			e.Subnet, e.Groups = home.ID, r.findGroups(g, &e.object, home, e.Groups)
		} else {
			s = g.subnetNamed(string(e.Subnet))
		}
		r.withinType(&e.object, i.Type, l, &e.Addressing, s)
		switch {
		case s.Zone != home.Zone:
			r.Add(e.At("subnet"), "", "%s is in zone %s, and subnet %s in %s", i.Name, home.Zone, s.label(), s.Zone)
		case s.VPC != home.VPC:
			r.Add(e.At("subnet"), "", "%s is in vpc %s, and subnet %s in %s", i.Name, home.VPC, s.label(), s.VPC)
		}
	}
}

func (r *reader) metadata(n *yaml.Node) (m Metadata) {
	m.object = r.object(n, "imds",
		r.choice("tokens", map[string]bool{"optional": true, "required": false}, "required or optional", &m.V1),
		r.choice("endpoint", map[string]bool{"disabled": true, "enabled": false}, "enabled or disabled", &m.Disabled),
		r.choice("tags", map[string]bool{"enabled": true, "disabled": false}, "enabled or disabled", &m.Tags),
		r.number("hop-limit", 1, 64, &m.HopLimit), field{"throttle", func(n *yaml.Node) { r.bucket(n, &m.Throttle) }},
		r.text("listen", &m.Listen), r.text("netns", &m.Netns))
	if m.Listen != "" {
		if _, err := netip.ParseAddrPort(m.Listen); err != nil {
			r.Add(m.At("listen"), "", "listen: expected an address and a port such as 127.0.0.1:9001, found %q", strictyaml.Shortened(m.Listen))
		}
	}
	return m
}

// launched reads what instances are like that are launched later.
func (r *reader) launched(n *yaml.Node, l *Launched) {
	l.object = r.object(n, "launched", r.text("role", &l.Role), field{"imds", func(n *yaml.Node) { l.Metadata = r.metadata(n) }})
	if l.Metadata.Listen != "" || l.Metadata.Netns != "" {
		r.Add(l.At("imds"), "", "launched instances cannot all have the same address: leave listen and netns out")
	}
}

// repeat adds an instance as often as it says.
func (r *reader) repeat(g *Region, i *Instance, count int) {
	if count > 1 {
		for _, own := range []struct {
			key   string
			given bool
		}{{"address", i.Address.IsValid()}, {"mac", i.MAC != ""}, {"imds", i.Metadata.Listen != "" || i.Metadata.Netns != ""}} {
			if own.given {
				r.Add(i.At(own.key), "write the instances out, or leave it to EC2", "%d instances cannot all have the same %s", count, own.key)
			}
		}
	}
	for k := range count {
		if len(g.Instances) >= mostInstances {
			r.Add(i.Begin, "", "a region has up to %d instances", mostInstances)
			return
		}
		one := *i
		one.Name = numbered(i.Name, k+1, count)
		g.Instances = append(g.Instances, one)
	}
}
