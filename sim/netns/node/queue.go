package node

import "sync"

// queue keeps events until they are read, so that a slow reader does not keep answers from others. What bounds it is that every event
// ends something that was started.
type queue struct {
	out chan Event

	mu      sync.Mutex
	waiting []Event
	ended   bool
	more    chan struct{} // has a token after every change
}

func newQueue() *queue {
	q := &queue{out: make(chan Event), more: make(chan struct{}, 1)}
	go q.run()
	return q
}

func (q *queue) push(e Event) {
	q.mu.Lock()
	q.waiting = append(q.waiting, e)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) run() {
	defer close(q.out)
	for range q.more {
		for {
			e, ok, ended := q.pop()
			if ended {
				return
			}
			if !ok {
				break
			}
			q.out <- e
		}
	}
}

func (q *queue) pop() (e Event, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return e, false, q.ended
	}
	e = q.waiting[0]
	q.waiting = q.waiting[1:]
	return e, true, false
}
