package ipam_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/sim/judge"
)

const (
	self       = "self"
	instance   = "i-1"
	primaryMAC = "02:00:00:00:00:00"
)

type stream uint64

func (s *stream) next() uint64 { return splitmix.Next(s) }

// below is from 0 to n-1; one says yes once in n.
func (s *stream) below(n int) int { return int(s.next() % uint64(n)) }
func (s *stream) one(n int) bool  { return s.below(n) == 0 }

// box is a sandbox of the runtime.
type box struct {
	att   ipam.Attachment
	pod   ipam.Pod
	netns uint64
	ready bool
	addr  netip.Addr
}

// cloudENI is an ENI as it truly is, and the token that made it.
type cloudENI struct {
	ipam.ENI
	token string
}

// world is a small machine and cloud around a Node. It is perfect; who wants trouble answers instead of it.
type world struct {
	t        testing.TB
	node     *ipam.Node
	policy   *ipam.Policy
	contract *judge.Contract
	now      time.Duration
	kernel   *kernel.Kernel
	limits   ipam.Limits
	set      ipam.Settings
	version  int
	cluster  string
	lives    uint64

	enis   []cloudENI
	made   int // ENIs ever
	taken  int // calls that took addresses away
	full   bool
	deaf   bool // EC2 does not answer a look
	silent bool // instance metadata does not answer
	bare   bool // the subnet has no prefix to give

	groups  []string        // of the primary ENI
	subnets []ipam.Subnet   // of the zone
	config  *ipam.ENIConfig // the node's; nil: the API server does not answer
	boxes   []box

	flight  []ipam.Effect // Look, Call and Apply that await their outcome
	saves   [2][]*ipam.Save
	rows    map[ipam.Key]ipam.Row // durable
	replies map[ipam.Req]*ipam.Reply
	marks   map[ipam.Point]int
	warned  map[ipam.Point]int // of marks
	stages  map[move]int       // moves of ENIs
	effs    []ipam.Effect      // of the last step
	lastReq ipam.Req
	lax     bool // I13 is not judged
	past    [200]happening
	steps   int
	tap     func(ipam.Input, []ipam.Effect)
}

// move is that of an ENI from stage to stage.
type move struct{ from, to ipam.Stage }

// happening is a step of the node.
type happening struct {
	at   time.Duration
	in   ipam.Input
	effs []ipam.Effect
}

// tell prints the last steps in short, the oldest first.
func (w *world) tell() {
	for i := max(0, w.steps-len(w.past)); i < w.steps; i++ {
		h := &w.past[i%len(w.past)]
		w.t.Logf("%v %T%s", h.at, h.in, inShort(h.in))
		for _, e := range h.effs {
			w.t.Logf("    → %T%s", e, effectInShort(e))
		}
	}
}

func inShort(in ipam.Input) string {
	if in, ok := in.(ipam.Seen); ok {
		return fmt.Sprintf(" %d %v complete=%t", in.ID, in.What, in.Complete)
	}
	if in, ok := in.(ipam.Start); ok {
		s := fmt.Sprint(" version ", in.Version)
		for _, r := range in.Rows {
			s += "; " + rowInShort(&r)
		}
		return s
	}
	return fmt.Sprintf(" %+v", in)
}

func rowInShort(r *ipam.Row) string {
	if r.Intent != nil {
		return fmt.Sprint(r.Intent.Token, " ", r.Intent.ENI.ID, " ", r.Intent.Stage, " ", r.Intent.Doing)
	}
	return fmt.Sprint(r.Address, " ", r.State, " ", r.Att)
}

func effectInShort(e ipam.Effect) string {
	switch e := e.(type) {
	case *ipam.Apply:
		s := fmt.Sprintf(" %d %v", e.ID, e.Lane)
		for i := range e.Plan.Ops {
			s += " " + e.Plan.Ops[i].Kind.String()
		}
		return s
	case *ipam.Save:
		s := fmt.Sprintf(" %v %d:", e.Store, e.Seq)
		for i := range e.Put {
			s += " put " + rowInShort(&e.Put[i]) + ";"
		}
		return s + fmt.Sprint(" drop ", e.Drop)
	case *ipam.Note:
		return fmt.Sprintf(" %v %v %v %s %s", e.Point, e.Att, e.Addr, e.ENI, e.Text)
	}
	return fmt.Sprintf(" %+v", e)
}

