package linux

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// rosterBuffer is what the kernel may queue for the roster between two plans, in bytes. Past it, the
// next plan begins with a dump.
const rosterBuffer = 256 << 10

// roster knows all links. The kernel finds a link by its name, never by its alias, and
// a dump of 110 links costs as much as making one. So it is dumped once, and then told: a
// notification is queued before the request that caused it returns, so a reader of the queue knows as
// much as a dump that begins now would say, with one exception: see updateAliases.
type roster struct {
	lock   sync.Mutex
	queue  *netlink.Socket // subscribed to RTNLGRP_LINK
	ask    *netlink.Socket
	r      netlink.Request
	filled bool

	links  map[int]device
	byName map[string]int
}

func (o *roster) open(ask *netlink.Socket) (err error) {
	o.ask = ask
	if o.queue, err = netlink.Open(unix.NETLINK_ROUTE, requestBuffer, unix.RTNLGRP_LINK); err != nil {
		return err
	}
	return o.queue.Room(rosterBuffer)
}

func (o *roster) close() {
	o.queue.Close()
	o.ask.Close()
}

// name is the link that has it; index 0 when there is none.
func (o *roster) name(name string) (device, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	err := o.update()
	return o.links[o.byName[name]], err
}

// alias is the link that has it; index 0 when there is none. A third party may have given two links the same one: the
// older is meant.
func (o *roster) alias(alias string) (device, error) {
	return o.best(func(d, than *device) bool {
		return alias != "" && d.alias == alias && (than.index == 0 || d.index < than.index)
	})
}

// best is the link that better prefers to all others; it is first asked with the zero device.
func (o *roster) best(better func(d, than *device) bool) (found device, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	err = o.updateAliases()
	for _, d := range o.links {
		if better(&d, &found) {
			found = d
		}
	}
	return found, err
}

// update reads what is queued, and everything when that is not enough.
func (o *roster) update() error {
	for o.filled {
		b, err := o.queue.ReceiveNow()
		if err == unix.EAGAIN {
			return nil
		}
		if err != nil { // ENOBUFS: some were lost
			o.filled = false
			break
		}
		o.read(b)
	}
	return o.fill()
}

// updateAliases also looks at the links that are down: a new alias of such a one causes no notification
// (netdev_state_change). There are hardly any.
func (o *roster) updateAliases() error {
	if err := o.update(); err != nil {
		return err
	}
	for index, d := range o.links {
		if d.up || d.loopback {
			continue
		}
		now, err := byIndex(o.ask, &o.r, index)
		if err != nil {
			return err
		}
		o.remove(index)
		if now.index != 0 {
			o.put(now)
		}
	}
	return nil
}

func (o *roster) read(b []byte) {
	var v netlink.Link
	for h, rest, ok := netlink.Split(b); ok; h, rest, ok = netlink.Split(rest) {
		if h.Kind != unix.RTM_NEWLINK && h.Kind != unix.RTM_DELLINK || !v.Parse(h.Body) || h.Body[0] != unix.AF_UNSPEC {
			continue
		}
		o.remove(v.Index)
		if h.Kind == unix.RTM_NEWLINK {
			o.add(&v)
		}
	}
}

// fill empties the queue first: what it says is older than the dump.
func (o *roster) fill() error {
	for {
		_, err := o.queue.ReceiveNow()
		if err == unix.EAGAIN {
			break
		}
		if err != nil && err != unix.ENOBUFS && err != unix.EMSGSIZE { // those say that some were lost, and do not come again
			return err
		}
	}
	var err error
	for range interruptions {
		o.links, o.byName = map[int]device{}, map[string]int{}
		var v netlink.Link
		err = o.ask.Dump(o.r.AskLinks(), func(body []byte) {
			if v.Parse(body) {
				o.add(&v)
			}
		})
		if err != netlink.ErrInterrupted {
			break
		}
	}
	o.filled = err == nil
	return err
}

func (o *roster) add(v *netlink.Link) { o.put(deviceOf(v)) }

func (o *roster) put(d device) {
	o.links[d.index] = d
	o.byName[d.name] = d.index
}

func (o *roster) remove(index int) {
	d, known := o.links[index]
	if !known {
		return
	}
	delete(o.links, index)
	if o.byName[d.name] == index {
		delete(o.byName, d.name)
	}
}
