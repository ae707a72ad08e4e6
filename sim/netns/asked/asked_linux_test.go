package asked

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	"github.com/enilab/enilab/fakes/imds"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/fakes/kube/apiserver"
	kubeserver "github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/internal/authority"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// TestMain is also what a node executes as its helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "helper" {
		if err := node.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	system   = "amazon-vpc-cni-k8s"
	region   = "us-west-2"
	token    = "laboratory"
	nodeName = "node-1"
	imdsAddr = "169.254.169.254:80"
	ec2Plain = "127.0.0.1:4566"
	ec2TLS   = "127.0.0.2:443" // ec2.REGION.amazonaws.com
	kubeTLS  = "127.0.0.1:443" // kubernetes.default.svc
	dockerAt = "127.0.0.1:2375"
	caFile   = "/etc/enilab/ca.crt"
	kubeFile = "/etc/enilab/kubeconfig"
)

var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// serveIn is how long a daemon may take to serve, and a plugin to answer, on a busy machine.
const serveIn = 40 * time.Second

func TestVersions(t *testing.T) {
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	systems := os.Getenv("ENILAB_SYSTEMS")
	if systems == "" {
		t.Skip("ENILAB_SYSTEMS names no folder with the binaries of others' daemons")
	}
	for _, v := range []version{
		{name: "1.3.2", env: with(with(docker, inside), map[string]string{"AWS_VPC_K8S_CNI_LOG_FILE": node.Output + ".log"})}, // it knows neither stdout nor KUBERNETES_CONFIG
		{name: "1.5.3", env: docker},
		{name: "1.6.4", env: outside},
		{name: "1.7.10", env: outside},
		{name: "1.9.1", env: inside},
		{name: "1.11.4", env: inside},
		{name: "1.12.1", env: inside},
		{name: "1.15.0", env: endpoints},
		{name: "1.18.0", env: endpoints},
		{name: "1.23.0", env: endpoints, socket: "/var/run/aws-node/ipamd.sock"},
	} {
		t.Run(v.name, func(t *testing.T) {
			v.folder = filepath.Join(systems, system, v.name)
			if _, err := os.Stat(filepath.Join(v.folder, "aws-k8s-agent")); err != nil {
				t.Skip(err)
			}
			v.play(t)
		})
	}
}

// version is one release, and how it finds what is outside of its node.
type version struct {
	name, folder string
	env          map[string]string
	socket       string // of its gRPC; empty: TCP
}

// How versions are told where everything is. What a daemon finds by its real name needs no telling.
var (
	common = map[string]string{"MY_NODE_NAME": nodeName, "AWS_REGION": region, "CLUSTER_NAME": "lab", "AWS_VPC_K8S_CNI_LOG_FILE": "stdout",
		"AWS_VPC_K8S_CNI_LOGLEVEL": "DEBUG", "WATCH_NAMESPACE": "kube-system", "WARM_ENI_TARGET": "1", "HOME": "/root"}
	byName    = with(common, map[string]string{"AWS_CA_BUNDLE": caFile, "SSL_CERT_FILE": caFile})
	outside   = with(byName, map[string]string{"KUBERNETES_CONFIG": kubeFile, "KUBECONFIG": kubeFile})
	docker    = with(outside, map[string]string{"DOCKER_HOST": "tcp://" + dockerAt, "DOCKER_API_VERSION": "1.24"})
	inside    = with(byName, map[string]string{"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "ENABLE_IPv4": "true", "ENABLE_IPv6": "false"})
	endpoints = with(common, map[string]string{"KUBECONFIG": kubeFile, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://" + imdsAddr,
		"AWS_EC2_ENDPOINT": "http://" + ec2Plain, "AWS_ENDPOINT_URL_EC2": "http://" + ec2Plain, "ENABLE_IPv4": "true", "ENABLE_IPv6": "false"})
)

func with(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// lab is what is outside of the node: the models in real time.
type lab struct {
	t        *testing.T
	box      *node.Node
	began    time.Time
	mu       sync.Mutex
	cloud    *ec2.Cloud
	inst     ec2.InstanceID
	kube     apiserver.Objects
	kubeNew  chan struct{}
	boxes    []cri.Sandbox
	links    machine.Links
	network  *vpc.Network
	asked    map[string]int // "KIND what status"
	problems []error
}

func (l *lab) now() time.Duration { return time.Since(l.began) }

func (l *lab) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[text]++
}

// Do is EC2: a request travels, and what it attached gets a link.
func (l *lab) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	signer, _ := ec2server.SignerOf(ctx)
	r.Caller, _ = imds.InstanceOf(signer.AccessKey)
	l.mu.Lock()
	there, _ := l.cloud.Travel(r)
	l.mu.Unlock()
	select {
	case <-time.After(there):
	case <-ctx.Done():
		return ec2.Response{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.cloud.Serve(l.now(), r)
	l.advance()
	l.asked[fmt.Sprintf("ec2 %v %s", r.Action, cmp.Or(p.Code, "200"))]++
	return p, nil
}

// metadata is the instance's.
func (l *lab) metadata(context.Context) (ec2.IMDS, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance()
	view, ok := l.cloud.IMDS(l.now(), l.inst)
	view.ENIs = slices.Clone(view.ENIs)
	return view, ok
}

// advance lets EC2 do what is due, and cables and routes follow.
func (l *lab) advance() {
	l.cloud.Advance(l.now())
	for _, e := range l.cloud.Events() {
		err := machine.Follow(l.network, l.cloud, &e)
		if err == nil && e.Kind == ec2.LinkPlugged {
			_, err = l.links.Plug(l.network, l.box.Netns(), e.MAC)
		}
		if err != nil {
			l.problems = append(l.problems, err)
		}
	}
}

func (l *lab) Sandboxes(context.Context) ([]cri.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked["cri sandboxes"]++
	return slices.Clone(l.boxes), nil
}

func (l *lab) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "docker", Version: "20.10.7"}, nil
}

func (l *lab) Look(context.Context) (apiserver.Objects, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kube, nil
}

func (l *lab) ENIConfig(context.Context, string) (c kube.ENIConfig, ok bool, err error) {
	return c, false, nil
}

func (l *lab) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kubeNew
}

