package operatorfaults_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

// failure is a CNI error as the plugin prints it.
type failure struct {
	CNIVersion string `json:"cniVersion"`
	Code       int    `json:"code"`
	Msg        string `json:"msg"`
}

// raw runs the plugin's binary as a shell script's last command, and gives its exit code and what it printed.
func (m *machine) raw(script string) (code int, stdout string) {
	m.t.Helper()
	out := m.sh(script + " 2>/dev/null; rc=$?; echo; echo $rc")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	must.Get(fmt.Sscan(lines[len(lines)-1], &code))(m.t)
	return code, strings.TrimSpace(strings.Join(lines[:len(lines)-1], "\n"))
}

// TestNonsenseToThePlugin: each mistake of a caller is CNI error JSON with the right code, and leaves nothing behind, in the node and at the
// daemon.
func TestNonsenseToThePlugin(t *testing.T) {
	m := serving(t)
	there := m.add("there")
	m.durable(there)
	m.box.MakeNetns("cni-taken") // its error shows below
	m.sh("ip -n cni-taken link add eth0 type veth peer name other")
	m.sandbox("free")
	must.Do(m.t, m.box.WriteFile("/tmp/conf", []byte(`{"cniVersion":"1.0.0","name":"aws-cni","type":"aws-cni"}`)))
	must.Do(m.t, m.box.WriteFile("/tmp/future", []byte(`{"cniVersion":"9.0.0","name":"aws-cni","type":"aws-cni"}`)))
	must.Do(m.t, m.box.WriteFile("/tmp/broken", []byte(`{"cniVersion":"1.0.0","name":`)))
	good := map[string]string{"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "c1", "CNI_NETNS": "/var/run/netns/cni-free", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin",
		"CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=free"}
	before := m.inventory()
	record := must.Get(m.box.ReadFile(node.Records))(m.t)
	for name, c := range map[string]struct {
		without, with string
		stdin         string
		code          int
		says          string
	}{
		"stdin is closed":               {stdin: "<&-", code: 6},
		"stdin is empty":                {stdin: "</dev/null", code: 6},
		"stdin is broken JSON":          {stdin: "</tmp/broken", code: 6},
		"stdin is noise":                {stdin: "</bin/sh", code: 6},
		"a future CNI version":          {stdin: "</tmp/future", code: 1},
		"no CNI_COMMAND":                {without: "CNI_COMMAND", code: 4, says: "CNI_COMMAND"},
		"an unknown CNI_COMMAND":        {with: "CNI_COMMAND=DANCE", code: 4, says: "CNI_COMMAND"},
		"no CNI_CONTAINERID":            {without: "CNI_CONTAINERID", code: 4, says: "CNI_CONTAINERID"},
		"no CNI_NETNS":                  {without: "CNI_NETNS", code: 4, says: "CNI_NETNS"},
		"no CNI_IFNAME":                 {without: "CNI_IFNAME", code: 4, says: "CNI_IFNAME"},
		"no CNI_PATH":                   {without: "CNI_PATH", code: 4, says: "CNI_PATH"},
		"CNI_ARGS is noise":             {with: "CNI_ARGS=K8S_POD_NAME", code: 4, says: "CNI_ARGS"},
		"a namespace that is not there": {with: "CNI_NETNS=/var/run/netns/nowhere", code: 8, says: "CNI_NETNS"},
		"a namespace that is a file":    {with: "CNI_NETNS=/tmp/conf", code: 8, says: "CNI_NETNS"},
		"the node's own namespace":      {with: "CNI_NETNS=/proc/1/ns/net", code: 8, says: "CNI_NETNS"},
		"an interface that exists":      {with: "CNI_NETNS=/var/run/netns/cni-taken", code: 4, says: "exists"},
		"another sandbox's attachment":  {with: "CNI_CONTAINERID=" + there.id, code: 100},
	} {
		script := "env -i"
		for k, v := range good {
			if k != c.without && !strings.HasPrefix(c.with, k+"=") {
				script += fmt.Sprintf(" '%s=%s'", k, v)
			}
		}
		if c.with != "" {
			script += " '" + c.with + "'"
		}
		stdin := cmp.Or(c.stdin, "</tmp/conf")
		code, out := m.raw(script + " /opt/cni/bin/aws-cni " + stdin)
		var f failure
		if err := json.Unmarshal([]byte(out), &f); err != nil || code != 1 {
			t.Errorf("%s: exit code %d, %v: %s", name, code, err, out)
			continue
		}
		if f.Code != c.code || !strings.Contains(f.Msg, c.says) || f.Msg == "" || f.CNIVersion == "" {
			t.Errorf("%s: %+v, want code %d with %q", name, f, c.code, c.says)
		}
	}
	m.same(before)
	if now, err := m.box.ReadFile(node.Records); err != nil || string(now) != string(record) {
		t.Errorf("the record has changed: %v\n%s\n%s", err, record, now)
	}
	m.assigned(there)
	m.answer(there)
}

