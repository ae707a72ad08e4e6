package ipam

import (
	"slices"
	"time"
)

// saveLane is one store's FIFO of Saves.
type saveLane struct {
	Seq   uint64 // of the last Save
	Waits []saveWait
}

// saveWait is something that goes on once the Save it was part of is durable.
type saveWait struct {
	Seq  uint64
	Kind saveKind
	Ix   int32
	Tag  uint64 // of the row: a wait of an earlier life of the slot means nothing
}

type saveKind uint8

const (
	saveAdd saveKind = iota + 1
	saveRelease
	saveIntent
	saveRecord
	saveTaken
)

// putAddress writes the row of an address in this step's Save.
func (n *Node) putAddress(ix int32) {
	n.putRow(RunStore, n.Addrs[ix].row())
}

// putRow and dropRow: a Save says one thing about a key, the last one.
func (n *Node) putRow(s Store, r Row) {
	n.drop[s] = slices.DeleteFunc(n.drop[s], func(k Key) bool { return k == r.Key() })
	n.put[s] = append(n.put[s], r)
}

func (n *Node) dropRow(s Store, k Key) {
	n.put[s] = slices.DeleteFunc(n.put[s], func(r Row) bool { return r.Key() == k })
	n.drop[s] = append(n.drop[s], k)
}

// waitSaved continues after this step's Save of the store.
func (n *Node) waitSaved(s Store, k saveKind, ix int32, tag uint64) {
	l := &n.Lanes[s]
	l.Waits = append(l.Waits, saveWait{l.Seq + 1, k, ix, tag})
}

// flush turns what the step put and dropped into one Save per store. It goes first: nothing in the step may start
// before the Save that covers it was asked for.
func (n *Node) flush() {
	for s := Store(0); s < stores; s++ {
		if len(n.put[s]) == 0 && len(n.drop[s]) == 0 {
			continue
		}
		n.Lanes[s].Seq++
		n.emit(&Save{Store: s, Seq: n.Lanes[s].Seq, Put: n.put[s], Drop: n.drop[s]})
		n.put[s], n.drop[s] = nil, nil
	}
}

func (n *Node) saved(now time.Duration, in Saved) {
	if in.Store >= stores {
		return
	}
	l := &n.Lanes[in.Store]
	i := 0
	for i < len(l.Waits) && l.Waits[i].Seq <= in.Seq && in.Seq <= l.Seq {
		i++
	}
	done := append([]saveWait(nil), l.Waits[:i]...)
	l.Waits = append(l.Waits[:0], l.Waits[i:]...)
	ok := in.Err == ""
	if !ok {
		n.note(Note{Point: SaveFailed, Warn: true, Text: in.Err})
	}
	n.trouble(troubleStore+trouble(in.Store), in.Err)
	for _, w := range done {
		switch w.Kind {
		case saveAdd:
			n.addSaved(now, w.Ix, w.Tag, ok)
		case saveRelease:
			n.releaseSaved(now, w.Ix, w.Tag, ok)
		case saveRecord:
			n.recordSaved(now, w.Ix, w.Tag, ok)
		case saveIntent:
			n.intentSaved(now, w.Ix, w.Tag, ok)
		case saveTaken:
			n.takenSaved(now, w.Ix, w.Tag, ok)
		}
	}
}
