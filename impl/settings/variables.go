package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// variable is one that is known. read puts its value into the settings; an error stops the node, unless it is a note.
type variable struct {
	name     string
	standard string // its default; "": unset
	read     func(s *Settings, value string, set bool) error
}

// note is what is unusual about a value and stops nothing.
type note string

func (n note) Error() string { return string(n) }

// defaults of the core's variables, as text. README.md and config/master/aws-k8s-cni.yaml of amazon-vpc-cni-k8s 1.23.1.
var coreDefaults = map[string]string{
	"WARM_ENI_TARGET": "1", "ENABLE_PREFIX_DELEGATION": "false", "WARM_PREFIX_TARGET": "1", "IP_COOLDOWN_PERIOD": "30", "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false", "AWS_VPC_CNI_NODE_PORT_SUPPORT": "true",
	"AWS_VPC_ENI_MTU": "9001", "AWS_VPC_K8S_CNI_VETHPREFIX": "eni", "DISABLE_LEAKED_ENI_CLEANUP": "false",
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": "false", "ENABLE_IMDS_ONLY_MODE": "false", "AWS_MANAGE_ENIS_NON_SCHEDULABLE": "false", "MANAGE_UNTAGGED_ENI": "true",
	"ENABLE_SUBNET_DISCOVERY": "true", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false", "ENI_CONFIG_ANNOTATION_DEF": "k8s.amazonaws.com/eniConfig",
	"ENI_CONFIG_LABEL_DEF": "k8s.amazonaws.com/eniConfig",
}

// variables are all that are known, sorted by name.
func variables() []variable {
	var out []variable
	for _, name := range ipam.Variables() {
		out = append(out, variable{name, coreDefaults[name], func(s *Settings, value string, _ bool) error {
			if err := s.IPAM.Put(name, value); err != nil {
				return errors.New(strings.TrimPrefix(err.Error(), "setting "+name+"="))
			}
			return nil
		}})
	}
	out = slices.Concat(out, shell(), features(), plumbing())
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}

