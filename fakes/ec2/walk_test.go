package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// walker asks for anything at any time: sensible requests, nonsense, faults, third parties, terminations.
type walker struct {
	c         *Cloud
	now       time.Duration
	rand      stream
	instances []InstanceID
	enis      []ENIID // all that were ever heard of
	attached  []string
	addresses []netip.Addr
	six       []netip.Addr
	prefixes  []netip.Prefix // /28 and /80
}

func newWalker(seed uint64) *walker {
	cfg := testConfig()
	cfg.Subnets[0].CIDR, cfg.Subnets[1].CIDR = netip.MustParsePrefix("10.0.16.0/21"), netip.MustParsePrefix("10.0.1.0/27")
	cfg.Subnets[0].Reservations = []netip.Prefix{cidr("10.0.17.0/26")}
	cfg.Subnets[0].PrefixReservations = []netip.Prefix{cidr("10.0.18.0/25"), cidr("10.0.23.128/25")}
	for a := range ActionCount { // large enough that the walk is not one long refusal
		cfg.Throttle.Action[a] = Bucket{1000, 100}
		cfg.Throttle.Unfiltered[a] = Bucket{1000, 100}
	}
	w := &walker{c: New(cfg, seed), rand: stream(seed)}
	for range 8 {
		w.launch()
	}
	return w
}

// fork is a walker that will do the same on a clone of the cloud.
func (w *walker) fork() *walker {
	f := *w
	f.c = w.c.Clone()
	f.instances, f.enis = slices.Clone(w.instances), slices.Clone(w.enis)
	f.attached, f.addresses = slices.Clone(w.attached), slices.Clone(w.addresses)
	f.six, f.prefixes = slices.Clone(w.six), slices.Clone(w.prefixes)
	return &f
}

func (w *walker) n(limit int) int { return int(w.rand.next() % uint64(limit)) }

// pick is an element of a list, mostly one of the last few, or the zero value.
func pick[T any](w *walker, list []T) (x T) {
	if len(list) == 0 || w.n(50) == 0 {
		return x
	}
	if w.n(4) > 0 {
		list = list[max(0, len(list)-6):]
	}
	return list[w.n(len(list))]
}

func (w *walker) launch() {
	kinds := []string{"t3.small", "m5.large", "c5.xlarge", "p4d.24xlarge", "none"}
	i, err := w.c.Launch(w.now, LaunchSpec{Type: kinds[w.n(len(kinds))], Subnet: w.subnet(), SecondaryAddresses: w.n(4)})
	if err == nil {
		w.instances = append(w.instances, i)
		v, _ := w.c.InstanceOf(i)
		w.attached = append(w.attached, v.Interfaces[0].Attachment)
		w.enis = append(w.enis, v.Interfaces[0].ENI)
	}
}

func (w *walker) subnet() SubnetID {
	return []SubnetID{plenty, plenty, plenty, tiny, far, "", "subnet-x"}[w.n(7)]
}

// changes are what most of the walk is about.
var changes = [...]Action{CreateNetworkInterface, CreateNetworkInterface, CreateNetworkInterface, DeleteNetworkInterface, ModifyNetworkInterfaceAttribute, AssignIpv6Addresses, UnassignIpv6Addresses,
	AttachNetworkInterface, AttachNetworkInterface, DetachNetworkInterface, AssignPrivateIpAddresses, UnassignPrivateIpAddresses}

