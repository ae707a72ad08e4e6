package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/fakes/kube"
	kubeserver "github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/wait"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// machine is one node with everything that its daemon talks to.
type machine struct {
	*account
	box     *node.Node
	env     map[string]string
	plugins map[string]contender
	links   int
	running bool          // the daemon
	ended   chan struct{} // its process has
	shut    []func()

	pods      sync.Mutex
	sandboxes []cri.Sandbox // what the runtime lists
	namespace map[string]uint64
	maxPods   int
}

const (
	nodeName  = "node-1"
	ec2Addr   = "127.0.0.1:4566"
	imdsAddr  = "127.0.0.1:1338"
	kubeAddr  = "127.0.0.1:6443"
	criSocket = "/run/containerd/containerd.sock"
	benchPath = "/opt/enilab/bench"
	ipamdPath = "/opt/enilab/ipamd"
	jobPath   = "/tmp/job.json"

	ours  = "aws-cni"
	other = "ptp"
)

// newMachine is a node of an instance type whose daemon has not been started. Settings are added to the environment of the daemon.
func newMachine(b *binaries, kind string, maxPods int, latency bool, settings map[string]string) (m *machine, err error) {
	m = &machine{namespace: map[string]uint64{}, maxPods: maxPods}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	f, err := vpc.New(vpc.Config{VPC: []netip.Prefix{vpcCIDR}, Subnets: []netip.Prefix{subnet}})
	if err != nil {
		return nil, err
	}
	m.shut = append(m.shut, func() { _ = f.Close() })
	if m.account, err = newAccount(kind, latency, f); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	list := conflist.Make(conflist.Options{PluginLogFile: "/var/log/aws-routed-eni/plugin.log"})
	m.box, err = node.Start(node.Spec{Name: nodeName, Self: []string{self, helperRole}, Daemon: []string{b.Ipamd}, Plugin: b.Plugin,
		Capabilities: netns.DaemonCapabilities(), Conflist: list, Log: os.Stderr,
		Files: map[string]string{benchPath: self, ipamdPath: b.Ipamd, cniPath + "/ptp": b.PTP, cniPath + "/host-local": b.HostLocal}})
	if err != nil {
		return nil, err
	}
	m.shut = append(m.shut, func() { _ = m.box.Close() })
	m.ended = make(chan struct{}, 1)
	go func() {
		for e := range m.box.Events() {
			if e.Kind == node.DaemonExited {
				m.ended <- struct{}{}
			}
		}
	}()
	if m.plugins, err = contenders(list); err != nil {
		return nil, err
	}
	m.plug = func(mac string) error {
		m.links++
		return f.Plug(m.box.Netns(), fmt.Sprintf("eth%d", m.links-1), mac, 9001)
	}
	m.do(func(time.Duration) {})
	in, _ := m.model.InstanceOf(m.inst)
	if err := m.box.ConfigurePrimary("eth0", netip.PrefixFrom(in.PrimaryAddress, subnet.Bits()), subnet.Masked().Addr().Next()); err != nil {
		return nil, err
	}
	if err := m.serve(); err != nil {
		return nil, err
	}
	m.env = map[string]string{"CLUSTER_NAME": "bench", "MY_NODE_NAME": nodeName, "MY_POD_NAME": "aws-node-1", "MY_POD_NAMESPACE": "kube-system",
		"AWS_REGION": "us-west-2", "AWS_ENDPOINT_URL_EC2": "http://" + ec2Addr, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://" + imdsAddr,
		"CLUSTER_ENDPOINT": "http://" + kubeAddr, "ENILAB_RUNTIME_SOCKET": criSocket, "AWS_VPC_K8S_CNI_LOG_FILE": logPath,
		"HOST_CNI_BIN_PATH": "none", "HOST_CNI_CONFDIR_PATH": "none"}
	for k, v := range settings {
		m.env[k] = v
	}
	m.list(nil)
	return m, m.init()
}

const logPath = "/var/log/aws-routed-eni/ipamd.log"

