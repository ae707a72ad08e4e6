package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/sim/verb"
)

// ReplayDEL sends DELs of the sandbox that had a pod's name before, as a kubelet does that has not heard of their
// success: the plugin is run as the runtime ran it, with an empty CNI_NETNS.
func (r runtimeOf) ReplayDEL(p verb.Pod, after []time.Duration) verb.Strike {
	w, m, id := r.w, r.m, r.id
	newest, ok := r.sandboxOf(p)
	if !ok {
		return verb.Miss("pod %s has no sandbox", p.Name)
	}
	w.mu.Lock()
	old, ok := m.history.Before(p.Name, newest.ID)
	w.mu.Unlock()
	if !ok {
		return verb.Miss("pod %s has had no sandbox before this one", p.Name)
	}
	replay := func(ctx context.Context) error {
		err := m.staleDEL(ctx, p.Name, old)
		if err == nil {
			w.met(id, "a stale DEL of "+p.Name+" arrives")
		}
		return err
	}
	w.c.Cloud(func(time.Duration, *ec2.Cloud) {
		for _, d := range after {
			w.c.After(d, func() { w.aside("a stale DEL of "+p.Name, replay) })
		}
	})
	return verb.Wait("the stale DEL was not run")
}

// staleDELLimit is how long the plugin may take, as with containerd.
const staleDELLimit = 2 * time.Minute

// runPlugin reads the configuration as its first argument.
const runPlugin = `conf=$1; shift; printf %s "$conf" | env "$@" ` + pluginDir + "/" + pluginName + ` 2>&1; echo "exit $?"`

func (m *member) staleDEL(ctx context.Context, pod, containerID string) error {
	w := m.w
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