func (w *walker) request() Request {
	r := Request{
		Action: Action(1 + w.n(int(endOfDrawnActions)-1)), Caller: pick(w, w.instances), ENI: pick(w, w.enis),
		Subnet: w.subnet(), Instance: pick(w, w.instances), DeviceIndex: w.n(9) - 1, Attachment: pick(w, w.attached),
		Force: w.n(8) == 0, DeleteOnTermination: w.n(2) == 0, SecondaryCount: w.n(9) - 1,
	}
	w.askInstances(&r)
	if w.n(100) == 0 {
		r.Action = Action(w.n(256))
	} else if w.n(2) == 0 {
		r.Action = changes[w.n(len(changes))]
	} else if w.n(20) == 0 { // seldom DeleteSubnet, of one that is empty: the walk needs them
		r.Action = endOfDrawnActions + Action(w.n(int(DeleteSubnet-endOfDrawnActions)))
		if w.n(50) == 0 {
			r.Action = DeleteSubnet
		}
	}
	switch w.n(8) {
	case 0:
		r.Addresses = []netip.Addr{pick(w, w.addresses)}
	case 1:
		r.Addresses, r.SecondaryCount = []netip.Addr{pick(w, w.addresses), pick(w, w.addresses)}, 0
	case 2:
		r.ClientToken = string(rune('a' + w.n(20)))
	case 3:
		r.ENIs = []ENIID{pick(w, w.enis), pick(w, w.enis)}
	case 4:
		r.FilterStatus = Status(w.n(5)).String()
	case 5:
		r.SecurityGroups, r.Tags = []string{"sg-1"}, []Tag{{Key: "k", Value: "v"}}
	}
	r.AllowReassignment = w.n(3) == 0
	w.askExtras(&r)
	w.giveBack(&r)
	return r
}

// askInstances completes what is about instances, and mostly makes something else of what would leave none or too many to walk on.
func (w *walker) askInstances(r *Request) {
	switch r.Action {
	case RunInstances:
		r.Type, r.Image, r.MinCount, r.MaxCount = "t3.small", image, w.n(3), w.n(4)
		if w.n(30) > 0 {
			r.Action = AttachNetworkInterface
		}
	case TerminateInstances:
		r.Instances = []InstanceID{pick(w, w.instances)}
		if w.n(40) > 0 {
			r.Action = AttachNetworkInterface
		}
	case AttachNetworkInterface:
		r.NetworkCard = max(0, w.n(30)-26)
	case DeleteTags:
		r.Resources, r.TagKeys = []string{string(r.Instance), "sg-1"}, []string{"k"}
	}
}

// askExtras makes it one about prefixes or IPv6, now and then together with something else.
func (w *walker) askExtras(r *Request) {
	some := w.n(8)
	if some < 4 && w.n(10) > 0 {
		r.SecondaryCount, r.Addresses = 0, r.Addresses[:min(len(r.Addresses), 1)]
		if r.Action != CreateNetworkInterface {
			r.Addresses = nil
		}
	}
	switch some {
	case 0:
		r.PrefixCount = w.n(5) - 1
	case 1:
		r.Prefixes = []netip.Prefix{w.block()}
	case 2:
		r.PrefixCount, r.IPv6Count = w.n(3), w.n(3)
	case 3:
		r.Prefixes = []netip.Prefix{w.block(), w.block()}
	}
	switch w.n(8) {
	case 0:
		r.IPv6Count = w.n(5) - 1
	case 1:
		r.IPv6 = []netip.Addr{pick(w, w.six)}
	case 2:
		r.IPv6PrefixCount = w.n(5) - 1
	case 3:
		r.IPv6Prefixes = []netip.Prefix{pick(w, w.prefixes)}
	case 4:
		r.IPv6 = []netip.Addr{w.six6(), w.six6()}
	}
}

// block is a /28 that somebody once had, or any of the largest subnet's and some that are not.
func (w *walker) block() netip.Prefix {
	if w.n(4) == 0 {
		return pick(w, w.prefixes)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(15 + w.n(9)), byte(16 * w.n(16))}), 28)
}

// six6 is one of few IPv6 addresses, some of them EC2's own.
func (w *walker) six6() netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, 1, byte(2 * w.n(2)), byte(w.n(2)), 15: byte(w.n(60))})
}

// giveBack makes an Unassign, mostly, one of what the interface has.
func (w *walker) giveBack(r *Request) {
	e, ok := w.c.ENI(r.ENI)
	if !ok || w.n(4) == 0 {
		return
	}
	switch r.Action {
	case UnassignPrivateIpAddresses:
		r.Addresses, r.Prefixes = nil, nil
		if n := len(e.Secondaries); n > 0 && (w.n(2) == 0 || len(e.Prefixes) == 0) {
			r.Addresses = e.Secondaries[w.n(n):]
		} else if n := len(e.Prefixes); n > 0 {
			r.Prefixes = e.Prefixes[w.n(n):]
		}
	case UnassignIpv6Addresses:
		r.IPv6, r.IPv6Prefixes = e.IPv6[len(e.IPv6)/2:], e.IPv6Prefixes[len(e.IPv6Prefixes)/2:]
	}
}

