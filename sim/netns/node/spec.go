package node

import (
	"cmp"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
)

// ResponderPort is the TCP port on which every pod answers with its peer's address.
const ResponderPort = 8080

// EchoPort is the TCP port on which every pod sends back what it is sent, for as long as it lives.
const EchoPort = 8081

// Paths inside a node that its users have to know.
const (
	RunDir      = "/var/run/aws-node"       // dies with a reboot
	StateDir    = "/var/lib/aws-node"       // survives it
	LogDir      = "/var/log/aws-routed-eni" // ipamd.out and what the daemon writes itself
	Records     = "/var/run/aws-node/ipam.json"
	Output      = "/var/log/aws-routed-eni/ipamd.out"
	OlderOutput = Output + ".1" // what Output was before it began anew, if it did
	ConfDir     = "/etc/cni/net.d"
	CacheDir    = "/var/lib/cni"
	Sockets     = "/run/enilab" // for the laboratory's own sockets, such as its clock
)

// Spec is what a node is made of.
type Spec struct {
	// Name is the node's, and its hostname.
	Name string
	// Self is the argument list with which the caller's own binary is executed again (/proc/self/exe); it has to end up in Main.
	Self []string
	// Daemon is the daemon's argument list; Daemon[0] is a host path. Empty: this node never has a daemon.
	Daemon []string
	// Capabilities are the only ones the daemon gets (unix.CAP_NET_ADMIN, …); nil: all that the laboratory has.
	Capabilities []int
	// Plugin is the host path of aws-cni. Empty: there is no plugin.
	Plugin string
	// Conflist is the CNI network configuration list. Empty: the folder is empty, and plugins cannot run.
	Conflist []byte
	// Files are further host files or folders to bind read-only: path inside the node to path on the host. The path inside must not be
	// below /usr, /bin, /sbin, /lib, /lib64, /proc, /sys or /dev.
	Files map[string]string
	// Slowness is how many times longer than on the machine that the bounds are made for everything may take here; 0 is 1.
	Slowness float64
	// Log takes what the helper itself has to say; nil: it is dropped.
	Log io.Writer `json:"-"`
}

// process is Spec.Daemon as it runs in the node.
func (s *Spec) process() Process {
	if len(s.Daemon) == 0 {
		return Process{}
	}
	return Process{Argv: slices.Concat([]string{"/app/" + filepath.Base(s.Daemon[0])}, s.Daemon[1:]), Capabilities: s.Capabilities}
}

// Process is a program of a node: its daemon, or a command.
type Process struct {
	// Argv is its argument list; Argv[0] is a path in the node.
	Argv []string
	// Env is its environment besides PATH and HOSTNAME.
	Env map[string]string
	// Capabilities are the only ones that it gets; nil: all that the laboratory has.
	Capabilities []int
	// Folder is its working folder; empty: /.
	Folder string
	// Container: it is the first process of a PID namespace, as a container's: signals that it does not handle do not end it, and its end ends
	// all that it has started.
	Container bool
	// Root is the root that it sees; nil: the node's.
	Root *Root `json:",omitempty"`
}

// Root is a container's file system: an image's files, which are not changed, and what of the node is mounted there.
// Every container has the node's /proc, /sys, /dev and /run, and its names of hosts; what it writes elsewhere is gone
// with it.
type Root struct {
	// Image is the folder in the node with the image's files.
	Image string
	// Mounts are further paths of the node: folders, which are made where the node has none, and files that it has.
	Mounts []Mount
	// Trust are certificates, as PEM, that are added to every bundle of authorities that the image has.
	Trust string
	// Files are written into it last; From and To are its own paths.
	Files []Copy
}

// Mount is a path of the node, and where a container has it.
type Mount struct {
	Container, Node string
	File            bool // a file, left out where the node has none
}

func (p *Process) folder() string { return cmp.Or(p.Folder, "/") }

// Copy is a file of the node that is made of another one.
type Copy struct {
	From, To string // From may be in what Spec.Files has bound
	Mode     uint32 // permission bits
	// Pause is how long the program, where it fails, waits before it ends. 0: To is the program itself.
	Pause time.Duration
}

// Run is one run of the plugin.
type Run struct {
	Verb        cri.Verb // ADD, DEL or CHECK
	ContainerID string
	IfName      string
	Netns       uint64 // inode behind CNI_NETNS; 0: CNI_NETNS is empty
	Namespace   string // K8S_POD_NAMESPACE
	Name        string // K8S_POD_NAME
	UID         string // K8S_POD_UID; empty: not passed
	// Timeout is real time until the process is SIGKILLed; 0: never.
	Timeout time.Duration
}

// Attachment is what GC is told about.
type Attachment struct{ ContainerID, IfName string }

// Holder is an address that is configured in a pod's namespace.
type Holder struct {
	Inode uint64
	Addr  netip.Addr
}

// EventKind says what happened.
type EventKind uint8

const (
	PluginDone   EventKind = 1 + iota // Op, Code (0: success), Text, Address (of a successful ADD), Took, Exit
	DaemonExited                      // Life, Code, Exit, Took
)

// String is the kind in words.
func (k EventKind) String() string {
	switch k {
	case PluginDone:
		return "plugin done"
	case DaemonExited:
		return "daemon exited"
	}
	return "nothing"
}

// Event is something that ended in a node.
type Event struct {
	Kind EventKind
	// Op is the run's, as given to RunPlugin.
	Op uint64
	// Code is 0 for success. Of a plugin it is the CNI error code, 999 where the plugin gave none; of a daemon the exit code, -1 after
	// a signal.
	Code int
	// Text is the plugin's error message.
	Text string
	// Address is what ADD gave.
	Address netip.Addr
	// Took is how long the process ran, in real time; a plugin's includes libcni's part.
	Took time.Duration
	// Exit is how the last process ended: "exit status 0", "signal: killed (deadline of 2s)". Empty: none was started.
	Exit string
	// Life is the daemon's, as StartDaemon gave it.
	Life int
}