func newWorld(t testing.TB, p *ipam.Policy) *world {
	w := &world{t: t, policy: p, contract: judge.NewContract(), kernel: kernel.New(1), limits: ipam.Limits{ENIs: 3, Addresses: 6},
		set: ipam.Defaults(), version: ipam.Version, cluster: "c", rows: map[ipam.Key]ipam.Row{}, replies: map[ipam.Req]*ipam.Reply{}, marks: map[ipam.Point]int{},
		warned: map[ipam.Point]int{}, stages: map[move]int{}}
	w.set.API = false
	w.now = time.Second
	subnet := netip.MustParsePrefix("10.0.0.0/24")
	w.kernel.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.0.4/24"), addr("10.0.0.1"))
	w.enis = []cloudENI{{ENI: ipam.ENI{ID: "eni-0", MAC: primaryMAC, Subnet: "subnet-1", CIDR: subnet, Primary: addr("10.0.0.4"), Status: "in-use",
		Attachment: "attach-0", Instance: instance, DOT: true}}}
	w.node = must.Get(ipam.New(p))(t)
	return w
}

// start begins a daemon's life with what is durable.
func (w *world) start() {
	w.lives++
	w.flight, w.saves, w.lastReq = nil, [2][]*ipam.Save{}, 0
	clear(w.replies)
	w.node = must.Get(ipam.New(w.policy))(w.t)
	w.contract.Reset()
	w.contract.Slack = time.Second
	w.step(ipam.Start{Boot: "b", Seed: w.lives, Daemon: self, Version: w.version, Wall: bootWall, Cluster: w.cluster, Settings: w.set, Rows: w.stored()})
}

// stored reads both stores through their files.
func (w *world) stored() []ipam.Row {
	var run, lib []ipam.Row
	for k, r := range w.rows {
		if k.Token != "" {
			lib = append(lib, r)
		} else {
			run = append(run, r)
		}
	}
	data := must.Get(ipam.EncodeRun(w.version, bootWall, run))(w.t)
	run = must.Get(ipam.DecodeRun(w.version, bootWall, data))(w.t)
	data = must.Get(ipam.EncodeLib(w.version, lib))(w.t)
	return append(run, must.Get(ipam.DecodeLib(w.version, data))(w.t)...)
}

func (w *world) broke(texts []string) {
	if len(texts) > 0 && !w.lax {
		w.t.Helper()
		w.t.Fatalf("at %v the effect contract broke: %s", w.now, strings.Join(texts, "; "))
	}
}

// step gives the node one input and files what it wants.
func (w *world) step(in ipam.Input) []ipam.Effect {
	w.broke(w.contract.Input(w.now, in))
	w.node.Watch(w.moved)
	w.effs = w.node.Step(w.now, in)
	w.past[w.steps%len(w.past)] = happening{w.now, in, append(w.past[w.steps%len(w.past)].effs[:0], w.effs...)}
	w.steps++
	if w.tap != nil {
		w.tap(in, w.effs)
	}
	w.broke(w.contract.Effects(w.effs))
	for _, e := range w.effs {
		switch e := e.(type) {
		case *ipam.Reply:
			w.replies[e.Req] = e
		case *ipam.Save:
			w.saves[e.Store] = append(w.saves[e.Store], e)
		case *ipam.Note:
			w.marks[e.Point]++
			if e.Warn {
				w.warned[e.Point]++
			}
		default:
			w.flight = append(w.flight, e)
		}
	}
	return w.effs
}

// moved notes that an ENI went from stage to stage, and that it may.
func (w *world) moved(from, to ipam.Stage) {
	w.stages[move{from, to}]++
	if !slices.Contains(ipam.Follows()[from], to) {
		w.t.Errorf("at %v an ENI went from %q to %q, which the table of stages (stage.go) does not have", w.now, from, to)
	}
}