// shell are the daemon's own.
func shell() []variable {
	text := func(name, standard string, to func(*Settings) *string) variable {
		return variable{name, standard, func(s *Settings, v string, _ bool) error { *to(s) = v; return nil }}
	}
	parsed := func(name, standard string, put func(*Settings, string) error) variable {
		return variable{name, standard, func(s *Settings, v string, _ bool) error {
			if err := put(s, v); err != nil {
				return fmt.Errorf("%q: %w", v, err)
			}
			return nil
		}}
	}
	return []variable{
		parsed("AWS_VPC_K8S_CNI_LOGLEVEL", "DEBUG", func(s *Settings, v string) error { return level(v, &s.LogLevel) }),
		text("AWS_VPC_K8S_CNI_LOG_FILE", "/host/var/log/aws-routed-eni/ipamd.log", func(s *Settings) *string { return &s.LogFile }),
		text("AWS_VPC_K8S_CNI_BACKING_STORE", "/var/run/aws-node/ipam.json", func(s *Settings) *string { return &s.Checkpoint }),
		text("ENILAB_RUN_DIR", "/var/run/aws-node", func(s *Settings) *string { return &s.RunDir }),
		text("ENILAB_LIB_DIR", "/var/lib/aws-node", func(s *Settings) *string { return &s.LibDir }),
		text("ENILAB_SOCKET", "/var/run/aws-node/ipamd.sock", func(s *Settings) *string { return &s.Socket }),
		parsed("ENILAB_RIVAL", "127.0.0.1:50051", func(s *Settings, v string) error { s.Rival = unlessNone(v); return nil }),
		parsed("ENILAB_RUNTIME_SOCKET", "/run/containerd/containerd.sock", func(s *Settings, v string) error { return socket(v, &s.Runtime) }),
		parsed("ENILAB_KERNEL_FLOOR", "false", func(s *Settings, v string) error { return truth(v, &s.Floor) }),
		parsed("ENILAB_PLUGIN_DIR", "/cni", func(s *Settings, v string) error { return folder(v, &s.PluginDir) }),
		parsed("HOST_CNI_BIN_PATH", "/host/opt/cni/bin", func(s *Settings, v string) error { return folderOrNone(v, &s.BinDir) }),
		parsed("HOST_CNI_CONFDIR_PATH", "/host/etc/cni/net.d", func(s *Settings, v string) error { return folderOrNone(v, &s.ConfDir) }),
		parsed("AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "DEBUG", func(s *Settings, v string) error { s.PluginLogLevel = v; var l slog.Level; return level(v, &l) }),
		text("AWS_VPC_K8S_PLUGIN_LOG_FILE", "/var/log/aws-routed-eni/plugin.log", func(s *Settings) *string { return &s.PluginLogFile }),
		parsed("POD_SECURITY_GROUP_ENFORCING_MODE", "strict", func(s *Settings, v string) error { return word(v, &s.PodSGEnforcingMode, "strict", "standard") }),
		parsed("ENABLE_BANDWIDTH_PLUGIN", "false", func(s *Settings, v string) error { return truth(v, &s.Bandwidth) }),
		parsed("DISABLE_POD_V6", "false", func(s *Settings, v string) error { return truth(v, &s.NoPodV6) }),
		parsed("NETWORK_POLICY_ENFORCING_MODE", "", func(s *Settings, v string) error { return policyMode(v, &s.PolicyMode) }),
		parsed("ADDITIONAL_ENI_TAGS", "{}", func(s *Settings, v string) error { return tags(v, &s.ENITags) }),
		parsed("AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "", func(s *Settings, v string) error { return prefixes(v, &s.ExcludeSNAT) }),
		{"HTTP_TIMEOUT", "10", readTimeout},
		text("CLUSTER_NAME", "", func(s *Settings) *string { return &s.Cluster }),
		text("CLUSTER_ENDPOINT", "", func(s *Settings) *string { return &s.Endpoint }),
		text("MY_NODE_NAME", "", func(s *Settings) *string { return &s.Node }),
		text("MY_POD_NAME", "", func(s *Settings) *string { return &s.Pod }),
		text("MY_POD_NAMESPACE", "kube-system", func(s *Settings) *string { return &s.PodNamespace }),
	}
}

// features are switches of amazon-vpc-cni-k8s whose other position is not there yet.
func features() []variable {
	// must is a switch that has to be as it is.
	must := func(name string, standard bool, why string) variable {
		return variable{name, strconv.FormatBool(standard), func(_ *Settings, v string, _ bool) error {
			var b bool
			if err := truth(v, &b); err != nil {
				return fmt.Errorf("%q: %w", v, err)
			}
			if b != standard {
				return errors.New(v + ": " + why)
			}
			return nil
		}}
	}
	return []variable{
		must("ENABLE_POD_ENI", false, "security groups for pods are not there yet; pods would get the node's"),
		must("ENABLE_IPv4", true, "a cluster without IPv4 is not supported yet"),
		must("ENABLE_IPv6", false, "IPv6 is not supported yet"),
		must("ENABLE_V6_EGRESS", false, "IPv6 egress of IPv4 pods is not there yet"),
		must("ENABLE_MULTI_NIC", false, "several network cards are not supported yet"),
		must("ANNOTATE_POD_IP", false, "writing annotations to pods is not there yet"),
		{"AWS_EXTERNAL_SERVICE_CIDRS", "", func(_ *Settings, v string, _ bool) error {
			return fmt.Errorf("%q: rules for external services are not there yet", v)
		}},
		{"AWS_VPC_K8S_CNI_CONNMARK", "0x80", func(_ *Settings, v string, _ bool) error {
			if n, _ := strconv.ParseUint(v, 0, 32); n == 0x80 { // what is no number is 0
				return nil
			}
			return fmt.Errorf("%q: another bit than 0x80 is not there yet", v)
		}},
		{"AWS_VPC_K8S_CNI_RANDOMIZESNAT", "prng", func(_ *Settings, v string, _ bool) error {
			switch v {
			case "prng":
				return nil
			case "hashrandom", "none":
				return note(v + ": ports of SNAT are always chosen at random (prng)")
			}
			return fmt.Errorf("%q: expected prng, hashrandom or none", v)
		}},
	}
}

// plumbing are variables that are checked and have no effect: what they belong to is off, another program's, or not the daemon's.
func plumbing() []variable {
	any := func(string) error { return nil }
	boolean := func(v string) error { var b bool; return truth(v, &b) }
	quiet := func(name, standard string, check func(string) error) variable {
		return variable{name, standard, func(_ *Settings, v string, _ bool) error {
			if err := check(v); err != nil {
				return fmt.Errorf("%q: %w", v, err)
			}
			return nil
		}}
	}
	// idle is one whose default is what happens, and which is worth a warning when it is changed.
	idle := func(name, standard, why string, check func(string) error) variable {
		q := quiet(name, standard, check)
		read := q.read
		q.read = func(s *Settings, v string, set bool) error {
			if err := read(s, v, set); err != nil {
				return err
			}
			if set && v != standard {
				return note(v + ": " + why)
			}
			return nil
		}
		return q
	}
	return []variable{
		idle("DISABLE_TCP_EARLY_DEMUX", "false", "it has no effect without security groups for pods, which are not there yet", boolean),
		idle("ENABLE_V4_EGRESS", "true", "it has no effect: it belongs to IPv6 clusters, which are not there yet", boolean),
		idle("AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE", "/var/log/aws-routed-eni/egress-v4-plugin.log", "it has no effect: it belongs to IPv6 clusters, which are not there yet", any),
		idle("AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE", "/var/log/aws-routed-eni/egress-v6-plugin.log", "it has no effect: there is no IPv6 egress yet", any),
		quiet("POD_MTU", "", func(v string) error { return number(v, 576, 9001) }),
		idle("DISABLE_INTROSPECTION", "false", "there is no HTTP introspection yet; ask on the daemon's socket", boolean),
		idle("INTROSPECTION_BIND_ADDRESS", "127.0.0.1:61679", "there is no HTTP introspection yet; ask on the daemon's socket", any),
		idle("DISABLE_METRICS", "false", "there are no metrics yet", boolean),
		quiet("AWS_EC2_ENDPOINT", "", any), // impl/cloud reads it
		idle("ENABLE_NFTABLES", "", "it has no effect: nftables is always used, over netlink", boolean),
		idle("AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER", "", "it has no effect: `ipamd init` sets rp_filter", boolean),
		quiet("VPC_CNI_VERSION", "", any), // upstream's manifests set it, for the User-Agent of their calls
		quiet("VPC_ID", "", any),
	}
}

// least of HTTP_TIMEOUT is amazon-vpc-cni-k8s's.
const least = 10

func readTimeout(s *Settings, v string, _ bool) error {
	if err := number(v, 0, 600); err != nil {
		return fmt.Errorf("%q: %w", v, err)
	}
	n, _ := strconv.Atoi(v) // it is a number
	s.HTTPTimeout = time.Duration(max(n, least)) * time.Second
	if n < least {
		return note(fmt.Sprintf("%s: less than %d seconds is taken for %d", v, least, least))
	}
	return nil
}

func number(v string, low, high int) error {
	if n, err := strconv.Atoi(v); err != nil || n < low || n > high {
		return fmt.Errorf("expected a whole number from %d to %d", low, high)
	}
	return nil
}

func truth(v string, to *bool) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("expected true or false")
	}
	*to = b
	return nil
}

