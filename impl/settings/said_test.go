package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// TestWhatIsSaidOfVariables: what stops the node, and what is worth a word, alone and beside others; and of what
// nothing is said.
func TestWhatIsSaidOfVariables(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	prefixes := func(n int) string { return strings.TrimSuffix(strings.Repeat("10.0.0.0/8,", n), ",") }
	for _, c := range []struct{ env, said string }{ // NAME=value in a line each; "name" stops, "name?" is a note
		{"POD_MTU=9001", ""}, {"POD_MTU=1500", "POD_MTU"}, {"POD_MTU=1500\nAWS_VPC_ENI_MTU=1500", ""}, {"POD_MTU=100",
			"POD_MTU"},
		{"WARM_ENI_TARGET=2", ""}, {"WARM_IP_TARGET=3", ""}, {"MINIMUM_IP_TARGET=3", ""},
		{"WARM_ENI_TARGET=2\nWARM_IP_TARGET=3\nMINIMUM_IP_TARGET=3\nENABLE_PREFIX_DELEGATION=true", "WARM_ENI_TARGET?"},
		{"WARM_ENI_TARGET=2\nENABLE_PREFIX_DELEGATION=true",
			"WARM_ENI_TARGET?"}, {"WARM_ENI_TARGET=1\nENABLE_PREFIX_DELEGATION=true", ""},
		{"ENABLE_PREFIX_DELEGATION=true", ""},
		{"WARM_PREFIX_TARGET=2", "WARM_PREFIX_TARGET?"}, {"WARM_PREFIX_TARGET=1",
			""}, {"WARM_PREFIX_TARGET=2\nENABLE_PREFIX_DELEGATION=true", ""},
		{"WARM_PREFIX_TARGET=2\nENABLE_PREFIX_DELEGATION=true\nWARM_IP_TARGET=1", "WARM_PREFIX_TARGET?"},
		{"WARM_PREFIX_TARGET=2\nENABLE_PREFIX_DELEGATION=true\nMINIMUM_IP_TARGET=1", "WARM_PREFIX_TARGET?"},
		{"POD_SECURITY_GROUP_ENFORCING_MODE=standard", "POD_SECURITY_GROUP_ENFORCING_MODE?"},
		{"POD_SECURITY_GROUP_ENFORCING_MODE=strict", ""},
		{"ENI_CONFIG_LABEL_DEF=k8s.amazonaws.com/eniConfig\nENI_CONFIG_ANNOTATION_DEF=k8s.amazonaws.com/eniConfig", ""},
		{"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES=2\nENABLE_IMDS_ONLY_MODE=true", ""}, {"ENABLE_IMDS_ONLY_MODE=true", ""},
		{"AWS_VPC_K8S_CNI_EXTERNALSNAT=true", ""}, {"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS=10.0.0.0/8", ""},
		{"CLUSTER_ENDPOINT=https://a\nMY_NODE_NAME=n", ""}, {"MY_NODE_NAME=n", ""},
		{"AWS_VPC_K8S_CNI_RANDOMIZESNAT=hashrandom", "AWS_VPC_K8S_CNI_RANDOMIZESNAT?"},
		{"AWS_VPC_K8S_CNI_RANDOMIZESNAT=none", "AWS_VPC_K8S_CNI_RANDOMIZESNAT?"},
		{"AWS_VPC_K8S_CNI_RANDOMIZESNAT=prng", ""}, {"AWS_VPC_K8S_CNI_CONNMARK=0x80", ""}, {"AWS_VPC_K8S_CNI_CONNMARK=x",
			"AWS_VPC_K8S_CNI_CONNMARK"},
		{"ENABLE_IPv4=1", ""}, {"ENABLE_POD_ENI=0", ""}, {"DISABLE_METRICS=false", ""}, {"DISABLE_METRICS=true",
			"DISABLE_METRICS?"},
		{"ENABLE_NFTABLES=true", "ENABLE_NFTABLES?"}, {"ENABLE_NFTABLES=x", "ENABLE_NFTABLES"}, {"VPC_ID=x", ""},
		{"NETWORK_POLICY_ENFORCING_MODE=none", ""}, {"ENILAB_RIVAL=none", ""}, {"HOST_CNI_BIN_PATH=none",
			""}, {"ENILAB_RUNTIME_SOCKET=none", ""},
		{"HTTP_TIMEOUT=0", "HTTP_TIMEOUT?"}, {"HTTP_TIMEOUT=9", "HTTP_TIMEOUT?"}, {"HTTP_TIMEOUT=10",
			""}, {"HTTP_TIMEOUT=600", ""},
		{"HTTP_TIMEOUT=601", "HTTP_TIMEOUT"}, {"HTTP_TIMEOUT=-1", "HTTP_TIMEOUT"}, {"HTTP_TIMEOUT=", ""},
		{"ADDITIONAL_ENI_TAGS=" + fmt.Sprintf(`{"%s":"%s"}`, long(maxTagKey), long(maxTagValue)), ""},
		{"ADDITIONAL_ENI_TAGS=" + fmt.Sprintf(`{"%s":""}`, long(maxTagKey+1)), "ADDITIONAL_ENI_TAGS"},
		{"ADDITIONAL_ENI_TAGS=" + fmt.Sprintf(`{"a":"%s"}`, long(maxTagValue+1)), "ADDITIONAL_ENI_TAGS"},
		{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS=" + prefixes(maxPrefixes), ""},
		{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS=" + prefixes(maxPrefixes+1), "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS"},
		{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS=fd00::/8", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS"},
	} {
		env := map[string]string{}
		for line := range strings.SplitSeq(c.env, "\n") {
			name, value, _ := strings.Cut(line, "=")
			env[name] = value
		}
		_, problems := Read(of(env))
		var said []string
		for _, p := range problems {
			if p.Stops {
				said = append(said, p.Variable)
			} else {
				said = append(said, p.Variable+"?")
			}
			if p.Text == "" || p.Unread {
				t.Errorf("%.100q: %+v", env, p)
			}
		}
		if strings.Join(said, " ") != c.said {
			t.Errorf("%.100q: %v, expected %q", env, problems, c.said)
		}
	}
}

// TestWhatValuesComeTo, in the words of amazon-vpc-cni-k8s, which are its names in any case.
func TestWhatValuesComeTo(t *testing.T) {
	read := func(pairs ...string) *Settings {
		env := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			env[pairs[i]] = pairs[i+1]
		}
		s, problems := Read(of(env))
		if len(problems) > 0 {
			t.Errorf("%v: %v", pairs, problems)
		}
		return s
	}
	for text, want := range map[string]slog.Level{"debug": slog.LevelDebug, "INFO": slog.LevelInfo,
		"Warn": slog.LevelWarn, "WARNING": slog.LevelWarn,
		"error": slog.LevelError, "FATAL": slog.LevelError} {
		if s := read("AWS_VPC_K8S_CNI_LOGLEVEL", text, "AWS_VPC_K8S_PLUGIN_LOG_LEVEL", text); s.LogLevel != want ||
			s.PluginLogLevel != text {
			t.Errorf("%s is %v and the plugin's %q", text, s.LogLevel, s.PluginLogLevel)
		}
	}
	s := read("HOST_CNI_BIN_PATH", "/opt//bin/", "HOST_CNI_CONFDIR_PATH", "none", "ENILAB_PLUGIN_DIR", "/a/../b",
		"ENILAB_RIVAL", "10.0.0.1:1",
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", ", 10.1.2.3/8 ,,192.168.0.0/16",
		"NETWORK_POLICY_ENFORCING_MODE", "None", "ADDITIONAL_ENI_TAGS", "{}")
	if s.BinDir != "/opt/bin" || s.ConfDir != "" || s.PluginDir != "/b" || s.Rival != "10.0.0.1:1" ||
		fmt.Sprint(s.ExcludeSNAT) != "[10.0.0.0/8 192.168.0.0/16]" ||
		s.PolicyMode != "" || s.ENITags != nil || s.HTTPTimeout != 10*time.Second {
		t.Errorf("%+v", s)
	}
	s = read("WARM_ENI_TARGET", "", "WARM_IP_TARGET", "3")
	for name, want := range map[string]Value{"WARM_ENI_TARGET": {"WARM_ENI_TARGET", "1", Default},
		"WARM_IP_TARGET": {"WARM_IP_TARGET", "3", Environment}, "x": {}} {
		if v := s.get(name); v != want {
			t.Errorf("%+v, expected %+v", v, want)
		}
	}
	for range 5 { // a map's order is another each time
		text, _ := json.Marshal(map[string]string{"aws:c": "", "aws:a": "", "aws:b": "", "d": ""})
		if _, problems := Read(of(map[string]string{"ADDITIONAL_ENI_TAGS": string(text)})); len(problems) != 1 ||
			!strings.Contains(problems[0].Text, `"aws:a"`) {
			t.Errorf("the first tag that is wrong is named, and not %v", problems)
		}
	}
}

// TestUnknownNamesAreSorted, and are not compared when they are longer than any of ours.
func TestUnknownNamesAreSorted(t *testing.T) {
	longest := "WARM_" + strings.Repeat("X", maxName-5)
	got := Unknown([]string{"WARM_IP_TARGET=1", "WARM_Z=1", longest + "X=1", longest + "=1", "VPC_IDS=1", "WARM_A=1",
		"MINIMUM_IPS=1", "PATH=1"})
	var names []string
	for _, p := range got {
		names = append(names, p.Variable)
		if p.Stops || !p.Unread || strings.Contains(p.Text, "did you mean") != (p.Variable == "VPC_IDS") {
			t.Errorf("%+v", p)
		}
	}
	if want := []string{"MINIMUM_IPS", "VPC_IDS", "WARM_A", longest, "WARM_Z"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
}

// TestNearestName: of names that are long enough, the first of those that differ the least.
func TestNearestName(t *testing.T) {
	for _, c := range []struct {
		name, names, want string
	}{
		{"ABCDX", "ABCDE", ""}, {"ABCDEX", "ABCDEF", "ABCDEF"}, {"abcdef", "ABCDEF", "ABCDEF"}, {"ABCDEFGH", "ABCDEF",
			"ABCDEF"}, {"ABCD", "ABCDEF", "ABCDEF"},
		{"ABCDEFGHI", "ABCDEF", ""}, {"ABC", "ABCDEF", ""}, {"ABCXYZ", "ABCDEF", ""}, {"ABCDXY", "ABCDEF", "ABCDEF"},
		{"ABCDEX", "ABCDE ABCDEF ABCDEG", "ABCDEF"}, {"ABCDEX", "ABCDYY ABCDEF", "ABCDEF"}, {"ABCDEX", "ABCDEF ABCDYY",
			"ABCDEF"},
	} {
		if got := nearest(c.name, strings.Fields(c.names)); got != c.want {
			t.Errorf("%s among %s: %q, expected %q", c.name, c.names, got, c.want)
		}
	}
	for pair, want := range map[[2]string]int{{"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3,
		{"abc", "abc"}: 0, {"ab", "ba"}: 2, {"flaw", "lawn"}: 2, {"abc", "xabc"}: 1} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, expected %d", pair, got, want)
		}
	}
}

// TestTable: names in a column, values that fit a line, and what is wrong beneath.
func TestTable(t *testing.T) {
	var b strings.Builder
	s := &Settings{Values: []Value{{"A", "x", Default}, {"LONG", "", Environment}}}
	must.Do(t, Print(&b, s, []Problem{{Variable: "A", Text: "no", Stops: true},
		{Variable: "LONG", Text: "well"}}))
	if want := "A     default      x\nLONG  environment  (unset)\nproblem: A: no\nnote: LONG: well\n"; b.String() != want {
		t.Errorf("%q, expected %q", b.String(), want)
	}
	exact := strings.Repeat("ü", maxShown)
	cases := map[string]string{"": "(unset)", "a b~": "a b~", "a\tb\x7f": "a·b·", exact: exact, exact + "x": exact + "…"}
	for _, v := range slices.Sorted(maps.Keys(cases)) {
		if got := shown(v); got != cases[v] {
			t.Errorf("%q is shown as %q, expected %q", v, got, cases[v])
		}
	}
}
