package virtual

import (
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
)

// inFlight is a request on its way to EC2: a Call, or a Look at EC2.
type inFlight struct {
	req  ec2.Request
	id   ipam.ID
	what ipam.What // 0: a Call
	act  ipam.Action
	back time.Duration
	enis []ec2.ENI // LookLeaked: what was found, while EC2 is asked whose instance lives
}

var actionOf = [...]ec2.Action{0, ec2.CreateNetworkInterface, ec2.AttachNetworkInterface, ec2.ModifyNetworkInterfaceAttribute,
	ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface, ec2.AssignPrivateIpAddresses, ec2.UnassignPrivateIpAddresses,
	ec2.ModifyNetworkInterfaceAttribute}

func (d *daemon) startCall(c *ipam.Call) {
	n, w := d.n, d.n.w
	f := &inFlight{id: c.ID, act: c.Action}
	f.req = ec2.Request{Action: actionOf[c.Action], Caller: n.Instance, ENI: ec2.ENIID(c.ENI)}
	switch c.Action {
	case ipam.CreateENI:
		f.req.Subnet, f.req.ClientToken = ec2.SubnetID(c.Subnet), c.Token
		f.req.SecondaryCount, f.req.PrefixCount = c.Count, c.PrefixCount
		f.req.Description, f.req.SecurityGroups = "aws-K8S-"+c.Owner, c.Groups
		f.req.Tags = []ec2.Tag{{Key: judge.TagOwner, Value: c.Owner}, {Key: judge.TagCreated, Value: time.Unix(c.Created, 0).UTC().Format(time.RFC3339)}}
		if c.Cluster != "" {
			f.req.Tags = append(f.req.Tags, ec2.Tag{Key: judge.TagCluster, Value: c.Cluster})
		}
	case ipam.AttachENI:
		f.req.Instance, f.req.DeviceIndex = n.Instance, c.Device
	case ipam.GroupENI:
		f.req.SecurityGroups = c.Groups
	case ipam.ModifyENI:
		f.req.Attachment, f.req.DeleteOnTermination = c.Attachment, true
	case ipam.DetachENI:
		f.req.Attachment = c.Attachment
	case ipam.AssignIPs:
		f.req.SecondaryCount, f.req.PrefixCount = c.Count, c.PrefixCount
	case ipam.UnassignIPs:
		f.req.Addresses, f.req.Prefixes = c.Addresses, c.Prefixes
	}
	if w.Trapped(&n.Node, f.req.Action, false) {
		return
	}
	d.send(f)
}

func (d *daemon) send(f *inFlight) {
	d.n.w.mix(uint64(f.req.Action)<<48 ^ uint64(f.id))
	there, back := d.n.w.EC2.Travel(&f.req)
	f.back = back
	d.in(there, evServe, uint64(f.id), f)
}

// serve is the instant at which EC2 executes a request.
func (d *daemon) serve(e *event) {
	n, w := d.n, d.n.w
	f := e.data.(*inFlight)
	w.Auditor.Requested(w.now, int(n.No), w.Whose(&n.Node), &f.req)
	r := w.EC2.Serve(w.now, &f.req)
	w.Auditor.EC2Call(w.now, int(n.No))
	w.mixString(r.Code)
	if f.what == 0 {
		n.cloudSaid(f, &r)
	}
	if e.life != d.life || d.core == nil {
		return // its daemon is dead; EC2 does not mind
	}
	if f.what != 0 && r.Code == "InvalidNetworkInterfaceID.NotFound" && d.askWithout(f, &r) {
		return
	}
	if r.Code == "" && w.Trapped(&n.Node, f.req.Action, true) {
		return
	}
	// The second question comes after the first one's trap, and asks no third: it brings the ENIs along.
	if f.what == ipam.LookLeaked && f.enis == nil && r.Code == "" && !r.Lost && d.askWhoLives(f, &r) {
		return
	}
	after := f.back
	if r.Lost {
		after = models.SDKTimeout
	}
	var in ipam.Input
	if f.what == 0 {
		in = ipam.Called{ID: f.id, Result: f.result(w.EC2, &r)}
	} else {
		in = d.described(f, &r)
	}
	d.in(after, evInput, uint64(f.id), in)
	if m := w.mutant; m != nil && m.Shell&mutants.RetryCalls != 0 && f.what == 0 && r.Code != "" {
		g := *f
		d.send(&g)
	}
}

// askWithout repeats a question without the ID that EC2 does not know, for an unknown one spoils the answer for the others
// (amazon-vpc-cni-k8s does the same). The last one's refusal is an answer: nothing of what was asked exists.
func (d *daemon) askWithout(f *inFlight, r *ec2.Response) bool {
	g := *f
	g.req.ENIs = slices.DeleteFunc(slices.Clone(f.req.ENIs), func(id ec2.ENIID) bool { return strings.Contains(r.Message, string(id)) })
	if len(g.req.ENIs) == 0 {
		*r = ec2.Response{HTTP: 200}
		return false
	}
	if len(g.req.ENIs) < len(f.req.ENIs) {
		d.send(&g)
		return true
	}
	return false
}

