package plugin

import (
	"encoding/json"
	"strconv"
	"time"
)

// ConflistName is the file's name in /etc/cni/net.d, and NetworkName the network's: they are in every libcni cache entry of
// the pods that run.
const (
	ConflistName = "10-aws.conflist"
	NetworkName  = "aws-cni"
	pluginType   = "aws-cni"
)

// ConflistOptions are what differs between installations. The zero value is a conflist with this plugin alone and its
// defaults.
type ConflistOptions struct {
	VethPrefix         string // AWS_VPC_K8S_CNI_VETHPREFIX; empty: eni
	MTU                int    // AWS_VPC_ENI_MTU or POD_MTU, in bytes; 0: 9001
	PodSGEnforcingMode string // POD_SECURITY_GROUP_ENFORCING_MODE; empty: strict
	PluginLogFile      string // AWS_VPC_K8S_PLUGIN_LOG_FILE; empty: no log
	PluginLogLevel     string // AWS_VPC_K8S_PLUGIN_LOG_LEVEL; empty: INFO

	Socket        string        // empty: local.Socket
	StateDir      string        // empty: StateDir
	LocalProtocol int           // 0: ipam.Version
	Timeout       time.Duration // 0: 30 s

	// Chained are the plugins behind this one, as they are: what an operator chained stays (see PortMap).
	Chained []json.RawMessage
}

// PortMap is the plugin that amazon-vpc-cni-k8s chains for hostPort (misc/10-aws.conflist).
func PortMap() json.RawMessage {
	return json.RawMessage(`{"type":"portmap","capabilities":{"portMappings":true},"snat":true}`)
}

// Conflist is the network configuration list that the installer writes and a runtime reads. It names 0.4.0 first: libcni before
// 1.2 (containerd 1.7) knows no cniVersions and refuses a list that says 1.1.0, later ones take the highest that they
// know and with it STATUS and GC. Every plugin of the list must speak 1.1.0.
func Conflist(o ConflistOptions) []byte {
	type own struct {
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
	}
	list := struct {
		CNIVersion  string   `json:"cniVersion"`
		CNIVersions []string `json:"cniVersions"`
		Name        string   `json:"name"`
		Plugins     []any    `json:"plugins"`
	}{
		CNIVersion:  "0.4.0",
		CNIVersions: []string{"0.4.0", "1.0.0", "1.1.0"},
		Name:        NetworkName,
		Plugins: []any{own{
			Type:               pluginType,
			VethPrefix:         or(o.VethPrefix, "eni"),
			MTU:                strconv.Itoa(or(o.MTU, 9001)),
			PodSGEnforcingMode: or(o.PodSGEnforcingMode, "strict"),
			PluginLogFile:      o.PluginLogFile,
			PluginLogLevel:     o.PluginLogLevel,
			Socket:             o.Socket,
			StateDir:           o.StateDir,
			LocalProtocol:      o.LocalProtocol,
			TimeoutMS:          o.Timeout.Milliseconds(),
		}},
	}
	for _, p := range o.Chained {
		list.Plugins = append(list.Plugins, p)
	}
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil { // a chained plugin that is no JSON: without it the rest is good
		o.Chained = valid(o.Chained)
		return Conflist(o)
	}
	return append(raw, '\n')
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
