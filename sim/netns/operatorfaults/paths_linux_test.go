package operatorfaults_test

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

// sentence says that a program printed one line, with these words.
func sentence(t *testing.T, out string, words ...string) {
	t.Helper()
	if strings.Count(strings.TrimSpace(out), "\n") != 0 || !hasAll(out, words) {
		t.Errorf("expected one sentence with %q, found\n%s", words, out)
	}
}

// TestNoRoot: whoever may not make a network is told so in one sentence, with exit code 3.
func TestNoRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("links every program")
	}
	t.Parallel()
	scenario := t.TempDir() + "/a.scn"
	data, err := os.ReadFile("../../../scenarios/drift.scn")
	if err == nil {
		err = os.WriteFile(scenario, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for d := scenario; d != "/" && d != os.TempDir(); d = d[:strings.LastIndex(d, "/")] {
		_ = os.Chmod(d, 0o755) // nobody shall read it; what cannot be changed was not ours
	}
	for _, argv := range [][]string{{"ipamd"}, {"ipamd", "init"}, {"enilab", "run", "--on", "netns", scenario}} {
		cmd := exec.Command(binary(t, argv[0]), argv[1:]...)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("%s without root: exit code %d\n%s", argv[0], code, out)
		}
		sentence(t, string(out), "root")
	}
}

// TestSocketInTheWay: whatever lies where the socket shall be, the daemon is up, says what it is, and serves when it is gone.
func TestSocketInTheWay(t *testing.T) {
	t.Run("live", func(t *testing.T) {
		m := newMachine(t)
		m.init()
		l := must.Get(net.Listen("unix", m.box.Root()+socketPath))(m.t)
		m.start()
		m.logs("waits and serves nothing", socketPath)
		m.passes(10 * time.Second)
		m.up()
		l.Close()
		m.passes(6 * time.Second)
		m.serves()
	})
	t.Run("dead", func(t *testing.T) {
		m := newMachine(t)
		m.init()
		l := must.Get(net.Listen("unix", m.box.Root()+socketPath))(m.t)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		m.start()
		m.serves()
	})
	t.Run("directory", func(t *testing.T) {
		m := newMachine(t)
		m.init()
		m.sh("mkdir -p " + socketPath + "/x")
		m.start()
		m.logs("waits and serves nothing", socketPath)
		m.passes(10 * time.Second)
		m.up()
		m.sh("rm -r " + socketPath)
		m.passes(6 * time.Second)
		m.serves()
	})
	t.Run("file", func(t *testing.T) {
		m := newMachine(t)
		m.init()
		m.sh("echo precious > " + socketPath)
		m.start()
		m.logs("waits and serves nothing", socketPath)
		m.up()
		if got := m.sh("cat " + socketPath); got != "precious\n" {
			t.Errorf("the file holds %q", got)
		}
		m.sh("rm " + socketPath)
		m.passes(6 * time.Second)
		m.serves()
	})
}

// TestRunDirReadOnly: the folder of records on a file system that cannot be written.
func TestRunDirReadOnly(t *testing.T) {
	m := newMachine(t)
	m.init()
	m.readOnly("/run/aws-node", true)
	m.start()
	m.logs("waits and serves nothing", "read-only file system")
	m.passes(10 * time.Second)
	m.up()
	m.readOnly("/run/aws-node", false)
	m.passes(6 * time.Second)
	m.serves()
	a := m.add("a")
	// Now it gets read-only under a daemon that serves.
	m.readOnly("/run/aws-node", true)
	b := m.sandbox("b")
	before := m.inventory()
	if e := m.run(runOf(cri.ADD, b)); e.Code != 11 || !strings.Contains(e.Text, "read-only file system") {
		t.Errorf("ADD: code %d: %s", e.Code, e.Text)
	}
	m.same(before)
	m.answer(a)
	m.says("read-only file system")
	m.logs("impaired", "read-only file system")
	if e := m.run(runOf(cri.DEL, a)); e.Code == 0 { // neither done nor noted: the runtime has to come again
		t.Error("a DEL has succeeded that nobody could write down")
	}
	m.readOnly("/run/aws-node", false)
	m.del(a)
	m.add("c")
	m.until("nothing is wrong any more", func() bool { return len(m.status().Reasons) == 0 })
}

