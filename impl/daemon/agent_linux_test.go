package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

func TestAddAndDel(t *testing.T) {
	r := newRig(t, 5).start().serves()
	one := r.add("one")
	if again := r.add("one"); again.Address != one.Address || again.Veth != one.Veth {
		t.Errorf("the same ADD again: %+v, first %+v", again, one)
	}
	if one.HostMAC != dataplane.VethMAC(dataplane.Alias("aws-cni", "one", "eth0", one.Address)) || one.Table != dataplane.MainTable || one.Version != ipam.Version {
		t.Errorf("answer: %+v", one)
	}
	if two := r.add("two"); two.Address == one.Address {
		t.Errorf("two pods have %v", two.Address)
	}
	check := addOf("one")
	check.Verb = ipc.Check
	check.Inode = r.view().Rows[0].Netns
	for _, row := range r.view().Rows {
		if row.Att.ContainerID == "one" {
			check.Inode = row.Netns
		}
	}
	if out := r.must(check); out.Code != 0 {
		t.Errorf("check: %d %s", out.Code, out.Text)
	}
	r.del("one")
	r.del("one")
	r.del("unknown")
	states := map[string]ipam.State{}
	for _, row := range r.rows() {
		states[row.Att.ContainerID] = row.State
	}
	if states["one"] != ipam.Cooling || states["two"] != ipam.Assigned {
		t.Errorf("durable states: %v", states)
	}
	gc := &ipc.Request{Verb: ipc.GC, Network: "aws-cni", ValidAbsent: true}
	if out := r.must(gc); out.Code == 0 {
		t.Log("GC without a list released nothing and succeeded")
	}
	r.end()
	if got := r.replays(); got.Lines < 10 {
		t.Errorf("%d lines were recorded", got.Lines)
	}
	if exists(r.socket()) {
		t.Error("the socket is left")
	}
}

// TestNextLife: what was given away is still given away, and what cools still cools.
func TestNextLife(t *testing.T) {
	r := newRig(t, 3).start().serves()
	one := r.add("one").Address
	r.add("two")
	r.del("two")
	r.end()
	r.record = &buffer{}
	r.c.Record = r.record
	r.start().serves()
	if again := r.add("one").Address; again != one {
		t.Errorf("after a restart the pod has %v, before %v", again, one)
	}
	r.eventually("one address is assigned and one cools: the third has never been used", func() bool {
		v := r.view()
		return v.View.Assigned == 1 && v.View.Cooling == 1
	})
}

func TestRequestsWithoutSense(t *testing.T) {
	r := newRig(t, 2).start().serves()
	for _, c := range []struct {
		q    *ipc.Request
		code int
	}{
		{&ipc.Request{Verb: "dance"}, ipam.CodeVersion},
		{&ipc.Request{Verb: ipc.Add, Network: "aws-cni", IfName: "eth0"}, ipam.CodeConfig}, // and no files
		{&ipc.Request{Verb: ipc.Del, Network: "aws-cni", IfName: "eth0"}, codeEnvironment},
		{&ipc.Request{Verb: ipc.Check}, codeEnvironment},
		{addOf("one"), ipam.CodeConfig},
		{&ipc.Request{Version: 9, Verb: ipc.Del, Network: "n", ContainerID: "c", IfName: "i"}, ipam.CodeVersion},
	} {
		if out := r.must(c.q); out.Code != c.code || out.Text == "" {
			t.Errorf("%+v: code %d %q, want %d", c.q, out.Code, out.Text, c.code)
		}
	}
	if out := r.must(addOf("one"), passed(t)[0], passed(t)[0]); out.Code != ipam.CodeConfig {
		t.Errorf("an ADD with a namespace and no socket: %+v", out)
	}
	if out := r.status(); !out.Ready {
		t.Errorf("afterwards it is not ready: %+v", out)
	}
}

// TestSilentMetadata: the daemon is up at once, says why it takes no pods, and answers an ADD before its deadline.
func TestSilentMetadata(t *testing.T) {
	r := newRig(t, 2)
	r.startSilent()
	out := r.status()
	if out.Ready || out.Busy || len(out.Reasons) == 0 {
		t.Errorf("status: %+v", out)
	}
	q, began := addOf("one"), time.Now()
	q.TimeoutMS = 800
	out = r.must(q, passed(t)...)
	if took := time.Since(began); out.Code != ipam.CodeTryAgain || took > defaultTimeout/2 || !strings.Contains(out.Text, "metadata") {
		t.Errorf("add with a deadline of 800 ms after %v: %+v", took, out)
	}
	close(r.cloud.silent)
	r.serves()
	r.add("one")
}

