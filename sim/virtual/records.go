package virtual

import (
	"fmt"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/mutants"
)

// reread is what the daemon's version makes of what the last one wrote: through the codec, both ways.
func (w *World) reread(n *node, s ipam.Store) ([]ipam.Row, error) {
	d := &n.disk[s]
	if d.lost {
		*d = disk{}
	}
	if len(d.rows) == 0 {
		return nil, nil
	}
	if w.shell(mutants.RefuseOtherVersions) && n.writer != n.Version {
		return nil, fmt.Errorf("read %v records: they are of version %d, expected %d", s, n.writer, n.Version)
	}
	var data []byte
	var err error
	if s == ipam.RunStore {
		if data, err = ipam.EncodeRun(n.writer, wallAtZero, d.rows); err == nil {
			d.rows, err = ipam.DecodeRun(n.Version, wallAtZero, data)
		}
	} else if data, err = ipam.EncodeLib(n.writer, d.rows); err == nil {
		d.rows, err = ipam.DecodeLib(n.Version, data)
	}
	return append([]ipam.Row(nil), d.rows...), err
}
