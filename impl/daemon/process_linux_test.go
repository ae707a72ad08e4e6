package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/enilab/enilab/internal/must"
)

// processArgs is the variable with which TestMain knows that it is one: ipamd's arguments, as JSON.
const processArgs = "IPAMD_TEST_ARGS"

// process is ipamd as a program: Main in a process and a network namespace of its own, with a primary link, whose
// metadata lists three addresses.
type process struct {
	dir  string
	host *namespaceThread
	log  buffer
	cmd  *exec.Cmd
}

// newProcess starts one; further variables of its environment are NAME=VALUE.
func newProcess(t *testing.T, args []string, environment ...string) *process {
	t.Helper()
	if why := lacking(); why != "" {
		t.Skip("needs root and CAP_NET_ADMIN: " + why)
	}
	p := &process{dir: folders(t), host: newNamespace(t)}
	p.cmd = exec.Command(must.Get(os.Executable())(t), "-test.run=^$")
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "KUBERNETES_")
	})
	for name, value := range map[string]string{
		processArgs:      string(must.Get(json.Marshal(args))(t)),
		"ENILAB_RUN_DIR": p.path("run"), "ENILAB_LIB_DIR": p.path("lib"), "ENILAB_SOCKET": p.path("run", "ipamd.sock"),
		"AWS_VPC_K8S_CNI_BACKING_STORE": p.path("run", "ipam.json"), "AWS_VPC_K8S_CNI_LOG_FILE": p.path("log", "ipamd.log"),
		"HOST_CNI_CONFDIR_PATH": p.path("conf"), "HOST_CNI_BIN_PATH": p.path("bin"), "ENILAB_PLUGIN_DIR": p.path("cni"),
		"ENILAB_RUNTIME_SOCKET": "none", "ENILAB_RIVAL": "none", "DISABLE_NETWORK_RESOURCE_PROVISIONING": "true",
		"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret",
	} {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Env = append(p.cmd.Env, environment...)
	for _, d := range []string{"conf", "bin", "cni"} {
		must.Do(t, os.Mkdir(p.path(d), 0o755))
	}
	must.Do(t, os.WriteFile(p.path("cni", "aws-cni"), []byte("a plugin"), 0o755))
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.WaitDelay = time.Second
	p.host.run(t, p.cmd.Start)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// path is a file's in its folder.
func (p *process) path(names ...string) string {
	return filepath.Join(append([]string{p.dir}, names...)...)
}

// ends waits for its end and returns its exit code.
func (p *process) ends(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(soon, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	if !late.Stop() {
		t.Fatalf("ipamd has not ended within %v\n%s", soon, &p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}

// describesAttached is an EC2 that describes the interface of metadataOf, and refuses everything else.
func describesAttached(w http.ResponseWriter, q *http.Request) {
	if q.FormValue("Action") != "DescribeNetworkInterfaces" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>`)
		return
	}
	_, _ = io.WriteString(w, `<DescribeNetworkInterfacesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><networkInterfaceSet><item>
<networkInterfaceId>eni-1</networkInterfaceId><subnetId>subnet-1</subnetId><status>in-use</status><macAddress>`+primaryMAC0+`</macAddress><interfaceType>interface</interfaceType>
<attachment><attachmentId>eni-attach-1</attachmentId><instanceId>i-1</instanceId><deviceIndex>0</deviceIndex><status>attached</status></attachment><privateIpAddressesSet>
<item><privateIpAddress>10.0.0.10</privateIpAddress><primary>true</primary></item><item><privateIpAddress>10.0.0.20</privateIpAddress></item>
<item><privateIpAddress>10.0.0.21</privateIpAddress></item><item><privateIpAddress>10.0.0.22</privateIpAddress></item></privateIpAddressesSet>
</item></networkInterfaceSet></DescribeNetworkInterfacesResponse>`)
}

// runProcess is what such a process does instead of tests; args are its processArgs.
func runProcess(args string) int {
	var list []string
	mac, bad := net.ParseMAC(primaryMAC0)
	address, worse := netlink.ParseAddr("10.0.0.10/24")
	primary := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "ens5", HardwareAddr: mac, MTU: 9001}, PeerName: "wire"}
	err := errors.Join(bad, worse, json.Unmarshal([]byte(args), &list),
		netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo"}}),
		netlink.LinkAdd(primary), netlink.AddrAdd(primary, address), netlink.LinkSetUp(primary),
		netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "wire"}}),
		os.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", httptest.NewServer(metadataOf(primaryMAC0, 3)).URL),
		os.Setenv("AWS_ENDPOINT_URL_EC2", httptest.NewServer(http.HandlerFunc(describesAttached)).URL))
	if err != nil {
		panic(err)
	}
	return Main(list, Parts{})
}

// TestDaemonOfAProcess: it serves a pod, logs what its environment sets, keeps what it decided, and ends with 0 when it
// is told to.
func TestDaemonOfAProcess(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	p := newProcess(t, []string{"--record", record}, "WARM_IP_TARGET=1")
	r := &rig{t: t, c: Config{RunDir: p.path("run")}, log: &p.log, record: &buffer{}}
	r.serves()
	files, _ := newNamespace(t).pass(t)
	r.eventually("a pod gets an address", func() bool { return r.must(addOf("one"), files...).Code == 0 })
	r.del("one")
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if code := p.ends(t); code != exitOK {
		t.Errorf("exit code %d\n%s", code, &p.log)
	}
	said := p.log.String()
	if !strings.Contains(said, "name=WARM_IP_TARGET value=1 origin=environment") || strings.Contains(said, "name=WARM_ENI_TARGET") {
		t.Errorf("of the settings its log shall have those that are set:\n%s", said)
	}
	if kept := must.Get(os.ReadFile(p.path("log", "ipamd.log")))(t); !bytes.Contains([]byte(said), kept) || len(kept) == 0 {
		t.Errorf("the log file has %d bytes of what standard error has:\n%s", len(kept), kept)
	}
	must.Get(r.record.Write(must.Get(os.ReadFile(record))(t)))(t)
	if got := r.replays(); got.Lines == 0 {
		t.Errorf("what it kept replays to %+v", got)
	}
}

// TestInitOfAProcess installs the plugin, and lets packets of pods come back through another link than they went.
func TestInitOfAProcess(t *testing.T) {
	p := newProcess(t, []string{"init"})
	if code := p.ends(t); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.log)
	}
	if got, err := os.ReadFile(p.path("bin", "aws-cni")); err != nil || string(got) != "a plugin" {
		t.Errorf("the plugin that is installed is %q, %v", got, err)
	}
	var loose []byte
	p.host.run(t, func() (err error) {
		loose, err = os.ReadFile("/proc/sys/net/ipv4/conf/ens5/rp_filter")
		return err
	})
	if strings.TrimSpace(string(loose)) != "2" {
		t.Errorf("rp_filter of the primary link is %s, expected 2 (loose)", loose)
	}
}
