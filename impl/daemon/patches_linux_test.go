package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/powercut"
)

// Each of these notices a change of one line that nothing else here noticed: testdata/patches has them.

// TestOnlyRootMayAsk: whoever gets at the socket nevertheless is refused by his user.
func TestOnlyRootMayAsk(t *testing.T) {
	r := newRig(t, 2).start().serves()
	for path, mode := range map[string]os.FileMode{filepath.Dir(r.c.RunDir): 0o711, r.c.RunDir: 0o755, r.socket(): 0o666} {
		must.Do(t, os.Chmod(path, mode))
	}
	type answer struct {
		out *ipc.Response
		err error
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends as nobody
		var a answer
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			a.err = errno
		} else {
			a.out, a.err = r.call(&ipc.Request{Verb: ipc.Status})
		}
		answers <- a
	}()
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.out.Code != ipam.CodeConfig || !strings.Contains(a.out.Text, "only root may ask") || a.out.Ready {
		t.Errorf("nobody asked and was answered %+v", a.out)
	}
}

// TestAPlanGetsItsOwnNamespace: two ADDs of one attachment are open, each with a namespace; a plan names one of them.
func TestAPlanGetsItsOwnNamespace(t *testing.T) {
	r := newRig(t, 2)
	d := must.Get(newDaemon(r.c))(t)
	q := addOf("one")
	var inodes []uint64
	for i := range 2 {
		files, inode := newNamespace(t).pass(t)
		pod := must.Get(linux.NewPod(files[0], files[1]))(t)
		defer pod.Close()
		d.requests.open[ipam.Req(i+1)] = &request{caller: &caller{q: q}, pod: &namespace{pod, 1}}
		inodes = append(inodes, inode)
	}
	for range 20 { // requests are in no order
		for _, inode := range inodes {
			a := &ipam.Apply{Lane: ipam.Lane{Kind: ipam.PodLane, Att: q.Attachment()}, Plan: dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.CreateVeth, Netns: inode}}}}
			if n := d.requests.namespaceOf(a); n == nil || n.pod.Inode() != inode {
				t.Fatalf("a plan for the namespace %d gets %+v", inode, n)
			}
		}
	}
	a := &ipam.Apply{Lane: ipam.Lane{Kind: ipam.PodLane, Att: q.Attachment()}, Plan: dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.CreateVeth, Netns: 1}}}}
	if n := d.requests.namespaceOf(a); n != nil {
		t.Errorf("a plan for a namespace that nobody passed gets %d", n.pod.Inode())
	}
}

// idle is a daemon that does nothing by itself: the test is its loop.
func idle(t *testing.T, r *rig) *daemon {
	t.Helper()
	d := must.Get(newDaemon(r.c))(t)
	d.ctx, d.end = context.WithCancel(context.Background())
	t.Cleanup(d.end)
	d.node = newNode(t, ipam.Sound())
	return d
}

// posted is the next thing that a goroutine of the daemon's wants done.
func posted(t *testing.T, d *daemon) func() {
	t.Helper()
	select {
	case f := <-d.in:
		return f
	case <-time.After(soon):
		t.Fatalf("nothing was posted within %v", soon)
		return nil
	}
}

// TestTicksThatMoveNothingRest: a core that wants to be stepped again at once is, after a pause: it cannot
// take the CPU.
func TestTicksThatMoveNothingRest(t *testing.T) {
	r := newRig(t, 2)
	d := idle(t, r)
	d.core.perform = func([]ipam.Effect) {} // nothing is begun, and nothing answers
	d.step(ipam.Start{Boot: "boot", Settings: r.c.Settings})
	at := d.next()
	if at == never {
		t.Fatal("the core waits for nothing: there is nothing to show")
	}
	later := max(at, d.clock.Now()) + time.Hour // the step that is due then comes too early, and moves nothing
	if d.tick(at - 1) {
		t.Error("the core was stepped before it wanted that")
	}
	for _, c := range []struct {
		now     time.Duration
		stepped bool
	}{{later, true}, {later, false}, {later + tickPause - 1, false}, {later + tickPause, true}} {
		before := d.steps
		if got := d.tick(c.now); got != c.stepped || (d.steps != before) != c.stepped {
			t.Errorf("%v after the first step: stepped %v (%d times), expected %v", c.now-later, got, d.steps-before, c.stepped)
		}
	}
}

// TestAnIntentIsDoneOnce: the folder is being read, and has been, when the DEL that it holds ends. Done again, it would hit a newer ADD of the
// same attachment.
func TestAnIntentIsDoneOnce(t *testing.T) {
	r := newRig(t, 2)
	d := idle(t, r)
	att := addOf("one").Attachment()
	must.Do(t, ipc.WriteIntent(d.c.intentDir(), ipc.Intent{Attachment: att, Version: ipam.Version}))
	list, _, err := ipc.ReadIntents(d.c.intentDir())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d intents, %v", len(list), err)
	}
	d.intents.doing[att] = true
	d.intents.scan()
	read := posted(t, d)
	d.intents.remove(&list[0], func() { t.Error("the file cannot be removed") })
	posted(t, d)()
	read()
	if len(d.requests.open) != 0 {
		t.Error("an intent that has ended is done again")
	}
	posted(t, d)() // the folder once more, for one that came in its place
	if len(d.requests.open) != 0 {
		t.Error("an intent that is no more is done")
	}
}

