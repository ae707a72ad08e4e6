package kind

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/verb"
)

// machineless is a world without a cluster: a clock, a model of EC2 and two nodes.
func machineless(t *testing.T) *World {
	t.Helper()
	loop := cluster.NewLoop(ec2.New(ec2.Config{}, 1), func(*ec2.Event) {})
	w := &World{scenario: &sim.Cluster{Nodes: 2, Settings: ipam.Defaults()}, c: &cluster.Cluster{Loop: loop},
		members: make(members, 1), pods: &pods{byUID: map[string]*pod{}, changes: map[string]uint64{}}}
	w.observer = observer{j: &w.journal, c: w.c, byNode: map[*cluster.Node]*member{}}
	w.pace.w, w.audit = w, judge.New(judge.Config{Nodes: 2})
	w.cfg.Log = func(time.Duration, string) {}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	t.Cleanup(w.cancel)
	t.Cleanup(loop.Close)
	w.witness = &judge.Witness{Eyes: &w.observer, Audit: w.audit, Story: &w.Lines, Heard: w.observer.heard}
	for i := range 2 {
		id := must.Get(w.c.Model().Launch(w.now(), ec2.LaunchSpec{Type: "m5.large", SecondaryAddresses: 1}))(t)
		n := &cluster.Node{Name: "machine", Number: i + 2, Instance: id}
		m := &member{w: w, no: int32(i + 1), node: n, hung: map[string]int{}, silent: map[netip.Addr]bool{}}
		w.members, w.observer.byNode[n] = append(w.members, m), m
	}
	w.observer.members = w.members
	return w
}

// await waits for a condition that other goroutines bring about.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for " + what)
		}
	}
}

