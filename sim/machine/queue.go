package machine

import (
	"container/heap"
	"time"

	"github.com/enilab/enilab/sim/models"
)

// Queue is what is due in a world's loop, by its instant; at the same instant, first come, first served. The zero value is empty.
type Queue struct {
	due deadlines
	seq uint64
}

type deadline struct {
	at  time.Duration
	seq uint64
	run func()
}

// Add lets run be due at an instant.
func (q *Queue) Add(at time.Duration, run func()) {
	q.seq++
	heap.Push(&q.due, deadline{at, q.seq, run})
}

// Next is the earliest instant at which something is due; models.Never, if nothing is.
func (q *Queue) Next() time.Duration {
	if len(q.due) == 0 {
		return models.Never
	}
	return q.due[0].at
}

// Take takes what is due at Next.
func (q *Queue) Take() (run func()) { return heap.Pop(&q.due).(deadline).run }

type deadlines []deadline

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].seq < d[j].seq
}
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)   { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}