// askWhoLives asks about the instances of leaked ENIs, if others are among them, as Cloud.Leaked does.
func (d *daemon) askWhoLives(f *inFlight, r *ec2.Response) bool {
	n, w := d.n, d.n.w
	if !slices.ContainsFunc(r.ENIs, func(e ec2.ENI) bool { return eni(w.EC2, &e).Owner != string(n.Instance) }) {
		return false
	}
	d.send(&inFlight{id: f.id, what: f.what, enis: r.ENIs, req: ec2.Request{Action: ec2.DescribeInstances, Caller: n.Instance, FilterDescription: "*"}})
	return true
}

// near says whether an ENI is in the VPC of who asks, as EC2's answer about instances has it, and of the cluster.
func (f *inFlight) near(r *ec2.Response, e *ec2.ENI, cluster string) bool {
	self := slices.IndexFunc(r.Instances, func(i ec2.Instance) bool { return i.ID == f.req.Caller })
	return r.Code == "" && !r.Lost && self >= 0 && r.Instances[self].VPC == e.VPC && judge.TagOf(e, judge.TagCluster) == cluster
}

// gone says whether EC2's answer about instances has no living one with that ID. One that lacks who asks is not believed.
func (f *inFlight) gone(r *ec2.Response, owner string) bool {
	lives := func(id ec2.InstanceID) bool {
		return slices.ContainsFunc(r.Instances, func(i ec2.Instance) bool { return i.ID == id && i.State != "terminated" })
	}
	return r.Code == "" && !r.Lost && lives(f.req.Caller) && !lives(ec2.InstanceID(owner))
}

// result is the answer to a Call.
func (f *inFlight) result(m *ec2.Cloud, r *ec2.Response) ipam.Result {
	out := ipam.Result{Class: class(r), Code: r.Code, Attachment: r.Attachment, Addresses: r.Assigned, Prefixes: r.Prefixes}
	if out.Class == ipam.OK && f.act == ipam.CreateENI {
		out.ENI = eni(m, &r.ENI)
	}
	return out
}

// class is the core's class of an answer.
func class(r *ec2.Response) ipam.Class {
	switch {
	case r.Lost:
		return ipam.Lost
	case r.Code == "":
		return ipam.OK
	}
	return ipam.ClassOf(r.Code, r.Message, r.HTTP)
}

// eni is EC2's word of an ENI.
func eni(m *ec2.Cloud, e *ec2.ENI) ipam.ENI {
	out := ipam.ENI{ID: string(e.ID), MAC: e.MAC, Device: e.DeviceIndex, Subnet: string(e.Subnet), CIDR: m.CIDROf(e.Subnet), Primary: e.Primary,
		Addresses: e.Secondaries, Status: e.Status.String(), Attachment: e.Attachment, Instance: string(e.Instance), DOT: e.DeleteOnTermination, Kind: e.Kind.String(), Prefixes: e.Prefixes,
		Groups: e.SecurityGroups}
	for _, t := range e.Tags {
		switch t.Key {
		case judge.TagOwner:
			out.Owner = t.Value
		case judge.TagCreated:
			if at, err := time.Parse(time.RFC3339, t.Value); err == nil {
				out.Created = at.Unix()
			}
		case judge.TagNoManage:
			out.NoManage = t.Value
		}
	}
	return out
}

// subnetsOf are those of an answer that are in an instance's VPC and zone, as Cloud.Subnets has them.
func subnetsOf(home *ec2.Instance, cluster string, list []ec2.Subnet) (out []ipam.Subnet) {
	for _, s := range list {
		if s.VPC != home.VPC || s.Zone != home.Zone {
			continue
		}
		v := ipam.Subnet{ID: string(s.ID), CIDR: s.CIDR, Free: s.Available}
		v.Tagged(cluster, func(yield func(key, value string) bool) {
			for _, t := range s.Tags {
				if !yield(t.Key, t.Value) {
					return
				}
			}
		})
		out = append(out, v)
	}
	return out
}

// described is the answer to a Look at EC2.
func (d *daemon) described(f *inFlight, r *ec2.Response) ipam.Input {
	n, w := d.n, d.n.w
	in := ipam.Seen{ID: f.id, What: f.what, Complete: r.Code == "" && !r.Lost, Err: r.Code}
	if f.enis != nil { // who cannot say which instances live has said which ENIs there are
		in.Complete, in.Err = true, ""
		for i := range f.enis {
			e := eni(w.EC2, &f.enis[i])
			e.OwnerGone, e.Near = f.gone(r, e.Owner), f.near(r, &f.enis[i], w.Cluster.Name)
			in.ENIs = append(in.ENIs, e)
		}
		return in
	}
	for i := range r.ENIs {
		in.ENIs = append(in.ENIs, eni(w.EC2, &r.ENIs[i]))
	}
	if r.Lost {
		in.Err = "no answer within " + models.SDKTimeout.String()
	}
	if f.what == ipam.LookSubnets {
		home, _ := w.EC2.InstanceOf(n.Instance)
		in.Subnets = subnetsOf(&home, w.Cluster.Name, r.Subnets)
		in.Denied, in.Refused = class(r).Refusal(r.Code)
	}
	return in
}

