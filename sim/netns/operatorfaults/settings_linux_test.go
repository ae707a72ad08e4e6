package operatorfaults_test

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipc"
)

// TestContradictorySettings: everything that is wrong is said at once, nothing is changed, a DEL ends, and good settings end it.
func TestContradictorySettings(t *testing.T) {
	m := serving(t)
	a := m.add("a")
	m.term()
	before := m.inventory()
	asked := m.imds.count() + m.ec2.count()
	m.start("WARM_IP_TARGET=many", "AWS_VPC_ENI_MTU=9001", "POD_MTU=1400", "ENABLE_POD_ENI=true", "ENABLE_IPv6=true",
		"ENABLE_IPv4=false", "AWS_VPC_K8S_CNI_VETHPREFIX=ethernet", "WARM_EIN_TARGET=3", "AWS_EC2_METADATA_SERVICE_ENDPOINT=:nowhere")
	wrong := []string{"WARM_IP_TARGET", "POD_MTU", "ENABLE_POD_ENI", "security groups for pods are not there yet",
		"ENABLE_IPv6", "ENABLE_IPv4", "AWS_VPC_K8S_CNI_VETHPREFIX", "AWS_EC2_METADATA_SERVICE_ENDPOINT"}
	m.says(wrong...)
	m.notReadyByDaemon()
	m.logs(append([]string{"the settings cannot be"}, wrong...)...)
	m.logs("did you mean", "WARM_EIN_TARGET", "WARM_ENI_TARGET")
	b := m.sandbox("b")
	e := m.run(runOf(cri.ADD, b))
	if e.Code != 7 || !hasAll(e.Text, wrong) {
		t.Errorf("ADD: code %d: %s", e.Code, e.Text)
	}
	m.answer(a)
	if e := m.run(runOf(cri.DEL, a)); e.Code != 0 {
		t.Errorf("DEL: code %d: %s", e.Code, e.Text)
	}
	m.answer(a) // its removal waits for a daemon that can
	if n := m.imds.count() + m.ec2.count(); n != asked {
		t.Errorf("metadata and EC2 were asked %d times under settings that cannot be", n-asked)
	}
	for _, d := range before.Diff(m.inventory()) {
		if !strings.Contains(d, "/run/aws-node/") && !strings.Contains(d, "/var/lib/cni") && !strings.Contains(d, "cni-b") && !strings.Contains(d, "ipamd") && !strings.Contains(d, "/run/netns") {
			t.Errorf("it changed %s", d)
		}
	}
	m.term()
	m.start()
	m.serves()
	m.until("the DEL of before is done", func() bool { v := m.view(); return v.View.Assigned == 0 })
}

// notReadyByDaemon: the daemon itself says that it is not ready. The plugin's STATUS stays good on a node that has served (rule J).
func (m *machine) notReadyByDaemon() {
	m.t.Helper()
	m.up()
	if r, err := m.call(&ipc.Request{Verb: ipc.Status}); err != nil || r.Ready {
		m.t.Errorf("STATUS: %+v, %v", r, err)
	}
	if code, text := m.box.Status(); code != 0 {
		m.t.Errorf("the plugin's STATUS has code %d on a node that has served: %s", code, text)
	}
}

// TestSettingsOfANewNode: on a node that has never served, STATUS fails with what is wrong.
func TestSettingsOfANewNode(t *testing.T) {
	m := newMachine(t)
	m.start("ANNOTATE_POD_IP=true", "ENABLE_MULTI_NIC=true")
	m.says("writing annotations to pods is not there yet", "ENABLE_MULTI_NIC")
	m.notReady()
	if _, text := m.box.Status(); !hasAll(text, []string{"writing annotations to pods is not there yet", "ENABLE_MULTI_NIC"}) {
		t.Errorf("the plugin's STATUS says %q", text)
	}
	m.term()
}