// noted tells of every request of a server.
func (l *lab) noted(kind string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w, code: 200}
		h.ServeHTTP(s, r)
		l.note(fmt.Sprintf("%s %s %s %d", kind, r.Method, r.URL.Path, s.code))
	})
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int)        { s.code = code; s.ResponseWriter.WriteHeader(code) }
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// listen serves at an address in the node.
func (l *lab) listen(network, addr string, config *tls.Config, serve func(net.Listener) error) {
	l.t.Helper()
	var ln net.Listener
	var err error
	if e := vpc.Do(l.box.Netns(), func() error { ln, err = net.Listen(network, addr); return nil }); e != nil || err != nil {
		l.t.Fatal(e, err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	l.t.Cleanup(func() { _ = ln.Close() })
	go func() { _ = serve(ln) }()
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, began: time.Now(), asked: map[string]int{}, kubeNew: make(chan struct{}), cloud: ec2.New(ec2.Config{
		VPCs:    []ec2.VPC{{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}},
		Subnets: []ec2.SubnetConfig{{CIDR: netip.MustParsePrefix("10.0.40.0/24")}}}, 7)}
	l.links = machine.Links{}
	l.network = must.Get(vpc.New(vpc.Config{VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.40.0/24")}}))(t)
	t.Cleanup(func() { _ = l.network.Close() })
	l.inst = must.Get(l.cloud.Launch(0, ec2.LaunchSpec{Type: "m5.large"}))(t)
	in, _ := l.cloud.InstanceOf(l.inst)
	l.kube.Nodes = []*corev1.Node{apiserver.NodeOf(nodeName, kubeserver.NodeInfo{UID: "uid-1", MaxPods: 29, Address: in.PrimaryAddress,
		Instance: string(l.inst), Type: in.Type, Zone: in.Zone}, epoch)}
	return l
}

// bind gives the node a pod. It comes once the daemon serves: 1.5 waits for 15 s if a pod has no address when it starts.
func (l *lab) bind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, _ := l.cloud.InstanceOf(l.inst)
	p := kube.Pod{UID: "uid-web-0", Namespace: "default", Name: "web-0", Workload: "web"}
	l.kube.Pods = []*corev1.Pod{apiserver.PodOf(&p, kube.StatefulSet, nodeName, in.PrimaryAddress, epoch)}
	close(l.kubeNew)
	l.kubeNew = make(chan struct{})
}

// placeholder is one of a released conflist.
var placeholder = regexp.MustCompile(`__[A-Z0-9]+__`)

// conflist is the release's, with the values that its image's script puts in, and without the plugins of others.
func (v *version) conflist(t *testing.T) []byte {
	t.Helper()
	values := map[string]string{"__VETHPREFIX__": "eni", "__MTU__": "9001", "__PLUGINLOGFILE__": "/var/log/aws-routed-eni/plugin.log",
		"__PLUGINLOGLEVEL__": "Debug", "__PODSGENFORCINGMODE__": "strict", "__RANDOMIZESNAT__": "prng"}
	raw := must.Get(os.ReadFile(filepath.Join(v.folder, "10-aws.conflist")))(t)
	raw = placeholder.ReplaceAllFunc(raw, func(b []byte) []byte { return []byte(values[string(b)]) })
	var c map[string]any
	must.Do(t, json.Unmarshal(raw, &c))
	c["plugins"] = c["plugins"].([]any)[:1]
	return must.Get(json.Marshal(c))(t)
}

// files writes what the node gets besides, and gives where it is.
func (v *version) files(t *testing.T, a *authority.Authority, conflist []byte) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{}
	put := func(path string, b []byte) {
		name := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		must.Do(t, os.WriteFile(name, b, 0o644))
		out[path] = name
	}
	put(caFile, a.PEM())
	put(kubeFile, must.Get(apiserver.Kubeconfig("https://"+kubeTLS, token, a.PEM()))(t))
	put("/app/10-aws.conflist", conflist)
	out["/app/aws-cni"] = filepath.Join(v.folder, "aws-cni")
	return out
}

func (v *version) play(t *testing.T) {
	l := newLab(t)
	a := must.Get(authority.New(nil))(t)
	conflist := v.conflist(t)
	l.box = must.Get(node.Start(node.Spec{Name: nodeName, Self: []string{"asked.test", "helper"}, Daemon: []string{filepath.Join(v.folder, "aws-k8s-agent")},
		Plugin: filepath.Join(v.folder, "aws-cni"), Conflist: conflist, Files: v.files(t, a, conflist), Log: os.Stderr}))(t)
	t.Cleanup(func() {
		if err := l.box.Close(); err != nil {
			t.Error(err)
		}
	})
	l.connect()
	l.serve(a)
	env := with(v.env, map[string]string{"VPC_CNI_VERSION": "v" + v.name}) // its manifest's; the plugin compares
	must.Get(l.box.StartDaemon(nil, env))(t)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		out, _ := os.ReadFile(l.box.Root() + node.Output)
		log, _ := os.ReadFile(l.box.Root() + node.Output + ".log")
		out = append(out, log...)
		t.Logf("the daemon printed:\n%s", out[max(0, len(out)-6000):])
	})
	v.await(t, l)
	l.bind()
	l.attach()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.problems {
		t.Error(err)
	}
	for _, what := range slices.Sorted(maps.Keys(l.asked)) {
		t.Logf("%4d  %s", l.asked[what], what)
	}
}

