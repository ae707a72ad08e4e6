package ipam

import (
	"slices"
	"time"
)

// ledger is what is to be made durable, what was asked for and has not come back, and since when there are records.
type ledger struct {
	*life `json:"-"`

	Facts    *Facts        // on record; never changed once set
	Recorded time.Duration // since when releases are on record
	Pending  []pending
	Lanes    [stores]saveLane

	put  [stores][]Row // of the current step
	drop [stores][]Key
}

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

// putRow and dropRow: a Save says one thing about a key, the last one.
func (lg *ledger) putRow(s Store, r Row) {
	lg.drop[s] = slices.DeleteFunc(lg.drop[s], func(k Key) bool { return k == r.Key() })
	lg.put[s] = append(lg.put[s], r)
}

func (lg *ledger) dropRow(s Store, k Key) {
	lg.put[s] = slices.DeleteFunc(lg.put[s], func(r Row) bool { return r.Key() == k })
	lg.drop[s] = append(lg.drop[s], k)
}

// waitSaved continues after this step's Save of the store.
func (lg *ledger) waitSaved(s Store, k saveKind, ix int32, tag uint64) {
	l := &lg.Lanes[s]
	l.Waits = append(l.Waits, saveWait{l.Seq + 1, k, ix, tag})
}

// flush turns what the step put and dropped into one Save per store. It goes first: nothing in the step may start
// before the Save that covers it was asked for.
func (lg *ledger) flush() {
	for s := Store(0); s < stores; s++ {
		if len(lg.put[s]) == 0 && len(lg.drop[s]) == 0 {
			continue
		}
		lg.Lanes[s].Seq++
		lg.emit(&Save{Store: s, Seq: lg.Lanes[s].Seq, Put: lg.put[s], Drop: lg.drop[s]})
		lg.put[s], lg.drop[s] = nil, nil
	}
}

// kind of a pending effect.
type kind uint8

const (
	podPlan kind = iota + 1
	eniPlan
	hostPlan
	eniCall
	flowPlan
)

// pending is an effect whose outcome has not come.
type pending struct {
	ID   ID
	Kind kind
	Ix   int32 // of Addrs or ENIs
}

func (lg *ledger) await(k kind, ix int32) ID {
	id := lg.id()
	lg.Pending = append(lg.Pending, pending{id, k, ix})
	return id
}

// take removes a pending effect by its ID; outcomes that are not awaited, and second ones, are no-ops (contract 7).
func (lg *ledger) take(id ID, kinds ...kind) (pending, bool) {
	for i := range lg.Pending {
		p := lg.Pending[i]
		if p.ID != id {
			continue
		}
		if slices.Contains(kinds, p.Kind) {
			lg.Pending[i] = lg.Pending[len(lg.Pending)-1]
			lg.Pending = lg.Pending[:len(lg.Pending)-1]
			return p, true
		}
		return p, false // an outcome of another verb than was sent
	}
	return pending{}, false
}