// TestRunDirIsAFile: nothing can be made where the folder shall be.
func TestRunDirIsAFile(t *testing.T) {
	m := newMachine(t)
	m.init()
	m.sh("echo x > /tmp/file")
	m.start("ENILAB_RUN_DIR=/tmp/file/run", "ENILAB_SOCKET=/run/aws-node/ipamd.sock")
	m.logs("waits and serves nothing", "folder of records", "/tmp/file")
	m.passes(10 * time.Second)
	m.up()
	m.sh("rm /tmp/file")
	m.passes(6 * time.Second)
	m.serves()
}

// TestLibDir: the folder of EC2 intents is missing, is a file, or is read-only: pods come and go, and no ENI is made without its intent.
func TestLibDir(t *testing.T) {
	for name, script := range map[string]string{
		"missing":   "rm -r /var/lib/aws-node",
		"file":      "rm -r /var/lib/aws-node && echo x > /var/lib/aws-node",
		"read-only": "mount -t tmpfs -o ro none /var/lib/aws-node",
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, withAddresses(2))
			m.init()
			m.sh(script)
			m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_IP_TARGET=20")
			m.serves()
			m.passes(31 * time.Second) // whoever cannot read a record lets every address rest for a cool-down
			m.answer(m.add("a"))
			m.passes(30 * time.Second)
			m.up()
			m.mu.Lock()
			enis := len(m.cloud.AttachedENIs(m.inst))
			m.mu.Unlock()
			if name == "missing" {
				if enis < 2 {
					t.Errorf("%d ENIs are attached although the folder could be made", enis)
				}
				return
			}
			if enis != 1 {
				t.Errorf("%d ENIs are attached although no intent could be written", enis)
			}
			m.says("/var/lib/aws-node")
			m.logs("/var/lib/aws-node")
			if n := m.ec2.count(); n > 20 {
				t.Errorf("EC2 was asked %d times", n)
			}
		})
	}
}

// TestLogFile: a log that cannot be written is said on standard error, and nothing else follows from it.
func TestLogFile(t *testing.T) {
	m := newMachine(t)
	m.init()
	m.sh("echo x > /tmp/file")
	m.start("AWS_VPC_K8S_CNI_LOG_FILE=/tmp/file/ipamd.log")
	m.serves()
	m.logs("the log file cannot be written", "/tmp/file")
	m.add("a")
}

// second runs another daemon in the same node until stop is called.
func (m *machine) second() (log func() string, stop func()) {
	m.t.Helper()
	const file = "/tmp/second.log"
	argv := []string{"sh", "-c", "exec \"$@\" >" + file + " 2>&1", "sh", "env"}
	for _, k := range slices.Sorted(maps.Keys(m.env)) {
		argv = append(argv, k+"="+m.env[k])
	}
	argv = append(argv, "/app/ipamd", "--clock", "unix:"+clockSocket)
	ended := make(chan struct{})
	var code int
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
		defer cancel()
		_, code, _ = m.box.Exec(ctx, argv)
	}()
	log = func() string {
		out, err := m.box.ReadFile(file)
		if err != nil {
			return ""
		}
		return string(out)
	}
	return log, func() {
		m.t.Helper()
		m.sh("kill -TERM $(cat " + node.RunDir + "/ipamd.pid)")
		<-ended
		if code != 0 {
			m.t.Errorf("the second daemon ended with %d\n%s", code, log())
		}
	}
}

// TestTwoDaemons: the second serves nothing and says who holds the node; when the first dies it takes over.
func TestTwoDaemons(t *testing.T) {
	m := serving(t)
	a := m.add("a")
	first := strings.TrimSpace(m.sh("cat " + node.RunDir + "/ipamd.pid"))
	log, stop := m.second()
	m.until("the second says who has the node", func() bool {
		return hasAll(log(), []string{"another ipamd has /var/run/aws-node", "process " + first, "waits and serves nothing"})
	})
	m.passes(20 * time.Second)
	b := m.add("b")
	if strings.Contains(log(), "ipamd starts") {
		t.Errorf("the second has started\n%s", log())
	}
	if n := strings.Count(log(), "waits and serves nothing"); n != 1 {
		t.Errorf("the second says %d times that it waits", n)
	}
	m.kill()
	m.passes(6 * time.Second)
	m.until("the second serves", func() bool { return strings.Contains(log(), "ipamd serves") })
	m.answer(a, b)
	m.del(a)
	m.answer(m.add("c"), b)
	stop()
}

