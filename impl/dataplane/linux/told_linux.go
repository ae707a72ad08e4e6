package linux

import (
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// toldBuffer is what the kernel may queue between two plans, in bytes. Past it, the next plan begins with a dump.
const toldBuffer = 256 << 10

// told is about one kind of the kernel's objects. They are read once, and then the kernel tells what becomes of them: a
// notification is queued before the request that caused it returns, so a reader of the queue knows as much as a dump
// that begins now would say.
type told struct {
	queue  *netlink.Socket // subscribed to their group
	ask    *netlink.Socket
	r      netlink.Request
	filled bool
}

func (t *told) open(ask *netlink.Socket, group int) (err error) {
	t.ask = ask
	if t.queue, err = netlink.Open(unix.NETLINK_ROUTE, requestBuffer, group); err != nil {
		return err
	}
	return t.queue.Room(toldBuffer)
}

func (t *told) close() {
	t.queue.Close()
	t.ask.Close()
}

// update gives hear what is queued, and calls fill, which reads everything, when that is not enough.
func (t *told) update(hear func(kind uint16, body []byte), fill func() error) error {
	for t.filled {
		b, err := t.queue.ReceiveNow()
		if err == unix.EAGAIN {
			return nil
		}
		t.filled = err == nil // ENOBUFS: some were lost
		for h, rest, ok := netlink.Split(b); ok; h, rest, ok = netlink.Split(rest) {
			hear(h.Kind, h.Body)
		}
	}
	for { // what is queued is older than the dump
		_, err := t.queue.ReceiveNow()
		if err == unix.EAGAIN {
			break
		}
		if err != nil && err != unix.ENOBUFS && err != unix.EMSGSIZE { // those say that some were lost, and do not come again
			return err
		}
	}
	err := retry(fill)
	t.filled = err == nil
	return err
}
