package ipam

import (
	"cmp"
	"strconv"
	"time"
)

// replyMargin is how long before a deadline the answer leaves, so that the caller still hears it.
const replyMargin = 500 * time.Millisecond

// maxOpen bounds the requests that wait: a runtime starts far fewer pods at once (kubelet's limit is 250 per node).
const maxOpen = 4096

// requests are what callers wait for, and the queues in which they do.
type requests struct {
	*life `json:"-"`

	Waiting    []Add // for an address, first come first served
	Queued     []queued
	Checks     []checking
	Agains     []again
	Collecting collecting
	Open       []open        // requests that await their Reply
	due        time.Duration // when the first of Open has to be answered; rebuilt, never encoded
}

// open is a request that awaits its Reply.
type open struct {
	Req      Req
	Verb     Verb
	Att      Attachment
	Deadline time.Duration
}

// queued is a copy of a request behind another operation on its attachment. It outlives the step; most requests do not.
type queued struct {
	Add *Add
	Del *Del
}

func (q queued) req() Req {
	if q.Add != nil {
		return q.Add.Req
	}
	return q.Del.Req
}

func (q queued) att() Attachment {
	if q.Add != nil {
		return q.Add.Att
	}
	return q.Del.Att
}

// accept registers a request. A number that is taken, or too many requests, means that it is not.
func (rq *requests) accept(now time.Duration, r Req, v Verb, att Attachment, deadline time.Duration) bool {
	if r == 0 || rq.isOpen(r) {
		return false
	}
	deadline = cmp.Or(deadline, now+defaultDeadline)
	rq.Open = append(rq.Open, open{r, v, att, deadline})
	rq.due = min(rq.due, deadline-replyMargin)
	if len(rq.Open) > maxOpen {
		rq.end(r, &Error{CodeTryAgain, v.String() + " " + att.String() + ": " + strconv.Itoa(maxOpen) +
			" requests wait already, try again"})
		return false
	}
	if rq.Phase == stopping {
		rq.end(r, &Error{CodeTryAgain, v.String() + " " + att.String() + ": ipamd is stopping, try again"})
		return false
	}
	return true
}

func (rq *requests) isOpen(r Req) bool {
	for i := range rq.Open {
		if rq.Open[i].Req == r {
			return true
		}
	}
	return false
}

// close ends a request, whose caller gets its one Reply now or never.
func (rq *requests) close(r Req) (open, bool) {
	for i := range rq.Open {
		if o := rq.Open[i]; o.Req == r && r != 0 {
			rq.Open[i] = rq.Open[len(rq.Open)-1]
			rq.Open = rq.Open[:len(rq.Open)-1]
			if o.Deadline-replyMargin == rq.due {
				rq.dueNext()
			}
			return o, true
		}
	}
	return open{}, false
}

// dueNext finds the first of the open requests that will be due.
func (rq *requests) dueNext() {
	rq.due = never
	for i := range rq.Open {
		rq.due = min(rq.due, rq.Open[i].Deadline-replyMargin)
	}
}

// end answers a request, unless its caller is gone or there is none (0). Without an error it has succeeded.
func (rq *requests) end(r Req, err *Error) {
	if o, ok := rq.close(r); ok {
		rq.emit(&Reply{Req: r, Verb: o.Verb, Att: o.Att, Err: err})
	}
}

// dropWaiting takes out one that waits. Nearly always it is the first.
func (rq *requests) dropWaiting(i int) {
	if i == 0 {
		rq.Waiting = rq.Waiting[1:]
		return
	}
	rq.Waiting = append(rq.Waiting[:i], rq.Waiting[i+1:]...)
}

// refuseVersion answers a plugin that speaks another protocol.
func (rq *requests) refuseVersion(r Req, v Verb, att Attachment, plugin int) {
	rq.note(Note{Point: VersionRefused, Warn: true, Att: att})
	rq.end(r, &Error{CodeVersion, "cni " + v.String() + " " + att.String() + ": the plugin speaks version " +
		strconv.Itoa(plugin) +
		" of the local protocol, ipamd " + strconv.Itoa(rq.Version) +
		"; install the plugin that belongs to this ipamd"})
}

// waits says whether an ADD of the attachment waits for an address.
func (rq *requests) waits(att Attachment) bool {
	for i := range rq.Waiting {
		if rq.Waiting[i].Att == att {
			return true
		}
	}
	return false
}

func (rq *requests) enqueue(q queued) {
	rq.note(Note{Point: DelQueued, Att: q.att()})
	rq.Queued = append(rq.Queued, q)
}

// cancelWaiting: a DEL ends an ADD of the same attachment that has no address yet; its caller is dead or will be told.
func (rq *requests) cancelWaiting(att Attachment) {
	for i := range rq.Waiting {
		if rq.Waiting[i].Att == att {
			req := rq.Waiting[i].Req
			rq.dropWaiting(i)
			rq.end(req, &Error{CodeTryAgain, "cni add " + att.String() +
				": a DEL of the same attachment came while it waited"})
			break
		}
	}
	for i := 0; i < len(rq.Queued); i++ { // and those behind it
		if q := rq.Queued[i]; q.Add != nil && q.Add.Att == att {
			rq.Queued = append(rq.Queued[:i], rq.Queued[i+1:]...)
			rq.end(q.Add.Req, &Error{CodeTryAgain, "cni add " + att.String() +
				": a DEL of the same attachment came while it waited"})
			i--
		}
	}
	for i := 0; i < len(rq.Agains); i++ { // and those that look at the kernel
		if c := rq.Agains[i]; c.Att == att {
			rq.Agains = append(rq.Agains[:i], rq.Agains[i+1:]...)
			rq.end(c.Req, &Error{CodeTryAgain, "cni add " + att.String() +
				": a DEL of the same attachment came while it waited"})
			i--
		}
	}
}

func (rq *requests) stop() {
	rq.Phase = stopping
	for _, w := range rq.Waiting {
		rq.end(w.Req, &Error{CodeTryAgain, "cni add " + w.Pod.String() + ": ipamd is stopping, try again"})
	}
	rq.Waiting = rq.Waiting[:0]
	for _, q := range rq.Queued {
		rq.end(q.req(), &Error{CodeTryAgain, "ipamd is stopping, try again"})
	}
	rq.Queued = rq.Queued[:0]
	for _, c := range rq.Agains {
		rq.end(c.Req, &Error{CodeTryAgain, "cni add " + c.Att.String() + ": ipamd is stopping, try again"})
	}
	rq.Agains = nil
}
