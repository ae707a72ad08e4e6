package actions

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Cloud is what verbs of EC2 and metadata work on: the model, and where its world has nodes and pods.
type Cloud struct {
	Model    *ec2.Cloud
	Cluster  string // its name, "" is none
	Now      time.Duration
	Instance func(node int) ec2.InstanceID
	Address  func(pod string) netip.Addr // of a pod; the zero one is none
}

// More are addresses that a pod adds to its own: those of its node first, then free ones of the node's subnet.
func More(m *ec2.Cloud, node ec2.InstanceID, own netip.Addr, count int) (out []netip.Addr) {
	add := func(a netip.Addr) {
		if a != own && len(out) < count {
			out = append(out, a)
		}
	}
	var first ec2.ENI
	for i, id := range m.AttachedENIs(node) {
		e, _ := m.ENI(id)
		if i == 0 {
			first = e
		}
		for _, a := range e.Secondaries {
			add(a)
		}
	}
	for _, s := range m.Subnets() {
		if s.ID != first.Subnet {
			continue
		}
		a := s.CIDR.Masked().Addr()
		for range reservedBelow { // by AWS
			a = a.Next()
		}
		for ; s.CIDR.Contains(a.Next()) && len(out) < count; a = a.Next() {
			if _, _, owned := m.OwnerOf(a); !owned {
				add(a)
			}
		}
	}
	return out
}

// reservedBelow is how many addresses of a subnet nobody can have, from its first ("Subnet CIDR blocks"); the last is reserved too.
const reservedBelow = 4

// cloudVerbs are the verbs of EC2 and of metadata, the same in every world. The number of an action is what the model calls its fault by.
var cloudVerbs = map[verb]func(c *Cloud, a *sim.Act, id int) sim.Strike{
	{scn.EC2, "lose"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		k := ec2.Lose
		if a.Text("after") == "dropped" {
			k = ec2.LoseRequest
		}
		return c.fault(a, id, ec2.Fault{Kind: k})
	},
	{scn.EC2, "duplicate"}: func(c *Cloud, a *sim.Act, id int) sim.Strike { return c.fault(a, id, ec2.Fault{Kind: ec2.Duplicate}) },
	{scn.EC2, "fail"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		return c.fault(a, id, ec2.Fault{Kind: ec2.Fail, Code: a.Text("code"), Executed: a.Text("after") == "executed"})
	},
	{scn.EC2, "throttle"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		return c.fault(a, id, ec2.Fault{Kind: ec2.ThrottleBurst})
	},
	{scn.EC2, "slow"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		k := ec2.Slow
		if a.Text("way") == "back" {
			k = ec2.SlowAnswer
		}
		return c.fault(a, id, ec2.Fault{Kind: k, Slow: a.Duration("by")})
	},
	{scn.EC2, "deny"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		return c.fault(a, id, ec2.Fault{Kind: ec2.DenyPermission})
	},
	{scn.EC2, "allow"}: (*Cloud).allow,
	{scn.EC2, "down"}:  func(c *Cloud, a *sim.Act, id int) sim.Strike { return c.fault(a, id, ec2.Fault{Kind: ec2.Down}) },
	{scn.EC2, "skew"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		by := a.Duration("by")
		if a.Text("clock") == "behind" {
			by = -by
		}
		return c.fault(a, id, ec2.Fault{Kind: ec2.ClockSkew, By: by})
	},
	{scn.EC2, "stale"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		return c.fault(a, id, ec2.Fault{Kind: ec2.StaleReads, By: a.Duration("by")})
	},
	{scn.EC2, "hang"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		k := ec2.DetachHangs
		if a.Text("what") == "attach" {
			k = ec2.AttachHangs
		}
		return c.fault(a, id, ec2.Fault{Kind: k})
	},
	{scn.EC2, "in-use"}:       func(c *Cloud, a *sim.Act, id int) sim.Strike { return c.fault(a, id, ec2.Fault{Kind: ec2.DeleteInUse}) },
	{scn.EC2, "detach"}:       func(c *Cloud, a *sim.Act, _ int) sim.Strike { return c.strange(a, c.Model.StrangerDetach, "detached") },
	{scn.EC2, "remove"}:       func(c *Cloud, a *sim.Act, _ int) sim.Strike { return c.strange(a, c.Model.StrangerDelete, "deleted") },
	{scn.EC2, "attach"}:       (*Cloud).attach,
	{scn.EC2, "leak"}:         (*Cloud).leak,
	{scn.EC2, "unassign"}:     (*Cloud).unassign,
	{scn.EC2, "drain-subnet"}: (*Cloud).drain,
	{scn.EC2, "draw"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		c.Model.Advance(c.Now)
		for k := range a.Int("faults") {
			f := ec2.DrawFault(uint64(a.Int("seed"))<<20+uint64(k), c.Now, c.Model.Running())
			f.ID = id
			c.Model.Fault(f)
		}
		return sim.Wait("nobody met one of its faults")
	},
	{scn.IMDS, "silent"}: func(c *Cloud, a *sim.Act, id int) sim.Strike { return c.fault(a, id, ec2.Fault{Kind: ec2.IMDSSilent}) },
	{scn.IMDS, "lag"}: func(c *Cloud, a *sim.Act, id int) sim.Strike {
		c.Model.LagIMDS(c.Now, a.Duration("by"), id)
		return sim.Wait("nobody read metadata that showed an older state for it")
	},
}

