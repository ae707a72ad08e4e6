package operatorfaults_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipc"
)

// refuse answers EC2's way.
func refuse(status int, code, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>1</RequestID></Response>`, code, message)
	}
}

// TestMetadata: without instance metadata the daemon is up, not ready, says so, asks with pauses, and serves when it comes back.
func TestMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(http.ResponseWriter, *http.Request)
		says  []string
	}{
		"silent": {silence, []string{"instance metadata has not answered"}},
		"404":    {status(404), []string{"instance metadata has not answered", "404"}},
		"500":    {status(500), []string{"instance metadata has not answered", "500"}},
		"403":    {status(403), []string{"instance metadata has not answered", "403"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.init()
			m.imds.answers(c.wrong)
			before := m.imds.count()
			m.start()
			m.status()
			m.passes(30 * time.Second)
			m.says(c.says...)
			m.notReady()
			m.logs("the node is impaired", c.says[0])
			p := m.sandbox("early")
			op := m.begin(runOf(cri.ADD, p))
			m.until("the ADD has come", func() bool { return m.view().Requests == 1 })
			m.passes(35 * time.Second)
			if e := m.wait(op); e.Code != 11 || !strings.Contains(e.Text, "instance metadata") {
				t.Errorf("ADD: code %d: %s", e.Code, e.Text)
			}
			if n := m.imds.count() - before; n > 40 { // one or two requests a try, a try after 1, 2, 4, 8, 15 s and so on
				t.Errorf("metadata was asked %d times in a minute", n)
			}
			m.up()
			m.imds.answers(nil)
			m.passes(16 * time.Second) // the longest pause
			m.serves()
			m.answer(m.add("late"))
			if r := m.status().Reasons; len(r) > 0 {
				t.Errorf("afterwards it says %q", r)
			}
		})
	}
}

// TestMetadataAtInit: `ipamd init` waits for metadata, says what it waits for, and gives up in words.
func TestMetadataAtInit(t *testing.T) {
	m := newMachine(t)
	m.imds.answers(func(w http.ResponseWriter, q *http.Request) {
		if m.imds.count() < 6 {
			w.WriteHeader(500)
			return
		}
		m.imds.next.ServeHTTP(w, q)
	})
	if out := m.sh("env AWS_REGION=us-west-2 HOST_CNI_BIN_PATH=none /app/ipamd init 2>&1"); !strings.Contains(out, "init tries again") || !strings.Contains(out, "500") {
		t.Errorf("it said\n%s", out)
	}
}

// unsaid is why a node does nothing that it would need EC2's list for: whatever becomes of the question, that is what is missing.
const unsaid = "EC2 does not say which network interfaces are attached"

// ec2Troubles are what EC2 may do to a daemon that starts.
var ec2Troubles = map[string]struct {
	wrong func(http.ResponseWriter, *http.Request)
	says  []string
}{
	"denied":    {refuse(403, "UnauthorizedOperation", "You are not authorized to perform this operation."), []string{unsaid, "UnauthorizedOperation"}},
	"throttled": {refuse(503, "RequestLimitExceeded", "Request limit exceeded."), []string{unsaid, "RequestLimitExceeded"}},
	"down":      {refuse(503, "Unavailable", "The server is overloaded"), []string{unsaid, "Unavailable"}},
	"silent":    {silence, []string{unsaid}},
}

// TestEC2AtStart: a node that has no address to give away needs EC2. It is up, says what EC2 said, asks with pauses, and serves pods
// when EC2 answers.
func TestEC2AtStart(t *testing.T) {
	for name, c := range ec2Troubles {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, withAddresses(0))
			m.init()
			m.ec2.answers(c.wrong)
			m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_IP_TARGET=2")
			m.status()
			m.passes(time.Minute + 5*time.Second) // the bound of a call that nobody answers
			m.says(c.says...)
			m.notReady()
			m.logs(append([]string{"the node is impaired"}, c.says...)...)
			asked := m.ec2.count()
			p := m.sandbox("early")
			op := m.begin(runOf(cri.ADD, p))
			if name == "silent" { // who knows that nothing will come says so at once
				m.until("the ADD has come", func() bool { return m.view().Requests == 1 })
			}
			m.passes(50 * time.Second)
			if e := m.wait(op); e.Code != 11 || !strings.Contains(e.Text, "EC2") {
				t.Errorf("ADD: code %d: %s", e.Code, e.Text)
			}
			if n := m.ec2.count() - asked; n > 20 || n < 1 && name != "silent" {
				t.Errorf("EC2 was asked %d times in the second minute", n) // one that is silent is still waited for
			}
			if asked > 30 {
				t.Errorf("EC2 was asked %d times in the first minute", asked)
			}
			m.up()
			m.ec2.answers(nil)
			m.passes(75 * time.Second)
			m.serves()
			m.answer(m.add("late"))
			m.until("nothing is wrong any more", func() bool { m.passes(time.Second); return len(m.status().Reasons) == 0 })
		})
	}
}

// TestNoCredentials: the instance has no role.
func TestNoCredentials(t *testing.T) {
	m := newMachine(t, withAddresses(0))
	m.init()
	m.imds.answers(func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(q.URL.Path, "iam/") {
			w.WriteHeader(404)
			return
		}
		m.imds.next.ServeHTTP(w, q)
	})
	m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_IP_TARGET=2")
	m.status()
	m.passes(20 * time.Second)
	m.says("no credentials", unsaid)
	if n := m.ec2.count(); n > 0 {
		t.Errorf("EC2 was asked %d times without credentials", n)
	}
	m.passes(40 * time.Second)
	if n := m.imds.count(); n > 250 {
		t.Errorf("metadata was asked %d times in a minute", n)
	}
	m.up()
	m.imds.answers(nil)
	m.passes(75 * time.Second)
	m.serves()
	m.answer(m.add("late"))
}

// TestPermissionIsLost: what is denied later is said while it lasts, and pods go on.
func TestPermissionIsLost(t *testing.T) {
	m := newMachine(t, withAddresses(2))
	m.init()
	m.start("DISABLE_NETWORK_RESOURCE_PROVISIONING=false", "WARM_IP_TARGET=2")
	m.serves()
	m.until("the node rests", func() bool { m.passes(time.Second); v := m.view(); return v.View.Free >= 2 && v.View.Running == 0 })
	m.mu.Lock()
	m.cloud.Fault(ec2.Fault{Kind: ec2.DenyPermission})
	m.mu.Unlock()
	a := m.add("a")
	m.passes(10 * time.Second)
	m.says("EC2 refuses", "UnauthorizedOperation")
	if r := m.status(); !r.Ready {
		t.Errorf("STATUS is not ready although an address is free: %q", r.Reasons)
	}
	m.answer(a)
	m.mu.Lock()
	m.cloud.ClearFaults(m.now())
	m.mu.Unlock()
	m.until("nothing is wrong any more", func() bool { m.passes(time.Second); return len(m.status().Reasons) == 0 })
}

// TestRuntimeAtStart: a runtime that is not there, or that is another program's socket, keeps nobody from starting and frees nothing.
func TestRuntimeAtStart(t *testing.T) {
	m := serving(t)
	a := m.add("a")
	m.kill()
	m.sh("mv " + criSocket + " /run/containerd/away")
	m.start()
	m.serves()
	m.says("the runtime's list of sandboxes cannot be believed", criSocket)
	m.passes(5 * time.Minute)
	m.answer(a)
	if v := m.view().View; v.Assigned != 1 {
		t.Errorf("%d addresses are assigned, want 1", v.Assigned)
	}
	m.sh("mv /run/containerd/away " + criSocket)
	m.until("nothing is wrong any more", func() bool {
		m.passes(time.Second)
		r, err := m.call(&ipc.Request{Verb: ipc.Status})
		return err == nil && len(r.Reasons) == 0
	})
	m.answer(a)
}