// TestOneLaneOnePlan: the second plan of a lane begins when the first has ended; another lane's does not wait.
func TestOneLaneOnePlan(t *testing.T) {
	r := newRig(t, 2)
	leave := make(chan struct{})
	r.kernel.gate(func(dataplane.Plan) { <-leave })
	d := idle(t, r)
	lane := ipam.Lane{Kind: ipam.ENILane, ENI: "eni-1"}
	d.kernel.apply(&ipam.Apply{ID: 1, Lane: lane})
	d.kernel.apply(&ipam.Apply{ID: 2, Lane: lane})
	if d.local != 1 || len(d.kernel.lanes[lane].queue) != 1 {
		t.Fatalf("%d plans of one lane run", d.local)
	}
	d.kernel.apply(&ipam.Apply{ID: 3, Lane: ipam.Lane{Kind: ipam.HostLane}})
	if d.local != 2 {
		t.Errorf("another lane waits: %d plans run", d.local)
	}
	close(leave)
	for range 3 {
		posted(t, d)()
	}
	if d.local != 0 || len(d.kernel.lanes) != 0 {
		t.Errorf("%d plans run, lanes %v; expected none", d.local, d.kernel.lanes)
	}
}

// slowCloud is an EC2 whose mutations take until somebody says so.
type slowCloud struct {
	*fixedCloud
	entered, leave chan struct{}
}

func (c *slowCloud) Call(_ context.Context, q *ipam.Call) ipam.Result {
	c.entered <- struct{}{}
	<-c.leave // whatever the context says: what has been sent has been sent
	return ipam.Result{Class: ipam.Denied, Code: "UnauthorizedOperation"}
}

// inputs are what the core was told.
type inputs struct {
	mu   sync.Mutex
	list []ipam.Input
}

func (s *inputs) tap(in ipam.Input) ipam.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, in)
	return in
}

func (s *inputs) count(is func(ipam.Input) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.list {
		if is(in) {
			n++
		}
	}
	return n
}

// stopsDuringACall is a daemon that was told to stop while EC2 works for it. lives waits until it says that it has nothing else to do.
func stopsDuringACall(t *testing.T) (_ *rig, _ *slowCloud, _ *inputs, early *ipc.Conn, lives func(what string)) {
	r := newRig(t, 1)
	seat, reports := laboratory(t, r)
	told := &inputs{}
	r.c.Parts.Input = told.tap
	c := &slowCloud{r.cloud, make(chan struct{}, 8), make(chan struct{})}
	r.c.Cloud, r.c.Settings.NoProvisioning = c, false
	r.start().serves()
	select {
	case <-c.entered:
	case <-time.After(soon):
		t.Fatalf("EC2 was not called\n%s", r.log)
	}
	early = must.Get(ipc.Dial(r.socket(), soon))(t)
	t.Cleanup(func() { early.Close() })
	r.must(&ipc.Request{Verb: ipc.Status}) // callers are taken one after another: the one before is, too
	r.stop()
	r.eventually("it stops", func() bool { return strings.Contains(r.log.String(), "ipamd stops") })
	return r, c, told, early, func(what string) {
		t.Helper()
		must.Do(t, seat.Tell(time.Millisecond))
		await(t, r, what, reports, func(p clock.Report) bool { return p.Offset == time.Millisecond && p.Requests == 0 })
	}
}

// TestStopWaitsForEC2: what EC2 answers after SIGTERM is heard and recorded; the next daemon need not find out.
func TestStopWaitsForEC2(t *testing.T) {
	r, c, told, _, lives := stopsDuringACall(t)
	lives("it waits for EC2 alone")
	close(c.leave)
	r.end()
	if n := told.count(func(in ipam.Input) bool { _, ok := in.(ipam.Called); return ok }); n == 0 {
		t.Error("the daemon ended without EC2's answer")
	}
}

// TestAStoppingDaemonTakesNoRequest: neither from who comes, nor from who was there before and speaks only now.
func TestAStoppingDaemonTakesNoRequest(t *testing.T) {
	r, c, told, early, _ := stopsDuringACall(t)
	defer r.end()
	defer close(c.leave)
	if late, err := ipc.Dial(r.socket(), time.Second); err == nil {
		late.Close()
		t.Error("who comes after SIGTERM is taken")
	}
	out, err := early.Call(addOf("late"), soon, passed(t)...)
	if err != nil || out.Code != ipam.CodeTryAgain || !strings.Contains(out.Text, "stopping") {
		t.Errorf("an ADD after SIGTERM was answered %+v, %v", out, err)
	}
	if n := told.count(func(in ipam.Input) bool { _, ok := in.(ipam.Add); return ok }); n != 0 {
		t.Error("an ADD after SIGTERM was given to the core")
	}
}

