package virtual

import (
	"fmt"
	"slices"

	"github.com/enilab/enilab/impl/ipam"
)

// disks are a machine's two stores of records.
type disks struct {
	store  [2]store
	writer int // record version in which they were written last
}

// store is rows by key, in the order in which the keys were first written.
type store struct {
	rows []ipam.Row
	lost bool // the file is gone; the daemon has the rows in memory, and writes all of them when it writes next
}

func (d disks) clone() disks {
	for s := range d.store {
		d.store[s].rows = slices.Clone(d.store[s].rows)
	}
	return d
}

// commit makes a Save's rows durable.
func (d *disks) commit(s *ipam.Save, version int) {
	t := &d.store[s.Store]
	t.lost, d.writer = false, version
	for i := range s.Put {
		if at := t.find(s.Put[i].Key()); at >= 0 {
			t.rows[at] = s.Put[i]
		} else {
			t.rows = append(t.rows, s.Put[i])
		}
	}
	for _, k := range s.Drop {
		if i := t.find(k); i >= 0 {
			t.rows = slices.Delete(t.rows, i, i+1)
		}
	}
}

// find is where a key's row is; -1: nowhere.
func (t *store) find(k ipam.Key) int {
	for i := range t.rows {
		if t.rows[i].Key() == k {
			return i
		}
	}
	return -1
}

// lose takes a store's file away; false: there is none.
func (d *disks) lose(s ipam.Store) bool {
	t := &d.store[s]
	if len(t.rows) == 0 || t.lost {
		return false
	}
	t.lost = true
	return true
}

// read is what a daemon of a version makes of what the last one wrote: through the codec, both ways. One that is picky
// reads no other version.
func (d *disks) read(s ipam.Store, version int, picky bool) ([]ipam.Row, error) {
	t := &d.store[s]
	if t.lost {
		*t = store{}
	}
	if len(t.rows) == 0 {
		return nil, nil
	}
	if picky && d.writer != version {
		return nil, fmt.Errorf("read %v records: they are of version %d, expected %d", s, d.writer, version)
	}
	var data []byte
	var err error
	if s == ipam.RunStore {
		if data, err = ipam.EncodeRun(d.writer, wallAtZero, t.rows); err == nil {
			t.rows, err = ipam.DecodeRun(version, wallAtZero, data)
		}
	} else if data, err = ipam.EncodeLib(d.writer, t.rows); err == nil {
		t.rows, err = ipam.DecodeLib(version, data)
	}
	return append([]ipam.Row(nil), t.rows...), err
}
