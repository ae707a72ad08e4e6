package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/impl/netpolicy/netpolicytest"
	"github.com/enilab/enilab/internal/must"
)

// named has another pod's name: a request of a further sandbox of it.
func named(q *ipc.Request, pod string) *ipc.Request {
	q.PodName = pod
	return q
}

// TestPolicyMode: the plugin hears whom to tell. As long as two attachments have a pod's name it is not told that the pod is gone.
func TestPolicyMode(t *testing.T) {
	r := newRig(t, 5)
	r.c.PolicyMode = netpolicy.Strict
	r.start().serves()
	add := func(id, pod string) string {
		return r.must(named(addOf(id), pod), passed(t)...).PolicyMode
	}
	del := func(id, pod string) string { return r.must(named(delOf(id), pod)).PolicyMode }
	for i, c := range []struct {
		got, want string
	}{
		{add("old", "web-0"), netpolicy.Strict},
		{add("new", "web-0"), netpolicy.Strict},
		{del("old", "web-0"), ""},
		{del("old", "web-0"), ""}, // again, as runtimes do
		{add("other", "web-1"), netpolicy.Strict},
		{del("new", "web-0"), netpolicy.Strict},
		{del("new", "web-0"), netpolicy.Strict},
		{del("never-was", "web-2"), netpolicy.Strict},
		{del("other", ""), ""},
	} {
		if c.got != c.want {
			t.Errorf("request %d: %q, expected %q", i, c.got, c.want)
		}
	}
	if out := r.status(); !out.Ready || !strings.Contains(join(out.Reasons), "no network policy agent listens") {
		t.Errorf("status: %+v", out)
	}
	netpolicytest.Start(t, filepath.Join(r.c.RunDir, netpolicy.Name))
	if out := r.status(); len(out.Reasons) > 0 {
		t.Errorf("status: %+v", out)
	}
}

// TestPolicyIntents: the DELs that a plugin could not finish; the agent is told of each, if need be later, and an intent goes only then.
func TestPolicyIntents(t *testing.T) {
	r := newRig(t, 5)
	r.c.PolicyMode = netpolicy.Standard
	r.start().serves()
	dir, socket := filepath.Join(r.c.RunDir, "del"), filepath.Join(r.c.RunDir, netpolicy.Name)
	leave := func(id, pod string) {
		att := ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
		if err := ipc.WriteIntent(dir, ipc.Intent{Attachment: att, Pod: ipam.Pod{Namespace: "default", Name: pod}, Version: ipam.Version}); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int { list, _, _ := ipc.ReadIntents(dir); return len(list) }
	r.add("one")
	leave("one", "pod-one")
	r.eventually("a DEL is done where there is no agent", func() bool { return left() == 0 })
	r.must(named(addOf("old"), "web-0"), passed(t)...)
	r.must(named(addOf("new"), "web-0"), passed(t)...)
	a := netpolicytest.Start(t, socket)
	leave("old", "web-0")
	r.eventually("a DEL is done whose pod lives under another sandbox", func() bool { return left() == 0 })
	if got := a.Calls(); len(got) > 0 {
		t.Errorf("the agent was told %+v", got)
	}
	leave("new", "web-0")
	r.eventually("a DEL is done", func() bool { return left() == 0 })
	want := []netpolicytest.Call{{Method: "DeletePodNp", Namespace: "default", Name: "web-0"}}
	if got := a.Calls(); !slices.Equal(got, want) {
		t.Errorf("the agent was told %+v", got)
	}
	a.Stop()
	dead(t, socket)
	leave("late", "web-1")
	r.eventually("it is tried again", func() bool { return strings.Contains(r.log.String(), "was not told of a pod's end; ipamd tries again") })
	if left() != 1 {
		t.Error("the intent went although the agent was not told")
	}
	must.Do(t, os.Remove(socket))
	b := netpolicytest.Start(t, socket)
	b.Answer(func(context.Context, netpolicytest.Call) (bool, error) { return false, errors.New("it cannot") })
	r.eventually("the agent that has come again is told", func() bool { return left() == 0 })
	if got := b.Calls(); len(got) != 1 || got[0].Name != "web-1" {
		t.Errorf("the agent was told %+v", got)
	}
	r.end()
	r.replays()
}

// TestPolicyAgentGone: a socket that a killed agent has left keeps no intents for ever.
func TestPolicyAgentGone(t *testing.T) {
	r := newRig(t, 2)
	dead(t, filepath.Join(r.c.RunDir, netpolicy.Name))
	d := must.Get(newDaemon(r.c))(t)
	d.ctx, d.end = context.WithCancel(t.Context())
	defer d.end()
	e := ipc.IntentFile{Name: "x.json", Intent: ipc.Intent{Pod: ipam.Pod{Namespace: "default", Name: "web-0"}}}
	for _, tries := range []int{0, agentGone - 1, agentGone} { // the last one ends the intent, after which the folder is read
		want := tries < agentGone
		d.intents.tries[e.Attachment] = tries
		again := false
		d.intents.forget(&e, func() { again = true })
		(<-d.in)()
		if again != want {
			t.Errorf("after %d tries it is tried again: %v, expected %v", tries, again, want)
		}
		if !again {
			(<-d.in)() // the file is removed
		}
	}
}

// dead leaves a socket on which nobody listens.
func dead(t *testing.T, path string) {
	t.Helper()
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
}
