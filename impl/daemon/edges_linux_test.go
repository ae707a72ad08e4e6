package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// TestExcludedCIDRsAreNotSNATed: AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS beside the VPC's own, each once.
func TestExcludedCIDRsAreNotSNATed(t *testing.T) {
	r := newRig(t, 2)
	r.c.ExcludeSNAT = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("10.0.0.0/16")}
	r.start().serves()
	r.eventually("both are in the kernel's table", func() bool {
		o, err := r.kernel.Observe()
		return err == nil && o.NAT.CIDRs == "10.0.0.0/16 100.64.0.0/10"
	})
}

// TestARestartIsNotReportedAsDown: what a daemon that comes back waits for is said, and the node is ready meanwhile,
// for pods run on it. One that has never served is not.
func TestARestartIsNotReportedAsDown(t *testing.T) {
	r := newRig(t, 2)
	for _, before := range []bool{false, true} {
		silent := make(chan struct{})
		r.cloud.silent = silent
		r.start()
		r.eventually("it answers", func() bool { _, err := r.call(&ipc.Request{Verb: ipc.Status}); return err == nil })
		if out := r.status(); out.Ready != before || out.Serving || len(out.Reasons) == 0 {
			t.Errorf("it has served before: %v; STATUS: %+v", before, out)
		}
		close(silent)
		r.serves()
		if out := r.status(); !out.Ready || !out.Serving || len(out.Reasons) > 0 {
			t.Errorf("it serves, and says %+v", out)
		}
		r.end()
	}
}

// TestRecordsHaveABound: a file is read up to it, and nothing else than a file is read.
func TestRecordsHaveABound(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "record"), filepath.Join(dir, "link")
	must.Do(t, os.WriteFile(path, []byte("12345678"), 0o600))
	must.Do(t, os.Symlink(path, link))
	if data, err := readBounded(path, 8); err != nil || string(data) != "12345678" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := readBounded(path, 7); err == nil {
		t.Error("one byte more is read")
	}
	for _, other := range []string{dir, link, filepath.Join(dir, "nothing")} {
		if _, err := readBounded(other, 100); err == nil {
			t.Errorf("%s is read", other)
		}
	}
}

// TestConfigurationOfADaemon: what of the settings a daemon is told, and what kind of problem is said where.
func TestConfigurationOfADaemon(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	log := slog.New(slog.DiscardHandler)
	read := func(env map[string]string) *settings.Settings {
		s, _ := settings.Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		return s
	}
	stops := settings.Problem{Variable: "A", Text: "a", Stops: true}
	unread := settings.Problem{Variable: "B", Text: "b", Unread: true}
	c := configure(read(map[string]string{"AWS_VPC_K8S_CNI_LOG_FILE": "/var/log/x/ipamd.log", "MY_POD_NAME": "aws-node-1",
		"ENILAB_RUNTIME_SOCKET": "none", "CLUSTER_NAME": "c1", "NETWORK_POLICY_ENFORCING_MODE": "strict"}),
		[]settings.Problem{stops, unread, {Variable: "C", Text: "c"}}, log)
	for what, ok := range map[string]bool{
		"problems":  slices.Equal(c.Problems, []string{stops.String()}) && slices.Equal(c.Unread, []string{unread.String()}),
		"unusual":   slices.Equal(c.Unusual, []string{"C: c"}),
		"log":       c.LogDir == "/var/log/x",
		"self":      c.Self.Name == "aws-node-1" && c.Self.Namespace == "kube-system",
		"runtime":   c.Runtime == nil,
		"API":       c.Pods == nil && c.Tell == nil && c.HasPolicies == nil,
		"cluster":   c.Cluster == "c1",
		"policies":  c.PolicyMode == "strict",
		"the paths": c.RunDir == "/var/run/aws-node" && c.LibDir == "/var/lib/aws-node",
		"records":   c.Checkpoint == "/var/run/aws-node/ipam.json",
	} {
		if !ok {
			t.Errorf("%s: %+v", what, c)
		}
	}
	c = configure(read(map[string]string{"AWS_VPC_K8S_CNI_LOG_FILE": "stdout", "MY_NODE_NAME": "node-1",
		"CLUSTER_ENDPOINT": "https://127.0.0.1:1"}), nil, log)
	if c.LogDir != "" || c.Self.Namespace != "" || c.Runtime == nil {
		t.Errorf("%+v", c)
	}
	if asked := c.Pods != nil && c.Tell != nil && c.HasPolicies != nil; !asked && len(c.Problems) == 0 {
		t.Error("the API server is not asked, and nobody says why")
	}
	c = configure(read(map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}), nil, log)
	if !slices.ContainsFunc(c.Problems, func(p string) bool { return strings.Contains(p, "no API server") }) {
		t.Errorf("nobody says which ENIConfig is the node's, and the problems are %q", c.Problems)
	}
}