// contenders are the plugins with what a runtime writes to their standard input.
func contenders(conflist []byte) (map[string]contender, error) {
	var list struct {
		Name    string
		Plugins []map[string]any
	}
	if err := json.Unmarshal(conflist, &list); err != nil {
		return nil, err
	}
	conf := list.Plugins[0]
	conf["name"], conf["cniVersion"] = list.Name, "1.0.0"
	mine, err := json.Marshal(conf)
	if err != nil {
		return nil, err
	}
	theirs := `{"cniVersion":"1.0.0","name":"ptp","type":"ptp","mtu":9001,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.99.0.0/16"}]],"routes":[{"dst":"0.0.0.0/0"}]}}`
	return map[string]contender{ours: {cniPath + "/" + ours, mine}, other: {cniPath + "/" + other, json.RawMessage(theirs)}}, nil
}

// serve opens what the daemon talks to, inside of the node.
func (m *machine) serve() error {
	for addr, s := range map[string]*http.Server{
		imdsAddr: imdsserver.Server(imdsserver.Handler(imdsserver.Config{View: m.metadata, Now: m.now, Role: "node"})),
		ec2Addr:  ec2server.Server(ec2server.Handler(m.account)),
		kubeAddr: kubeserver.Server(kubeserver.Handler(apiServer{m})),
	} {
		var l net.Listener
		var err error
		if e := vpc.Do(m.box.Netns(), func() error { l, err = net.Listen("tcp", addr); return nil }); e != nil || err != nil {
			return fmt.Errorf("listen on %s: %w", addr, errors.Join(e, err))
		}
		m.shut = append(m.shut, func() { _ = s.Close() })
		go func() { _ = s.Serve(l) }()
	}
	l, err := net.Listen("unix", m.box.Root()+criSocket)
	if err != nil {
		return err
	}
	s := criserver.New(containerd{m})
	m.shut = append(m.shut, s.Stop)
	go func() { _ = s.Serve(l) }()
	return nil
}

// init is what the daemon's init container does.
func (m *machine) init() error {
	argv := []string{"env"}
	for k, v := range m.env {
		argv = append(argv, k+"="+v)
	}
	out, code, err := m.box.Exec(context.Background(), append(argv, ipamdPath, "init"))
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, out)
	}
	if err != nil {
		return fmt.Errorf("ipamd init: %w", err)
	}
	return nil
}

func (m *machine) close() {
	for i := len(m.shut) - 1; i >= 0; i-- {
		m.shut[i]()
	}
}

// apiServer knows the node and no pods but those that the runtime has.
type apiServer struct{ *machine }

func (s apiServer) Pods(context.Context, string) (pods []kube.Pod, err error) {
	s.pods.Lock()
	defer s.pods.Unlock()
	for _, b := range s.sandboxes {
		pods = append(pods, kube.Pod{UID: b.UID, Namespace: b.Namespace, Name: b.Name, Node: 1, Phase: kube.Running, HostNetwork: b.HostNetwork, Address: b.IP})
	}
	return pods, nil
}

func (s apiServer) Node(_ context.Context, name string) (kubeserver.NodeInfo, bool, error) {
	return kubeserver.NodeInfo{UID: name, MaxPods: s.maxPods, Instance: string(s.inst)}, name == nodeName, nil
}

func (s apiServer) ENIConfig(context.Context, string) (c kube.ENIConfig, ok bool, err error) {
	return c, false, nil
}

func (s apiServer) Changed() <-chan struct{} { return nil }

// containerd lists the sandboxes.
type containerd struct{ *machine }

func (c containerd) Sandboxes(context.Context) ([]cri.Sandbox, error) {
	c.pods.Lock()
	defer c.pods.Unlock()
	return append([]cri.Sandbox(nil), c.sandboxes...), nil
}

func (containerd) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "2"}, nil
}

// list lets the runtime know these pods' sandboxes, and the daemon's own.
func (m *machine) list(pods []run) {
	m.pods.Lock()
	defer m.pods.Unlock()
	m.sandboxes = []cri.Sandbox{{ID: containerID("aws-node-1"), Namespace: "kube-system", Name: "aws-node-1", UID: "uid-aws-node-1", Ready: true, HostNetwork: true}}
	for _, p := range pods {
		m.sandboxes = append(m.sandboxes, cri.Sandbox{ID: p.ID, Namespace: "default", Name: p.Name, UID: "uid-" + p.Name, Ready: true})
	}
}

// netns is the path of a pod's namespace, which is made when it is named first.
func (m *machine) netns(name string) (string, error) {
	if m.namespace[name] == 0 {
		inode, err := m.box.MakeNetns(name)
		if err != nil {
			return "", err
		}
		m.namespace[name] = inode
	}
	return "/var/run/netns/" + name, nil
}

