package operatorfaults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// process is the daemon's, as this process sees it.
func (m *machine) process() (pid int) {
	m.t.Helper()
	var want, got unix.Stat_t
	must.Do(m.t, unix.Fstat(int(m.box.Netns().Fd()), &want))
	list := must.Get(filepath.Glob("/proc/[0-9]*/comm"))(m.t)
	for _, path := range list {
		comm, err := os.ReadFile(path)
		dir := filepath.Dir(path)
		if err == nil && string(comm) == "ipamd\n" && unix.Stat(dir+"/ns/net", &got) == nil && got.Ino == want.Ino {
			must.Get(fmt.Sscan(filepath.Base(dir), &pid))(m.t)
			return pid
		}
	}
	m.t.Fatal("no daemon runs in the node")
	return 0
}

// TestFewFiles: forty ADDs wait at once for addresses that cool, at a daemon that may have 64 files open: three for each are too many. Each
// caller is told to try again, which a runtime does, or has an address.
func TestFewFiles(t *testing.T) {
	m := newMachine(t)
	m.start("IP_COOLDOWN_PERIOD=20")
	m.serves()
	must.Do(m.t, unix.Prlimit(m.process(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil))
	var had []pod
	for i := range 9 {
		had = append(had, m.add(fmt.Sprint("had-", i)))
	}
	for _, p := range had {
		m.del(p)
	}
	pods, ops := m.crowd(40)
	ended := func() (n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, op := range ops {
			if _, ok := m.ended[op]; ok {
				n++
			}
		}
		return n
	}
	m.until("some are refused for want of files", func() bool { return strings.Contains(m.log(), "RLIMIT_NOFILE") })
	m.until("all have an answer", func() bool { m.passes(time.Second); return ended() == len(ops) })
	served, files := 0, 0
	for i, op := range ops {
		e := m.wait(op)
		switch {
		case e.Code == 0:
			served++
		case e.Code != ipam.CodeTryAgain:
			t.Errorf("%s was answered code %d: %s", pods[i].name, e.Code, e.Text)
		case strings.Contains(e.Text, "RLIMIT_NOFILE"):
			files++
		}
	}
	if served == 0 || files == 0 {
		t.Errorf("%d have an address and %d were refused for want of files: expected some of each", served, files)
	}
	m.up()
	for _, p := range pods {
		m.del(p)
	}
	m.passes(30 * time.Second)
	m.answer(m.add("after"))
}

// TestManyLongLists: eighty callers at once send a list that is ten times as long as any node's, to a daemon whose container may have 32 MiB. It lives,
// and has never had as much.
func TestManyLongLists(t *testing.T) {
	m := newMachine(t)
	m.start(fmt.Sprint("GOMEMLIMIT=", 32<<20/10*8)) // what it takes of the container's limit, where there is one
	m.serves()
	there := m.add("there")
	q := &ipc.Request{Verb: ipc.GC, Network: "aws-cni", Valid: []ipc.Attachment{{ContainerID: there.id, IfName: "eth0"}}}
	for i := range 8000 {
		q.Valid = append(q.Valid, ipc.Attachment{ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0"})
	}
	var wait sync.WaitGroup
	for range 80 {
		wait.Go(func() {
			c, err := ipc.Dial(m.box.Root()+socketPath, patience)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if out, err := c.Call(q, 3*patience); err != nil {
				t.Error(err)
			} else if out.Code != 0 && out.Code != ipam.CodeTryAgain {
				t.Errorf("code %d: %s", out.Code, out.Text)
			}
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for waiting := true; waiting; { // a GC looks twice, a second apart
		select {
		case <-done:
			waiting = false
		default:
			m.passes(time.Second)
		}
	}
	m.up()
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", m.process())))(m.t)
	figure := func(name string) (kib int) {
		_, after, _ := strings.Cut(string(status), name+":")
		must.Get(fmt.Sscan(after, &kib))(m.t)
		return kib
	}
	// Pages of the binary, and of other files, the kernel takes back when a container has no room.
	peak := figure("VmHWM") - figure("RssFile")
	if t.Logf("at most %d KiB, and %d KiB of files", peak, figure("RssFile")); peak >= 32<<10 {
		t.Errorf("the daemon has had %d KiB; expected less than 32 MiB", peak)
	}
	m.answer(there, m.add("after"))
}
