package ec2

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// What a region's cloud is to hold: 5,000 instances of 4 interfaces each, with 250,000 addresses.
const (
	manyInstances = 5000
	manyENIs      = 4 * manyInstances
	manyAddresses = 250_000
)

// region is a cloud that holds as much, settled, without throttling.
func region(tb testing.TB) (*Cloud, []InstanceID, time.Duration) {
	tb.Helper()
	cfg := unthrottled()
	cfg.ENIQuota = 2 * manyENIs
	cfg.VPCs = []VPC{{}}
	for k := range 5 {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k)}), 16)
		cfg.VPCs[0].CIDRs = append(cfg.VPCs[0].CIDRs, p)
		cfg.Subnets = append(cfg.Subnets, SubnetConfig{ID: SubnetID(fmt.Sprint("subnet-", k)), CIDR: p})
	}
	c := New(cfg, 1)
	var ids []InstanceID
	now := time.Duration(0)
	for k := range manyInstances {
		sub := cfg.Subnets[k%5].ID
		i := must.Get(c.Launch(now, LaunchSpec{Type: "c5.xlarge", Subnet: sub, SecondaryAddresses: 11}))(tb)
		ids = append(ids, i)
		for device := 1; device < 4; device++ {
			now += time.Second
			r := Request{Action: CreateNetworkInterface, Caller: i, Subnet: sub, SecondaryCount: 11 + min(device-1, 1), Tags: []Tag{{"cluster", "c"}},
				ClientToken: fmt.Sprint(i, device)}
			e := c.Serve(now, &r).ENI.ID
			r = Request{Action: AttachNetworkInterface, Caller: i, ENI: e, Instance: i, DeviceIndex: device}
			if p := c.Serve(now+time.Second, &r); p.Code != "" {
				tb.Fatal(p.Code, p.Message)
			}
		}
		c.Events()
	}
	now += time.Hour
	c.Advance(now)
	c.Events()
	return c, ids, now
}

// unthrottled is a config whose buckets never run dry.
func unthrottled() (cfg Config) {
	for a := range ActionCount {
		b := Bucket{maxTokens, maxTokens}
		cfg.Throttle.Action[a], cfg.Throttle.Unfiltered[a], cfg.Throttle.Resources[a] = b, b, b
	}
	return cfg
}

// heapInUse is how many bytes live on it.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers of the first one let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestRegionIsHeldIn400MB(t *testing.T) {
	before := heapInUse()
	c, _, _ := region(t)
	held := int64(heapInUse()) - int64(before)
	addresses := 0
	for _, e := range c.AllENIs() {
		addresses += 1 + len(e.Secondaries)
	}
	enis := c.CountENIs(InUse)
	if enis != manyENIs || addresses != manyAddresses {
		t.Fatalf("%d interfaces with %d addresses, want %d with %d", enis, addresses, manyENIs, manyAddresses)
	}
	t.Logf("%d instances, %d interfaces, %d addresses: %.1f MB", manyInstances, enis, addresses, float64(held)/1e6)
	if held > 400e6 {
		t.Errorf("%d bytes are held, at most 400 MB are to be", held)
	}
	runtime.KeepAlive(c)
}

// churn does what a busy node does over and over: an address comes and goes, an interface is looked at, and two calls fail.
// The calls are five.
type churn struct {
	c      *Cloud
	ids    []InstanceID
	enis   []ENIID
	now    time.Duration
	k      int
	lookAt []ENIID
}

func newChurn(c *Cloud, ids []InstanceID, now time.Duration) *churn {
	u := &churn{c: c, ids: ids, now: now, lookAt: make([]ENIID, 1)}
	for _, i := range ids {
		u.enis = append(u.enis, c.AttachedENIs(i)[1])
	}
	return u
}

const churnCalls = 5