// connect makes the node's primary interface, and what it reaches without leaving.
func (l *lab) connect() {
	l.t.Helper()
	view, _ := l.metadata(l.t.Context()) // plugs the primary ENI in
	if len(l.problems) > 0 {
		l.t.Fatal(l.problems)
	}
	h := must.Get(netlink.NewHandleAt(netns.NsHandle(l.box.Netns().Fd())))(l.t)
	defer h.Close()
	lo := must.Get(h.LinkByName("lo"))(l.t)
	if err := h.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(169, 254, 169, 254), Mask: net.CIDRMask(32, 32)}}); err != nil {
		l.t.Fatal(err)
	}
	first := view.Instance.PrimaryAddress
	if err := l.box.ConfigurePrimary("eth0", netip.PrefixFrom(first, 24), netip.PrefixFrom(first, 24).Masked().Addr().Next()); err != nil {
		l.t.Fatal(err)
	}
	hosts := "127.0.0.1 localhost\n127.0.0.2 ec2." + region + ".amazonaws.com sts." + region + ".amazonaws.com\n"
	must.Do(l.t, os.WriteFile(l.box.Root()+"/etc/hosts", []byte(hosts), 0o644))
	if out, code, err := l.box.Exec(l.t.Context(), []string{"/bin/mkdir", "-p", "/host/opt/cni/bin", "/host/etc/cni/net.d", "/host/var/log/aws-routed-eni"}); err != nil || code != 0 {
		l.t.Fatal(err, code, string(out))
	}
}