// pass lets time go by and steps the node whenever it wants to be.
func (w *world) pass(d time.Duration) {
	end, spins := w.now+d, 0
	for {
		at, ok := w.node.Next()
		if !ok || at > end {
			w.now = max(w.now, end)
			return
		}
		if spins++; at > w.now {
			w.now, spins = at, 0
		} else if spins > 50 {
			w.t.Fatalf("at %v the node wants to be stepped again at %v, forever", w.now, at)
		}
		w.step(nil)
	}
}

// take removes an effect from the flight.
func (w *world) take(i int) ipam.Effect {
	e := w.flight[i]
	w.flight = slices.Delete(w.flight, i, i+1)
	return e
}

// outcome is the true answer to an effect, which thereby happens.
func (w *world) outcome(e ipam.Effect) ipam.Input {
	switch e := e.(type) {
	case *ipam.Look:
		return w.look(e)
	case *ipam.Call:
		return ipam.Called{ID: e.ID, Result: w.call(e)}
	case *ipam.Apply:
		done, err := w.kernel.Apply(e.Plan, 0, len(e.Plan.Ops))
		return ipam.Applied{ID: e.ID, Done: done, Err: err}
	}
	w.t.Fatalf("%T has no outcome", e)
	return nil
}

// save makes the first k Saves of a store durable and says so.
func (w *world) save(s ipam.Store, k int) {
	seq := w.saves[s][k-1].Seq
	w.endure(s, k)
	w.step(ipam.Saved{Store: s, Seq: seq})
}

func (w *world) endure(s ipam.Store, k int) {
	for _, e := range w.saves[s][:k] {
		for _, r := range e.Put {
			w.rows[r.Key()] = r
		}
		for _, key := range e.Drop {
			delete(w.rows, key)
		}
	}
	w.saves[s] = w.saves[s][k:]
}

// calm answers everything at once, truly, until nothing is outstanding.
func (w *world) calm() {
	for i := 0; len(w.flight)+len(w.saves[0])+len(w.saves[1]) > 0; i++ {
		if i > 10_000 {
			w.t.Fatalf("at %v the node never comes to rest: %#v", w.now, w.flight)
		}
		w.answer()
	}
}

// answer makes a store's Saves durable, or answers what is longest in flight.
func (w *world) answer() {
	switch {
	case len(w.saves[0]) > 0:
		w.save(ipam.RunStore, len(w.saves[0]))
	case len(w.saves[1]) > 0:
		w.save(ipam.LibStore, len(w.saves[1]))
	default:
		w.step(w.outcome(w.take(0)))
	}
}

// live passes time in which everything is answered at once.
func (w *world) live(d time.Duration) {
	end := w.now + d
	for {
		w.calm()
		at, ok := w.node.Next()
		if !ok || at > end {
			w.now = max(w.now, end)
			return
		}
		w.pass(max(at-w.now, 0))
	}
}