// learn keeps what an answer tells of, to be asked for again.
func (w *walker) learn(p *Response) {
	if p.ENI.ID != "" {
		w.enis = append(w.enis, p.ENI.ID)
		w.addresses = append(w.addresses, p.ENI.Primary)
		w.addresses = append(w.addresses, p.ENI.Secondaries...)
		w.six = append(w.six, p.ENI.IPv6...)
		w.prefixes = append(append(w.prefixes, p.ENI.Prefixes...), p.ENI.IPv6Prefixes...)
	}
	if p.Attachment != "" {
		w.attached = append(w.attached, p.Attachment)
	}
	for _, a := range p.Assigned {
		if a.Is4() {
			w.addresses = append(w.addresses, a)
		} else {
			w.six = append(w.six, a)
		}
	}
	w.prefixes = append(w.prefixes, p.Prefixes...)
	w.six, w.prefixes = w.six[max(0, len(w.six)-1000):], w.prefixes[max(0, len(w.prefixes)-1000):]
}

func (w *walker) step() Response {
	switch w.n(600) {
	case 0:
		w.launch()
	case 1:
		w.c.Terminate(w.now, pick(w, w.instances))
		w.launch()
	case 2, 9, 10:
		w.c.Fault(Fault{Kind: FaultKind(w.n(int(endOfKinds) + 1)), Action: Action(w.n(int(DescribeInstanceTypes) + 3)),
			Instance: pick(w, w.instances), Slow: time.Duration(w.n(1e10)), Times: w.n(3), Until: w.now + time.Duration(w.n(3e10))})
	case 3:
		w.c.ClearFaults(w.now)
	case 4:
		w.c.DrainSubnet(w.now, w.subnet(), w.n(300)-20)
	case 5:
		w.c.ThirdPartyDetach(w.now, pick(w, w.enis))
	case 6:
		w.c.ThirdPartyUnassign(w.now, pick(w, w.addresses))
		w.c.ThirdPartyUnassign(w.now, pick(w, w.six))
		w.c.ThirdPartyUnassign(w.now, pick(w, w.prefixes).Addr())
	case 7:
		w.c.Reboot(w.now, pick(w, w.instances))
	case 8:
		w.now -= time.Duration(w.n(1e9)) // a caller whose clock goes back
	}
	r := w.request()
	w.c.Travel(&r)
	p := w.c.Serve(w.now, &r)
	if (p.Code == "" && r.Action == DeleteNetworkInterface || p.Code == codeENINotFound) && w.n(4) > 0 {
		w.enis = slices.DeleteFunc(w.enis, func(id ENIID) bool { return id == r.ENI })
	}
	if (p.Code == "" && r.Action == DetachNetworkInterface || p.Code == codeAttachmentMissing) && w.n(4) > 0 {
		w.attached = slices.DeleteFunc(w.attached, func(id string) bool { return id == r.Attachment })
	}
	w.learn(&p)
	if r.Action == RunInstances {
		for _, i := range p.Instances {
			w.instances = append(w.instances, i.ID)
		}
	}
	w.now += time.Duration(w.n(1e8))
	if w.n(3) == 0 {
		if at, ok := w.c.Next(); ok {
			w.now = max(w.now, at)
		}
		w.c.Advance(w.now)
	}
	w.c.IMDS(w.now, pick(w, w.instances))
	return p
}

