package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
)

// replay sends DELs of the sandbox that had a pod's name before, as a kubelet does that has not heard of their success: the plugin is run as
// the runtime ran it, with an empty CNI_NETNS.
func (w *World) replay(m *member, p pod, newest *sandbox, a *sim.Act, id int) sim.Strike {
	w.mu.Lock()
	old, ok := m.history.Before(p.name, newest.ID)
	w.mu.Unlock()
	if !ok {
		return sim.Miss("pod %s has had no sandbox before this one", p.name)
	}
	for _, after := range actions.Replays(a) {
		w.aside("a stale DEL of "+p.name, func(ctx context.Context) error {
			w.sleep(after)
			if ctx.Err() != nil {
				return nil
			}
			err := w.staleDEL(ctx, m, p.name, old)
			if err == nil {
				w.met(id, "a stale DEL of "+p.name+" arrives")
			}
			return err
		})
	}
	return sim.Wait("the stale DEL was not run")
}

// staleDELLimit is how long the plugin may take, as with containerd.
const staleDELLimit = 2 * time.Minute

// runPlugin reads the configuration as its first argument.
const runPlugin = `conf=$1; shift; printf %s "$conf" | env "$@" ` + pluginDir + "/" + pluginName + ` 2>&1; echo "exit $?"`

func (w *World) staleDEL(ctx context.Context, m *member, pod, containerID string) error {
	ctx, cancel := context.WithTimeout(ctx, staleDELLimit)
	defer cancel()
	list, err := os.ReadFile(m.node.Root() + "/etc/cni/net.d/" + conflist.Name)
	if err != nil {
		return err
	}
	conf, err := configOf(list)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", m.node.Name, conflist.Name, err)
	}
	out, err := m.node.Exec(ctx, "sh", "-c", runPlugin, "sh", string(conf), "CNI_COMMAND=DEL", "CNI_CONTAINERID="+containerID, "CNI_IFNAME=eth0", "CNI_NETNS=",
		"CNI_PATH="+pluginDir, "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE="+namespaceOfPods+";K8S_POD_NAME="+pod+";K8S_POD_INFRA_CONTAINER_ID="+containerID)
	if err != nil {
		return err
	}
	w.log("%s: a stale DEL of %s (%.8s): %s", m.name(), pod, containerID, strings.ReplaceAll(out, "\n", " "))
	return nil
}

// configOf is what the runtime passes to the plugin of a conflist.
func configOf(raw []byte) ([]byte, error) {
	var list struct {
		Name        string
		CNIVersion  string
		CNIVersions []string
		Plugins     []map[string]any
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	version := list.CNIVersion
	if len(list.CNIVersions) > 0 {
		version = list.CNIVersions[len(list.CNIVersions)-1] // the highest, as libcni takes it
	}
	for _, p := range list.Plugins {
		if p["type"] == pluginName {
			p["name"], p["cniVersion"] = list.Name, version
			return json.Marshal(p)
		}
	}
	return nil, fmt.Errorf("it has no plugin of type %s", pluginName)
}