func (w *world) look(e *ipam.Look) ipam.Seen {
	in := ipam.Seen{ID: e.ID, What: e.What, Complete: true}
	if w.deaf && (e.What == ipam.LookENI || e.What == ipam.LookAttached || e.What == ipam.LookLeaked) {
		return ipam.Seen{ID: e.ID, What: e.What, Err: "no answer"}
	}
	if w.silent && e.What == ipam.LookIMDS {
		return ipam.Seen{ID: e.ID, What: e.What, Err: "no answer"}
	}
	switch e.What {
	case ipam.LookKernel:
		o := w.kernel.Observe()
		in.Kernel, in.Complete = &o, o.Complete
	case ipam.LookRuntime:
		in.Sandboxes = []ipam.Sandbox{{ID: self, Ready: true}}
		for i := range w.boxes {
			if b := &w.boxes[i]; b.ready {
				in.Sandboxes = append(in.Sandboxes, ipam.Sandbox{ID: b.att.ContainerID, Pod: b.pod, Ready: true, Address: b.addr})
			}
		}
	case ipam.LookIMDS:
		in.IMDS = &ipam.IMDS{Groups: w.groups, Instance: ipam.Instance{ID: instance, Type: "t3.small", Subnet: "subnet-1", PrimaryMAC: primaryMAC,
			Address: addr("10.0.0.4"), VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Limits: w.limits}}
		for i := range w.enis {
			if v := w.enis[i].copy(); v.Status == "in-use" {
				v.Owner, v.NoManage, v.Kind, v.Groups = "", "", "", nil // metadata shows no tags, and groups of the primary one alone
				in.IMDS.ENIs = append(in.IMDS.ENIs, v)
			}
		}
		slices.SortFunc(in.IMDS.ENIs, func(a, b ipam.ENI) int { return a.Device - b.Device })
	case ipam.LookENI:
		for _, id := range e.ENIs {
			if v := w.eni(id); v != nil {
				in.ENIs = append(in.ENIs, v.copy())
			}
		}
	case ipam.LookAttached:
		for i := range w.enis {
			if v := w.enis[i].copy(); v.Status == "in-use" {
				in.ENIs = append(in.ENIs, v)
			}
		}
	case ipam.LookLeaked:
		for i := range w.enis {
			if v := w.enis[i].copy(); v.Status == "available" {
				in.ENIs = append(in.ENIs, v)
			}
		}
	case ipam.LookSubnets:
		in.Subnets = slices.Clone(w.subnets)
	case ipam.LookConfig:
		if in.Config = w.config; in.Config == nil {
			in.Complete, in.Err = false, "no answer"
		}
	case ipam.LookPods:
		for i := range w.boxes {
			if w.boxes[i].ready {
				in.Pods = append(in.Pods, w.boxes[i].pod)
			}
		}
	}
	return in
}

func (v *cloudENI) copy() ipam.ENI {
	e := v.ENI
	e.Addresses, e.Prefixes = slices.Clone(e.Addresses), slices.Clone(e.Prefixes)
	return e
}

func (w *world) eni(id string) *cloudENI {
	for i := range w.enis {
		if w.enis[i].ID == id {
			return &w.enis[i]
		}
	}
	return nil
}

// fresh gives an ENI addresses of the subnet, the lowest that nobody has.
func (w *world) fresh(count int) []netip.Addr {
	taken := map[netip.Addr]bool{}
	for i := range w.enis {
		taken[w.enis[i].Primary] = true
		for _, a := range w.enis[i].Addresses {
			taken[a] = true
		}
	}
	var out []netip.Addr
	for last := 10; len(out) < count && last < 250; last++ {
		if a := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}); !taken[a] && !w.prefixed(a) {
			out = append(out, a)
		}
	}
	return out
}

// prefixed says whether an address is of a prefix that an ENI has.
func (w *world) prefixed(a netip.Addr) bool {
	return slices.ContainsFunc(w.enis, func(e cloudENI) bool {
		return slices.ContainsFunc(e.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	})
}

// freshPrefixes are of the subnet's upper half, the lowest that nobody has.
func (w *world) freshPrefixes(count int) (out []netip.Prefix) {
	for last := 128; len(out) < count && last < 256; last += 16 {
		if a := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}); !w.prefixed(a) {
			out = append(out, netip.PrefixFrom(a, 28))
		}
	}
	return out
}

