package witness

import (
	"fmt"
	"net/netip"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
)

// view is what the daemon believes.
func (l *Life) view() *ipam.View {
	var v ipam.View
	l.Node().View(&v)
	return &v
}

// Fill puts into a snapshot what the daemon believes; a nil Life is a node whose daemon is down. v is where the view goes.
func (l *Life) Fill(c *judge.Snapshot, v *ipam.View) {
	c.Up = l != nil
	if l == nil {
		return
	}
	l.Node().View(v)
	c.View, c.Limits = v, v.Limits
	l.Node().Rows(func(r ipam.Row) {
		if r.State == ipam.Assigned {
			c.Rows = append(c.Rows, r)
		}
	})
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

// Leaks are what belongs to nobody on a node (I5). stray are the addresses in namespaces that no sandbox has, o is the node's kernel.
func (l *Life) Leaks(stray []netip.Addr, o *dataplane.Observation) (out []string) {
	if l == nil {
		return nil
	}
	for _, a := range stray {
		out = append(out, "address "+a.String()+" is configured in a namespace that no sandbox has")
	}
	ix := o.Index()
	l.Node().Rows(func(r ipam.Row) {
		switch r.State {
		case ipam.Free:
			if what, left := ix.Residue(r.Address); left {
				out = append(out, what+" for "+r.Address.String())
			}
		case ipam.Quarantined:
			if _, used := ix.Uses(r.Address); !used {
				out = append(out, actions.SetAside(r.Address))
			}
		}
	})
	return out
}
