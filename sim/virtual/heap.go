package virtual

import "time"

// eventKind says what an event of the heap is.
type eventKind uint8

const (
	evTick     eventKind = iota + 1 // the daemon's Next has come
	evInput                         // an input reaches the daemon
	evSaved                         // a Save becomes durable
	evApply                         // a plan runs
	evLook                          // a source is read
	evServe                         // a request reaches EC2
	evPlugin                        // a plugin process has started and talks to the daemon
	evResult                        // a plugin process has ended
	evKubelet                       // kubelet's or the runtime's Next has come
	evCloud                         // EC2's Next has come
	evStart                         // a daemon is started
	evSnapshot                      // the auditors collect a consistent snapshot
	evStale                         // a DEL intent on disk is given to the daemon again
)

// event is one entry of the heap. It is plain data, so that a world can be forked.
type event struct {
	at   time.Duration
	seq  uint64 // breaks ties: first pushed, first popped
	kind eventKind
	node int32
	life uint32 // of the daemon that wanted it; an outcome for an earlier life is dropped
	num  uint64 // effect ID, request, operation
	data any
}

// bySeq is the order in which events were pushed.
func bySeq(a, b event) int { return int(int64(a.seq) - int64(b.seq)) }

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// heap is a 4-ary min-heap of events.
type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&s[p]) {
			break
		}
		s[i] = s[p]
		i = p
	}
	s[i] = e
}

func (h *heap) pop() event {
	s := *h
	top := s[0]
	last := len(s) - 1
	e := s[last]
	s[last] = event{}
	*h = s[:last]
	if last > 0 {
		h.down(0, &e)
	}
	return top
}

// down finds the place of e at i or below; what is at i is overwritten.
func (h *heap) down(i int, e *event) {
	s := *h
	for {
		least := 4*i + 1
		if least >= len(s) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(s)); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(e) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = *e
}

// remove takes out the events that drop names, and keeps the order of the rest.
func (h *heap) remove(drop func(*event) bool) {
	kept := (*h)[:0]
	for i := range *h {
		if e := (*h)[i]; !drop(&e) {
			kept = append(kept, e)
		}
	}
	clear((*h)[len(kept):]) // what they point to can go
	*h = kept
	for i := (len(kept) - 2) / 4; i >= 0 && len(kept) > 1; i-- {
		e := kept[i]
		h.down(i, &e)
	}
}
