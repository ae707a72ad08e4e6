package witness

import (
	"fmt"
	"net/netip"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// view is what the daemon believes.
func (l *Life) view() *ipam.View {
	var v ipam.View
	l.Node().View(&v)
	return &v
}

// Busy says what a daemon has under way or waits for, "" is nothing: then a scenario may begin.
func (l *Life) Busy() string {
	switch v := l.view(); {
	case !v.Serving && len(v.Reasons) > 0:
		return v.Reasons[0]
	case !v.Surveyed:
		return "EC2 has not said yet what the node has"
	case !v.Serving || v.Waiting > 0 || v.Intents > 0 || v.Cooling > 0:
		return fmt.Sprintf("serving %v, %d ADDs wait, %d intents are open, %d addresses cool down", v.Serving, v.Waiting, v.Intents, v.Cooling)
	}
	return ""
}

// Core is what the daemon's core is now, by its recording; nil is that no daemon runs.
func (l *Life) Core() *ipam.Node {
	if l == nil {
		return nil
	}
	return l.Node()
}

// Residue is what an observation of a node's kernel shows; stray are the addresses in namespaces that no sandbox has.
func Residue(stray []netip.Addr, o *dataplane.Observation) *judge.Residue {
	ix := o.Index()
	return &judge.Residue{Left: ix.Residue, Stray: stray, Used: func(a netip.Addr) bool { _, used := ix.Uses(a); return used }}
}
