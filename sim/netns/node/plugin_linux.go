package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/enilab/enilab/fakes/cri"
)

const (
	pluginName   = "aws-cni"
	pluginDir    = "/opt/cni/bin"
	conflistName = "10-aws.conflist"
	// noCode is the CNI error code of an error that has none: a plugin that was killed, or libcni's own.
	noCode = int(types.ErrInternal)
)

// run is one run of the plugin that has not ended.
type run struct {
	op     uint64
	run    Run
	netns  string // CNI_NETNS
	ctx    context.Context
	cancel context.CancelCauseFunc // kills the process; the cause says why
	done   chan struct{}           // closed once its event has been sent
}

func (h *helper) runPlugin(a runArgs) (result struct{}, after func(), err error) {
	if a.Run.Verb < cri.ADD || a.Run.Verb > cri.CHECK {
		return result, nil, fmt.Errorf("op %d: verb %d is none of ADD, DEL and CHECK", a.Op, a.Run.Verb)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs[a.Op] != nil {
		return result, nil, fmt.Errorf("op %d is still under way", a.Op)
	}
	r := &run{op: a.Op, run: a.Run, done: make(chan struct{})}
	if a.Run.Netns != 0 {
		p, err := h.pod(a.Run.Netns)
		if err != nil {
			return result, nil, fmt.Errorf("op %d: %w", a.Op, err)
		}
		r.netns = "/var" + netnsDir + p.name // as containerd says it
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	h.runs[a.Op] = r
	return result, func() { h.carryOut(r) }, nil
}

// carryOut runs the plugin to its end and tells of it.
func (h *helper) carryOut(r *run) {
	if d := r.run.Timeout; d > 0 {
		t := time.AfterFunc(d, func() { r.cancel(fmt.Errorf("deadline of %v", d)) })
		defer t.Stop()
	}
	e := Event{Kind: PluginDone, Op: r.op}
	p := &process{children: &h.children}
	began := time.Now()
	addr, err := r.invoke(libcni.NewCNIConfigWithCacheDir([]string{pluginDir}, CacheDir, p))
	e.Took, e.Exit = time.Since(began), p.exit
	e.Code, e.Text = verdict(err)
	if err == nil {
		e.Address = addr
	}
	r.cancel(nil)
	h.mu.Lock()
	delete(h.runs, r.op)
	h.mu.Unlock()
	h.event(e)
	close(r.done)
}

// invoke is one call of libcni, as go-cni makes it for containerd.
func (r *run) invoke(c *libcni.CNIConfig) (netip.Addr, error) {
	list, err := loadNetwork()
	if err != nil {
		return netip.Addr{}, err
	}
	rt := &libcni.RuntimeConf{ContainerID: r.run.ContainerID, NetNS: r.netns, IfName: r.run.IfName, Args: r.args()}
	switch r.run.Verb {
	case cri.DEL:
		return netip.Addr{}, c.DelNetworkList(r.ctx, list, rt)
	case cri.CHECK:
		return netip.Addr{}, c.CheckNetworkList(r.ctx, list, rt)
	}
	result, err := c.AddNetworkList(r.ctx, list, rt)
	if err != nil {
		return netip.Addr{}, err
	}
	return addressOf(result)
}

// args is CNI_ARGS. containerd makes it from a Go map, so no order of the pairs may be relied on: here it differs from run to run.
func (r *run) args() [][2]string {
	pairs := [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", r.run.Namespace}, {"K8S_POD_NAME", r.run.Name},
		{"K8S_POD_INFRA_CONTAINER_ID", r.run.ContainerID}}
	if r.run.UID != "" {
		pairs = append(pairs, [2]string{"K8S_POD_UID", r.run.UID})
	}
	k := int(r.op % uint64(len(pairs)))
	return append(pairs[k:len(pairs):len(pairs)], pairs[:k]...)
}

// loadNetwork reads the first configuration there is, as containerd does with max_conf_num 1.
func loadNetwork() (*libcni.NetworkConfigList, error) {
	files, err := libcni.ConfFiles(ConfDir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cni plugin not initialized: no network configuration in %s", ConfDir)
	}
	return libcni.NetworkConfFromFile(files[0]) // ConfFiles sorts by name
}

// addressOf is the first IPv4 address of a result.
func addressOf(r types.Result) (netip.Addr, error) {
	result, err := types100.NewResultFromResult(r)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the plugin's result: %w", err)
	}
	for _, ip := range result.IPs {
		if a, ok := netip.AddrFromSlice(ip.Address.IP.To4()); ok {
			return a, nil
		}
	}
	return netip.Addr{}, errors.New("the plugin's result has no IPv4 address")
}

// verdict is the CNI error code and the text of an error, 0 and "" of none.
func verdict(err error) (int, string) {
	if err == nil {
		return 0, ""
	}
	if e, ok := errors.AsType[*types.Error](err); ok && e.Code != 0 {
		return int(e.Code), e.Error()
	}
	return noCode, err.Error()
}

func (h *helper) killPlugin(op uint64) error {
	h.mu.Lock()
	r := h.runs[op]
	h.mu.Unlock()
	if r != nil {
		r.cancel(errors.New("by the runtime"))
		<-r.done // libcni writes its cache after a plugin's last breath, and must not do so after the DEL that follows
	}
	return nil
}

func (h *helper) gc(a gcArgs) (ended, error) {
	inject := map[string]any{}
	if !a.Absent {
		valid := make([]types.GCAttachment, 0, len(a.Valid))
		for _, v := range a.Valid {
			valid = append(valid, types.GCAttachment{ContainerID: v.ContainerID, IfName: v.IfName})
		}
		inject["cni.dev/valid-attachments"] = valid
		inject["cni.dev/attachments"] = valid // its name in libcni 1.2.0, which every libcni still sends
	}
	return h.runDirect("GC", inject)
}

func (h *helper) status(none) (ended, error) { return h.runDirect("STATUS", nil) }

// runDirect runs one verb of the binary that libcni would run, with its part of the configuration.
func (h *helper) runDirect(verb string, inject map[string]any) (ended, error) {
	list, err := loadNetwork()
	if err != nil {
		return ended{}, err
	}
	stdin, err := configOf(list, inject)
	if err != nil {
		return ended{}, err
	}
	path, err := invoke.FindInPath(pluginName, []string{pluginDir})
	if err != nil {
		return ended{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), slowed(directTimeout, h.spec.Slowness))
	defer cancel()
	p := &process{children: &h.children}
	_, err = p.ExecPlugin(ctx, path, stdin, []string{searchPath, "CNI_COMMAND=" + verb, "CNI_PATH=" + pluginDir})
	code, text := verdict(err)
	return ended{code, text}, nil
}

func configOf(list *libcni.NetworkConfigList, inject map[string]any) ([]byte, error) {
	for _, p := range list.Plugins {
		if p.Network.Type != pluginName {
			continue
		}
		all := map[string]any{"name": list.Name, "cniVersion": list.CNIVersion}
		maps.Copy(all, inject)
		c, err := libcni.InjectConf(p, all)
		if err != nil {
			return nil, err
		}
		return c.Bytes, nil
	}
	return nil, fmt.Errorf("network %s has no plugin of type %s", list.Name, pluginName)
}

// process runs plugins for libcni and remembers how the last one ended.
type process struct {
	version.PluginDecoder
	children *children
	exit     string
}

var _ invoke.Exec = (*process)(nil)

// FindInPath is part of invoke.Exec.
func (*process) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// ExecPlugin is part of invoke.Exec. A context that ends kills the process, but nothing that it asked others for.
func (p *process) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	var stdout, stderr limited
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", environ, bytes.NewReader(stdin), &stdout, &stderr, waitDelay
	if err := p.children.start(cmd); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("not run: %w", cause)
		}
		return nil, err
	}
	err := p.children.wait(cmd)
	p.exit = cmd.ProcessState.String()
	if cause := context.Cause(ctx); cause != nil && !cmd.ProcessState.Exited() {
		p.exit += " (" + cause.Error() + ")"
	}
	if err != nil {
		return nil, pluginError(p.exit, stdout.data, stderr.data)
	}
	return stdout.data, nil
}

// pluginError is what the plugin printed, if that is the specification's error object.
func pluginError(exit string, stdout, stderr []byte) error {
	var e types.Error
	if err := json.Unmarshal(stdout, &e); err == nil && e.Code != 0 {
		return &e
	}
	said := strings.TrimSpace(string(stdout) + "\n" + string(stderr))
	if len(said) > 1000 {
		said = said[:1000] + "…"
	}
	return fmt.Errorf("the plugin ended with %s, without an error object; it printed %q", exit, said)
}