// TestRival: amazon-vpc-cni-k8s's daemon answers on its own port; this one waits, and says for whom.
func TestRival(t *testing.T) {
	m := newMachine(t)
	m.init()
	l := m.listen("tcp", "127.0.0.1:50051")
	m.start()
	m.logs("waits and serves nothing", "another CNI's daemon answers at 127.0.0.1:50051")
	m.passes(10 * time.Second)
	m.up()
	if _, err := m.call(&ipc.Request{Verb: ipc.Status}); err == nil {
		t.Error("it serves beside another CNI's daemon")
	}
	l.Close()
	m.passes(6 * time.Second)
	m.serves()
}

// TestCapabilities: a pod's whole life with exactly what the manifest grants, and with what is really needed; and what a daemon
// says that lacks it.
func TestCapabilities(t *testing.T) {
	for name, c := range map[string][]int{"as granted": {unix.CAP_NET_ADMIN, unix.CAP_NET_RAW}, "CAP_NET_ADMIN alone": {unix.CAP_NET_ADMIN}} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, withCapabilities(c...), withAddresses(1))
			must.Get(m.box.StartDaemon([]string{"init"}, m.env))(m.t)
			if e := m.exit(); e.Code != 0 {
				t.Fatalf("init ended with %s\n%s", e.Exit, m.log())
			}
			m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_ENI_TARGET=1", "IP_COOLDOWN_PERIOD=1")
			m.serves()
			a, b := m.add("a"), m.add("b")
			m.until("an ENI is there", func() bool {
				m.passes(time.Second)
				v := m.view().View
				return len(v.ENIs) > 1 && v.ENIs[1].Stage == ipam.Ready
			})
			m.answer(a, b)
			for _, p := range []pod{a, b} {
				if e := m.run(runOf(cri.CHECK, p)); e.Code != 0 {
					t.Errorf("CHECK: code %d: %s", e.Code, e.Text)
				}
			}
			m.kill()
			m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_ENI_TARGET=1", "IP_COOLDOWN_PERIOD=1")
			m.serves()
			m.answer(a, b)
			m.del(a)
			m.del(b)
			m.until("nothing is assigned", func() bool { return m.view().View.Assigned == 0 })
			m.term()
			if strings.Contains(m.log(), "not permitted") {
				t.Errorf("it was refused something\n%s", m.log())
			}
		})
	}
	for name, c := range map[string][]int{"CAP_NET_RAW alone": {unix.CAP_NET_RAW}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, withCapabilities(c...))
			m.start()
			if e := m.exit(); e.Code != 3 {
				t.Errorf("it ended with %s", e.Exit)
			}
			sentence(t, m.log(), "CAP_NET_ADMIN")
		})
	}
}

// TestStopDuringADDs: SIGTERM while ADDs wait and work: each caller gets an answer, and the daemon ends well within its bound.
func TestStopDuringADDs(t *testing.T) {
	m := newMachine(t, withAddresses(4))
	m.init()
	m.start()
	m.serves()
	kept := m.add("kept")
	before := m.inventory()
	pods, ops := m.crowd(12)
	m.until("ADDs have come", func() bool { return m.view().Requests >= 4 || m.view().View.Assigned > 1 })
	began := time.Now()
	m.term()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	worked := 0
	for i, op := range ops {
		switch e := m.wait(op); e.Code {
		case 0:
			worked++
			pods[i].address = e.Address
			m.runs(pods[i])
			m.answer(pods[i])
		case 11:
			pods[i].address = kept.address // nobody's
		default:
			t.Errorf("ADD: code %d: %s", e.Code, e.Text)
		}
	}
	t.Logf("%d of %d ADDs worked", worked, len(ops))
	m.start()
	m.serves()
	m.until("what was cut off is undone", func() bool { return m.view().View.Assigned == 1+worked })
	m.answer(kept)
	for _, p := range pods {
		m.del(p)
	}
	m.until("nothing but the first pod is there", func() bool { return m.view().View.Assigned == 1 })
	m.same(before, "/run/netns", "/var/lib/cni", "/run/aws-node", "ipamd")
}
