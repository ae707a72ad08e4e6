package cri

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// state is what the runtime does with a sandbox.
type state uint8

const (
	unused     state = iota
	wantNetns        // RunPodSandbox waits for NetnsMade
	adding           // RunPodSandbox runs ADD
	checking         // RunPodSandbox runs CHECK (CRI-O)
	starting         // ADD's result is saved; the shim and pause start
	undoing          // RunPodSandbox failed and runs its own DEL
	collecting       // CRI-O was restarted meanwhile, and will be undoing when it is up again
	ready            // listed and READY
	dead             // NOTREADY: a Stop is wanted
	stopping         // Stop or Remove runs DEL
	stopped          // a Stop has succeeded; evictSandboxes will remove it
	orphaned         // the runtime has no record of it; its namespace is still mounted
)

// follows says which state may follow which. Any may end.
var follows = [orphaned + 1][]state{
	unused:     {wantNetns, starting, ready}, // starting: of the host's network; ready: the daemon's own
	wantNetns:  {adding},
	adding:     {checking, starting, undoing, dead, orphaned},
	checking:   {starting, undoing, collecting},
	starting:   {ready, undoing, collecting, dead},
	undoing:    {dead, orphaned},
	collecting: {undoing},
	ready:      {dead, stopped}, // stopped: a daemon that has been replaced
	dead:       {stopping, stopped},
	stopping:   {dead},
	stopped:    {stopping, dead},
}

// become goes on to another state. Only the node itself moves a sandbox, so a move that is not in the table is a
// mistake of the program.
func (s *sandbox) become(to state) {
	if s.state != to && !slices.Contains(follows[s.state], to) {
		panic(fmt.Sprintf("cri: sandbox %s: state %d follows %d", s.cid, to, s.state))
	}
	s.state = to
}

// rest is where a Stop leaves a sandbox that it has not stopped: where it found it.
func (s *sandbox) rest() {
	s.become(dead)
	if s.wasStopped {
		s.become(stopped)
	}
}

// network is how far what ADD made is from being given back.
type network uint8

const (
	untouched network = iota
	owing             // ADD was run
	parting           // so was DEL, without success: what its processes still have of the network is without a DEL
	parted            // nothing is owed, after a DEL
)

// What follows when a plugin is run, or a DEL has ended in success; what does not stand here cannot be.
var (
	addRun  = [...]network{untouched: owing, parted: parting} // parted: by a stale DEL
	delRun  = [...]network{untouched: parted, owing: parting, parting: parting, parted: parted}
	delDone = [...]network{parting: parted, parted: parted}
)

func (s *sandbox) advance(by [parted + 1]network) {
	to := by[s.network]
	if to == untouched {
		panic(fmt.Sprintf("cri: sandbox %s: nothing of %v follows network %d", s.cid, by, s.network))
	}
	s.network = to
}

// owes: ADD was run, and no DEL has ended in success since.
func (s *sandbox) owes() bool { return s.network == owing || s.network == parting }

// listing is whether the runtime's list holds a sandbox.
type listing uint8

const (
	unlisted listing = iota
	listed
	hidden // its record did not load: listed no more, though it lives, until a reboot
)

// show puts a sandbox into the runtime's list. A record that did not load never comes back.
func (s *sandbox) show() {
	if s.listing == hidden {
		panic("cri: sandbox " + s.cid + " is listed, and its record did not load")
	}
	s.listing = listed
}

// processes are what runs in a sandbox.
type processes uint8

const (
	noProcess processes = iota
	containers
	stuck // one of the containers is in D state
)

// end ends them, as far as they can be killed.
func (s *sandbox) end() {
	if s.processes != stuck {
		s.processes = noProcess
	}
}

// caller is who waits for a Stop or a RunPodSandbox.
type caller uint8

const (
	nobody   caller = iota // any more: a deadline, a deletion, kubelet's restart
	byWorker               // the pod's worker
	byEvict                // evictSandboxes' Stop
	byRemove               // evictSandboxes' Remove, which stops once more
)

