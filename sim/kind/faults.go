package kind

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// Where the plugin is that can be made to fail: before the real one in the runtime's list, under its name.
const (
	faultyDir        = "/opt/enilab/faulty"
	pluginDir        = "/opt/cni/bin"
	pluginName       = "aws-cni"
	containerdConfig = "/etc/containerd/config.toml"
)

// pluginDirs is appended to containerd's configuration, which is of version 2 in kind's node images.
const pluginDirs = `
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dirs = ["` + faultyDir + `", "` + pluginDir + `"]
`

// Files in faultyDir.
const (
	failsFile    = "/fails"    // how many DELs fail, and after how many nanoseconds
	protocolFile = "/protocol" // the version of the local protocol that our plugin speaks
	spokenFile   = "/spoken"   // and which the one spoke that was run last
)

//go:embed faulty.sh
var faulty string

// faultyPlugin is the plugin that stands before another one.
func faultyPlugin(plugin string) []byte { return []byte(strings.Replace(faulty, "PLUGIN", plugin, 1)) }

// installFaulty puts a plugin before ours on a machine. Without a fault it does nothing but run ours.
func installFaulty(ctx context.Context, n *cluster.Node) error {
	config := n.Root() + containerdConfig
	text, err := os.ReadFile(config)
	if err != nil {
		return fmt.Errorf("%s: read containerd's configuration: %w", n.Name, err)
	}
	if strings.Contains(string(text), ".cni]") {
		return fmt.Errorf("%s: %s has a section for CNI: expected none, to add bin_dirs", n.Name, containerdConfig)
	}
	dir := n.Root() + faultyDir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pluginName), faultyPlugin(pluginDir+"/"+pluginName), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(config, append(text, pluginDirs...), 0o644); err != nil {
		return err
	}
	if _, err := n.Exec(ctx, "systemctl", "restart", "containerd"); err != nil {
		return fmt.Errorf("%s: restart containerd: %w", n.Name, err)
	}
	return nil
}

// failDELs makes a machine's next DELs fail before they reach the plugin, each after a while; 0 times ends it.
func failDELs(n *cluster.Node, times int, after time.Duration) error {
	file := n.Root() + faultyDir + failsFile
	if times <= 0 {
		return os.RemoveAll(file)
	}
	if err := os.WriteFile(file+".fresh", fmt.Appendf(nil, "%d %d\n", times, after), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".fresh", file)
}

// faultsFile is a file of a machine's faults; nil when there is none.
func (m *member) faultsFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(m.node.Root() + faultyDir + name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// failed says whether a DEL has used one of them up since they were written.
func (m *member) failed() bool {
	raw, err := m.faultsFile(failsFile)
	return err == nil && !bytes.Equal(raw, m.faults)
}

// speak has a machine's plugin speak a version of the local protocol: the one of an image of that version would.
func (m *member) speak(version int) error {
	m.plugin = version
	file := m.node.Root() + faultyDir + protocolFile
	if err := os.WriteFile(file+".fresh", fmt.Appendln(nil, version), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".fresh", file)
}

// spoken is what the plugin that was run last spoke; 0: none has been run.
func (m *member) spoken() (version int, err error) {
	raw, err := m.faultsFile(spokenFile)
	if raw == nil || err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(raw), &version)
	return version, err
}