// TestNodeWithoutAddressesIsNotReady: a node that gets no address from the start is not ready and says why; one that
// may not ask for any has what it has.
func TestNodeWithoutAddressesIsNotReady(t *testing.T) {
	r := newRig(t, 0)
	r.c.Settings.NoProvisioning = false
	r.start()
	r.eventually("the node serves", func() bool { return exists(r.socket()) && r.view().View.Serving })
	r.eventually("EC2 refuses", func() bool { return strings.Contains(strings.Join(r.view().Reasons, "; "), "UnauthorizedOperation") })
	if out := r.status(); out.Ready {
		t.Errorf("status: %+v", out)
	}
	r.end()
	if exists(filepath.Join(r.c.RunDir, "served")) {
		t.Error("the next daemon would believe that this one has served")
	}
	r.c.Settings.NoProvisioning = true
	r.start().serves()
}

// TestReasonsAreLogged: what happens right after another change is in the log a moment later, although nothing else happens.
func TestReasonsAreLogged(t *testing.T) {
	r, s := gatedRig(t, 3)
	r.add("one")
	s.fail(true)
	if out := r.must(addOf("two"), passed(t)...); out.Code == 0 {
		t.Fatal("an ADD has succeeded without its record")
	}
	r.eventually("the log says it", func() bool { return strings.Contains(r.log.String(), "the node is impaired") })
	s.fail(false)
	r.add("three")
	r.eventually("the log says that it is over", func() bool { return strings.Contains(r.log.String(), "all is well") })
	if strings.Contains(r.log.String(), "recovering") && strings.Contains(strings.SplitN(r.log.String(), "ipamd serves", 2)[0], "impaired") {
		t.Error("an ordinary start is called an impairment")
	}
}

// TestADDOfCallerThatHangsUpIsUndone: a caller hangs up while its plan runs; the plan ends and is undone.
func TestADDOfCallerThatHangsUpIsUndone(t *testing.T) {
	r := newRig(t, 2).start().serves()
	enter, leave := make(chan struct{}, 8), make(chan struct{})
	r.kernel.gate(func(p dataplane.Plan) {
		if p.Ops[0].Kind == dataplane.CreateVeth || len(p.Ops) > 1 && p.Ops[1].Kind == dataplane.CreateVeth {
			enter <- struct{}{}
			<-leave
		}
	})
	c := must.Get(ipc.Dial(r.socket(), soon))(t)
	go c.Call(addOf("one"), soon, passed(t)...)
	select {
	case <-enter:
	case <-time.After(soon):
		t.Fatalf("no plan ran\n%s", r.log)
	}
	c.Close()
	r.eventually("the daemon hears that the caller is gone", func() bool { return strings.Contains(r.log.String(), "hung up") })
	close(leave)
	r.eventually("the ADD is undone", func() bool { return r.view().View.Assigned == 0 })
	r.eventually("its link is gone", func() bool {
		o, _ := r.kernel.Observe()
		for _, l := range o.Links {
			if l.Veth {
				return false
			}
		}
		return true
	})
}

// TestHungPlanHoldsUpItsAttachmentOnly: a plan that hangs holds up nobody but its own attachment.
func TestHungPlanHoldsUpItsAttachmentOnly(t *testing.T) {
	r := newRig(t, 4).start().serves()
	leave := make(chan struct{})
	var once sync.Once
	entered := make(chan struct{})
	r.kernel.gate(func(p dataplane.Plan) {
		for i := range p.Ops {
			if o := &p.Ops[i]; o.Kind == dataplane.CreateVeth && strings.Contains(o.Alias, " slow ") {
				once.Do(func() { close(entered) })
				<-leave
			}
		}
	})
	slow := make(chan *ipc.Response, 1)
	files := passed(t)
	go func() { out, _ := r.call(addOf("slow"), files...); slow <- out }()
	select {
	case <-entered:
	case <-time.After(soon):
		t.Fatalf("no plan ran\n%s", r.log)
	}
	for i := range 2 {
		r.add(fmt.Sprint("quick-", i))
	}
	gone := make(chan *ipc.Response, 1)
	go func() { out, _ := r.call(delOf("slow")); gone <- out }()
	r.eventually("the ADD and its DEL are open", func() bool { return r.view().Requests == 2 })
	r.add("quick-again") // the daemon has done its other work meanwhile
	select {
	case out := <-gone:
		t.Fatalf("the DEL overtook its ADD: %+v", out)
	default:
	}
	close(leave)
	for _, c := range []chan *ipc.Response{slow, gone} {
		if out := <-c; out == nil || out.Code != 0 {
			t.Errorf("answer: %+v", out)
		}
	}
}