// drive runs plugins in the node.
func (m *machine) drive(ctx context.Context, batches []batch, pause time.Duration) ([]outcome, error) {
	data, err := json.Marshal(job{m.plugins, batches, pause})
	if err == nil {
		err = m.box.WriteFile(jobPath, data)
	}
	if err != nil {
		return nil, err
	}
	out, code, err := m.box.Exec(ctx, []string{benchPath, driverRole, jobPath})
	var outcomes []outcome
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, out)
	}
	if err == nil {
		err = json.Unmarshal(out, &outcomes)
	}
	if err == nil {
		err = m.err()
	}
	if err != nil {
		return nil, fmt.Errorf("run plugins in the node: %w", err)
	}
	return outcomes, nil
}

// started is how long a daemon took until it had answered a DEL, and until it took pods.
type started struct{ answers, serves time.Duration }

// start starts the daemon. Its first caller is a DEL of a sandbox of which nobody has heard: what needs no word of EC2's waits for none.
func (m *machine) start(ctx context.Context) (t started, err error) {
	began := time.Now()
	if _, err := m.box.StartDaemon(nil, m.env); err != nil {
		return t, err
	}
	m.running = true
	for _, until := range []struct {
		took *time.Duration
		why  func() error
	}{{&t.answers, m.dels}, {&t.serves, m.status}} {
		for why := until.why(); why != nil; why = until.why() {
			if err := wait.For(ctx, 500*time.Microsecond); err != nil {
				return t, err
			}
			if time.Since(began) > startPatience {
				return t, fmt.Errorf("ipamd does not serve after %v: %w\n%s", startPatience, why, m.log())
			}
		}
		*until.took = time.Since(began)
	}
	return t, nil
}

const startPatience = time.Minute

// dels is why the daemon does not answer a DEL.
func (m *machine) dels() error {
	r, err := m.call(&ipc.Request{Version: 2, Verb: ipc.Del, Network: conflist.Network, ContainerID: strings.Repeat("0", 64), IfName: "eth0"})
	if err == nil && r.Code != 0 {
		err = errors.New(r.Text)
	}
	return err
}

func (m *machine) call(q *ipc.Request) (*ipc.Response, error) {
	c, err := ipc.Dial(m.box.Root()+ipc.Socket, time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(q, time.Second)
}

// status is why the daemon does not serve. A daemon that starts again is ready long before that, so as not to have the node tainted.
func (m *machine) status() error {
	r, err := m.call(&ipc.Request{Version: 2, Verb: ipc.Status, Network: conflist.Network})
	switch {
	case err != nil:
		return err
	case !r.Ready || len(r.Reasons) > 0:
		return fmt.Errorf("ready %v: %s%s", r.Ready, r.Text, strings.Join(r.Reasons, "; "))
	}
	return nil
}

// stop ends the daemon, by SIGKILL so that it has to find everything by itself.
func (m *machine) stop() error {
	if err := m.box.SignalDaemon(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-m.ended:
		m.running = false
		return nil
	case <-time.After(startPatience):
		return fmt.Errorf("ipamd lives %v after SIGKILL", startPatience)
	}
}

// forget removes what the daemon has written.
func (m *machine) forget() error {
	_, _, err := m.box.Exec(context.Background(), []string{"sh", "-c", "rm -rf " + node.RunDir + "/* " + node.StateDir + "/*"})
	return err
}

// daemon is the folder of the daemon's process in the node's /proc.
func (m *machine) daemon() (string, error) {
	all, err := filepath.Glob(m.box.Root() + "/proc/[0-9]*/comm")
	if err != nil {
		return "", err
	}
	for _, path := range all {
		if comm, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(comm)) == "ipamd" {
			return filepath.Dir(path), nil
		}
	}
	return "", errors.New("no process of the node is ipamd")
}

// memory is the daemon's VmRSS and RssAnon in KiB (proc_pid_status(5)).
func (m *machine) memory() (rss, anon int, err error) {
	dir, err := m.daemon()
	if err != nil {
		return 0, 0, err
	}
	data, err := os.ReadFile(dir + "/status")
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			rss = n
		case "RssAnon":
			anon = n
		}
	}
	return rss, anon, err
}

// log is what the daemon wrote.
func (m *machine) log() string {
	f, err := os.Open(m.box.Root() + logPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 64<<10))
	return string(data)
}