// TestFollow: a daemon lives for as long as its recording does, its sandboxes are remembered, and what is not the core's is found.
func TestFollow(t *testing.T) {
	w := machineless(t)
	m := w.members[1]
	l := must.Get(net.Listen("unix", filepath.Join(t.TempDir(), "record.sock")))(t)
	defer l.Close()
	e := &endpoint{w: w, member: m}
	go e.take(l)

	// The other end is this process, which does not end with its recording: after a while that is found.
	c := must.Get(net.Dial("unix", l.Addr().String()))(t)
	defer c.Close()
	n := must.Get(ipam.New(ipam.Sound()))(t)
	rec := must.Get(ipam.NewRecording(n, "sound"))(t)
	write := func(line []byte) {
		t.Helper()
		must.Get(c.Write(line))(t)
	}
	write(rec.Header())
	now := w.now()
	for _, in := range []ipam.Input{
		ipam.Start{Settings: ipam.Defaults()},
		ipam.Add{Req: 1, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"}, Pod: ipam.Pod{Namespace: "default", Name: "web-0"}, Netns: 7},
	} {
		line := must.Get(rec.Line(now, in, n.Step(now, in)))(t)
		write(line)
	}
	steps := func() (steps uint64, pid int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if m.life == nil {
			return 0, m.pid
		}
		return m.life.Steps(), m.pid
	}
	await(t, "two steps", func() bool { n, pid := steps(); return n == 2 && pid == os.Getpid() })
	w.mu.Lock()
	old, ok := m.history.Before("web-0", "c2")
	before := m.stamp()
	w.mu.Unlock()
	if !ok || old != "c1" || before.steps != 2 || before.life == nil {
		t.Errorf("the sandbox of web-0 before c2 is %q; %+v", old, before)
	}
	write([]byte(`{"at":` + "9000000000000000000" + `,"in":{"Tick":{}},"out":"0000000000000000"}` + "\n"))
	await(t, "a disagreement", func() bool { return len(w.Disagreements()) == 1 && w.Err() != nil })
	_ = c.Close()
	await(t, "the end", func() bool { _, pid := steps(); return pid == 0 })
	w.cancel()
}

// TestTrap: a daemon that makes the request dies then, and nobody else does.
func TestTrap(t *testing.T) {
	w := machineless(t)
	daemon := exec.Command("sleep", "600")
	must.Do(t, daemon.Start())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	defer func() { _ = daemon.Process.Kill() }()
	one, two := w.members[1], w.members[2]
	one.pid = daemon.Process.Pid
	w.traps.Set(one.no, ec2.CreateNetworkInterface, true, 0)
	for _, c := range []struct {
		m      *member
		action ec2.Action
		after  bool
	}{{one, ec2.CreateNetworkInterface, false}, {one, ec2.AttachNetworkInterface, true}, {two, ec2.CreateNetworkInterface, true}} {
		if w.observer.arrived(c.m.node, c.action, c.after) {
			t.Errorf("%+v sprang it", c)
		}
	}
	if w.observer.arrived(&cluster.Node{}, ec2.CreateNetworkInterface, true) {
		t.Error("the control plane sprang it")
	}
	if !w.observer.arrived(one.node, ec2.CreateNetworkInterface, true) || len(w.traps) != 0 {
		t.Error("it did not spring")
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the daemon lives")
	}
}

// TestTerminated: the action has struck when EC2 has terminated the instance. From then on nobody waits for the node, looks at
// it, or does anything to it.
func TestTerminated(t *testing.T) {
	w := machineless(t)
	one, two := w.members[1], w.members[2]
	one.endedBy = w.acts.Begin("node-1 terminate")
	w.took(one.endedBy, verb.Wait("EC2 did not terminate the instance"))
	one.node.Gone.Store(true)
	w.observer.happened(one.node, &ec2.Event{Kind: ec2.InstanceTerminated, Instance: one.node.Instance})
	if s := w.acts.Of(one.endedBy); s.Fate != verb.Struck {
		t.Errorf("it has not struck: %+v", s)
	}
	if list := w.members.living(); len(list) != 1 || list[0] != two {
		t.Errorf("%d nodes live, expected node-2", len(list))
	}
	if why := w.pace.changes(one); why != "" {
		t.Errorf("it is waited for: %s", why)
	}
	if why := w.pace.changes(two); why == "" {
		t.Error("nobody waits for the daemon of node-2")
	}
	id := w.acts.Begin("node-1 kill")
	if err := one.do(nil, id); err != nil || w.acts.Of(id).Text != actions.Terminated {
		t.Errorf("an action on it: %+v, %v", w.acts.Of(id), err)
	}
}

// TestStamp: what happens at EC2 to a node, or to its objects, moves its stamp and no other's.
func TestStamp(t *testing.T) {
	w := machineless(t)
	one := w.members[1]
	stamps, o := func() []stamp { return w.stamps() }, &w.observer
	for what, f := range map[string]func(){
		"a request": func() {
			o.served(one.node, &ec2.Request{Action: ec2.DescribeNetworkInterfaces}, &ec2.Response{})
		},
		"an event": func() { o.happened(one.node, &ec2.Event{Kind: ec2.LinkPlugged, Instance: one.node.Instance}) },
		"a reboot": func() { o.rebooted(one.node) },
	} {
		before := stamps()
		f()
		if after := stamps(); after[0] == before[0] || after[1] != before[1] {
			t.Errorf("%s: %+v, %+v", what, before, after)
		}
	}
	before := stamps()
	o.happened(nil, &ec2.Event{})
	o.served(&cluster.Node{}, &ec2.Request{}, &ec2.Response{})
	if !same(before, stamps()) {
		t.Error("what happens to nobody moves somebody")
	}
}

// TestLedger: the control plane's calls are not the scenario's.
func TestLedger(t *testing.T) {
	w := machineless(t)
	one, two := w.members[1], w.members[2]
	w.ledger.outsiders = []ec2.InstanceID{two.node.Instance}
	call := func(n *cluster.Node) {
		w.c.Model().Serve(w.now(), &ec2.Request{Action: ec2.DescribeSubnets, Caller: n.Instance})
	}
	call(two.node)
	w.ledger.begin(w.c.Model())
	call(one.node)
	call(two.node)
	call(two.node)
	if v, ok := w.ledger.measure(w.c.Model(), "calls.total"); !ok || v != 1 {
		t.Errorf("%d calls, %v; want 1", v, ok)
	}
	if v, ok := w.ledger.measure(w.c.Model(), "enis.total"); !ok || v != 1 {
		t.Errorf("%d ENIs, %v; want 1", v, ok)
	}
	for metric, want := range map[string]int64{"calls.total": 1, "enis.other-groups": 0, "subnet-1.enis": 1} { // what EC2 knows of a node
		if v, ok := one.measure(metric); !ok || v != want {
			t.Errorf("%s of a node: %d, %v; want %d", metric, v, ok, want)
		}
	}
	if s := w.members; !slices.Equal(s.machines(0), []string{"machine", "machine"}) ||
		s.instance(1) != one.node.Instance || s.instance(9) != "" {
		t.Error("the machines are wrong")
	}
}