// sandbox is one RunPodSandbox and what became of it.
type sandbox struct {
	id             SandboxID
	op             OpID // the plugin run it waits for; 0 while it waits for none
	unheard        OpID // a DEL whose caller has gone
	cid            string
	uid, ns, name  string
	pod            int32 // slot of the pod, none when kubelet has finished with it
	older          int32 // the same pod's sandbox before this one
	prev, next     int32 // in order of creation
	timer          int32
	attempt        int32
	state          state
	caller         caller
	verb           Verb
	inode          uint64
	address        netip.Addr
	created        time.Duration
	deadline       time.Duration // of RunPodSandbox
	hostNet        bool
	mounted        bool // the runtime has the namespace mounted
	result         bool // CNIResult is saved
	network        network
	listing        listing
	hiddenBy       int32 // the fault that hid it, until it has been met
	processes      processes
	hungBy         int32 // the same of what is stuck
	networkStopped bool  // CRI-O and dockershim: no further DEL
	wasStopped     bool  // a Stop has succeeded before
	due            bool  // the pod's worker will stop it in the sync under way
}

const slotBits = 20

// serial makes an identity that names its slot, so that an answer is found without a search.
func (n *Node) serial(slot int32) uint64 {
	n.ids++
	return n.ids<<slotBits | uint64(slot)
}

// box finds a sandbox by its handle.
func (n *Node) box(id SandboxID) (int32, bool) {
	slot := int32(id & (1<<slotBits - 1))
	if int(slot) >= len(n.sandboxes) || n.sandboxes[slot].id != id || id == 0 {
		return none, false
	}
	return slot, true
}

// takeSlot is a slot of the list that nothing has: the last one that became free, or a new one.
func takeSlot[T any](list *[]T, free *[]int32) int32 {
	if l := len(*free); l > 0 {
		i := (*free)[l-1]
		*free = (*free)[:l-1]
		return i
	}
	*list = append(*list, *new(T))
	return int32(len(*list) - 1)
}

// newSandbox takes a slot and appends it to the order of creation.
func (n *Node) newSandbox(ns, name, uid string) int32 {
	i := takeSlot(&n.sandboxes, &n.freeBoxes)
	n.sandboxes[i] = sandbox{
		id: SandboxID(n.serial(i)), cid: n.rng.containerID(),
		uid: uid, ns: ns, name: name,
		pod: none, older: none, prev: n.last, next: none, timer: none,
		created: n.now,
	}
	if n.last != none {
		n.sandboxes[n.last].next = i
	} else {
		n.first = i
	}
	n.last = i
	n.count.Sandboxes++
	return i
}

// forget drops the runtime's record.
func (n *Node) forget(i int32) {
	s := &n.sandboxes[i]
	n.dropOp(i)
	n.calm(boxKey(i))
	if s.owes() {
		n.count.Lost++
	}
	n.emit(Action{Kind: SandboxGone, ContainerID: s.cid, UID: s.uid, Sandbox: s.id, Lost: s.owes()})
	n.bury(s)
	n.unlink(i)
}

// unlink frees the slot.
func (n *Node) unlink(i int32) {
	s := &n.sandboxes[i]
	n.leavePod(i)
	if s.prev != none {
		n.sandboxes[s.prev].next = s.next
	} else {
		n.first = s.next
	}
	if s.next != none {
		n.sandboxes[s.next].prev = s.prev
	} else {
		n.last = s.prev
	}
	if n.gcBusy == s.id {
		n.gcBusy = 0
	}
	*s = sandbox{timer: none}
	n.freeBoxes = append(n.freeBoxes, i)
	n.count.Sandboxes--
}

// leavePod takes the sandbox out of its pod's list.
func (n *Node) leavePod(i int32) {
	s := &n.sandboxes[i]
	if s.pod == none {
		return
	}
	at := &n.pods[s.pod].newest
	for *at != i {
		at = &n.sandboxes[*at].older
	}
	*at = s.older
	s.pod, s.older = none, none
}

// unmount lets the namespace go; a process in D state still holds it.
func (n *Node) unmount(i int32) {
	s := &n.sandboxes[i]
	if !s.mounted {
		return
	}
	s.mounted = false
	n.emit(Action{Kind: RemoveNetns, Inode: s.inode, Sandbox: s.id})
}

// visible: kubelet finds the sandbox in the runtime's list.
func (s *sandbox) visible() bool { return s.listing == listed }

// creating: a RunPodSandbox call is under way.
func (s *sandbox) creating() bool { return unused < s.state && s.state < ready }
