package daemon

import (
	"slices"
	"strings"

	"github.com/enilab/enilab/impl/ipam"
)

// stores are the node's records, and the Saves that wait for their disk.
type stores struct {
	*core
	lanes [2]saveLane
}

// saveLane is one store's FIFO.
type saveLane struct {
	store Store
	queue []*ipam.Save
	busy  bool
}

// read reads a store's rows into what the Node starts with. What could not be read is said and missing (rule A: nothing is freed for it).
func (s *stores) read(kind ipam.Store, f *file, in *ipam.Start) {
	l := &s.lanes[kind]
	if l.store = f; s.c.Parts.Store != nil {
		l.store = s.c.Parts.Store(f)
	}
	rows, written, err := l.store.Read()
	if err != nil {
		in.Unread = strings.TrimPrefix(in.Unread+"; "+err.Error(), "; ")
		s.log.Error("a record cannot be read; its rows are rebuilt from kernel and runtime, and nothing is freed", "err", err)
		return
	}
	if written != 0 && written != s.c.Version {
		s.log.Info("a record was written by another version", "file", f.path, "wrote", written, "speaks", s.c.Version)
	}
	in.Rows = append(in.Rows, rows...)
}

// start writes what has been gathered, all of a store's at once, and one write per store at a time.
func (s *stores) start() {
	for i := range s.lanes {
		l := &s.lanes[i]
		if l.busy || len(l.queue) == 0 {
			continue
		}
		batch := l.queue
		l.queue, l.busy = nil, true
		s.work(func() func() {
			out := ipam.Saved{Store: ipam.Store(i), Seq: batch[len(batch)-1].Seq}
			if err := l.store.Commit(batch); err != nil {
				out.Err = err.Error()
			}
			return func() {
				l.busy = false
				s.step(out)
			}
		})
	}
}

// idle says whether nothing is to be saved.
func (s *stores) idle() bool {
	return !slices.ContainsFunc(s.lanes[:], func(l saveLane) bool { return l.busy || len(l.queue) > 0 })
}
