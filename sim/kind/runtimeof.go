package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/verb"
)

// runtimeOf is a node's kubelet and container runtime, for one action.
type runtimeOf struct{ *deed }

var _ verb.Runtime = runtimeOf{}

func (r runtimeOf) Socket(cri string) verb.Strike {
	r.check(r.m.end.set(models.ParseSocket(cri)))
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.m.socketBy = r.id
	return verb.Wait("the daemon did not ask for the runtime's list")
}

func (r runtimeOf) RestartKubelet() verb.Strike { return r.restart("kubelet") }
func (r runtimeOf) RestartRuntime() verb.Strike { return r.restart("containerd") }

// restart restarts a service of the machine's, which systemd tells of.
func (r runtimeOf) restart(unit string) verb.Strike {
	w, m, id := r.w, r.m, r.id
	w.aside(m.name()+": systemctl restart "+unit, func(ctx context.Context) error {
		_, err := m.node.Exec(ctx, "systemctl", "restart", unit)
		if err == nil {
			w.met(id, unit+" has started again")
		}
		return err
	})
	return verb.Wait("it did not come up again")
}

func (r runtimeOf) FailDELs(times int, after time.Duration) verb.Strike {
	err := failDELs(r.m.node, times, after)
	if err == nil {
		r.m.delsBy = r.id
		r.m.faults, err = r.m.faultsFile(failsFile)
	}
	r.check(err)
	return verb.Wait("no DEL was run")
}

func (runtimeOf) GC(string) verb.Strike     { return cannot() }
func (runtimeOf) Hide(verb.Pod) verb.Strike { return cannot() }

// Hang stops a sandbox's shim: as with a process in D state, nothing in it can be stopped, and it goes on living.
func (r runtimeOf) Hang(p verb.Pod) verb.Strike {
	s, ok := r.sandboxOf(p)
	if !ok {
		return verb.Miss("pod %s has no sandbox", p.Name)
	}
	pid, ok := shimOf(r.m.node, s.ID)
	if !ok {
		return verb.Miss("pod %s has no shim", s.Pod)
	}
	r.m.hung[s.UID] = pid
	_, err := r.m.node.Exec(r.w.ctx, "kill", "-STOP", strconv.Itoa(pid))
	r.check(err)
	return verb.Hit("its shim is stopped")
}

// Unhang needs no sandbox: the runtime may have forgotten what hung.
func (r runtimeOf) Unhang(p verb.Pod) verb.Strike {
	if r.m == nil || r.m.hung[p.UID] == 0 {
		return verb.Miss("nothing of the pod hangs")
	}
	r.m.goOn(p.UID)
	return verb.Hit("its shim goes on")
}

// goOn lets a pod's shim go on.
func (m *member) goOn(uid string) {
	pid := m.hung[uid]
	delete(m.hung, uid)
	if _, err := m.node.Exec(m.w.ctx, "kill", "-CONT", strconv.Itoa(pid)); err != nil && m.node.Alive() {
		m.w.log("%s: continue shim %d: %v", m.name(), pid, err) // it has ended, with its machine for one
	}
}

// sandboxOf is a pod's newest sandbox; false: it has none, or is on no node.
func (d *deed) sandboxOf(p verb.Pod) (s sandbox, ok bool) {
	if d.m == nil {
		return s, false
	}
	d.check(d.w.persist("the runtime", func(ctx context.Context) error {
		list, err := d.m.runtime.sandboxes(ctx)
		for _, t := range list {
			if t.UID == p.UID {
				s, ok = t, true
			}
		}
		return err
	}))
	return s, ok
}

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