func (u *churn) step() string {
	k := u.k % len(u.ids)
	u.k++
	u.now += 20 * time.Millisecond
	r := Request{Action: AssignPrivateIpAddresses, Caller: u.ids[k], ENI: u.enis[k], SecondaryCount: 1}
	p := u.c.Serve(u.now, &r)
	if p.Code != "" {
		return p.Code + ": " + p.Message
	}
	r = Request{Action: UnassignPrivateIpAddresses, Caller: u.ids[k], ENI: u.enis[k], Addresses: p.Assigned}
	u.c.Serve(u.now, &r)
	u.lookAt[0] = u.enis[k]
	r = Request{Action: DescribeNetworkInterfaces, Caller: u.ids[k], ENIs: u.lookAt}
	u.c.Serve(u.now, &r)
	r = Request{Action: DeleteNetworkInterface, Caller: u.ids[k], ENI: u.enis[k]}
	u.c.Serve(u.now, &r)
	r = Request{Action: AttachNetworkInterface, Caller: u.ids[k], ENI: "eni-nonsense", Instance: u.ids[k]}
	u.c.Serve(u.now, &r)
	if u.k%64 == 0 {
		u.c.Events()
	}
	return ""
}

// Calls leave nothing behind that grows: after a million of them a call allocates as often as before, and as much is held.
func TestCallsDoNotGrow(t *testing.T) {
	c, ids, now := smallFleet(t)
	u := newChurn(c, ids, now)
	round := func() {
		for range 1000 {
			if err := u.step(); err != "" {
				t.Fatal(err)
			}
		}
	}
	for range 70 {
		round() // every address of the subnet has been given away once, and each history is as long as it gets
	}
	before, allocs := heapInUse(), testing.AllocsPerRun(1, round)
	for range 200 {
		round()
	}
	after, later := heapInUse(), testing.AllocsPerRun(1, round)
	t.Logf("%d calls: %d bytes more; %.2f allocations a call, then %.2f", 200*1000*churnCalls, int64(after)-int64(before),
		allocs/1000/churnCalls, later/1000/churnCalls)
	if after > before+64<<10 {
		t.Errorf("a million calls left %d bytes behind", after-before)
	}
	if later > allocs*1.01 {
		t.Errorf("%.0f allocations in 1000 rounds, %.0f before", later, allocs)
	}
	runtime.KeepAlive(c)
}

// smallFleet is 50 instances of two interfaces each, without throttling.
func smallFleet(tb testing.TB) (*Cloud, []InstanceID, time.Duration) {
	tb.Helper()
	c := New(unthrottled(), 1)
	var ids []InstanceID
	for k := range 50 {
		now := time.Duration(k) * time.Minute
		i := must.Get(c.Launch(now, LaunchSpec{Type: "c5.xlarge"}))(tb)
		e := c.Serve(now, &Request{Action: CreateNetworkInterface, Subnet: c.Subnets()[0].ID, SecondaryCount: 9}).ENI.ID
		if p := c.Serve(now+time.Second, &Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}); p.Code != "" {
			tb.Fatal(p.Code, p.Message)
		}
		ids = append(ids, i)
	}
	c.Advance(time.Hour)
	c.Events()
	return c, ids, time.Hour
}

// A mix of calls, in a small cloud and in a large one: it is to do a million calls a second on a core.
func BenchmarkCalls(b *testing.B) {
	for name, build := range map[string]func(testing.TB) (*Cloud, []InstanceID, time.Duration){"Fleet": smallFleet, "Region": region} {
		b.Run(name, func(b *testing.B) {
			u := newChurn(build(b))
			b.ReportAllocs()
			for b.Loop() {
				if err := u.step(); err != "" {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(churnCalls*b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// What a region holds.
func BenchmarkHoldRegion(b *testing.B) {
	for b.Loop() {
		before := heapInUse()
		c, _, _ := region(b)
		b.ReportMetric(float64(int64(heapInUse())-int64(before))/1e6, "MB")
		runtime.KeepAlive(c)
	}
}

// A refusal for a call that a fault hits, with other faults in force.
func BenchmarkServeFaulty(b *testing.B) {
	c, ids, now := smallFleet(b)
	for seed := range uint64(8) {
		f := DrawFault(seed, now, ids[1:])
		f.Until, f.Times = 0, 0
		if !f.Kind.byThirdParty() {
			c.Fault(f)
		}
	}
	c.Fault(Fault{Kind: Fail, Instance: ids[0]})
	r := Request{Action: DescribeSubnets, Caller: ids[0]}
	b.ReportAllocs()
	for b.Loop() {
		now += time.Microsecond
		c.Serve(now, &r)
	}
}
