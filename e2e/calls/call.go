package calls

import (
	"time"
)

// Netns is what was at CNI_NETNS when a call began.
type Netns uint8

const (
	Empty   Netns = iota // CNI_NETNS was empty
	Mounted              // a network namespace
	Gone                 // a path, and no namespace there
)

var netnsNames = [...]string{"empty", "netns", "gone"}

func (n Netns) String() string {
	if int(n) < len(netnsNames) {
		return netnsNames[n]
	}
	return "unknown"
}

// Call is one call of a plugin.
type Call struct {
	Plugin  string // base name of the real one
	Verb    string
	Version string // of the configuration; empty: not known
	Prev    bool   // there was a prevResult

	Namespace, Pod, UID string // of the pod; empty for STATUS and GC
	ContainerID, IfName string
	Netns               Netns

	Began, Ended time.Time // Ended is zero when there was no answer
	Failed       bool
	Code         int    // of the error; 999 when it had none (CNI's generic one)
	Text         string // of the error
}

// Killed says that the call never answered.
func (r *Call) Killed() bool { return r.Ended.IsZero() }

// Of are the runs for pods of a namespace.
func Of(runs []Call, namespace string) (out []Call) {
	for _, r := range runs {
		if r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}

// Bare leaves out what only libcni and the conflist decide, and no model of a runtime knows: version and prevResult.
func Bare(runs []Call) (out []Call) {
	for _, r := range runs {
		r.Version, r.Prev = "", false
		out = append(out, r)
	}
	return out
}
