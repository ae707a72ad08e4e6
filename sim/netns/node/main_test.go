//go:build linux

package node_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim/netns/node"
)

// TestMain is also everything that a node runs: the test's binary is the helper, the daemon, the plugin and a laboratory that is killed.
func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch {
	case os.Getenv("CNI_COMMAND") != "":
		plugin()
	case role == "helper":
		exit(node.Main())
	case role == "daemon":
		daemon(os.Args[2:])
	case role == "laboratory":
		exit(laboratory())
	case role == "enter":
		pid, _ := strconv.Atoi(os.Args[2])
		code, err := node.Enter(pid, os.Args[3:])
		if err != nil {
			exit(err)
		}
		unix.Exit(code)
	case role == "host":
		exitOn(becomeHost())
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(m.Run())
	default:
		os.Exit(m.Run())
	}
}

// hostVariable is set on a host that is a node.
const hostVariable = "ENILAB_TEST_HOST"

// becomeHost gives this process's mount namespace what a node has: state of a daemon, another network configuration, a plugin.
func becomeHost() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	for _, dir := range []string{"/run", "/etc/cni", "/opt", "/var/lib"} {
		if _, err := os.Stat(dir); err != nil {
			continue // this host has not even the folder above, and nobody else's may be touched
		}
		if err := unix.Mount("host", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for path, text := range map[string]string{"/run/aws-node/ipam.json": "{}", "/run/aws-node/del/1.json": "{}", "/opt/cni/bin/aws-cni": "no program",
		"/var/lib/aws-node/x": "x", "/var/lib/cni/results/x": "x"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// exit ends the process at once: os.Exit lets the race detector wait for a second.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		unix.Exit(1)
	}
	unix.Exit(0)
}

// daemon says what it was given, and lives until SIGTERM.
func daemon(args []string) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff:") || strings.HasPrefix(line, "CapPrm:") {
			fmt.Print(line)
		}
	}
	fmt.Println("args", args, "CLUSTER_NAME", os.Getenv("CLUSTER_NAME"), "pid", os.Getpid())
	for _, a := range args {
		switch a {
		case "exit=7":
			unix.Exit(7)
		case "child":
			child := exec.Command("/bin/sleep", "1000")
			exitOn(child.Start())
			exitOn(os.WriteFile("/run/aws-node/child", []byte(strconv.Itoa(child.Process.Pid)), 0o600))
		}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGTERM)
	exitOn(os.WriteFile("/run/aws-node/up", nil, 0o600))
	<-c
	exit(nil)
}

func exitOn(err error) {
	if err != nil {
		exit(err)
	}
}

// plugin is a CNI plugin without a daemon: what it does depends on the pod's name.
func plugin() {
	if text, err := os.ReadFile("/run/aws-node/gc"); err == nil && os.Getenv("CNI_COMMAND") == "GC" && string(text) == "wanted" {
		stdin := new(bytes.Buffer)
		_, _ = stdin.ReadFrom(os.Stdin)
		exit(os.WriteFile("/run/aws-node/gc", stdin.Bytes(), 0o600))
	}
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{Add: add, Del: del,
		Check:  func(a *skel.CmdArgs) error { return os.WriteFile("/run/aws-node/check", a.StdinData, 0o600) },
		GC:     func(*skel.CmdArgs) error { return types.NewError(106, "gc is not possible now", "") },
		Status: func(*skel.CmdArgs) error { return types.NewError(50, "the daemon does not answer", "") }},
		version.All, "a test")
	if err != nil {
		_ = err.Print()
		unix.Exit(1)
	}
	exit(nil)
}

// podArgs is CNI_ARGS as upstream reads it: unknown fields are an error unless IgnoreUnknown is set.
type podArgs struct {
	types.CommonArgs
	K8S_POD_NAMESPACE, K8S_POD_NAME, K8S_POD_UID types.UnmarshallableString //nolint:staticcheck // their names are the keys
}