// TestRecordsOutliveAPowerCut: what Commit has returned for is there afterwards, in both stores, also when it took another one's place.
func TestRecordsOutliveAPowerCut(t *testing.T) {
	stores := func(dir string) []*file {
		return []*file{{path: filepath.Join(dir, "ipam.json"), kind: ipam.RunStore, version: ipam.Version},
			{path: filepath.Join(dir, "enis.json"), kind: ipam.LibStore, version: ipam.Version}}
	}
	rows := [][]ipam.Row{{row("10.0.0.1", "one"), row("10.0.0.2", "two")}, {intentRow("a"), intentRow("b")}}
	powercut.Run(t, func(dir string) {
		for i, f := range stores(dir) {
			if _, _, err := f.Read(); err != nil {
				t.Fatal(err)
			}
			for k := range rows[i] {
				must.Do(t, f.Commit([]*ipam.Save{{Put: rows[i][k : k+1]}}))
			}
		}
	}, func(dir string) {
		for i, f := range stores(dir) {
			if have, _, err := f.Read(); err != nil || len(have) != len(rows[i]) {
				t.Errorf("%s: %d rows are left of %d, %v", filepath.Base(f.path), len(have), len(rows[i]), err)
			}
		}
	})
}

func intentRow(token string) ipam.Row {
	return ipam.Row{Intent: &ipam.Intent{Token: token, Stage: ipam.Created, ENI: ipam.ENI{ID: "eni-" + token}, Doing: ipam.AttachENI}}
}

// TestRecordOnAFullDisk: what could not be written is an error, and the disk still has what was there before.
func TestRecordOnAFullDisk(t *testing.T) {
	var have int
	powercut.Run(t, func(dir string) {
		f := &file{path: filepath.Join(dir, "ipam.json"), kind: ipam.RunStore, version: ipam.Version}
		if _, _, err := f.Read(); err != nil {
			t.Fatal(err)
		}
		must.Do(t, f.Commit([]*ipam.Save{{Put: []ipam.Row{row("10.0.0.1", "one")}}}))
		fill := must.Get(os.Create(filepath.Join(dir, "fill")))(t)
		for block := make([]byte, 64<<10); len(block) > 0; {
			if _, err := fill.Write(block); err != nil {
				block = block[:len(block)/2]
			}
		}
		fill.Close()
		for i := range 100 { // one fits into what is left of a block
			if err := f.Commit([]*ipam.Save{{Put: []ipam.Row{row(fmt.Sprintf("10.0.1.%d", i), strings.Repeat("c", 200))}}}); err != nil {
				return
			}
			have++
		}
		t.Error("a hundred rows were written to a full disk")
	}, func(dir string) {
		f := &file{path: filepath.Join(dir, "ipam.json"), kind: ipam.RunStore, version: ipam.Version}
		if rows, _, err := f.Read(); err != nil || len(rows) != have+1 {
			t.Errorf("%d rows are left of %d, %v", len(rows), have+1, err)
		}
	})
}

// TestRecordThatCannotTakeItsPlace: the new file is written, and cannot be renamed.
func TestRecordThatCannotTakeItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ipam.json")
	must.Do(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o755))
	if err := replace(path, []byte("{}"), recordMode); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if exists(path + ".new") {
		t.Error("the file that could not take its place is still there")
	}
}

// TestADelThatCannotBeKept: the settings cannot be, and neither can the DEL be written down: the runtime has to try again.
func TestADelThatCannotBeKept(t *testing.T) {
	r := newRig(t, 2)
	r.c.Problems = []string{"A: this cannot be"}
	must.Do(t, os.WriteFile(filepath.Join(r.c.RunDir, "del"), nil, 0o600))
	r.start()
	r.eventually("the socket is there", func() bool { return exists(r.socket()) })
	if out := r.must(delOf("one")); out.Code != ipam.CodeTryAgain || !strings.Contains(out.Text, "cannot be kept") {
		t.Errorf("the DEL was answered %+v", out)
	}
}

// TestLogFileGoesOn: a file that an earlier daemon has filled is no reason to begin at nothing.
func TestLogFileGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ipamd.log")
	must.Do(t, os.WriteFile(name, nil, 0o644))
	must.Do(t, os.Truncate(name, maxLogFile))
	l := must.Get(openLogFile(name))(t)
	must.Get(l.Write([]byte("a line\n")))(t)
	if data, err := os.ReadFile(name); err != nil || string(data) != "a line\n" {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestLogWithoutAFile: it goes to standard error alone, and the daemon says why.
func TestLogWithoutAFile(t *testing.T) {
	w, end, err := openLog(filepath.Join(t.TempDir(), strings.Repeat("long", 100), "ipamd.log"))
	if err == nil {
		t.Error("a name that cannot be was taken")
	}
	if _, err := w.Write([]byte("a line of TestLogWithoutAFile\n")); err != nil {
		t.Error(err)
	}
	end()
}
