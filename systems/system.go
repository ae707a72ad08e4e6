package systems

import "time"

// System is one version of a CNI, with its files on this machine: what a description (NAME.yaml) says of that version.
type System struct {
	Name    string // of the description
	Version string // MAJOR.MINOR.PATCH; for ours also a commit
	About   string // a sentence about it
	Folder  string // host folder in which its files are
	// Root is the folder, below Folder, with all files of its image, in which daemon and init steps run. Empty: it is no image, and they run in the node's.
	Root string
	// Files are copied into a node before anything starts, anew at each upgrade. After Find they are those that Folder has.
	Files []File
	// Mounts are paths of the daemon's container that are others of the node: what it writes to one is seen at the other.
	Mounts []Mount
	// Executes are the programs of its machine that daemon and plugins execute, by their names in PATH.
	Executes []string
	// Kernel are the modules that it needs of the machine's kernel, or built in; "a/b": one of them.
	Kernel []string
	// Sysctls are set in the node before anything starts: path below /proc/sys to value.
	Sysctls map[string]string
	// Conflist is the network configuration, as a file in the node's /etc/cni/net.d. Empty when Init or the daemon writes it.
	Conflist Text
	// Plugins are the names, in /opt/cni/bin, of the binaries that the conflist calls: the first is the one that makes the interface.
	Plugins []string
	// Daemon is nil for a plugin without one.
	Daemon *Daemon
	// Runtime is what the daemon asks for sandboxes.
	Runtime Runtime
	// Metadata and EC2 are how the daemon finds them.
	Metadata Metadata
	EC2      EC2
	// Kubernetes is how the daemon finds the API server.
	Kubernetes Kubernetes
	// Node is what a node has to have before the system comes to it.
	Node Node
	// Upgrade are the orders in which another version takes over; the first start is Upgrade.Steps without stop.
	Upgrade Upgrade
	// Get is where its files can be fetched from; nil: unknown.
	Get *Get
	// Books says that the daemon takes our clock and streams our recording: ours alone.
	Books bool
	// Manifest is what Daemon.Manifest says, nil if there is none.
	Manifest *Manifest
	// Given are the tools that the machine has for it, each with its version or digest; the caller fills them in.
	Given []string
	// Notes are what a user should know of how it was found, a sentence each: an optional plugin that is missing, for
	// one.
	Notes []string
}

// File is one that a node gets.
type File struct {
	From string // below System.Folder
	To   string // absolute, in the node
	Mode uint32 // permission bits; 0: 0755
	// Optional: the version may lack it.
	Optional bool
	// Image is its path in the version's image; empty: an image lacks it.
	Image string
	// Pause is how long the program waits in a node before it ends when it has failed: who asks it in a loop without a pause takes all of a CPU.
	Pause time.Duration
}

// Mount is a path of the daemon's container and which of the node's it is.
type Mount struct{ Container, Node string }

// Text is a file of which the words are known.
type Text struct {
	Name string // such as 10-aws.conflist
	From string // below System.Folder; empty: Words
	// Words may hold the placeholders of Daemon.Environment.
	Words string
	// To is the folder in the node that gets it; empty: /etc/cni/net.d.
	To string
	// Image is its path in the version's image; empty: an image lacks it.
	Image string
	// Replace are words of the file and what stands for them: as upstream's scripts do with sed.
	Replace map[string]string
	// Optional are plugins of the list that are taken out of it when their binaries are not there.
	Optional []string
}

// Daemon is the process that runs on every node.
type Daemon struct {
	// Argv is its command line; Argv[0] is a path in the node.
	Argv []string
	// Folder is its working folder in the node; empty: /.
	Folder string
	// Log is a file in the node with what it says, where that is not its output; empty: it is.
	Log string
	// Environment may hold placeholders (see Placeholders). What Manifest's container sets comes first, then this, then the scenario's settings.
	Environment map[string]string
	// Defaults are what its environment has where there is no manifest.
	Defaults map[string]string
	// Manifest is a Kubernetes manifest below System.Folder, of whose container (in its DaemonSet) the environment is taken; empty: none.
	Manifest, Container string
	// Settings are the scenario's settings (upstream names, such as WARM_IP_TARGET) that it knows; others are not set for it.
	Settings []string
	// Capabilities are the only ones that it gets, such as CAP_NET_ADMIN. Nil: all that a privileged container has.
	Capabilities []string
	// Entrypoint is what the image runs, which starts the process of Argv and installs plugins and configuration by itself. After Find it is nil
	// where the folder lacks a file for it: then the steps of an upgrade do what it would.
	Entrypoint *Entrypoint
	// Init are commands that run to their end, in order, before each start of the daemon.
	Init []Command
	// Serves is how it is known to serve.
	Serves Serves
	// Stop is how it is told to end.
	Stop Stop
}

