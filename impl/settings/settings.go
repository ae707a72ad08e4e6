package settings

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Settings of a daemon: the core's, and the shell's around it.
type Settings struct {
	IPAM ipam.Settings

	LogLevel slog.Level // AWS_VPC_K8S_CNI_LOGLEVEL
	LogFile  string     // AWS_VPC_K8S_CNI_LOG_FILE: a path, "stdout" or "stderr"

	Checkpoint string // AWS_VPC_K8S_CNI_BACKING_STORE
	RunDir     string // ENILAB_RUN_DIR: allocations, intents, lock; on a tmpfs
	LibDir     string // ENILAB_LIB_DIR: EC2 intents; on a disk
	Socket     string // ENILAB_SOCKET: where the plugin calls
	Rival      string // ENILAB_RIVAL: where amazon-vpc-cni-k8s's daemon would answer; "none" does not look
	Runtime    string // ENILAB_RUNTIME_SOCKET: the container runtime's; empty after "none"
	Floor      bool   // ENILAB_KERNEL_FLOOR: use nothing that is newer than Linux 5.10

	PluginDir string // ENILAB_PLUGIN_DIR: the CNI plugins in the image, for `ipamd init`
	BinDir    string // HOST_CNI_BIN_PATH: where `ipamd init` installs them; empty after "none"
	ConfDir   string // HOST_CNI_CONFDIR_PATH: where the daemon writes the conflist; empty after "none"

	PluginLogLevel     string // AWS_VPC_K8S_PLUGIN_LOG_LEVEL, for the conflist, as the next two
	PluginLogFile      string // AWS_VPC_K8S_PLUGIN_LOG_FILE
	PodSGEnforcingMode string // POD_SECURITY_GROUP_ENFORCING_MODE
	Bandwidth          bool   // ENABLE_BANDWIDTH_PLUGIN: chain bandwidth
	NoPodV6            bool   // DISABLE_POD_V6: chain tuning, which switches IPv6 off in pods
	PolicyMode         string // NETWORK_POLICY_ENFORCING_MODE: "" (no agent is told of pods), "standard" or "strict"

	HTTPTimeout time.Duration     // HTTP_TIMEOUT
	ENITags     map[string]string // ADDITIONAL_ENI_TAGS
	ExcludeSNAT []netip.Prefix    // AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS

	Cluster      string // CLUSTER_NAME
	Endpoint     string // CLUSTER_ENDPOINT
	Node         string // MY_NODE_NAME
	Pod          string // MY_POD_NAME
	PodNamespace string // MY_POD_NAMESPACE

	Values []Value // every variable, sorted by name
}

// Origin is where a value comes from.
type Origin uint8

const (
	Default Origin = iota
	Environment
)

func (o Origin) String() string {
	if o == Environment {
		return "environment"
	}
	return "default"
}

// Value is one variable as it was read.
type Value struct {
	Name   string
	Value  string // "": unset
	Origin Origin
}

// Problem is what is wrong, or unusual, about a variable.
type Problem struct {
	Variable string
	Text     string // a sentence without the variable's name
	Stops    bool   // the node takes no pods because of it
	Unread   bool   // there is no such variable: what it asks for does not happen
}

func (p Problem) String() string { return p.Variable + ": " + p.Text }

// Read reads the environment. The settings are usable only when no problem Stops.
func Read(lookup func(string) (string, bool)) (*Settings, []Problem) {
	s := &Settings{IPAM: ipam.Defaults()}
	var problems []Problem
	for _, v := range variables() {
		text, ok := lookup(v.name)
		origin := Environment
		if !ok || text == "" {
			text, origin = v.standard, Default
		}
		s.Values = append(s.Values, Value{v.name, text, origin})
		if text == "" {
			continue
		}
		if err := v.read(s, text, origin == Environment); err != nil {
			_, noted := err.(note)
			problems = append(problems, Problem{Variable: v.name, Text: err.Error(), Stops: !noted})
		}
	}
	return s, append(problems, s.contradictions()...)
}

// get is a value as it was read.
func (s *Settings) get(name string) Value {
	for _, v := range s.Values {
		if v.Name == name {
			return v
		}
	}
	return Value{}
}
