package netns_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// machineVariable is set in a machine.
const machineVariable = "ENILAB_TEST_MACHINE"

// machine is PID 1 of a machine of its own, with nothing on it but what a test does: so that everything which is there afterwards is the
// test's, whatever else this computer runs. The arguments are a command, with which it ends; whoever loses his parent is reaped.
func machine(argv []string) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"}} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case pid == child.Pid && status.ExitStatus() != 0:
			os.Exit(max(1, status.ExitStatus()))
		case pid == child.Pid:
			return nil
		}
	}
}

// inventory is what there is, one thing a line, sorted.
type inventory []string

// network is what the calling process's network namespace has, and what is mounted: what a laboratory must not touch.
func network(t *testing.T) inventory {
	t.Helper()
	var out inventory
	links := must.Get(netlink.LinkList())(t)
	for _, l := range links {
		a := l.Attrs()
		addrs := must.Get(netlink.AddrList(l, netlink.FAMILY_ALL))(t)
		out = append(out, fmt.Sprintf("link %s, %s, %v, %v", a.Name, l.Type(), a.Flags, a.HardwareAddr))
		for _, x := range addrs {
			out = append(out, fmt.Sprintf("address %v of %s", x.IPNet, a.Name))
		}
	}
	rules := must.Get(netlink.RuleList(netlink.FAMILY_ALL))(t)
	for _, r := range rules {
		out = append(out, "rule "+r.String())
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	must.Do(t, err)
	for _, r := range routes {
		out = append(out, "route "+r.String())
	}
	c := must.Get(nftables.New())(t)
	tables := must.Get(c.ListTables())(t)
	for _, x := range tables {
		out = append(out, fmt.Sprintf("nftables %d %s", x.Family, x.Name))
	}
	mounts := must.Get(os.ReadFile("/proc/self/mountinfo"))(t)
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		out = append(out, "mount "+f[4]+" "+f[3])
	}
	slices.Sort(out)
	return out
}

// everything is all that a machine has: the network, processes, namespaces, files, settings, and what this process itself holds.
func everything(t *testing.T) inventory {
	t.Helper()
	out := network(t)
	out = append(out, processes()...)
	for _, dir := range []string{os.TempDir(), "/run", "/dev/shm"} {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				out = append(out, "file "+path)
			}
			return nil
		})
	}
	_ = filepath.WalkDir("/proc/sys/net/ipv4", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			value, _ := os.ReadFile(path)
			out = append(out, "setting "+path+" "+strings.TrimSpace(string(value)))
		}
		return nil
	})
	for i := range runtime.NumGoroutine() {
		out = append(out, fmt.Sprintf("goroutine %d", i+1))
	}
	slices.Sort(out)
	return out
}

// processes are those that this process sees, and every namespace that one of their threads is in or that one of their descriptors keeps.
func processes() inventory {
	var out inventory
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue // it has just ended
		}
		out = append(out, "process "+strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " "))
		spaces, _ := filepath.Glob(dir + "/task/*/ns/*")
		for _, link := range spaces {
			if to, err := os.Readlink(link); err == nil {
				out = append(out, "namespace "+to)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range files {
		if to, err := os.Readlink(link); err == nil && !strings.HasPrefix(to, "/proc/") { // whatever reads this
			kind, _, _ := strings.Cut(to, ":[")
			out = append(out, "descriptor "+kind)
		}
	}
	return out
}

// differences are what only one of two inventories has.
func differences(before, after inventory) string {
	var b strings.Builder
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case j == len(after) || i < len(before) && before[i] < after[j]:
			if !strings.HasPrefix(before[i], "goroutine ") { // one of what was before may have been about to end
				fmt.Fprintf(&b, "- %s\n", before[i])
			}
			i++
		case i == len(before) || after[j] < before[i]:
			fmt.Fprintf(&b, "+ %s\n", after[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return b.String()
}

// teardown is how long the kernel may take for what it ends on workers of its own, such as network namespaces.
const teardown = 10 * time.Second

// awaitSame waits until what there is, is what there was.
func awaitSame(t *testing.T, before inventory, look func(*testing.T) inventory) {
	t.Helper()
	for deadline := time.Now().Add(teardown); ; time.Sleep(10 * time.Millisecond) {
		d := differences(before, look(t))
		if d == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v later it is not what it was; only before (-), only now (+):\n%s", teardown, d)
		}
	}
}