func word(v string, to *string, words ...string) error {
	if !slices.Contains(words, v) {
		return fmt.Errorf("expected %s", strings.Join(words, " or "))
	}
	*to = v
	return nil
}

// policyMode reads amazon-vpc-cni-k8s's words.
func policyMode(v string, to *string) error {
	switch w := strings.ToLower(v); w {
	case "standard", "strict":
		*to = w
		return nil
	case "none":
		return nil
	}
	return fmt.Errorf("expected standard, strict or none")
}

func folder(v string, to *string) error {
	if !filepath.IsAbs(v) {
		return fmt.Errorf("expected an absolute path")
	}
	*to = filepath.Clean(v)
	return nil
}

// folderOrNone is the empty folder for none: nothing is written there.
func folderOrNone(v string, to *string) error {
	if v == "none" {
		*to = ""
		return nil
	}
	if folder(v, to) != nil {
		return fmt.Errorf("expected an absolute path, or none")
	}
	return nil
}

func unlessNone(v string) string {
	if v == "none" {
		return ""
	}
	return v
}

func socket(v string, to *string) error {
	if path := strings.TrimPrefix(v, "unix://"); v != "none" && !strings.HasPrefix(path, "/") {
		return fmt.Errorf("expected an absolute path, or none")
	}
	*to = unlessNone(v)
	return nil
}

// level reads amazon-vpc-cni-k8s's names.
func level(v string, to *slog.Level) error {
	switch strings.ToUpper(v) {
	case "DEBUG":
		*to = slog.LevelDebug
	case "INFO":
		*to = slog.LevelInfo
	case "WARN", "WARNING":
		*to = slog.LevelWarn
	case "ERROR", "FATAL":
		*to = slog.LevelError
	default:
		return fmt.Errorf("expected DEBUG, INFO, WARN or ERROR")
	}
	return nil
}

// Bounds of tags: EC2's are 50 per resource, of 127 and 255 characters; some are ours.
const (
	maxTags     = 40
	maxTagKey   = 127
	maxTagValue = 255
	reserved    = "k8s.amazonaws.com"
)

func tags(v string, to *map[string]string) error {
	var m map[string]string
	if err := json.Unmarshal([]byte(v), &m); err != nil {
		return fmt.Errorf("expected a JSON object of texts: %w", err)
	}
	if len(m) > maxTags {
		return fmt.Errorf("expected at most %d tags, found %d", maxTags, len(m))
	}
	keys := slices.Sorted(maps.Keys(m))
	for _, k := range keys {
		switch {
		case k == "" || len(k) > maxTagKey || len(m[k]) > maxTagValue:
			return fmt.Errorf("tag %q: expected 1 to %d characters, and at most %d of value", k, maxTagKey, maxTagValue)
		case strings.Contains(k, reserved):
			return fmt.Errorf("tag %q: keys with %s are the CNI's own", k, reserved)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return fmt.Errorf("tag %q: keys with aws: are EC2's own", k)
		}
	}
	if len(m) > 0 {
		*to = m
	}
	return nil
}

// maxPrefixes bounds what SNAT leaves alone: each is an element of an nftables set.
const maxPrefixes = 256

func prefixes(v string, to *[]netip.Prefix) error {
	var out []netip.Prefix
	for _, text := range strings.Split(v, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil || !p.Addr().Is4() {
			return fmt.Errorf("expected IPv4 CIDRs with commas between them, found %q", text)
		}
		out = append(out, p.Masked())
	}
	if len(out) > maxPrefixes {
		return fmt.Errorf("expected at most %d CIDRs, found %d", maxPrefixes, len(out))
	}
	*to = out
	return nil
}