// hangs are daemons that take a call and do not answer it.
var hangs = map[string]func(net.Conn){
	"accepts and never answers": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	"closes at once":            func(c net.Conn) {},
	"closes after the request":  func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) },
	"answers garbage": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	},
	"closes in its answer": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte("\x00\x00\x01\x00{\"Version\":2,"))
	},
	"promises gigabytes": func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); _, _ = c.Write([]byte("\xff\xff\xff\xff{}")) },
	"answers no JSON":    func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); _, _ = c.Write([]byte("\x00\x00\x00\x04nope")) },
}

// TestDaemonThatHangs: ADD and CHECK end in time with "try again", DEL in success with an intent that the next daemon does, and nothing is
// left behind.
func TestDaemonThatHangs(t *testing.T) {
	for name, answer := range hangs {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, withTimeout(time.Second))
			m.init()
			m.start()
			m.serves()
			a, b := m.add("a"), m.add("b")
			m.term()
			l := must.Get(net.Listen("unix", m.box.Root()+socketPath))(m.t)
			go accept.Each(l.Accept, func(c net.Conn) {
				go func() { answer(c); c.Close() }()
			})
			p := m.sandbox("p")
			before := m.inventory()
			began := time.Now()
			for _, r := range []node.Run{runOf(cri.ADD, p), runOf(cri.CHECK, b)} {
				if e := m.run(r); e.Code != 11 {
					t.Errorf("%v: code %d: %s", r.Verb, e.Code, e.Text)
				}
			}
			if code, text := m.box.Status(); code != 0 { // the node has served: one silence is no outage
				t.Errorf("STATUS: code %d: %s", code, text)
			}
			m.same(before, "/run/aws-node/plugin-unreachable")
			if e := m.run(runOf(cri.DEL, a)); e.Code != 0 {
				t.Errorf("DEL: code %d: %s", e.Code, e.Text)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the four runs took %v", took)
			}
			list, bad, err := ipc.ReadIntents(m.box.Root() + node.RunDir + "/del")
			if err != nil || len(bad) > 0 || len(list) != 1 || list[0].Attachment.ContainerID != a.id {
				t.Errorf("intents: %+v, %v, %v", list, bad, err)
			}
			m.answer(a, b)
			l.Close()
			m.gone(a)
			m.start()
			m.passes(6 * time.Second)
			m.serves()
			m.until("the DEL is done", func() bool {
				list, _, err := ipc.ReadIntents(m.box.Root() + node.RunDir + "/del")
				return err == nil && len(list) == 0
			})
			m.assigned(b)
			if left := m.leftOf(a); left != "" {
				t.Errorf("after the DEL there is %s", left)
			}
			m.answer(b, m.add("p2"))
		})
	}
}

// TestNoDaemon: the same without anybody, on a socket that is dead and on one that is not there.
func TestNoDaemon(t *testing.T) {
	m := newMachine(t, withTimeout(time.Second))
	p := m.sandbox("p")
	before := m.inventory()
	if e := m.run(runOf(cri.ADD, p)); e.Code != 11 || !strings.Contains(e.Text, "ipamd") {
		t.Errorf("ADD: code %d: %s", e.Code, e.Text)
	}
	if code, text := m.box.Status(); code != 50 || !strings.Contains(text, "ipamd") {
		t.Errorf("STATUS: code %d: %s", code, text)
	}
	m.same(before, "/run/aws-node/plugin-unreachable")
	if e := m.run(runOf(cri.DEL, p)); e.Code != 0 {
		t.Errorf("DEL: code %d: %s", e.Code, e.Text)
	}
	// Nothing can be noted either: then it is an error, and the runtime comes again.
	must.Do(t, os.RemoveAll(m.box.Root()+node.RunDir+"/del"))
	m.readOnly("/run/aws-node", true)
	if e := m.run(runOf(cri.DEL, p)); e.Code != 5 || !strings.Contains(e.Text, "could not be noted") {
		t.Errorf("DEL: code %d: %s", e.Code, e.Text)
	}
}