func add(a *skel.CmdArgs) error {
	var pod podArgs
	if err := types.LoadArgs(a.Args, &pod); err != nil {
		return err
	}
	_ = os.WriteFile("/run/aws-node/args-"+string(pod.K8S_POD_NAME), []byte(os.Getenv("CNI_ARGS")+"\n"+a.Netns), 0o600)
	switch pod.K8S_POD_NAME {
	case "hang":
		<-time.After(time.Hour) // a select without cases ends a program without cgo
	case "refused":
		return types.NewError(11, "no address", "14 cool down")
	case "broken":
		fmt.Fprintln(os.Stderr, "panic: at the disco")
		unix.Exit(2)
	}
	addr, err := connect(a)
	if err != nil {
		return err
	}
	var conf types.PluginConf
	if err := json.Unmarshal(a.StdinData, &conf); err != nil {
		return err
	}
	return types.PrintResult(&types100.Result{CNIVersion: types100.ImplementedSpecVersion,
		IPs: []*types100.IPConfig{{Address: net.IPNet{IP: addr, Mask: net.CIDRMask(32, 32)}}}}, conf.CNIVersion)
}

func hostVeth(containerID string) string { return fmt.Sprintf("eni%.8s", containerID) }

// connect does what upstream's plugin does, as far as these tests look.
func connect(a *skel.CmdArgs) (net.IP, error) {
	sum := sha256.Sum256([]byte(a.ContainerID))
	addr := net.IPv4(10, 0, 77, sum[0]).To4()
	ns, err := netns.GetFromPath(a.Netns)
	if err != nil {
		return nil, err
	}
	inside, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil, err
	}
	host := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: hostVeth(a.ContainerID), Flags: net.FlagUp}, PeerName: a.IfName, PeerNamespace: netlink.NsFd(ns)}
	if err := netlink.LinkAdd(host); err != nil {
		return nil, err
	}
	gateway := net.IP(dataplane.Gateway().AsSlice())
	peer, err := inside.LinkByName(a.IfName)
	if err != nil {
		return nil, err
	}
	one := func(ip net.IP) *net.IPNet { return &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)} }
	out, err := netlink.LinkByName(host.Name)
	if err != nil {
		return nil, err
	}
	return addr, errors.Join(
		inside.LinkSetUp(peer),
		inside.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Dst: one(gateway), Scope: unix.RT_SCOPE_LINK}),
		inside.AddrAdd(peer, &netlink.Addr{IPNet: one(addr)}),
		inside.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, Gw: gateway}),
		inside.NeighAdd(&netlink.Neigh{LinkIndex: peer.Attrs().Index, State: netlink.NUD_PERMANENT, IP: gateway, HardwareAddr: out.Attrs().HardwareAddr}),
		netlink.RouteAdd(&netlink.Route{LinkIndex: out.Attrs().Index, Dst: one(addr), Scope: unix.RT_SCOPE_LINK}))
}

func del(a *skel.CmdArgs) error {
	l, err := netlink.LinkByName(hostVeth(a.ContainerID))
	if err != nil {
		return nil
	}
	return netlink.LinkDel(l)
}

// laboratory is a client with nodes, processes and pods that does not live to clean up.
func laboratory() error {
	for k := range 2 {
		n, err := node.Start(spec(fmt.Sprintf("node-%d", k+1)))
		if err != nil {
			return err
		}
		if _, err := n.StartDaemon([]string{"child"}, nil); err != nil {
			return err
		}
		inode, err := n.MakeNetns("cni-1")
		if err != nil {
			return err
		}
		if err := n.Hold(inode); err != nil {
			return err
		}
		if err := n.RunPlugin(1, run("hang", inode)); err != nil {
			return err
		}
		fmt.Println(n.PID())
	}
	fmt.Println("ready")
	<-time.After(time.Hour)
	return nil
}
