package dataplane

import "strconv"

// ErrorKind is why an operation failed, in the words its caller decides by.
type ErrorKind uint8

const (
	// Other is an error that no decision depends on: report it, try again later.
	Other ErrorKind = iota
	// Exists: CreateVeth met a live link, or a name is taken (EEXIST).
	Exists
	// NoLink: the device an operation names is not there (ENODEV).
	NoLink
	// NoNamespace: the pod's namespace is gone, or is not the one of the link.
	NoNamespace
	// Unreachable: the gateway of a route is not on the route's device (ENETUNREACH).
	Unreachable
	// LinkDown: a route needs its device up (ENETDOWN).
	LinkDown
	// Invalid: the operation itself is malformed (EINVAL).
	Invalid
)

var errorNames = [...]string{
	Other: "failed", Exists: "already exists", NoLink: "link is missing", NoNamespace: "namespace is missing",
	Unreachable: "gateway is unreachable", LinkDown: "link is down", Invalid: "invalid operation",
}

// String is the kind in words; none contains "not found" or "no such file", which go-cni swallows.
func (k ErrorKind) String() string {
	if int(k) < len(errorNames) {
		return errorNames[k]
	}
	return "error " + strconv.Itoa(int(k))
}

// Error is why a plan stopped: the operation's place in the plan, and the operation as text.
type Error struct {
	Kind ErrorKind
	Op   int    // index into Plan.Ops
	Text string // the operation and what was found instead
}

// Error is the kind, the operation's number (from 1) and the text.
func (e *Error) Error() string {
	return "operation " + strconv.Itoa(e.Op+1) + ": " + e.Kind.String() + ": " + e.Text
}
