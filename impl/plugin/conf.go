package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// StateDir is amazon-vpc-cni-k8s's state folder, on a tmpfs.
const StateDir = "/var/run/aws-node"

// Patience of the plugin. The daemon is told the first and answers before it ends; the plugin itself waits longer by
// grace, or by as much again when it has little patience, so that it hears that answer.
const (
	defaultTimeout = 30 * time.Second
	minTimeout     = 100 * time.Millisecond
	grace          = 2 * time.Second
)

// conf is the network configuration.
type conf struct {
	Version    string // of CNI
	Name       string // of the network
	PrevResult json.RawMessage

	Socket   string
	StateDir string
	Protocol int
	Timeout  time.Duration

	LogFile, LogLevel string
	VethPrefix        string
	MTU               int // 0: not said

	Valid   []types.GCAttachment
	Validly bool // a list of valid attachments is there
}

// Names of our keys and of those with a meaning of their own.
const (
	keyValid  = "cni.dev/valid-attachments"
	keyLegacy = "cni.dev/attachments" // libcni sends both (api.go, GCNetworkList)
)

// parseConf reads a configuration whose name and version the library has checked. What cannot be is one error that says
// all of it; the rest of the configuration, with defaults in the gaps, is returned beside it, for DEL goes on.
func parseConf(raw []byte) (conf, error) {
	c := conf{
		Version: "0.1.0", Socket: ipc.Socket, StateDir: StateDir, Protocol: ipam.Version, Timeout: defaultTimeout,
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return c, errorf(types.ErrDecodingFailure, "network configuration: expected a JSON object: %v", err)
	}
	bad := errors.Join(
		take(keys, "cniVersion", &c.Version),
		take(keys, "name", &c.Name),
		c.path(keys, "socket", &c.Socket),
		c.path(keys, "stateDir", &c.StateDir),
		c.protocol(keys),
		c.timeout(keys),
		take(keys, "pluginLogFile", &c.LogFile),
		take(keys, "pluginLogLevel", &c.LogLevel),
		take(keys, "vethPrefix", &c.VethPrefix),
		c.mtu(keys),
		c.valid(keys, keyValid),
		c.valid(keys, keyLegacy),
	)
	c.PrevResult = keys["prevResult"]
	if string(c.PrevResult) == "null" {
		c.PrevResult = nil
	}
	if bad != nil {
		return c, errorf(types.ErrInvalidNetworkConfig, "network configuration %q: %v", c.Name, bad)
	}
	return c, nil
}

// take reads a member; one that is not there, or null, leaves to alone.
func take[T any](keys map[string]json.RawMessage, key string, to *T) error {
	raw, ok := keys[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("%s: expected a %T, found %.40s", key, v, raw)
	}
	*to = v
	return nil
}

func (c *conf) path(keys map[string]json.RawMessage, key string, to *string) error {
	p := *to
	if err := take(keys, key, &p); err != nil {
		return err
	}
	if !filepath.IsAbs(p) {
		return fmt.Errorf("%s: expected an absolute path, found %q", key, p)
	}
	*to = p
	return nil
}

func (c *conf) protocol(keys map[string]json.RawMessage) error {
	v := c.Protocol
	if err := take(keys, "localProtocol", &v); err != nil {
		return err
	}
	if v < 1 {
		return fmt.Errorf("localProtocol: expected a version from 1 up, found %d", v)
	}
	c.Protocol = v
	return nil
}

func (c *conf) timeout(keys map[string]json.RawMessage) error {
	ms := c.Timeout.Milliseconds()
	if err := take(keys, "timeoutMS", &ms); err != nil {
		return err
	}
	if lo, hi := minTimeout.Milliseconds(), ipc.MaxTimeout.Milliseconds(); ms < lo || ms > hi {
		return fmt.Errorf("timeoutMS: expected %d to %d, found %d", lo, hi, ms)
	}
	c.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

// mtu is a string in amazon-vpc-cni-k8s's conflist, and a number wherever else CNI has one.
func (c *conf) mtu(keys map[string]json.RawMessage) error {
	var s string
	if take(keys, "mtu", &s) != nil {
		return take(keys, "mtu", &c.MTU)
	}
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("mtu: expected a number of bytes, found %q", s)
	}
	c.MTU = n
	return nil
}

// valid reads one list of valid attachments. Both lists together are what lives.
func (c *conf) valid(keys map[string]json.RawMessage, key string) error {
	var list *[]types.GCAttachment
	if err := take(keys, key, &list); err != nil || list == nil {
		return err
	}
	for i, a := range *list {
		if a.ContainerID == "" || a.IfName == "" {
			return fmt.Errorf("%s[%d]: expected containerID and ifname, found an empty one", key, i)
		}
	}
	c.Valid, c.Validly = append(c.Valid, *list...), true
	return nil
}