// TestRecordingGoesWhereTheCommandLineSays: to a file, which begins anew, or to who listens; nobody is an error.
func TestRecordingGoesWhereTheCommandLineSays(t *testing.T) {
	dir, err := os.MkdirTemp("", "ipamd") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file, socket := filepath.Join(dir, "f"), filepath.Join(dir, "s")
	must.Do(t, os.WriteFile(file, []byte("of before"), 0o600))
	var c Config
	if err := equip(&c, flags{}); err != nil || c.Record != nil || c.Clock == nil {
		t.Errorf("without a word: %+v, %v", c.Record, err)
	}
	must.Do(t, equip(&c, flags{record: file}))
	_, _ = io.WriteString(c.Record, "of now")
	if data, err := os.ReadFile(file); err != nil || string(data) != "of now" {
		t.Errorf("the file has %q, %v", data, err)
	}
	for _, nobody := range []flags{{record: "unix:" + socket}, {record: dir}, {clock: "unix:" + socket}} {
		if err := equip(&c, nobody); err == nil {
			t.Errorf("%+v is no error", nobody)
		}
	}
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	must.Do(t, equip(&c, flags{record: "unix:" + socket}))
	conn := must.Get(l.Accept())(t)
	defer conn.Close()
	_, _ = io.WriteString(c.Record, "x")
	if b, err := io.ReadAll(io.LimitReader(conn, 1)); err != nil || string(b) != "x" {
		t.Errorf("who listens hears %q, %v", b, err)
	}
}

// TestAnswersArePrinted: the books as JSON, and readiness with every reason.
func TestAnswersArePrinted(t *testing.T) {
	var books bytes.Buffer
	whole := &settings.Settings{Socket: answering(t, &ipc.Response{Body: []byte(`{"a":[1]}`)})}
	if err := ask(&books, ipc.View, "", whole); err != nil || books.String() != "{\n  \"a\": [\n    1\n  ]\n}\n" {
		t.Errorf("the books are printed as %q, %v", &books, err)
	}
	for ready, head := range map[bool]string{true: "ready\n", false: "not ready\n"} {
		var out bytes.Buffer
		said := &ipc.Response{Ready: ready, Reasons: []string{"one", "two"}}
		err := ask(&out, ipc.Status, "", &settings.Settings{Socket: answering(t, said)})
		lines := strings.Fields(strings.TrimPrefix(out.String(), head))
		if (err == nil) != ready || !strings.HasPrefix(out.String(), head) || !slices.Equal(lines, said.Reasons) {
			t.Errorf("ready %v: %q, %v", ready, &out, err)
		}
	}
}

// TestExitCodes: what an operator's script goes by.
func TestExitCodes(t *testing.T) {
	t.Setenv("ENILAB_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	for _, c := range []struct {
		ipv6 string
		args []string
		want int
	}{
		{"", []string{"--help"}, exitOK},
		{"", []string{"--version"}, exitOK},
		{"", []string{"--print-settings"}, exitOK},
		{"true", []string{"--print-settings"}, exitFailed}, // these settings cannot be
		{"true", []string{"--version"}, exitOK},
		{"", []string{"nonsense"}, exitUsage},
		{"", []string{"status", "--probe=x"}, exitUsage},
		{"", []string{"status"}, exitFailed}, // nobody answers
	} {
		t.Setenv("ENABLE_IPv6", c.ipv6)
		if got := Main(c.args, Parts{}); got != c.want {
			t.Errorf("%q with ENABLE_IPv6=%q: %d, expected %d", c.args, c.ipv6, got, c.want)
		}
	}
	if text := versionText(); !strings.HasPrefix(text, "ipamd ") || !strings.Contains(text, strconv.Itoa(ipam.Version)) {
		t.Errorf("the version is %q", text)
	}
}

// TestWithoutCapabilitiesItSaysSo: what a container was not given is told before anything is begun.
func TestWithoutCapabilitiesItSaysSo(t *testing.T) {
	t.Setenv("AWS_VPC_K8S_CNI_LOG_FILE", "stderr")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	must.Do(t, unix.Capget(&head, &has[0]))
	less := has
	less[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	must.Do(t, unix.Capset(&head, &less[0]))
	code := Main([]string{"--record", "unix:" + filepath.Join(t.TempDir(), "nobody")}, Parts{})
	must.Do(t, unix.Capset(&head, &has[0]))
	if code != exitMachine {
		t.Errorf("exit code %d, expected %d", code, exitMachine)
	}
}
