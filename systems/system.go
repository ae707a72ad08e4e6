// Package systems describes what the laboratory plays: a CNI, its daemon if it has one, and what both need of a machine.
package systems

import "time"

// System is one version of a CNI, with its files on this machine: what a description (NAME.yaml) says of that version.
type System struct {
	Name    string // of the description
	Version string // MAJOR.MINOR.PATCH; for ours also a commit
	Folder  string // host folder in which its files are
	// Files are copied into a node before anything starts, anew at each upgrade.
	Files []File
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
	// Books says that the daemon takes our clock and streams our recording: ours alone.
	Books bool
}

// File is one that a node gets.
type File struct {
	From string // below System.Folder
	To   string // absolute, in the node
	Mode uint32 // permission bits; 0: 0755
	// Optional: the version may lack it.
	Optional bool
}

// Text is a file of which the words are known.
type Text struct {
	Name string // such as 10-aws.conflist
	From string // below System.Folder; empty: Words
	// Words may hold the placeholders of Daemon.Environment.
	Words string
}

// Daemon is the process that runs on every node.
type Daemon struct {
	// Argv is its command line; Argv[0] is a path in the node.
	Argv []string
	// Environment may hold ${NODE} ${CLUSTER} ${POD} ${NAMESPACE} ${REGION} ${EC2_URL} ${METADATA_URL} ${KUBERNETES_HOST}
	// ${KUBERNETES_PORT} ${KUBERNETES_URL} ${KUBECONFIG} ${RUNTIME_SOCKET} ${DOCKER_HOST} ${CA} ${ADDRESS}. What Manifest's container sets
	// comes first, then this, then the scenario's settings.
	Environment map[string]string
	// Manifest is a Kubernetes manifest below System.Folder, of whose container (in its DaemonSet) the environment is taken; empty: none.
	Manifest, Container string
	// Settings are the scenario's settings (upstream names, such as WARM_IP_TARGET) that it knows; others are not set for it.
	Settings []string
	// Capabilities are the only ones that it gets, such as CAP_NET_ADMIN. Nil: all that a privileged container has.
	Capabilities []string
	// Init are commands that run to their end, in order, before each start of the daemon.
	Init []Command
	// Serves is how it is known to serve.
	Serves Serves
	// Stop is how it is told to end.
	Stop Stop
}

// Command is a process that ends.
type Command struct {
	Argv        []string
	Environment map[string]string
	Within      time.Duration
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
	// Tokens: optional or required (IMDSv2).
	Tokens string
}

// EC2 is how the API is found.
type EC2 struct {
	// By is endpoint (a URL in the environment, plain HTTP) or name (the real name, which /etc/hosts leads to us, with TLS of a CA of the run's own).
	By string
}

// Kubernetes is how the API server is found.
type Kubernetes struct {
	// By is url (plain HTTP, a variable), in-cluster (service host and port, token and CA in the node), kubeconfig (a file) or none.
	By string
	// Resources are those, beside nodes and pods, that the daemon reads: group/version/plural, such as crd.k8s.amazonaws.com/v1alpha1/eniconfigs.
	Resources []string
}
