package linux

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// goneCheck is how often a link that is being deleted is looked after. A look that begins during the deletion ends with it: both
// take the kernel's one lock.
const goneCheck = 50 * time.Microsecond

func (a *applier) deleteVeth(op *dataplane.Op) error {
	d, err := a.veth(op.Alias)
	if err == errNoLink {
		return nil
	}
	if err != nil {
		return err
	}
	a.last, a.inPod = device{}, 0
	return a.deleteLink(d.index)
}

// deleteLink ends when the pair is gone: out of every list, its addresses and routes with it, its name
// free. That takes the kernel a millisecond; its answer takes twenty more, for which it waits without any lock
// that concerns us until no CPU reads the freed memory (netdev_run_todo, rcu_barrier). No other caller
// needs to wait for that.
func (a *applier) deleteLink(index int) error {
	answer := a.k.askDeletion(index)
	for {
		select {
		case err := <-answer:
			return err
		default:
		}
		nap(goneCheck)
		now, err := byIndex(a.s, a.r, index)
		if err != nil || now.index == 0 {
			return err
		}
	}
}

// askDeletion asks for it on a lane of its own. The answer is nil also when the link was gone before.
func (k *Kernel) askDeletion(index int) <-chan error {
	answer := make(chan error, 1)
	k.deleting.Add(1)
	go func() {
		defer k.deleting.Done()
		l := <-k.deletions
		defer func() { k.deletions <- l }()
		l.r.Reset().Link(unix.RTM_DELLINK, unix.NLM_F_ACK|signed, index, 0, 0)
		err := l.s.Do(&l.r)
		if netlink.Is(err, unix.ENODEV) {
			err = nil
		}
		answer <- err
	}()
	return answer
}

// nap is time.Sleep for less than a millisecond, which is what the Go runtime rounds up to when nothing else happens (netpoll).
func nap(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t, nil) // one that a signal cut short is short
}