// Entrypoint is a script or program that an image runs first.
type Entrypoint struct {
	Argv     []string
	Needs    []string // files of the version's folder that it fails without
	Executes []string // programs of its machine that it executes, beside System.Executes
}

// Enters says whether the image's entrypoint starts the daemon, and installs plugins and configuration by itself.
func (s *System) Enters() bool { return s.Daemon != nil && s.Daemon.Entrypoint != nil }

// Command is a process that ends.
type Command struct {
	Argv        []string
	Folder      string // its working folder in the node; empty: /
	Environment map[string]string
	// Container of the manifest's init containers is where its environment comes from first; empty: none.
	Container string
	Within    time.Duration
	// Optional: it is left out where the file that it runs, or one of Needs, is not there.
	Optional bool
	Needs    []string // files of the version's folder that it fails without
	Executes []string // programs of its machine that it executes, beside System.Executes
}

// Serves is a question whose good answer means that the daemon takes ADDs. Exactly one of TCP, Unix and HTTP is set.
type Serves struct {
	TCP    string        // ADDRESS:PORT in the node that accepts a connection
	Unix   string        // a socket in the node that accepts one
	HTTP   string        // a URL that answers 200
	GRPC   bool          // with TCP or Unix: grpc.health.v1 says SERVING
	Within time.Duration // from its start: later is a violation
}

// Stop is a signal and how long the daemon may take to end by it before SIGKILL, as kubelet's grace.
type Stop struct {
	Signal string // such as TERM
	Grace  time.Duration
}

// Runtime is the runtime's API.
type Runtime struct {
	API    string // cri (runtime.v1), cri-v1alpha2, docker or none
	Socket string // in the node: where it looks for the API; for docker a TCP address
}

// Metadata is how instance metadata is found.
type Metadata struct {
	// By is endpoint (a URL in the environment) or address (169.254.169.254, port 80, in the node).
	By string
	// Tokens: optional or required (IMDSv2).
	Tokens string
}

// EC2 is how the API is found.
type EC2 struct {
	// By is endpoint (a URL in the environment, plain HTTP), name (the real name, which /etc/hosts leads to us, with TLS of a CA of the run's
	// own) or none.
	By string
	// Role are the actions that the policy allows a node which its documentation asks for; nil: it says nothing.
	Role []string
}

// Kubernetes is how the API server is found.
type Kubernetes struct {
	// By is url (plain HTTP, a variable), in-cluster (service host and port, token and CA in the node), kubeconfig (a file) or none.
	By string
	// Resources are those, beside nodes and pods, that the daemon reads: group/version/plural, such as crd.k8s.amazonaws.com/v1alpha1/eniconfigs.
	Resources []string
}

// Node is what a node has to have before the system comes to it.
type Node struct {
	// Prefixes are how many /28 of the subnet the node's first ENI has from its launch, or as many as the instance's type has room for:
	// ${POD_RANGES}.
	Prefixes int
	// DHCP: the machine gives each further interface its ENI's primary address, as a DHCP client does. Later CNIs give it themselves.
	DHCP bool
}

// Step is a part of an upgrade.
type Step string

// Steps, in no order.
const (
	StepStop     Step = "stop"     // the daemon ends, as Daemon.Stop says
	StepFiles    Step = "files"    // the files that are not plugins' are copied
	StepPlugins  Step = "plugins"  // the files below /opt/cni/bin are copied
	StepInit     Step = "init"     // Daemon.Init runs
	StepStart    Step = "start"    // the daemon starts
	StepServes   Step = "serves"   // it is waited for until it serves
	StepConflist Step = "conflist" // the configuration is written
)

// Upgrade are the orders in which this version takes over from another: the older one's files give way in the same order.
type Upgrade struct {
	Steps []Step
	// Rollback is the order when this is the older version; nil: Steps.
	Rollback []Step
	// Replaces are other systems of which this one takes over running nodes, and to which it gives them back.
	Replaces []string
}

// PluginFolder is where a runtime looks for plugins, and ConfigFolder for their configuration.
const (
	PluginFolder = "/opt/cni/bin"
	ConfigFolder = "/etc/cni/net.d"
)
