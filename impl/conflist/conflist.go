package conflist

import (
	"encoding/json"
	"strconv"
	"time"
)

// Name is the file's name in /etc/cni/net.d, and Network the network's: they are in every libcni cache entry of the pods that run.
const (
	Name    = "10-aws.conflist"
	Network = "aws-cni"
	plugin  = "aws-cni"
)

// Options are what differs between installations. The zero value is a list with aws-cni alone and its defaults.
type Options struct {
	VethPrefix         string // AWS_VPC_K8S_CNI_VETHPREFIX; empty: eni
	MTU                int    // AWS_VPC_ENI_MTU or POD_MTU, in bytes; 0: 9001
	PodSGEnforcingMode string // POD_SECURITY_GROUP_ENFORCING_MODE; empty: strict
	PluginLogFile      string // AWS_VPC_K8S_PLUGIN_LOG_FILE; empty: no log
	PluginLogLevel     string // AWS_VPC_K8S_PLUGIN_LOG_LEVEL; empty: INFO

	Socket        string        // empty: local.Socket
	StateDir      string        // empty: plugin.StateDir
	LocalProtocol int           // 0: ipam.Version
	Timeout       time.Duration // 0: 30 s

	// Chained are the plugins behind this one, in their order (PortMap, Bandwidth, NoIPv6, or another project's). What is
	// no JSON is left out.
	Chained []json.RawMessage
}

// PortMap is the plugin that amazon-vpc-cni-k8s chains for hostPort (misc/10-aws.conflist).
func PortMap() json.RawMessage {
	return json.RawMessage(`{"type":"portmap","capabilities":{"portMappings":true},"snat":true}`)
}

// Bandwidth is what it chains with ENABLE_BANDWIDTH_PLUGIN: the pods' annotations kubernetes.io/ingress-bandwidth and egress-bandwidth.
func Bandwidth() json.RawMessage {
	return json.RawMessage(`{"type":"bandwidth","capabilities":{"bandwidth":true}}`)
}

// NoIPv6 is what it chains with DISABLE_POD_V6.
func NoIPv6() json.RawMessage {
	return json.RawMessage(`{"type":"tuning","sysctl":{"net.ipv6.conf.all.disable_ipv6":"1","net.ipv6.conf.default.disable_ipv6":"1","net.ipv6.conf.lo.disable_ipv6":"1"}}`)
}

// head is what a list of ours says of itself. It names 0.4.0 first: libcni before 1.2 (containerd 1.7) knows no cniVersions and refuses a list
// that says 1.1.0, later ones take the highest that they know.
type head struct {
	CNIVersion  string            `json:"cniVersion"`
	CNIVersions []string          `json:"cniVersions"`
	Name        string            `json:"name"`
	Plugins     []json.RawMessage `json:"plugins"`
}

// Make is the list where none is there.
func Make(o Options) []byte {
	return ours(append([]json.RawMessage{o.entry()}, valid(o.Chained)...))
}

// ours is a list of ours with these plugins, each of which is JSON.
func ours(plugins []json.RawMessage) []byte {
	return indented(head{CNIVersion: "0.4.0", CNIVersions: []string{"0.4.0", "1.0.0", "1.1.0"}, Name: Network, Plugins: plugins})
}

// indented is JSON for people to read; v can be encoded.
func indented(v any) []byte {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("conflist: " + err.Error()) // its parts were JSON
	}
	return append(raw, '\n')
}

// entry is the plugin's own configuration.
func (o *Options) entry() json.RawMessage {
	raw, _ := json.Marshal(struct { // texts and numbers: no error
		Type               string `json:"type"`
		VethPrefix         string `json:"vethPrefix"`
		MTU                string `json:"mtu"`
		PodSGEnforcingMode string `json:"podSGEnforcingMode"`
		PluginLogFile      string `json:"pluginLogFile,omitempty"`
		PluginLogLevel     string `json:"pluginLogLevel,omitempty"`
		Socket             string `json:"socket,omitempty"`
		StateDir           string `json:"stateDir,omitempty"`
		LocalProtocol      int    `json:"localProtocol,omitempty"`
		TimeoutMS          int64  `json:"timeoutMS,omitempty"`
	}{
		Type:               plugin,
		VethPrefix:         or(o.VethPrefix, "eni"),
		MTU:                strconv.Itoa(or(o.MTU, 9001)),
		PodSGEnforcingMode: or(o.PodSGEnforcingMode, "strict"),
		PluginLogFile:      o.PluginLogFile,
		PluginLogLevel:     o.PluginLogLevel,
		Socket:             o.Socket,
		StateDir:           o.StateDir,
		LocalProtocol:      o.LocalProtocol,
		TimeoutMS:          o.Timeout.Milliseconds(),
	})
	return raw
}

// valid are those that are JSON.
func valid(in []json.RawMessage) (out []json.RawMessage) {
	for _, p := range in {
		if json.Valid(p) {
			out = append(out, p)
		}
	}
	return out
}

// or is v, or its default when it is zero.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
