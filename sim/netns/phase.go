package netns

import (
	"fmt"
	"slices"
)

// phase is where a daemon is between two of its starts.
type phase int

const (
	absent   phase = iota // none is started
	starting              // what comes before its process is under way
	aborted               // the same, and it is to end: there will be no process
	started               // its process runs, and nothing has been heard of it
	serving               // it is heard of
	ending                // it is told to end
	exited                // its process has ended, and what it had to say is read
)

// follow are the phases that may come after each. A system without a daemon has no process: it serves once its files are
// there, and ends at once.
var follow = [...][]phase{
	absent:   {starting},
	starting: {started, serving, aborted, absent},
	aborted:  {absent},
	started:  {serving, ending, exited},
	serving:  {ending, exited},
	ending:   {exited, absent},
	exited:   {absent},
}

// to becomes another phase, if that may follow.
func (p *phase) to(next phase) error {
	if !slices.Contains(follow[*p], next) {
		return fmt.Errorf("its daemon is %v, and cannot be %v next", *p, next)
	}
	*p = next
	return nil
}

func (p phase) String() string {
	return [...]string{"absent", "starting", "aborted", "started", "serving", "ending", "exited"}[p]
}