func TestRandomWalkBalances(t *testing.T) {
	const steps = 100_000
	w := newWalker(42)
	codes := map[string]int{}
	at, kinds := time.Duration(0), map[EventKind]int{}
	for step := range steps {
		codes[w.step().Code]++
		for _, e := range w.c.Events() {
			if e.At < at || e.At > w.c.now {
				t.Fatalf("step %d: %v at %v after one at %v (now %v)", step, e.Kind, e.At, at, w.c.now)
			}
			at = e.At
			kinds[e.Kind]++
		}
		if step%397 == 0 {
			if err := strife(w.c); err != "" {
				t.Fatalf("step %d: %s", step, err)
			}
		}
		if step%53 == 0 || step > steps-100 {
			if err := imbalance(w.c); err != "" {
				t.Fatalf("step %d: %s", step, err)
			}
		}
	}
	for _, code := range []string{"", codeThrottled, codeValue, codeENINotFound, codeSubnetFull, codeAddressLimit,
		codeAttachmentLimit, codeAttachAddresses, codeENIInUse, codeState, codeNotPermitted, codeIdempotent,
		codePrimaryInUse, codeInstanceState, codeUnavailable, codeUnauthorized, codeNoBlocks, codeCombination} {
		if codes[code] == 0 {
			t.Errorf("the walk never met %q", code)
		}
	}
	for k := LinkPlugged; k <= InstanceRebooted; k++ {
		if kinds[k] < 20 {
			t.Errorf("the walk saw %d of %v", kinds[k], k)
		}
	}
	if kinds[ENICreated] <= kinds[ENIDeleted] || kinds[LinkPlugged] < kinds[LinkUnplugged] {
		t.Errorf("events do not balance: %v", kinds)
	}
	if len(w.c.tokens) > 40 || len(w.c.faults) > 100 {
		t.Errorf("%d tokens, %d faults pile up", len(w.c.tokens), len(w.c.faults))
	}
	var total, ended int
	for a := range ActionCount {
		n := w.c.Calls(a)
		total += n.Total
		ended += n.OK + n.Failed + n.Throttled + n.Lost
	}
	if total != ended || total < steps {
		t.Errorf("%d calls in the ledger, %d ended, %d made", total, ended, steps)
	}
	for _, row := range w.c.LedgerRows() {
		total -= row.Calls
	}
	if total != 0 {
		t.Errorf("the ledger's rows lack %d calls", total)
	}
}

// Same seed, same bytes; other seed, others.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) (out string) {
		w := newWalker(seed)
		for range 3000 {
			out += w.step().Code
		}
		return out + fmt.Sprintf("%+v", w.c.Events()) + dump(w.c)
	}
	first := run(1)
	if run(1) != first {
		t.Error("the same seed gave something else")
	}
	if run(2) == first {
		t.Error("another seed gave the same")
	}
}

// A clone goes its own way, and the original goes on as if there were none.
func TestCloneIsIndependent(t *testing.T) {
	w := newWalker(5)
	for range 5000 {
		w.step()
	}
	alone := w.fork()
	if dump(alone.c) != dump(w.c) {
		t.Fatal("the clone differs at once")
	}
	before := dump(w.c)
	other := w.fork()
	other.rand = 99
	for range 5000 {
		other.step()
	}
	if dump(w.c) != before {
		t.Fatal("a clone's life changed the original")
	}
	mid := dump(other.c)
	for range 3000 {
		w.step()
		alone.step()
	}
	if dump(other.c) != mid {
		t.Fatal("the original's life changed a clone")
	}
	w.c.Events()
	alone.c.Events()
	if dump(alone.c) != dump(w.c) {
		t.Fatal("a clone stepped alike has become another")
	}
}

// What one instance does must not change what another draws.
func TestStreamsAreSeparate(t *testing.T) {
	travel := func(noise int) time.Duration {
		c := New(Config{}, 3)
		a, _ := c.Launch(0, LaunchSpec{Type: "m5.large"})
		b, _ := c.Launch(0, LaunchSpec{Type: "m5.large"})
		for range noise {
			c.Travel(&Request{Action: CreateTags, Caller: a})
		}
		there, _ := c.Travel(&Request{Action: CreateTags, Caller: b})
		return there
	}
	if travel(0) != travel(7) {
		t.Error("one instance's calls changed another's latency")
	}
}
