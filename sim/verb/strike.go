package verb

import "fmt"

// Fate is what became of an action. The zero Fate is a miss: what nobody has told of has not happened.
type Fate uint8

const (
	Missed Fate = iota // what it is about was not there
	Armed              // it waits for somebody to meet it: the next three DELs will fail
	Struck             // a model, a kernel or a process has met it
)

// Strike is what became of an action, and its text: what a Struck one did, why a Missed one did nothing, what an Armed
// one waits for.
type Strike struct {
	Fate Fate
	Text string
}

// Hit is told by what was changed: a model, a kernel, a process.
func Hit(format string, args ...any) Strike { return Strike{Struck, fmt.Sprintf(format, args...)} }

// Miss is an action whose target is not there, or is already as the action would have it.
func Miss(format string, args ...any) Strike { return Strike{Missed, fmt.Sprintf(format, args...)} }

// Wait is an action that is armed. The text says what has to happen that has not yet: "no DEL was run".
func Wait(format string, args ...any) Strike { return Strike{Armed, fmt.Sprintf(format, args...)} }