// TestStopAnswersWhatWaits: what waits is answered, what runs ends, and then the daemon does.
func TestStopAnswersWhatWaits(t *testing.T) {
	r := newRig(t, 1)
	r.startSilent()
	answers := make(chan *ipc.Response, 3)
	for i := range 3 {
		files := passed(t)
		go func() { out, _ := r.call(addOf(fmt.Sprint("waits-", i)), files...); answers <- out }()
	}
	r.eventually("three ADDs are open", func() bool { return r.view().Requests == 3 })
	r.end()
	if strings.Contains(r.log.String(), "although not all has ended") {
		t.Errorf("it took all of the %v that it may take to stop\n%s", StopBound, r.log)
	}
	for range 3 {
		if out := <-answers; out == nil || out.Code != ipam.CodeTryAgain {
			t.Errorf("an ADD that waited was answered %+v", out)
		}
	}
	r.replays()
}

func TestStopWhileAPlanHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a daemon may take to stop")
	}
	r := newRig(t, 1).start().serves()
	leave := make(chan struct{})
	defer close(leave)
	entered := make(chan struct{}, 8)
	r.kernel.gate(func(dataplane.Plan) { entered <- struct{}{}; <-leave })
	answer := make(chan *ipc.Response, 1)
	files := passed(t)
	go func() { out, _ := r.call(addOf("one"), files...); answer <- out }()
	<-entered
	r.stop()
	select {
	case out := <-answer:
		if out == nil || out.Code != ipam.CodeTryAgain {
			t.Errorf("answer: %+v", out)
		}
	case <-time.After(StopBound + soon):
		t.Fatal("no answer")
	}
	r.end()
	if f, err := lock(r.c.RunDir); err == nil {
		f.Close()
		t.Error("the node is free although the old daemon still works on it")
	}
}

// TestTwoDaemons: the second waits, says for whom, serves nothing, and goes on when the first has ended.
func TestTwoDaemons(t *testing.T) {
	r := newRig(t, 2).start().serves()
	second := *r
	second.log, second.record = &buffer{}, &buffer{}
	second.c.Record = second.record
	second.c.Socket = filepath.Join(r.c.RunDir, "second.sock")
	second.c.Log = slogTo(second.log)
	second.start()
	second.eventually("the second says why it waits", func() bool {
		return strings.Contains(second.log.String(), fmt.Sprint("process ", os.Getpid()))
	})
	if exists(second.c.Socket) || len(second.record.bytes()) > 0 {
		t.Error("the second serves")
	}
	r.end()
	second.eventually("the second serves", func() bool { return exists(second.c.Socket) })
	second.end()
}

func TestStartWaitsForRivalDaemon(t *testing.T) {
	r := newRig(t, 2)
	l := must.Get(net.Listen("unix", filepath.Join(r.c.RunDir, "rival.sock")))(t)
	r.c.Rival = l.Addr().String()
	r.start()
	r.eventually("it says that another CNI's daemon answers", func() bool { return strings.Contains(r.log.String(), "another CNI's daemon") })
	if exists(r.socket()) {
		t.Error("it serves")
	}
	l.Close()
	r.serves()
}

