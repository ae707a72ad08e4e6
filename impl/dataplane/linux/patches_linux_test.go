package linux

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

// Each of these notices a change of one line that nothing else here noticed: testdata/patches has them.

// TestDeletionOfWhatIsGone: a link may end by itself, with its namespace, between the look at it and its deletion.
func TestDeletionOfWhatIsGone(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	const nobody = 1 << 20
	if err := <-k.askDeletion(nobody); err != nil {
		t.Errorf("the deletion of a link that is gone: %v", err)
	}
}

// TestAPodsLinkIsNoENI: the alias says whose a link is, also when it has an ENI's MAC, and was there first.
func TestAPodsLinkIsNoENI(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	s := newSpace(t)
	w := spec(1, s.inode)
	apply(t, k, dataplane.PodPlan(w), s.pod(t))
	mac := dataplane.VethMAC(w.Alias)
	up := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.ENIUp, MAC: mac, MTU: 1500}}}
	if _, err := k.Apply(up, nil); err == nil || err.Kind != dataplane.NoLink {
		t.Errorf("an ENI with a pod's MAC, which is not there: %v", err)
	}
	plug(t, newSpace(t), "eth7", mac, "cable")
	apply(t, k, up, nil)
	o := observe(t, k)
	if l := o.Index().LinkByAlias(w.Alias); l == nil || l.MTU != w.MTU {
		t.Errorf("the pod's link got the ENI's MTU: %+v", l)
	}
}

// TestAHalfMadeVethIsGone: the pair is there, and the pod's end cannot be brought up. The plan says that it was not made, so nobody would look
// for it.
func TestAHalfMadeVethIsGone(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	s := newSpace(t)
	p := s.pod(t)
	broken, kernel := scripted(t)
	unix.Close(kernel)
	p.s.fd = broken.fd // whatever is asked inside the pod fails
	w := spec(1, s.inode)
	if done, err := k.Apply(dataplane.PodPlan(w), p); done != 0 || err == nil {
		t.Fatalf("done %d, %v; expected that the first operation fails", done, err)
	}
	if o := observe(t, k); len(o.Links) != 0 {
		t.Errorf("a half-made veth stays: %+v", o.Links)
	}
}
