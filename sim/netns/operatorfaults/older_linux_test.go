package operatorfaults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// older is where the node has a plugin of amazon-vpc-cni-k8s that asks its daemon over TCP.
const older = "/opt/older/aws-cni"

// TestOlderPluginItself: the plugin of a release up to 1.22 beside this daemon says whose it is, its DEL ends in success, and the address is
// released when the pod is gone. ENILAB_SYSTEMS/amazon-vpc-cni-k8s/VERSION/aws-cni is the plugin.
func TestOlderPluginItself(t *testing.T) {
	list, _ := filepath.Glob(filepath.Join(os.Getenv("ENILAB_SYSTEMS"), "amazon-vpc-cni-k8s", "1.*", "aws-cni"))
	list = slices.DeleteFunc(list, func(path string) bool {
		newer, _ := filepath.Match("1.2[3-9].*", filepath.Base(filepath.Dir(path)))
		return newer
	})
	if os.Getenv("ENILAB_SYSTEMS") == "" || len(list) == 0 {
		t.Skip("needs a plugin of amazon-vpc-cni-k8s up to 1.22: ENILAB_SYSTEMS names no folder with amazon-vpc-cni-k8s/VERSION/aws-cni")
	}
	for _, path := range list {
		version := filepath.Base(filepath.Dir(path))
		t.Run(version, func(t *testing.T) {
			m := newMachine(t, func(o *options) { o.spec.Files = map[string]string{older: path} })
			m.start()
			m.serves()
			plugin := func(verb string, p pod) string {
				conf := `{"cniVersion":"0.4.0","name":"aws-cni","type":"aws-cni","vethPrefix":"eni","mtu":"9001","pluginLogFile":"/tmp/plugin.log","pluginLogLevel":"DEBUG"}`
				return m.sh(fmt.Sprintf("mkdir -p /tmp; echo '%s' | env CNI_COMMAND=%s CNI_CONTAINERID=%s CNI_IFNAME=eth0 CNI_PATH=/none CNI_NETNS=/run/netns/cni-%s"+
					" 'CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s' %s 2>&1; echo exit=$?",
					conf, verb, p.id, p.name, p.name, p.id, older))
			}
			added := plugin("ADD", m.sandbox("theirs"))
			if strings.Contains(added, "incompatible CNI versions") { // up to 1.5 it does not come to ask: it says itself that the configuration is newer
				return
			}
			if t.Logf("ADD: %s", added); strings.Contains(added, "exit=0") || !strings.Contains(added, "the plugin is amazon-vpc-cni-k8s's") {
				t.Errorf("expected that it fails, and says whose the plugin is")
			}
			ours := m.add("ours")
			if out := plugin("DEL", ours); !strings.Contains(out, "exit=0") {
				t.Errorf("DEL: %s", out)
			}
			m.gone(ours)
			must.Do(m.t, m.box.RemoveNetns(ours.inode))
			m.until("the address is released", func() bool {
				m.passes(10 * time.Second)
				return !slices.ContainsFunc(m.view().Rows, func(r ipam.Row) bool { return r.State == ipam.Assigned })
			})
		})
	}
}