// verb names a handler.
type verb struct {
	on   scn.SubjectKind
	name string
}

// Do carries out a verb of EC2 or metadata.
func (c *Cloud) Do(a *sim.Act, id int) sim.Strike {
	do := cloudVerbs[verb{a.Subject.Kind, a.Verb}]
	if do == nil {
		return sim.Miss("no world knows the verb")
	}
	return do(c, a, id)
}

// fault arms what a verb about calls has go wrong. A verb that has no times ends by the clock.
func (c *Cloud) fault(a *sim.Act, id int, f ec2.Fault) sim.Strike {
	f.ID = id
	f.Action, _ = ec2.ParseAction(a.Text("call")) // "any" is AnyAction, as is none
	f.Times = a.Int("times")
	if a.Text("for") != "" {
		f.Until = c.Now + a.Duration("for")
	}
	whose := "nobody"
	if n := a.Int("node"); n > 0 {
		f.Instance, whose = c.Instance(n), fmt.Sprintf("node-%d never", n)
	}
	c.Model.Fault(f)
	if call := a.Text("call"); call != "" && call != "any" {
		return sim.Wait("%s made such a %s", whose, call)
	}
	return sim.Wait("%s met it", whose)
}

// Grant gives the instances of a cluster their role, if it has one. Ending all faults takes it away: whoever does grants it again.
func Grant(m *ec2.Cloud, c *sim.Cluster) {
	if c.Role != 0 {
		m.Fault(ec2.Fault{Kind: ec2.AllowOnly, Allow: c.Role})
	}
}

// allow strikes whoever asks for what the role leaves out; a role that gives back what an earlier one took has struck at once.
func (c *Cloud) allow(a *sim.Act, id int) sim.Strike {
	names, _ := ec2.ParseActions(a.Text("actions")) // checked by Bind
	narrow := false
	for _, f := range c.Model.Faults() {
		narrow = narrow || f.Kind == ec2.AllowOnly && f.Allow&^names == 0 && f.Allow != names
	}
	s := c.fault(a, id, ec2.Fault{Kind: ec2.AllowOnly, Allow: names})
	if narrow {
		return sim.Hit("the role names what an earlier one did not")
	}
	return s
}

// strange is a stranger who works on the interface at a node's device index.
func (c *Cloud) strange(a *sim.Act, do func(now time.Duration, e ec2.ENIID) bool, what string) sim.Strike {
	node, device := a.Int("node"), a.Int("device")
	for _, id := range c.Model.AttachedENIs(c.Instance(node)) {
		if e, _ := c.Model.ENI(id); e.DeviceIndex == device {
			if !do(c.Now, id) {
				return sim.Miss("EC2 refuses it: the ENI at device %d of node-%d cannot be %s now", device, node, what)
			}
			return sim.Hit("the ENI at device %d of node-%d is %s", device, node, what)
		}
	}
	return sim.Miss("node-%d has no ENI at device %d", node, device)
}

// attach is a stranger who has a use of its own for a node's device index.
func (c *Cloud) attach(a *sim.Act, _ int) sim.Strike {
	s := ec2.StrangerENI{Description: "a stranger's", Secondaries: a.Int("addresses"), Prefixes: a.Int("prefixes")}
	if s.Prefixes > 0 {
		s.Secondaries = 0
	}
	switch kind := a.Text("kind"); kind {
	case "no_manage":
		s.Tags = []ec2.Tag{{Key: judge.TagNoManage, Value: "true"}}
	case "untagged":
	case "efa-only":
		s.Secondaries, s.Prefixes = 0, 0
		fallthrough
	default:
		s.Kind, _ = ec2.ParseInterfaceKind(kind)
	}
	node := a.Int("node")
	id, ok := c.Model.StrangerAttach(c.Now, c.Instance(node), a.Int("device"), s)
	if !ok {
		return sim.Miss("EC2 refuses to attach an ENI to node-%d", node)
	}
	e, _ := c.Model.ENI(id)
	return sim.Hit("a stranger attaches an ENI (%s) at device %d of node-%d", a.Text("kind"), e.DeviceIndex, node)
}

