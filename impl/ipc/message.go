package ipc

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Socket is where the daemon listens: amazon-vpc-cni-k8s's path, in a folder on a tmpfs.
const Socket = "/var/run/aws-node/ipamd.sock"

// Bounds of a message. A GC names each attachment of a node in about 130 bytes, so a request has room for 8,000;
// the answer that can be large is the flight recorder's.
const (
	MaxRequest  = 1 << 20  // bytes
	MaxResponse = 16 << 20 // bytes
	MaxFiles    = 4
	// MaxTimeout is the longest patience that a request may ask for: kubelet gives RunPodSandbox 4 minutes.
	MaxTimeout = 10 * time.Minute
)

// The verbs of a request.
const (
	Add    = "add"
	Del    = "del"
	Check  = "check"
	GC     = "gc"
	Status = "status" // Ready and Reasons
	View   = "view"   // Body: the daemon's view of the node
	Record = "record" // Body: the flight recorder
)

// Attachment is the exact key of a request (rule E).
type Attachment = ipam.Attachment

// Request is what the plugin, or a person's tool, asks of the daemon. Which fields a verb reads is said beside them.
type Request struct {
	Version int    `json:"version"` // of the protocol that the sender speaks; Call puts ipam.Version where it is 0
	Verb    string `json:"verb"`

	Network     string `json:"network,omitempty"` // add, del, check, gc
	ContainerID string `json:"containerID,omitempty"`
	IfName      string `json:"ifName,omitempty"`

	PodNamespace string `json:"podNamespace,omitempty"` // add, del: names for people and for the host veth, never a key
	PodName      string `json:"podName,omitempty"`
	PodUID       string `json:"podUID,omitempty"`

	Inode uint64 `json:"inode,omitempty"` // of CNI_NETNS; 0: empty, or it names nothing any more

	Valid       []Attachment `json:"valid,omitempty"`       // gc: the attachments that live
	ValidAbsent bool         `json:"validAbsent,omitempty"` // gc: the key was missing, which is not an empty list

	TimeoutMS int64 `json:"timeoutMS,omitempty"` // the caller's patience in milliseconds; the answer leaves before it ends
}

// Attachment is the request's key.
func (r *Request) Attachment() Attachment {
	return Attachment{Network: r.Network, ContainerID: r.ContainerID, IfName: r.IfName}
}

// Pod is the pod that the request names.
func (r *Request) Pod() ipam.Pod {
	return ipam.Pod{Namespace: r.PodNamespace, Name: r.PodName, UID: r.PodUID}
}

// Timeout is TimeoutMS; 0 when the caller said nothing.
func (r *Request) Timeout() time.Duration { return time.Duration(r.TimeoutMS) * time.Millisecond }

// Response is the daemon's answer.
type Response struct {
	Version int    `json:"version"`        // of the protocol that the daemon speaks; Write puts ipam.Version where it is 0
	Code    int    `json:"code,omitempty"` // CNI error code (ipam.Code…); 0 is success
	Text    string `json:"text,omitempty"` // of the error

	Address netip.Addr `json:"address,omitzero"` // add; check: the attachment's address
	Device  int        `json:"device,omitempty"` // device number of the address's ENI
	Table   int        `json:"table,omitempty"`  // its route table
	Veth    string     `json:"veth,omitempty"`   // the host's end
	HostMAC string     `json:"hostMAC,omitempty"`
	PodMAC  string     `json:"podMAC,omitempty"`
	// PolicyMode is set where a network policy agent has to hear of this pod: before an ADD succeeds, after a DEL has (package netpolicy).
	PolicyMode string `json:"policyMode,omitempty"`

	Ready   bool     `json:"ready,omitempty"`   // status: pods can be taken
	Serving bool     `json:"serving,omitempty"` // status: this daemon, and not only one before it, has taken up its work
	Busy    bool     `json:"busy,omitempty"`    // status: the daemon's loop did not answer in time
	Reasons []string `json:"reasons,omitempty"` // status: why they cannot, or how the node is impaired

	Body json.RawMessage `json:"body,omitempty"` // view, record
}

// parseRequest reads a request and refuses what no plugin would send.
func parseRequest(body []byte) (*Request, error) {
	r := &Request{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("request: expected a JSON object: %w", err)
	}
	if r.Verb == "" {
		return nil, fmt.Errorf("request: verb is missing")
	}
	if r.TimeoutMS < 0 || r.TimeoutMS > MaxTimeout.Milliseconds() {
		return nil, fmt.Errorf("request %q: expected timeoutMS in 0 … %d, found %d", r.Verb, MaxTimeout.Milliseconds(), r.TimeoutMS)
	}
	if err := r.Attachment().Plain(); err != nil {
		return nil, fmt.Errorf("request %q: %w", r.Verb, err)
	}
	for i, a := range r.Valid {
		if err := a.Plain(); err != nil {
			return nil, fmt.Errorf("request %q: valid[%d]: %w", r.Verb, i, err)
		}
	}
	return r, nil
}
