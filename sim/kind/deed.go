package kind

import "github.com/enilab/enilab/sim/verb"

// deed is one action on a node, or on the cluster if m is nil. Its nouns embed it.
type deed struct {
	w   *World
	m   *member
	id  int
	err error // the first thing that went wrong with the laboratory
}

// check enters what went wrong with the laboratory.
func (d *deed) check(err error) {
	if d.err == nil {
		d.err = err
	}
}

// cannot is what is never asked: the verb's skips say why.
func cannot() verb.Strike { return verb.Miss("world kind cannot do it") }