// Neighbour is a VPC that is not the cluster's, with a subnet, for worlds that make a model of EC2.
func Neighbour() (ec2.VPC, ec2.SubnetConfig) {
	const id = "vpc-neighbour"
	all := netip.MustParsePrefix("10.0.0.0/16")
	return ec2.VPC{ID: id, CIDRs: []netip.Prefix{all}}, ec2.SubnetConfig{VPC: id, CIDR: netip.PrefixFrom(all.Addr(), 24)}
}

// leak is the CNI of a node that is gone.
func (c *Cloud) leak(a *sim.Act, _ int) sim.Strike {
	subnets, cluster := c.Model.Subnets(), c.Cluster
	subnet, where := subnets[0].ID, "this cluster"
	switch a.Text("of") {
	case "another-cluster":
		cluster, where = cluster+"neighbour", "another cluster"
	case "another-vpc":
		where = "another VPC"
		i := slices.IndexFunc(subnets, func(s ec2.Subnet) bool { return s.VPC != subnets[0].VPC })
		if i < 0 {
			return sim.Miss("there is no other VPC")
		}
		subnet = subnets[i].ID
	}
	const gone = "i-0123456789abcdef0"
	s := ec2.StrangerENI{Subnet: subnet, Description: "aws-K8S-" + gone, Secondaries: a.Int("addresses"), Tags: []ec2.Tag{{Key: judge.TagOwner, Value: gone},
		{Key: judge.TagCreated, Value: "2019-01-02T03:04:05Z"}}}
	if cluster != "" {
		s.Tags = append(s.Tags, ec2.Tag{Key: judge.TagCluster, Value: cluster})
	}
	if _, ok := c.Model.StrangerCreate(c.Now, s); !ok {
		return sim.Miss("EC2 refuses to make an ENI")
	}
	return sim.Hit("a node of %s is gone, and has left an available ENI", where)
}

func (c *Cloud) unassign(a *sim.Act, _ int) sim.Strike {
	pod := a.Text("pod")
	address := c.Address(pod)
	if !address.IsValid() {
		return sim.Miss("pod %s has no address", pod)
	}
	if !c.Model.StrangerUnassign(c.Now, address) {
		return sim.Miss("no ENI has the address of pod %s as a secondary one", pod)
	}
	return sim.Hit("no ENI has the address of %s any more", pod)
}

func (c *Cloud) drain(a *sim.Act, _ int) sim.Strike {
	switch n := c.Model.DrainSubnet(c.Now, c.Model.Subnets()[0].ID, a.Int("leave")); {
	case n > 0:
		return sim.Hit("strangers take %s", Count(n, "address"))
	case n < 0:
		return sim.Hit("strangers give %s back", Count(-n, "address"))
	}
	return sim.Miss("strangers could neither take addresses nor give any back")
}

// Told is a fault of the cloud's that was met, for people. node names the node of an instance.
func Told(m ec2.Met, node func(ec2.InstanceID) string) string {
	who := node(m.Instance)
	switch call := m.Action.String(); m.Kind {
	case 0:
		return "the metadata of " + who + " shows an older state"
	case ec2.Lose:
		return "the answer to the " + call + " of " + who + " is lost"
	case ec2.LoseRequest:
		return "the " + call + " of " + who + " is lost on its way"
	case ec2.Fail:
		return "the " + call + " of " + who + " fails"
	case ec2.Slow:
		return "the " + call + " of " + who + " takes longer"
	case ec2.SlowAnswer:
		return "the answer to the " + call + " of " + who + " takes longer"
	case ec2.ThrottleBurst:
		return "the bucket is empty for the " + call + " of " + who
	case ec2.Down:
		return "EC2 is unavailable for the " + call + " of " + who
	case ec2.DenyPermission:
		return "the " + call + " of " + who + " is denied"
	case ec2.AllowOnly:
		return "the role of " + who + " does not name " + call
	case ec2.DetachHangs:
		return "a detach from " + who + " hangs"
	case ec2.AttachHangs:
		return "an attach to " + who + " hangs"
	case ec2.DeleteInUse:
		return who + " is told that the ENI to be deleted is in use"
	case ec2.Duplicate:
		return "the " + call + " of " + who + " arrives twice"
	case ec2.IMDSSilent:
		return "the metadata of " + who + " does not answer"
	case ec2.ClockSkew:
		return "the " + call + " of " + who + " is refused: its clock is wrong"
	case ec2.StaleReads:
		return "the " + call + " of " + who + " shows an older state"
	}
	return "a stranger has acted: " + m.Kind.String()
}
