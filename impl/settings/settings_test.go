package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func of(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// manifest is what amazon-vpc-cni-k8s 1.23.1's DaemonSet sets (config/master/aws-k8s-cni.yaml).
var manifest = map[string]string{"ADDITIONAL_ENI_TAGS": "{}", "ANNOTATE_POD_IP": "false", "AWS_VPC_CNI_NODE_PORT_SUPPORT": "true",
	"AWS_VPC_ENI_MTU": "9001", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false", "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false",
	"AWS_VPC_K8S_CNI_LOGLEVEL": "DEBUG", "AWS_VPC_K8S_CNI_LOG_FILE": "/host/var/log/aws-routed-eni/ipamd.log",
	"AWS_VPC_K8S_CNI_RANDOMIZESNAT": "prng", "AWS_VPC_K8S_CNI_VETHPREFIX": "eni", "AWS_VPC_K8S_PLUGIN_LOG_FILE": "/var/log/aws-routed-eni/plugin.log",
	"AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "DEBUG", "CLUSTER_ENDPOINT": "", "CLUSTER_NAME": "", "DISABLE_INTROSPECTION": "false", "DISABLE_METRICS": "false",
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": "false", "ENABLE_IMDS_ONLY_MODE": "false", "ENABLE_IPv4": "true", "ENABLE_IPv6": "false",
	"ENABLE_MULTI_NIC": "false", "ENABLE_POD_ENI": "false", "ENABLE_PREFIX_DELEGATION": "false", "ENABLE_SUBNET_DISCOVERY": "true",
	"NETWORK_POLICY_ENFORCING_MODE": "standard", "VPC_CNI_VERSION": "v1.23.1", "VPC_ID": "", "WARM_ENI_TARGET": "1", "WARM_PREFIX_TARGET": "1",
	"MY_NODE_NAME": "node-1", "MY_POD_NAME": "aws-node-1", "DISABLE_TCP_EARLY_DEMUX": "false"}

func TestManifest(t *testing.T) {
	s, problems := Read(of(manifest))
	for _, p := range problems {
		if p.Stops {
			t.Errorf("upstream's own manifest stops the node: %v", p)
		}
	}
	if s.IPAM != ipam.Defaults() {
		t.Errorf("upstream's manifest gives %+v, defaults are %+v", s.IPAM, ipam.Defaults())
	}
	if s.LogLevel != slog.LevelDebug || s.HTTPTimeout != 10*time.Second || s.Node != "node-1" || s.PodNamespace != "kube-system" ||
		s.PolicyMode != "standard" || s.Bandwidth || s.NoPodV6 || s.BinDir != "/host/opt/cni/bin" || s.ConfDir != "/host/etc/cni/net.d" {
		t.Errorf("%+v", s)
	}
	var environ []string
	for k, v := range manifest {
		environ = append(environ, k+"="+v)
	}
	if p := Unknown(append(environ, "PATH=/bin", "HOME=/", "KUBERNETES_SERVICE_HOST=x", "AWS_REGION=r", "HOSTNAME=h", "AWS_ROLE_ARN=x")); len(p) > 0 {
		t.Errorf("unknown: %v", p)
	}
}

func TestDefaults(t *testing.T) {
	s, problems := Read(of(nil))
	if len(problems) > 0 || s.IPAM != ipam.Defaults() {
		t.Errorf("problems %v, settings %+v", problems, s.IPAM)
	}
	for _, v := range s.Values {
		if v.Origin != Default {
			t.Errorf("%s comes from the %v", v.Name, v.Origin)
		}
	}
	if !slices.IsSortedFunc(s.Values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted")
	}
	for i := 1; i < len(s.Values); i++ {
		if s.Values[i].Name == s.Values[i-1].Name {
			t.Errorf("%s is there twice", s.Values[i].Name)
		}
	}
}

func TestValues(t *testing.T) {
	s, problems := Read(of(map[string]string{"WARM_IP_TARGET": "5", "ADDITIONAL_ENI_TAGS": `{"team":"net"}`, "HTTP_TIMEOUT": "30",
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.1.2.3/8, 192.168.0.0/16", "ENILAB_RUNTIME_SOCKET": "none", "ENILAB_RIVAL": "none",
		"ENILAB_KERNEL_FLOOR": "true", "HOST_CNI_BIN_PATH": "none", "HOST_CNI_CONFDIR_PATH": "/etc/cni/net.d/", "ENABLE_BANDWIDTH_PLUGIN": "true",
		"DISABLE_POD_V6": "true", "NETWORK_POLICY_ENFORCING_MODE": "Strict", "POD_SECURITY_GROUP_ENFORCING_MODE": "standard",
		"AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "ERROR", "AWS_VPC_K8S_PLUGIN_LOG_FILE": "/p.log", "AWS_VPC_K8S_CNI_LOGLEVEL": "warn", "AWS_VPC_K8S_CNI_CONNMARK": "128"}))
	if len(problems) != 1 || problems[0].Variable != "POD_SECURITY_GROUP_ENFORCING_MODE" || problems[0].Stops {
		t.Errorf("expected a note on what has no effect without security groups for pods, found %v", problems)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.0.0/16")}
	if s.IPAM.WarmIPTarget != 5 || !reflect.DeepEqual(s.ENITags, map[string]string{"team": "net"}) || s.HTTPTimeout != 30*time.Second ||
		!slices.Equal(s.ExcludeSNAT, want) || s.Runtime != "" || s.Rival != "" || !s.Floor || s.LogLevel != slog.LevelWarn ||
		s.BinDir != "" || s.ConfDir != "/etc/cni/net.d" || s.PluginDir != "/cni" || !s.Bandwidth || !s.NoPodV6 || s.PolicyMode != "strict" ||
		s.PodSGEnforcingMode != "standard" || s.PluginLogLevel != "ERROR" || s.PluginLogFile != "/p.log" {
		t.Errorf("%+v", s)
	}
}

// TestEveryFeature: what is not there and is switched on stops the node, each with a sentence, all at once.
func TestEveryFeature(t *testing.T) {
	env := map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "ENABLE_IMDS_ONLY_MODE": "true", "ENABLE_POD_ENI": "true",
		"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_V6_EGRESS": "true", "ENABLE_MULTI_NIC": "true",
		"ANNOTATE_POD_IP":            "true",
		"AWS_EXTERNAL_SERVICE_CIDRS": "10.0.0.0/8", "AWS_VPC_K8S_CNI_CONNMARK": "0x100", "POD_MTU": "1500"}
	_, problems := Read(of(env))
	delete(env, "ENABLE_IMDS_ONLY_MODE") // which is there, and which the first one contradicts
	for name := range env {
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Variable == name && p.Stops && len(p.Text) > 20 }) {
			t.Errorf("%s=%s: no problem of %v", name, env[name], problems)
		}
	}
}

// TestCustomNetworking: what its variables come to, and what they have no effect without or beside.
func TestCustomNetworking(t *testing.T) {
	const custom = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
	s, problems := Read(of(map[string]string{custom: "true", "ENI_CONFIG_ANNOTATION_DEF": "example.com/eniConfig",
		"ENI_CONFIG_LABEL_DEF": "topology.kubernetes.io/zone", "ENABLE_PREFIX_DELEGATION": "true", "ENABLE_SUBNET_DISCOVERY": "true"}))
	if len(problems) > 0 || !s.IPAM.CustomNetwork || s.IPAM.ConfigAnnotation != "example.com/eniConfig" || s.IPAM.ConfigLabel != "topology.kubernetes.io/zone" {
		t.Errorf("problems %v, settings %+v", problems, s.IPAM)
	}
	for _, c := range []struct {
		env    map[string]string
		about  string
		stops  bool
		phrase string
	}{
		{map[string]string{custom: "true", "ENABLE_IMDS_ONLY_MODE": "true"}, custom, true, "set one of them to false"},
		{map[string]string{custom: "true", "DISABLE_NETWORK_RESOURCE_PROVISIONING": "true"}, custom, false, "the primary one left out"},
		{map[string]string{"ENI_CONFIG_LABEL_DEF": "topology.kubernetes.io/zone"}, "ENI_CONFIG_LABEL_DEF", false, "no effect without " + custom},
		{map[string]string{"ENI_CONFIG_ANNOTATION_DEF": "a/b"}, "ENI_CONFIG_ANNOTATION_DEF", false, "no effect without " + custom},
		{map[string]string{custom: "true", "ENI_CONFIG_LABEL_DEF": "a/b/c"}, "ENI_CONFIG_LABEL_DEF", true, "expected the key"},
		{map[string]string{custom: "true", "ENI_CONFIG_ANNOTATION_DEF": "zone a"}, "ENI_CONFIG_ANNOTATION_DEF", true, "expected the key"},
	} {
		_, problems := Read(of(c.env))
		if len(problems) != 1 || problems[0].Variable != c.about || problems[0].Stops != c.stops || !strings.Contains(problems[0].Text, c.phrase) {
			t.Errorf("%v: %v", c.env, problems)
		}
	}
}

func TestBadValues(t *testing.T) {
	for name, value := range map[string]string{"WARM_ENI_TARGET": "-1", "AWS_VPC_ENI_MTU": "100000", "AWS_VPC_K8S_CNI_VETHPREFIX": "eth",
		"AWS_VPC_K8S_CNI_LOGLEVEL": "loud", "ADDITIONAL_ENI_TAGS": "[1]", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.0.0.0/8,all", "HTTP_TIMEOUT": "soon",
		"ENILAB_RUNTIME_SOCKET": "cri.sock", "ENABLE_IPv4": "maybe", "AWS_VPC_K8S_CNI_RANDOMIZESNAT": "yes", "POD_SECURITY_GROUP_ENFORCING_MODE": "lax",
		"ENABLE_SUBNET_DISCOVERY": "2", "WARM_PREFIX_TARGET": "x", "NETWORK_POLICY_ENFORCING_MODE": "x", "HOST_CNI_BIN_PATH": "opt", "HOST_CNI_CONFDIR_PATH": "net.d",
		"ENILAB_PLUGIN_DIR": "none", "ENABLE_BANDWIDTH_PLUGIN": "on", "DISABLE_POD_V6": "x", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "loud",
		"DISABLE_METRICS": "maybe"} {
		_, problems := Read(of(map[string]string{name: value}))
		if len(problems) != 1 || problems[0].Variable != name || !problems[0].Stops || !strings.Contains(problems[0].Text, "xpected") {
			t.Errorf("%s=%s: %v", name, value, problems)
		}
	}
	for _, tags := range []string{`{"node.k8s.amazonaws.com/x":"1"}`, `{"aws:x":"1"}`, `{"":"1"}`} {
		if _, problems := Read(of(map[string]string{"ADDITIONAL_ENI_TAGS": tags})); len(problems) != 1 || !problems[0].Stops {
			t.Errorf("%s: %v", tags, problems)
		}
	}
}

func TestUnknown(t *testing.T) {
	got := Unknown([]string{"WARM_IPTARGET=1", "AWS_VPC_K8S_CNI_NEW=1", "MAX_ENIS=2", "PATH=/bin", "ENABLE_IPV6=true", "WARM_IP_TARGET=3"})
	want := map[string]string{"WARM_IPTARGET": "WARM_IP_TARGET", "MAX_ENIS": "MAX_ENI", "AWS_VPC_K8S_CNI_NEW": "", "ENABLE_IPV6": "ENABLE_IPv6"}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for _, p := range got {
		if p.Stops || !strings.Contains(p.Text, want[p.Variable]) {
			t.Errorf("%v", p)
		}
	}
}

func TestPrint(t *testing.T) {
	s, problems := Read(of(map[string]string{"ENABLE_IPv6": "true", "MAX_ENI": "3", "HTTP_TIMEOUT": "3", "CLUSTER_NAME": "a\x1b[31mb" + strings.Repeat("c", 200)}))
	var b strings.Builder
	must.Do(t, Print(&b, s, problems))
	for _, want := range []string{"MAX_ENI ", "environment  3\n", "problem: ENABLE_IPv6: true", "note: HTTP_TIMEOUT: 3", "WARM_IP_TARGET", "(unset)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a value's control character is printed")
	}
}

// FuzzSettings: no environment makes the reader panic, and one without a problem that stops gives settings that Put takes.
func FuzzSettings(f *testing.F) {
	f.Add("WARM_IP_TARGET", "5", "AWS_VPC_ENI_MTU", "1500")
	f.Add("ADDITIONAL_ENI_TAGS", `{"a":"b"}`, "POD_MTU", "9001")
	f.Add("AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "10.0.0.0/8,,", "AWS_VPC_K8S_CNI_CONNMARK", "0x80")
	f.Fuzz(func(t *testing.T, a, x, b, y string) {
		s, problems := Read(of(map[string]string{a: x, b: y}))
		Unknown([]string{a + "=" + x, b + "=" + y})
		var out strings.Builder
		must.Do(t, Print(&out, s, problems))
		for _, p := range problems {
			if p.Variable == "" || p.Text == "" {
				t.Fatalf("a problem without words: %+v", p)
			}
			if p.Stops {
				return
			}
		}
		if s.IPAM.MTU < 576 || s.IPAM.MTU > 9001 || len(s.IPAM.VethPrefix) > 4 || s.HTTPTimeout < least*time.Second {
			t.Fatalf("settings that cannot be: %+v", s)
		}
	})
}

// TestTimeoutBelowTheLeast: it is taken for the least, which is worth a word and stops nothing.
func TestTimeoutBelowTheLeast(t *testing.T) {
	s, problems := Read(of(map[string]string{"HTTP_TIMEOUT": "5"}))
	if len(problems) != 1 || problems[0].Stops || problems[0].Variable != "HTTP_TIMEOUT" || s.HTTPTimeout != 10*time.Second {
		t.Errorf("%v, %v", s.HTTPTimeout, problems)
	}
}

// TestWordsAboutWhatHasNoEffect: each of two variables alone is reason enough, and one at its default is none.
func TestWordsAboutWhatHasNoEffect(t *testing.T) {
	for _, name := range []string{"WARM_IP_TARGET", "MINIMUM_IP_TARGET"} {
		_, problems := Read(of(map[string]string{"WARM_ENI_TARGET": "2", name: "3"}))
		if len(problems) != 1 || problems[0].Stops || problems[0].Variable != "WARM_ENI_TARGET" {
			t.Errorf("WARM_ENI_TARGET beside %s: %v", name, problems)
		}
	}
	for value, want := range map[string]int{"true": 1, "false": 0} {
		if _, problems := Read(of(map[string]string{"DISABLE_INTROSPECTION": value})); len(problems) != want || want > 0 && problems[0].Stops {
			t.Errorf("DISABLE_INTROSPECTION=%s: %v", value, problems)
		}
	}
}

// TestRuntimeSocketIsTheOneThatIsNamed: as a path, or as kubelet writes it.
func TestRuntimeSocketIsTheOneThatIsNamed(t *testing.T) {
	for _, want := range []string{"/run/cri-dockerd.sock", "unix:///run/crio/crio.sock"} {
		if s, problems := Read(of(map[string]string{"ENILAB_RUNTIME_SOCKET": want})); len(problems) > 0 || s.Runtime != want {
			t.Errorf("ENILAB_RUNTIME_SOCKET=%s: the runtime is asked at %q, problems %v", want, s.Runtime, problems)
		}
	}
}

// TestWhatHasNoEffectStopsNothing: a node takes pods beside it.
func TestWhatHasNoEffectStopsNothing(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": {"AWS_VPC_K8S_CNI_EXTERNALSNAT": "true", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.0.0.0/8"},
		"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES":  {"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES": "2"},
		"MY_NODE_NAME":                       {"CLUSTER_ENDPOINT": "https://10.0.0.1"},
	} {
		if _, problems := Read(of(env)); len(problems) != 1 || problems[0].Stops || problems[0].Variable != name {
			t.Errorf("%v: expected a note about %s, found %v", env, name, problems)
		}
	}
}

// TestTagsLeaveRoomForOurOwn: EC2 takes 50 of a resource, of which some are the CNI's.
func TestTagsLeaveRoomForOurOwn(t *testing.T) {
	tags := map[string]string{}
	for len(tags) < maxTags {
		tags[fmt.Sprint("team-", len(tags))] = "net"
	}
	read := func() (*Settings, []Problem) {
		text := must.Get(json.Marshal(tags))(t)
		return Read(of(map[string]string{"ADDITIONAL_ENI_TAGS": string(text)}))
	}
	if s, problems := read(); len(problems) > 0 || len(s.ENITags) != maxTags {
		t.Errorf("of %d tags %d are set, problems %v", maxTags, len(s.ENITags), problems)
	}
	tags["one"] = "more"
	if _, problems := read(); len(problems) != 1 || !problems[0].Stops || !strings.Contains(problems[0].Text, "at most 40 tags, found 41") {
		t.Errorf("%d tags: %v", len(tags), problems)
	}
}
