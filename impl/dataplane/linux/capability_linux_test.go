package linux

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// stageKey tells the test which part it plays: the process that prepares a namespace and gives up its
// capabilities, or what it becomes.
const stageKey = "ENILAB_CAPABILITY_STAGE"

// exactly is CAP_NET_ADMIN and CAP_NET_RAW as /proc/self/status has them.
const exactly = "0000000000003000"

// TestExactCapabilities: plans are applied and observed by a process that has the daemon's capabilities and no other,
// in no set.
func TestExactCapabilities(t *testing.T) {
	needsKernel(t)
	switch stage := os.Getenv(stageKey); stage {
	case "":
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestExactCapabilities$", "-test.v")
		cmd.Env = append(os.Environ(), stageKey+"=prepare")
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "everything was applied") {
			t.Fatalf("%v\n%s", err, out)
		}
	case "prepare":
		prepareCapabilities(t)
	default:
		withExactly(t, stage)
	}
}

// prepareCapabilities makes the pod's namespace and becomes a process that can never have more than
// exactly: root gains by an exec what the bounding set lets it.
func prepareCapabilities(t *testing.T) {
	pod, router := newSpace(t), newSpace(t)
	plug(t, router, "eth0", primaryMAC, "r0")
	p := pod.pod(t)
	var fds []any
	for _, f := range []*os.File{p.netns, p.rtnetlink, router.netns} { // the router's is to live: its end of the cable is ours
		fd := must.Get(unix.FcntlInt(f.Fd(), unix.F_DUPFD, 0))(t)
		fds = append(fds, fd)
	}
	runtime.LockOSThread() // capabilities are a thread's, and exec takes the calling one's
	for c := 0; c <= unix.CAP_LAST_CAP; c++ {
		if c != unix.CAP_NET_ADMIN && c != unix.CAP_NET_RAW {
			must.Do(t, unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0))
		}
	}
	must.Do(t, os.Setenv(stageKey, fmt.Sprintf("%d %d %d", fds...)))
	must.Do(t, unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func withExactly(t *testing.T, stage string) {
	status := must.Get(os.ReadFile("/proc/self/status"))(t)
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
		if !strings.Contains(string(status), set+":\t"+exactly+"\n") {
			t.Fatalf("%s is not %s:\n%s", set, exactly, status)
		}
	}
	var netns, rtnetlink, router int
	must.Get(fmt.Sscan(stage, &netns, &rtnetlink, &router))(t)
	p := must.Get(NewPod(os.NewFile(uintptr(netns), "netns"), os.NewFile(uintptr(rtnetlink), "rtnetlink")))(t)
	k := openHere(t, Options{})
	apply(t, k, dataplane.InitPlan(hostSpec(true, true)), nil) // over netlink it needs no more
	apply(t, k, dataplane.HostPlan(hostSpec(true, true)), nil)
	w := spec(1, p.Inode())
	apply(t, k, dataplane.PodPlan(w), p)
	o := observe(t, k)
	link := o.Index().LinkByAlias(w.Alias)
	if link == nil || len(link.PeerAddresses) != 1 || link.PeerAddresses[0] != w.Address || !o.NAT.Present {
		t.Fatalf("observed %+v", o)
	}
	apply(t, k, dataplane.PodRemoval(w), nil)
	if o = observe(t, k); len(o.Links) != 1 || len(o.Rules) != 1 {
		t.Fatalf("after the removal: %+v", o)
	}
	t.Log("everything was applied")
}