// TestStopBeforeItHasTheNode: told to end while another daemon, of its own kind or not, has the node, or something is in
// the socket's place, it ends without ever having had it.
func TestStopBeforeItHasTheNode(t *testing.T) {
	for name, c := range map[string]struct {
		take func(*testing.T, *rig) (release func() error)
		says string
	}{
		"another ipamd": {func(t *testing.T, r *rig) func() error { return must.Get(lock(r.c.RunDir))(t).Close }, "process "},
		"a rival": {func(t *testing.T, r *rig) func() error {
			l := must.Get(net.Listen("unix", filepath.Join(r.c.RunDir, "rival.sock")))(t)
			r.c.Rival = l.Addr().String()
			return l.Close
		}, "another CNI's daemon"},
		"no socket": {func(t *testing.T, r *rig) func() error {
			must.Do(t, os.Mkdir(r.socket(), 0o755))
			return func() error { return os.Remove(r.socket()) }
		}, "ipamd.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2)
			release := c.take(t, r)
			r.start()
			r.eventually("it says what it waits for", func() bool { return strings.Contains(r.log.String(), c.says) })
			r.end()
			if len(r.record.bytes()) > 0 {
				t.Errorf("it has begun to serve: %s", r.log)
			}
			must.Do(t, release())
			if exists(r.socket()) {
				t.Errorf("it has left a socket: %s", r.log)
			}
		})
	}
}

func TestSocketInUse(t *testing.T) {
	r := newRig(t, 2)
	must.Do(t, os.Mkdir(r.socket(), 0o755))
	r.start()
	r.eventually("it says what is in the way", func() bool { return strings.Contains(r.log.String(), "ipamd.sock") })
	must.Do(t, os.Remove(r.socket()))
	r.serves()
}

func TestStopWhileWaiting(t *testing.T) {
	r := newRig(t, 2)
	r.c.RunDir = filepath.Join(r.c.LibDir, "file", "run")
	must.Do(t, os.WriteFile(filepath.Dir(r.c.RunDir), nil, 0o644))
	r.start()
	r.eventually("it says that there is no folder", func() bool { return strings.Contains(r.log.String(), "folder of records") })
	r.end()
}

// TestProblems: contradictory settings; the daemon is up, says all of them, changes nothing, and a DEL ends.
func TestProblems(t *testing.T) {
	r := newRig(t, 2)
	r.c.Problems = []string{"A: this cannot be", "B: nor can that"}
	r.start()
	r.eventually("the socket is there", func() bool { return exists(r.socket()) })
	out := r.status()
	if out.Ready || len(out.Reasons) != 2 {
		t.Errorf("status: %+v", out)
	}
	out = r.must(addOf("one"), passed(t)...)
	if out.Code != ipam.CodeConfig || !strings.Contains(out.Text, "this cannot be; B: nor can that") {
		t.Errorf("add: %+v", out)
	}
	r.del("old")
	if list, _, err := ipc.ReadIntents(filepath.Join(r.c.RunDir, "del")); err != nil || len(list) != 1 || list[0].Attachment.ContainerID != "old" {
		t.Errorf("intents: %v %v", list, err)
	}
	if o, _ := r.kernel.Observe(); len(o.Rules) != 0 {
		t.Errorf("the kernel was changed: %v", o.Rules)
	}
	r.view()
	r.end()
	r.c.Problems = nil
	r.start().serves()
	r.eventually("the DEL is done", func() bool { list, _, _ := ipc.ReadIntents(filepath.Join(r.c.RunDir, "del")); return len(list) == 0 })
}

// TestDELIntentsAreDone: DELs that were left before the daemon, and while it runs.
func TestDELIntentsAreDone(t *testing.T) {
	r := newRig(t, 3).start().serves()
	dir := filepath.Join(r.c.RunDir, "del")
	r.add("before")
	r.add("during")
	r.end()
	leave := func(id string) {
		att := ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
		must.Do(t, ipc.WriteIntent(dir, ipc.Intent{Attachment: att, Version: ipam.Version}))
	}
	empty := func() bool { list, _, _ := ipc.ReadIntents(dir); return len(list) == 0 }
	leave("before")
	must.Do(t, os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o644))
	r.record = &buffer{}
	r.c.Record = r.record
	r.start().serves()
	r.eventually("the intent of before is done", empty)
	leave("during")
	leave("never-was")
	r.eventually("the intents of now are done", empty)
	r.eventually("no address is assigned, and those of both pods cool", func() bool {
		v := r.view()
		return v.View.Assigned == 0 && v.View.Cooling == 2
	})
	if !strings.Contains(r.log.String(), "broken.json") {
		t.Error("nobody says that a file is no intent")
	}
	r.end()
	r.replays()
}

