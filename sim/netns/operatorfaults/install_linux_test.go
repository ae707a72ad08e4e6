package operatorfaults_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/impl/netpolicy/netpolicytest"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

// program is one in the node: what it says, and its exit code.
func (m *machine) program(script string) (code int, out string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, code, err := m.box.Exec(ctx, []string{"sh", "-c", script + " 2>&1"})
	must.Do(m.t, err)
	return code, string(text)
}

// TestInstall: `ipamd init` puts the plugins into the node's folder, also while metadata is silent, and says in a sentence what is not mounted.
func TestInstall(t *testing.T) {
	m := newMachine(t)
	const env = "env AWS_REGION=us-west-2 ENILAB_PLUGIN_DIR=/tmp/cni HOST_CNI_BIN_PATH=/tmp/bin /app/ipamd init"
	sentence := func(words ...string) {
		t.Helper()
		code, out := m.program(env)
		if code != 3 || strings.Count(out, "\n") != 1 || !hasAll(out, words) {
			t.Errorf("exit code %d, expected 3 and a sentence with %q\n%s", code, words, out)
		}
	}
	sentence("/tmp/cni", "ENILAB_PLUGIN_DIR")
	m.sh("mkdir /tmp/cni && cp /opt/cni/bin/aws-cni /tmp/cni/ && echo old >/tmp/cni/loopback")
	sentence("/tmp/bin", "mount the host's /opt/cni/bin there", "HOST_CNI_BIN_PATH")
	m.sh("mkdir /tmp/bin && echo old >/tmp/bin/aws-cni && echo half >/tmp/bin/.enilab-install-1")
	m.imds.answers(func(w http.ResponseWriter, q *http.Request) {
		if out := m.sh("ls -A /tmp/bin"); out != "aws-cni\nloopback\n" {
			t.Errorf("metadata is asked when there are\n%s", out)
		}
		m.imds.answers(nil)
		w.WriteHeader(500)
	})
	if code, out := m.program(env); code != 0 || !hasAll(out, []string{"the CNI plugins are installed", "aws-cni", "loopback", "init tries again"}) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out := m.sh("CNI_COMMAND=VERSION /tmp/bin/aws-cni && cmp /tmp/bin/loopback /tmp/cni/loopback"); !strings.Contains(out, "1.1.0") {
		t.Errorf("the plugin that was installed says %s", out)
	}
	if code, out := m.program(env); code != 0 || !strings.Contains(out, "new=[]") {
		t.Errorf("the second time: exit code %d\n%s", code, out)
	}
}

// TestConflist: a folder that is not there, a list that nobody understands; the node is not ready, says why, and gets its conflist when that has ended.
// A runtime then has what it needs, and keeps it when the daemon is gone.
func TestConflist(t *testing.T) {
	m := newMachine(t)
	m.init()
	const file = "/tmp/net.d/10-aws.conflist"
	m.start("HOST_CNI_CONFDIR_PATH=/tmp/net.d")
	m.says("the conflist cannot be written", "/tmp/net.d is no folder", "mount the host's /etc/cni/net.d")
	m.notReadyBut("alive")
	m.sh(`mkdir /tmp/net.d && echo '{"plugins":[{"type":"aws-cni"},{"ty' >` + file)
	m.passes(40 * time.Second)
	m.says("the conflist cannot be written", "stays as it is, for others may be chained into it")
	m.notReadyBut("alive")
	m.sh(`echo '{"cniVersion":"0.4.0","name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"mesh-cni","x":1}]}' >` + file)
	m.passes(40 * time.Second)
	m.until("a rolling update may go on", func() bool { out := m.status(); return out.Ready && out.Serving && len(out.Reasons) == 0 })
	for _, probe := range []string{"", "--probe=readiness", "--probe=liveness"} {
		if code, out := m.program("env HOST_CNI_CONFDIR_PATH=/tmp/net.d /app/ipamd status " + probe); code != 0 {
			t.Errorf("status %s: exit code %d\n%s", probe, code, out)
		}
	}
	want := m.sh("cat " + file)
	if !hasAll(want, []string{`"mtu": "9001"`, `"portmap"`, `"mesh-cni"`, `"cniVersion": "0.4.0"`}) || strings.Contains(want, "cniVersions") {
		t.Errorf("the conflist is\n%s", want)
	}
	m.term()
	if got := m.sh("cat " + file + " && ls -A /tmp/net.d"); got != want+"10-aws.conflist\n" {
		t.Errorf("after the daemon's end\n%s", got)
	}
}

// notReadyBut: STATUS says no, readiness too, and the daemon is not to be killed for it.
func (m *machine) notReadyBut(alive string) {
	m.t.Helper()
	m.up()
	if r := m.status(); r.Ready || r.Serving || len(r.Reasons) == 0 {
		m.t.Errorf("STATUS: %+v", r)
	}
	for probe, want := range map[string]int{"": 1, "--probe=readiness": 1, "--probe=liveness": 0} {
		if code, out := m.program("/app/ipamd status " + probe); code != want || want == 0 && strings.TrimSpace(out) != alive {
			m.t.Errorf("status %s: exit code %d, want %d\n%s", probe, code, want, out)
		}
	}
}

// TestPolicyAgent: in mode strict pods wait for a network policy agent; it holds up no DEL, and hears of every pod's end.
func TestPolicyAgent(t *testing.T) {
	m := newMachine(t)
	m.init()
	m.start("NETWORK_POLICY_ENFORCING_MODE=strict")
	m.serves()
	m.says("no network policy agent listens", "/var/run/aws-node/npa.sock")
	before := m.sandbox("before")
	if e := m.run(runOf(cri.ADD, before)); e.Code != 11 || !hasAll(e.Text, []string{"network policy agent", "npa.sock"}) {
		t.Errorf("ADD without an agent: code %d: %s", e.Code, e.Text)
	}
	must.Do(m.t, m.box.RemoveNetns(before.inode))
	socket := m.box.Root() + node.RunDir + "/" + netpolicy.Name
	a := netpolicytest.Start(t, socket)
	m.until("STATUS has nothing to say", func() bool { return len(m.status().Reasons) == 0 })
	p := m.add("a")
	m.answer(p)
	a.Answer(func(context.Context, netpolicytest.Call) (bool, error) {
		return false, errors.New("failed to load progs")
	})
	b := m.sandbox("b")
	if e := m.run(runOf(cri.ADD, b)); e.Code != 11 || !hasAll(e.Text, []string{"network policy agent at", "failed to load progs"}) {
		t.Errorf("ADD: code %d: %s", e.Code, e.Text)
	}
	m.documented("network policy agent at")
	if v := m.view().View; v.Assigned != 1 {
		t.Errorf("%d addresses are assigned, expected 1", v.Assigned)
	}
	a.Stop()
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}))(m.t)
	l.SetUnlinkOnClose(false)
	must.Do(m.t, l.Close())
	m.del(p)
	m.logs("the network policy agent was not told of a pod's end", "default/a")
	if r, err := m.call(&ipc.Request{Verb: ipc.Status}); err != nil || !r.Ready {
		t.Errorf("STATUS: %+v, %v", r, err)
	}
	must.Do(m.t, os.Remove(socket))
	c := netpolicytest.Start(t, socket)
	m.passes(40 * time.Second)
	m.until("the agent that has come again has heard of the pod", func() bool {
		calls := c.Calls()
		return len(calls) == 1 && calls[0] == netpolicytest.Call{Method: "DeletePodNp", Name: "a", Namespace: "default"}
	})
}
