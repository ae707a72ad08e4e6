package linux

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

// goneCheck is how often it is looked whether a link that is being deleted is gone, where what the kernel tells of it was read by somebody else.
const goneCheck = time.Millisecond

func (a *applier) deleteVeth(op *dataplane.Op) error {
	d, err := a.veth(op.Alias)
	if err == errNoLink {
		return nil
	}
	if err != nil {
		return err
	}
	a.last, a.inPod = device{}, 0
	a.leaving = a.k.beginDeletion(d.index)
	return nil
}

// overlaps says whether an operation may run while a veth is being deleted: it takes away what nobody wants any more, or what dies with
// the link. The kernel has one lock, which the end of other pods' namespaces keeps for long, and who waits for it three times one
// after the other waits three times as long as who asks for all at once.
func overlaps(k dataplane.Kind) bool { return k == dataplane.RemoveRule || k == dataplane.RemoveRoute }

// left waits for the veth that is being deleted, if one is.
func (a *applier) left() error {
	if a.leaving == nil {
		return nil
	}
	d := a.leaving
	a.leaving = nil
	return a.k.deleted(d)
}

// deletion is a link that the kernel has been asked to delete.
type deletion struct {
	index  int
	answer <-chan error
}

// deleteLink ends when the pair is gone: out of every list, its addresses and routes with it, its name
// free. That takes the kernel a millisecond; its answer takes twenty more, for which it waits without any lock
// that concerns us until no CPU reads the freed memory (netdev_run_todo, rcu_barrier). Nobody else
// needs to wait for that. The kernel tells that it is gone with the lock still held (rtmsg_ifinfo_send in unregister_netdevice_many);
// who asks it instead waits for that lock once more.
func (k *Kernel) deleteLink(index int) error { return k.deleted(k.beginDeletion(index)) }

// beginDeletion returns once the request is as good as in the kernel.
func (k *Kernel) beginDeletion(index int) *deletion {
	begun, answer := k.askDeletion(index)
	<-begun
	return &deletion{index, answer}
}

// deleted waits until the link is gone.
func (k *Kernel) deleted(d *deletion) error {
	for {
		select {
		case err := <-d.answer:
			return err
		default:
		}
		if known, err := k.roster.has(d.index); err != nil || !known {
			return err
		}
		if err := wait(k.roster.queue.fd, goneCheck); err != nil && err != unix.ETIMEDOUT {
			return err
		}
	}
}

// askDeletion asks for it on a lane of its own. The answer is nil also when the link was gone before.
func (k *Kernel) askDeletion(index int) (begun <-chan struct{}, _ <-chan error) {
	asked, answer := make(chan struct{}), make(chan error, 1)
	k.deleting.Add(1)
	go func() {
		defer k.deleting.Done()
		l := <-k.deletions
		defer func() { k.deletions <- l }()
		l.r.reset().link(unix.RTM_DELLINK, unix.NLM_F_ACK|signed, index, 0, 0)
		close(asked)
		err := l.s.do(&l.r)
		if is(err, unix.ENODEV) {
			err = nil
		}
		answer <- err
	}()
	return asked, answer
}