// TestIntentIsTriedAgain: a DEL whose record cannot be written keeps its file until it can.
func TestIntentIsTriedAgain(t *testing.T) {
	r, s := gatedRig(t, 3)
	r.add("one")
	s.fail(true)
	dir := filepath.Join(r.c.RunDir, "del")
	att := ipam.Attachment{Network: "aws-cni", ContainerID: "one", IfName: "eth0"}
	must.Do(t, ipc.WriteIntent(dir, ipc.Intent{Attachment: att, Version: ipam.Version}))
	r.eventually("it fails", func() bool { return strings.Contains(r.log.String(), "is tried again") })
	if list, _, _ := ipc.ReadIntents(dir); len(list) != 1 {
		t.Error("the intent's file went although its DEL failed")
	}
	s.fail(false)
	r.eventually("it is done", func() bool { list, _, _ := ipc.ReadIntents(dir); return len(list) == 0 })
}

// TestIntentPause: an intent that can never be done costs a try in half a minute, not one a second.
func TestIntentPause(t *testing.T) {
	for failed, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 5: 32 * time.Second, 1 << 40: 32 * time.Second} {
		if got := growing(intentRetry, failed); got != want {
			t.Errorf("after %d failures it rests for %v, expected %v", failed, got, want)
		}
	}
}

func TestRecordAndView(t *testing.T) {
	r := newRig(t, 2).start().serves()
	r.add("one")
	var d Dump
	must.Do(t, json.Unmarshal(r.must(&ipc.Request{Verb: ipc.Record}).Body, &d))
	onDisk, err := os.ReadFile(d.File)
	if err != nil || string(onDisk) != d.Recording {
		t.Errorf("the file %s: %v", d.File, err)
	}
	got, err := ipam.Replay([]byte(d.Recording), func(string) (*ipam.Policy, bool) { return ipam.Sound(), true }, nil)
	if err != nil || got.Lines == 0 {
		t.Errorf("the dump replays %d lines: %v", got.Lines, err)
	}
	v := r.view()
	if v.Steps < uint64(got.Lines) || len(v.View.ENIs) != 1 || len(v.Rows) == 0 || v.Policy != "sound" {
		t.Errorf("view: %+v", v)
	}
}

// TestRecordOnADiskThatHangs: whoever asks for the flight recorder waits for its file, and nobody else does.
func TestRecordOnADiskThatHangs(t *testing.T) {
	r := newRig(t, 2).start().serves()
	path := filepath.Join(r.c.RunDir, dumpFile)
	if err := unix.Mkfifo(path, 0o600); err != nil { // to open it waits for a reader
		t.Fatal(err)
	}
	asked := make(chan error, 2)
	hasty := must.Get(ipc.Dial(r.socket(), soon))(t)
	go func() { _, err := hasty.Call(&ipc.Request{Verb: ipc.Record}, soon); asked <- err }()
	go func() { _, err := r.call(&ipc.Request{Verb: ipc.Record}); asked <- err }()
	r.eventually("both wait", func() bool { return r.view().Requests == 2 })
	r.add("one")
	hasty.Close() // who has left is not answered
	<-asked
	r.eventually("one waits", func() bool { return r.view().Requests == 1 })
	pipe := must.Get(os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0))(t)
	defer pipe.Close()
	go io.Copy(io.Discard, pipe)
	if err := <-asked; err != nil {
		t.Errorf("record: %v", err)
	}
	r.eventually("all is answered", func() bool { v := r.view(); return v.Requests == 0 && v.Effects == 0 })
}

// TestTheFolderOfIntentsIsTakenAway: whoever hears of it no more says so.
func TestTheFolderOfIntentsIsTakenAway(t *testing.T) {
	r := newRig(t, 2).start().serves()
	folder := filepath.Join(r.c.RunDir, intentDir)
	r.eventually("the folder is there", func() bool { return exists(folder) })
	must.Do(t, os.RemoveAll(folder))
	r.eventually("the log says that the folder is not watched", func() bool {
		return strings.Contains(r.log.String(), "the folder of DEL intents is not watched")
	})
}