// serve opens everything that any version asks.
func (l *lab) serve(a *authority.Authority) {
	l.t.Helper()
	api := apiserver.New(l, apiserver.WithToken(token), apiserver.WithTrace(func(r apiserver.Asked) {
		kind := ""
		if strings.Contains(r.Query, "watch=") {
			kind = "watch "
		}
		if strings.Contains(r.Query, "sendInitialEvents=true") {
			kind = "watch-list "
		}
		fields := ""
		for part := range strings.SplitSeq(r.Query, "&") {
			if strings.HasPrefix(part, "fieldSelector=") {
				fields = " " + part
			}
		}
		l.note(fmt.Sprintf("kube %s%s %s%s %d", kind, r.Method, r.Path, fields, r.Code))
	}))
	cloud := ec2server.New(ec2server.Options{Epoch: epoch}, l)
	metadata := imdsserver.Handler(imdsserver.Config{View: l.metadata, Now: l.now, Role: "node", Options: imdsserver.Options{V1: true}})
	l.listen("tcp", imdsAddr, nil, imdsserver.Server(l.noted("imds", metadata)).Serve)
	l.listen("tcp", ec2Plain, nil, ec2server.Server(cloud).Serve)
	l.listen("tcp", ec2TLS, must.Get(a.TLS("ec2."+region+".amazonaws.com", "sts."+region+".amazonaws.com"))(l.t), ec2server.Server(cloud).Serve)
	l.listen("tcp", kubeTLS, must.Get(a.TLS("127.0.0.1", "kubernetes.default.svc"))(l.t), apiserver.Serve(api).Serve)
	l.listen("tcp", dockerAt, nil, criserver.DockerServer(l.noted("docker", criserver.Docker(l))).Serve)
	for name, b := range apiserver.ServiceAccount(token, "kube-system", a.PEM()) {
		folder := l.box.Root() + strings.Replace(apiserver.AccountFolder, "/var/run", "/run", 1)
		must.Do(l.t, os.MkdirAll(folder, 0o755))
		must.Do(l.t, os.WriteFile(filepath.Join(folder, name), b, 0o644))
	}
	runtime := must.Get(net.Listen("unix", l.box.Root()+"/run/dockershim.sock"))(l.t)
	server := criserver.New(l, criserver.WithAlpha(true))
	l.t.Cleanup(server.Stop)
	go func() { _ = server.Serve(runtime) }()
}

// await waits until the daemon takes connections, or has ended.
func (v *version) await(t *testing.T, l *lab) {
	t.Helper()
	end := time.Now().Add(serveIn)
	for time.Now().Before(end) {
		select {
		case e := <-l.box.Events():
			t.Fatalf("the daemon ended: %+v", e)
		case <-time.After(100 * time.Millisecond): // a look is what there is: nobody tells when a foreign daemon serves
		}
		var c net.Conn
		var err error
		if v.socket != "" {
			c, err = net.Dial("unix", l.box.Root()+strings.Replace(v.socket, "/var/run", "/run", 1))
		} else if e := vpc.Do(l.box.Netns(), func() error { c, err = net.Dial("tcp", "127.0.0.1:50051"); return nil }); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			_ = c.Close()
			t.Logf("it serves after %v", time.Since(l.began).Round(100*time.Millisecond))
			return
		}
	}
	t.Fatalf("the daemon does not serve within %v", serveIn)
}

// attach runs ADD and DEL until they succeed, as a runtime does.
func (l *lab) attach() {
	l.t.Helper()
	inode := must.Get(l.box.MakeNetns("cni-1"))(l.t)
	op := uint64(0)
	for _, verb := range []cri.Verb{cri.ADD, cri.DEL} {
		for end := time.Now().Add(serveIn); ; {
			op++
			must.Do(l.t, l.box.RunPlugin(op, node.Run{Verb: verb, ContainerID: strings.Repeat("ab", 32), IfName: "eth0", Netns: inode,
				Namespace: "default", Name: "web-0", UID: "uid-web-0", Timeout: serveIn}))
			e := <-l.box.Events()
			if e.Kind == node.PluginDone && e.Code == 0 {
				l.t.Logf("%v: %v after %v and %d calls", verb, e.Address, e.Took.Round(time.Millisecond), op)
				break
			}
			if e.Kind != node.PluginDone || time.Now().After(end) {
				l.t.Fatalf("%v: %+v", verb, e)
			}
			time.Sleep(time.Second) // kubelet's back-off: what is retried is the condition itself
		}
	}
}
