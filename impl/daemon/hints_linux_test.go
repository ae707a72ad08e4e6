package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// hinted is a reason to look at the kernel.
func hinted(in ipam.Input) bool {
	s, ok := in.(ipam.Seen)
	return ok && s.What == ipam.LookKernel && s.ID == 0
}

// TestKernelEventsAreReasonsToLook: the core hears of what others do to the kernel.
func TestKernelEventsAreReasonsToLook(t *testing.T) {
	r := newRig(t, 2)
	told := &inputs{}
	r.c.Parts.Input = told.tap
	r.start().serves() // the kernel's watch says that there is something as it begins
	r.eventually("the core was told to look", func() bool { return told.count(hinted) > 0 })
}

// TestManyKernelEventsAreOneLook: a pod that comes causes a dozen. Before the core is there, there is nobody to tell.
func TestManyKernelEventsAreOneLook(t *testing.T) {
	r := newRig(t, 2)
	told := &inputs{}
	r.c.Parts.Input = told.tap
	d := idle(t, r)
	node := d.node
	d.node = nil
	d.kernel.hear()
	d.settle()
	d.node = node
	for range 5 {
		d.kernel.hear()
	}
	for range 5 {
		d.settle()
	}
	if n := told.count(hinted); n != 1 {
		t.Errorf("the core was told %d times, expected once", n)
	}
}

// TestALookThatTakesLongIsTakenLessOften: beside many pods the daemon would do nothing else while others' pods come
// and go.
func TestALookThatTakesLongIsTakenLessOften(t *testing.T) {
	d := idle(t, newRig(t, 2))
	d.kernel.observe(1)
	if posted(t, d)(); d.kernel.lookTook <= 0 {
		t.Errorf("a look took %v", d.kernel.lookTook)
	}
	for took, pause := range map[time.Duration]time.Duration{
		0: hintPause, 10 * time.Millisecond: 500 * time.Millisecond, time.Minute: hintPauseMost,
	} {
		d.kernel.hinted = false
		d.kernel.lookTook, d.kernel.lastHint = took, d.clock.Now()+time.Hour
		d.kernel.hear()
		if at := d.alarms[len(d.alarms)-1].at - d.kernel.lastHint; at != pause {
			t.Errorf("a look that takes %v: the next hint comes %v after the last, expected %v", took, at, pause)
		}
	}
}

// deafKernel loses its events.
type deafKernel struct{ *nodeKernel }

func (deafKernel) Watch(context.Context, func()) error {
	return errors.New("no buffer space available")
}

// TestLostEventsAreAReasonToLook: whatever happened meanwhile nobody has told. The watch begins again after a pause.
func TestLostEventsAreAReasonToLook(t *testing.T) {
	r := newRig(t, 2)
	told := &inputs{}
	r.c.Parts.Input, r.c.Kernel = told.tap, deafKernel{r.kernel}
	d := idle(t, r)
	d.kernel.watchEvents()
	posted(t, d)()
	d.settle()
	if n := told.count(hinted); n != 1 {
		t.Errorf("the core was told %d times, expected once", n)
	}
	if len(d.alarms) != 1 || d.next() <= d.clock.Now() {
		t.Errorf("the kernel is watched again at once: %d alarms", len(d.alarms))
	}
}

// TestFolderThatCannotBeWatchedIsTriedAfterAPause: the daemon has better things to do than to try without end.
func TestFolderThatCannotBeWatchedIsTriedAfterAPause(t *testing.T) {
	r := newRig(t, 2)
	r.c.Socket = filepath.Join(r.c.RunDir, "missing", "s")
	d := idle(t, r)
	d.stopping = true // nobody listens in this test
	d.server.watchSocket()
	posted(t, d)()
	if len(d.alarms) != 1 || d.next() <= d.clock.Now() {
		t.Errorf("the socket's folder is watched again at once: %d alarms", len(d.alarms))
	}
}

// TestUnreadableIntentIsSaidOnce: it stays where it is, and the folder is read whenever something comes.
func TestUnreadableIntentIsSaidOnce(t *testing.T) {
	r := newRig(t, 2)
	d := idle(t, r)
	must.Do(t, os.MkdirAll(d.c.intentDir(), 0o755))
	for _, name := range []string{"one.json", "two.json"} {
		must.Do(t, os.WriteFile(filepath.Join(d.c.intentDir(), name), []byte("nonsense"), 0o600))
	}
	for range 3 {
		d.intents.scan()
		posted(t, d)()
	}
	for _, name := range []string{"one.json", "two.json"} {
		if n := strings.Count(r.log.String(), "file="+name); n != 1 {
			t.Errorf("the log says it of %s %d times, expected once\n%s", name, n, r.log)
		}
	}
}

// TestAStoppingDaemonTakesNoIntent: the next one does it. What was begun now would end within the life of neither.
func TestAStoppingDaemonTakesNoIntent(t *testing.T) {
	r := newRig(t, 2)
	d := idle(t, r)
	if err := ipc.WriteIntent(d.c.intentDir(), ipc.Intent{Attachment: addOf("one").Attachment(), Version: ipam.Version}); err != nil {
		t.Fatal(err)
	}
	d.stopping = true
	d.intents.scan()
	if d.local != 0 {
		t.Error("the folder is read")
		posted(t, d)()
	}
	if len(d.requests.open) != 0 {
		t.Errorf("%d DELs are open", len(d.requests.open))
	}
}