func (d *daemon) startLook(l *ipam.Look) {
	n, w := d.n, d.n.w
	w.mix(uint64(l.What)<<32 ^ uint64(l.ID))
	if after := lookTakes[l.What]; after > 0 {
		d.in(after, evLook, uint64(l.ID), l)
		return
	}
	f := &inFlight{id: l.ID, what: l.What, req: ec2.Request{Action: ec2.DescribeNetworkInterfaces, Caller: n.Instance}}
	switch l.What {
	case ipam.LookSubnets:
		f.req.Action, f.req.FilterDescription = ec2.DescribeSubnets, "*"
	case ipam.LookENI:
		for _, id := range l.ENIs {
			f.req.ENIs = append(f.req.ENIs, ec2.ENIID(id))
		}
	case ipam.LookAttached:
		f.req.FilterInstance = string(n.Instance)
	case ipam.LookLeaked:
		f.req.FilterStatus, f.req.FilterTagKey, f.req.FilterTagValue = "available", judge.TagCluster, w.Cluster.Name
		if w.Cluster.Name == "" {
			f.req.FilterTagKey = judge.TagOwner
		}
	}
	if !w.Trapped(&n.Node, f.req.Action, false) {
		d.send(f)
	}
}

// look reads a source; its answer is a little older when it arrives.
func (d *daemon) look(l *ipam.Look) {
	n, w := d.n, d.n.w
	in := ipam.Seen{ID: l.ID, What: l.What, Complete: true}
	after := lookDeliver
	switch l.What {
	case ipam.LookKernel:
		in.Kernel = n.observe()
		in.Complete = in.Kernel.Complete
		if !in.Complete {
			w.Met(n.cutBy, "a dump ends early")
			in.Err = "NLM_F_DUMP_INTR"
		}
	case ipam.LookRuntime:
		after += n.list(&in)
		w.Listed(&n.Node, &in)
		w.BoxesMet(&n.Node)
	case ipam.LookIMDS:
		after += d.metadata(&in)
	case ipam.LookConfig:
		in.Config = w.ENIConfig(&n.Node)
	case ipam.LookPods:
		for _, p := range w.Kube.ListPods(int(n.No)) {
			in.Pods = append(in.Pods, ipam.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID})
		}
	}
	if (l.What == ipam.LookPods || l.What == ipam.LookConfig) && w.Kube.Away(w.now) {
		in = ipam.Seen{ID: l.ID, What: l.What, Err: models.ServerAway}
	}
	d.in(after, evInput, uint64(l.ID), in)
}

func (d *daemon) metadata(in *ipam.Seen) time.Duration {
	n, w := d.n, d.n.w
	v, ok := w.EC2.IMDS(w.now, n.Instance)
	if !ok {
		in.Complete, in.Err = false, "Get http://169.254.169.254/latest/meta-data/mac: i/o timeout"
		return models.HangTimeout
	}
	kind, _ := ec2.TypeOf(v.Instance.Type)
	m := &ipam.IMDS{Instance: ipam.Instance{ID: string(v.Instance.ID), Type: v.Instance.Type, Zone: v.Instance.Zone, Subnet: string(v.Instance.Subnet),
		PrimaryMAC: v.Instance.PrimaryMAC, Address: v.Instance.PrimaryAddress, VPC: v.Instance.VPCCIDRs,
		Limits: ipam.Limits{ENIs: kind.ENIs, Addresses: kind.IPv4PerENI, Prefixes: kind.Hypervisor != "xen"}},
		ENIs: make([]ipam.ENI, len(v.ENIs))}
	for i := range v.ENIs {
		e := &v.ENIs[i]
		m.ENIs[i] = ipam.ENI{ID: string(e.ENI), MAC: e.MAC, Device: e.Device, Subnet: string(e.Subnet), CIDR: e.SubnetCIDR, Prefixes: e.Prefixes,
			Partial: e.Partial}
		if len(e.Addresses) == 0 {
			m.ENIs[i].Partial = true
		} else {
			m.ENIs[i].Primary, m.ENIs[i].Addresses = e.Addresses[0], e.Addresses[1:]
		}
		if e.MAC == v.Instance.PrimaryMAC {
			m.Groups = e.Groups
		}
	}
	in.IMDS = m
	return 0
}

// hint is a netlink event that the daemon's own plans do not explain.
func (d *daemon) hint() {
	if d.core != nil {
		d.in(time.Millisecond, evInput, 0, ipam.Seen{What: ipam.LookKernel})
	}
}
