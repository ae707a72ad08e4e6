package cri

import (
	"cmp"
	"time"
)

// Runtime is the container runtime of a node, by the way it calls DEL.
type Runtime uint8

const (
	// Containerd2 is containerd 1.7.34, 2.2.2, 2.3.0 and later: the sandbox is recorded before its
	// network is made, and every Stop calls DEL.
	Containerd2 Runtime = iota
	// Containerd21 is containerd 2.0.0 to 2.2.1: like Containerd2, but Stop skips DEL when the result
	// of ADD was not saved (containerd #12922, repaired by #12923). It is held to recordings of
	// containerd 2.1.5 under kubelet 1.34.2 (e2e/calls).
	Containerd21
	// Containerd17Guard is containerd 1.7.23 to 1.7.33, with the same guard; a sandbox whose ADD and
	// the DEL after it failed is kept, and never gets another DEL.
	Containerd17Guard
	// Containerd16 is containerd 1.6 before 1.6.37: the sandbox is recorded only after ADD, so a
	// restart during ADD forgets it and leaves its namespace behind.
	Containerd16
	// CRIO134 is CRI-O 1.34 and later: CHECK follows ADD, DEL comes before the containers are
	// killed, and a DEL that fails is never called again (cri-o e1bf924809).
	CRIO134
	// Dockershim is kubelet's own CNI caller around Docker: pause starts before ADD, a DEL that
	// failed is repeated with an empty CNI_NETNS, and K8S_POD_UID is not passed.
	Dockershim
)

var runtimeNames = [...]string{"containerd-2", "containerd-2.1", "containerd-1.7-guard", "containerd-1.6", "crio-1.34", "dockershim"}

// String is the name that scenarios use.
func (r Runtime) String() string {
	if int(r) < len(runtimeNames) {
		return runtimeNames[r]
	}
	return "unknown-runtime"
}

// ParseRuntime finds a Runtime by its String. "containerd" is Containerd2, "crio" is CRIO134.
func ParseRuntime(name string) (Runtime, bool) {
	switch name {
	case "containerd":
		return Containerd2, true
	case "crio":
		return CRIO134, true
	}
	for i, s := range runtimeNames {
		if s == name {
			return Runtime(i), true
		}
	}
	return 0, false
}

func (r Runtime) containerd() bool { return r <= Containerd16 }

// guards: Stop believes that a network without a saved result is not there.
func (r Runtime) guards() bool { return r == Containerd21 || r == Containerd17Guard }

// Config describes a node. A zero duration means kubelet's or the runtime's own default, which is
// named with each field; a negative one means no wait at all.
type Config struct {
	Node    string // the node's name, for people
	Runtime Runtime
	Network string // name of the CNI network list; default "aws-cni"

	// OldKubelet is kubelet before 1.22: the API object may go as soon as the containers have
	// stopped, although StopPodSandbox failed. Always so with Dockershim.
	OldKubelet bool
	// SkipClosedDEL is the CRI plugin of containerd/cri #948: Stop skips DEL when the namespace
	// has already gone, as after a reboot.
	SkipClosedDEL bool

	SandboxTimeout  time.Duration // deadline of RunPodSandbox; default 4 min
	StopTimeout     time.Duration // deadline of StopPodSandbox, RemovePodSandbox and, plus grace, StopContainer; default 2 min
	CleanupTimeout  time.Duration // the runtime's own limit on the DEL after a failed ADD; default 1 min
	RetryBackoff    time.Duration // pod worker's wait after an error, jittered up to half more; default 10 s
	GCPeriod        time.Duration // evictSandboxes; default 1 min
	RelistPeriod    time.Duration // PLEG: how often kubelet looks what has changed in the runtime's list; default 1 s
	PauseStartMin   time.Duration // from ADD's end until pause and containers run; default 80 ms
	PauseStartMax   time.Duration // default 250 ms
	ContainerEndMin time.Duration // a container's exit after SIGTERM; default 1 s
	ContainerEndMax time.Duration // default 3 s
	KubeletRestart  time.Duration // default 3 s
	RuntimeRestart  time.Duration // default 2 s
	BootTime        time.Duration // from Reboot until kubelet and runtime work; default 30 s
}

func (c *Config) setDefaults() {
	c.Network = cmp.Or(c.Network, "aws-cni")
	if c.Runtime == Dockershim {
		c.OldKubelet = true
	}
	def := func(d *time.Duration, v time.Duration) {
		switch {
		case *d == 0:
			*d = v
		case *d < 0:
			*d = 0
		}
	}
	def(&c.SandboxTimeout, 4*time.Minute)
	def(&c.StopTimeout, 2*time.Minute)
	def(&c.CleanupTimeout, time.Minute)
	def(&c.RetryBackoff, 10*time.Second)
	def(&c.GCPeriod, time.Minute)
	def(&c.RelistPeriod, time.Second)
	def(&c.PauseStartMin, 80*time.Millisecond)
	def(&c.PauseStartMax, 250*time.Millisecond)
	def(&c.ContainerEndMin, time.Second)
	def(&c.ContainerEndMax, 3*time.Second)
	def(&c.KubeletRestart, 3*time.Second)
	def(&c.RuntimeRestart, 2*time.Second)
	def(&c.BootTime, 30*time.Second)
	// A retry or a collection without any wait would never let time pass.
	c.RetryBackoff = max(c.RetryBackoff, time.Millisecond)
	c.GCPeriod = max(c.GCPeriod, time.Millisecond)
	c.RelistPeriod = max(c.RelistPeriod, time.Millisecond)
	c.StopTimeout = max(c.StopTimeout, time.Millisecond)
	c.SandboxTimeout = max(c.SandboxTimeout, time.Millisecond)
	c.CleanupTimeout = max(c.CleanupTimeout, time.Millisecond)
}
