package models

import (
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
)

// Traps are the death traps that wait for requests of daemons to EC2: each kills one daemon, once.
type Traps []trap

type trap struct {
	node   int32
	action ec2.Action
	after  bool // EC2 has executed the request
	id     int  // of the action that set it
}

// Set adds one. It is about any request if a is ec2.AnyAction.
func (t *Traps) Set(node int32, a ec2.Action, after bool, id int) {
	*t = append(*t, trap{node, a, after, id})
}

// Spring takes the first that a request springs, and gives the action that set it.
func (t *Traps) Spring(node int32, a ec2.Action, after bool) (id int, sprung bool) {
	i := slices.IndexFunc(*t, func(t trap) bool {
		return t.node == node && (t.action == a || t.action == ec2.AnyAction) && t.after == after
	})
	if i < 0 {
		return 0, false
	}
	id = (*t)[i].id
	*t = slices.Delete(*t, i, i+1)
	return id, true
}