// call does what EC2 does about a mutation.
func (w *world) call(c *ipam.Call) ipam.Result {
	if c.Action == ipam.CreateENI {
		return w.create(c)
	}
	v := w.eni(c.ENI)
	if v == nil {
		return ipam.Result{Class: ipam.NotFound, Code: "InvalidNetworkInterfaceID.NotFound"}
	}
	if c.PrefixCount > 0 && (w.full || w.bare) {
		return ipam.Result{Class: ipam.SubnetFull, Code: "InsufficientCidrBlocks"}
	}
	switch c.Action {
	case ipam.GroupENI:
		v.Groups = c.Groups
	case ipam.AttachENI:
		if v.Status != "available" || c.Device == 0 {
			return ipam.Result{Class: ipam.InUse, Code: "InvalidNetworkInterface.InUse"}
		}
		if slices.ContainsFunc(w.enis, func(o cloudENI) bool { return o.Instance == instance && o.Device == c.Device }) {
			return ipam.Result{Class: ipam.Invalid, Code: "InvalidParameterValue"}
		}
		if len(v.Addresses) >= w.limits.Addresses {
			return ipam.Result{Class: ipam.Limit, Code: "InvalidInterface.IpAddressLimitExceeded"}
		}
		v.Status, v.Instance, v.Device, v.Attachment, v.DOT = "in-use", instance, c.Device, "attach-"+v.ID, false
		w.kernel.Plug(v.MAC)
		return ipam.Result{Attachment: v.Attachment}
	case ipam.ModifyENI:
		v.DOT = true
	case ipam.DetachENI:
		if v.Status != "in-use" || c.Attachment != v.Attachment {
			return ipam.Result{Class: ipam.NotFound, Code: "InvalidAttachmentID.NotFound"}
		}
		v.Status, v.Instance, v.Device, v.Attachment, v.DOT = "available", "", 0, "", false
		w.kernel.Unplug(v.MAC)
	case ipam.DeleteENI:
		if v.Status != "available" {
			return ipam.Result{Class: ipam.InUse, Code: "InvalidParameterValue"}
		}
		w.enis = slices.DeleteFunc(w.enis, func(e cloudENI) bool { return e.ID == c.ENI })
	case ipam.AssignIPs:
		if w.full {
			return ipam.Result{Class: ipam.SubnetFull, Code: "InsufficientFreeAddressesInSubnet"}
		}
		if v.Status != "available" && len(v.Addresses)+len(v.Prefixes)+c.Count+c.PrefixCount > w.limits.Addresses-1 {
			return ipam.Result{Class: ipam.Limit, Code: "PrivateIpAddressLimitExceeded"}
		}
		if c.PrefixCount > 0 {
			got := w.freshPrefixes(c.PrefixCount)
			v.Prefixes = append(v.Prefixes, got...)
			return ipam.Result{Prefixes: got}
		}
		got := w.fresh(c.Count)
		v.Addresses = append(v.Addresses, got...)
		return ipam.Result{Addresses: got}
	case ipam.UnassignIPs:
		for _, a := range c.Addresses {
			if !slices.Contains(v.Addresses, a) {
				return ipam.Result{Class: ipam.Invalid, Code: "InvalidParameterValue"}
			}
		}
		for _, p := range c.Prefixes {
			if !slices.Contains(v.Prefixes, p) {
				return ipam.Result{Class: ipam.Invalid, Code: "InvalidParameterValue"}
			}
		}
		w.taken++
		v.Prefixes = slices.DeleteFunc(v.Prefixes, func(p netip.Prefix) bool { return slices.Contains(c.Prefixes, p) })
		v.Addresses = slices.DeleteFunc(v.Addresses, func(a netip.Addr) bool { return slices.Contains(c.Addresses, a) })
	}
	return ipam.Result{}
}

func (w *world) create(c *ipam.Call) ipam.Result {
	for i := range w.enis {
		if v := &w.enis[i]; v.token == c.Token {
			return ipam.Result{ENI: v.copy()}
		}
	}
	if w.full {
		return ipam.Result{Class: ipam.SubnetFull, Code: "InsufficientFreeAddressesInSubnet"}
	}
	if c.PrefixCount > 0 && w.bare {
		return ipam.Result{Class: ipam.SubnetFull, Code: "InsufficientCidrBlocks"}
	}
	w.made++
	got := w.fresh(c.Count + 1)
	id := strconv.Itoa(w.made)
	v := cloudENI{token: c.Token, ENI: ipam.ENI{ID: "eni-" + id, MAC: "02:00:00:00:" + id, Subnet: c.Subnet, CIDR: netip.MustParsePrefix("10.0.0.0/24"),
		Primary: got[0], Addresses: got[1:], Status: "available", Owner: c.Owner, Created: c.Created, Groups: c.Groups,
		Prefixes: w.freshPrefixes(c.PrefixCount)}}
	w.enis = append(w.enis, v)
	return ipam.Result{ENI: v.copy()}
}

// ready is a node that serves, with its warm pool filled.
func ready(t testing.TB, p *ipam.Policy) *world {
	w := newWorld(t, p)
	w.start()
	w.live(10 * time.Second)
	v := ipam.View{}
	if w.node.View(&v); !v.Serving || v.Free < 5 || len(v.Reasons) > 0 {
		t.Fatalf("the node is not ready: %+v", v)
	}
	return w
}

func att(id string) ipam.Attachment {
	return ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
}

// pod makes a sandbox with a namespace.
func (w *world) pod(id, name string) *box {
	w.boxes = append(w.boxes, box{att: att(id), pod: ipam.Pod{Namespace: "default", Name: name}, netns: w.kernel.NewNamespace()})
	return &w.boxes[len(w.boxes)-1]
}

func (w *world) req() ipam.Req {
	w.lastReq++
	return w.lastReq
}

func (w *world) add(b *box) ipam.Req {
	r := w.req()
	w.step(ipam.Add{Req: r, Att: b.att, Pod: b.pod, Netns: b.netns})
	return r
}

func (w *world) del(b *box) ipam.Req {
	r := w.req()
	w.step(ipam.Del{Req: r, Att: b.att, Pod: b.pod, Netns: b.netns})
	return r
}

// up adds a pod in a perfect world and returns its address.
func (w *world) up(id, name string) (*box, netip.Addr) {
	w.t.Helper()
	b := w.pod(id, name)
	r := w.add(b)
	w.calm()
	reply := w.replies[r]
	if reply == nil || reply.Err != nil {
		w.t.Fatalf("ADD of %s: %+v", id, reply)
	}
	b = &w.boxes[len(w.boxes)-1]
	b.ready, b.addr = true, reply.Address
	return b, reply.Address
}

// down removes a pod in a perfect world: its address cools.
func (w *world) down(b *box) {
	w.t.Helper()
	r := w.del(b)
	w.calm()
	w.answered(r)
}

// survive replaces the node by what is read back of it.
func (w *world) survive() {
	data := must.Get(w.node.Encode())(w.t)
	n := must.Get(ipam.Decode(data, w.policy))(w.t)
	again := must.Get(n.Encode())(w.t)
	if !reflect.DeepEqual(data, again) {
		w.t.Fatal("a decoded node encodes differently")
	}
	w.node = n
}

// onward answers what the node waits for, one thing of it and truly, or goes on to what is due next. It is false when the node rests.
func (w *world) onward() bool {
	switch {
	case len(w.saves[0]) > 0:
		w.save(ipam.RunStore, 1)
	case len(w.saves[1]) > 0:
		w.save(ipam.LibStore, 1)
	case len(w.flight) > 0:
		w.step(w.outcome(w.take(0)))
	default:
		at, ok := w.node.Next()
		if !ok {
			return false
		}
		w.pass(max(at-w.now, 0))
	}
	return true
}

// until answers everything truly until an effect is outstanding that match wants, and takes it out of the flight.
func (w *world) until(what string, match func(ipam.Effect) bool) ipam.Effect {
	w.t.Helper()
	for range 10_000 {
		if i := slices.IndexFunc(w.flight, match); i >= 0 {
			return w.take(i)
		}
		if !w.onward() {
			w.t.Fatalf("at %v the node rests and has not wanted %s", w.now, what)
		}
	}
	w.t.Fatalf("the node never wanted %s", what)
	return nil
}

func (w *world) untilCall(a ipam.Action) *ipam.Call {
	w.t.Helper()
	return w.until(a.String(), func(e ipam.Effect) bool { c, ok := e.(*ipam.Call); return ok && c.Action == a }).(*ipam.Call)
}

func (w *world) untilLook(what ipam.What) *ipam.Look {
	w.t.Helper()
	return w.until("a look at "+what.String(), func(e ipam.Effect) bool { l, ok := e.(*ipam.Look); return ok && l.What == what }).(*ipam.Look)
}

// lose is a mutation whose reply never comes; happened says whether it was carried out.
func (w *world) lose(c *ipam.Call, happened bool) {
	if happened {
		w.call(c)
	}
	w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Lost}})
}
