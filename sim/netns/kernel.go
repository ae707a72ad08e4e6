package netns

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/verb"
)

// realKernel is a node's kernel: its ENIs' links, what is done to it, and the model that it is held against.
type realKernel struct {
	n        *instance
	mac      string // of the primary ENI
	links    machine.Links
	booted   time.Duration // the last time
	stirred  time.Time     // until then an event may be under way
	mirror   *mirror
	compared time.Time // when it was last held against the mirror
	doubt    doubt
}

// doubt is when the real kernel was first seen to differ from the model; zero: it does not.
type doubt struct {
	since time.Time
	steps uint64 // of the daemon by then: whatever it does begins anew
}

// configure does what the machine's own network configuration does at boot.
func (k *realKernel) configure() error {
	n, w := k.n, k.n.w
	in, _ := w.EC2.InstanceOf(n.Instance)
	k.mac = in.PrimaryMAC
	address, gateway := w.FirstLink(n.Instance)
	k.mirror.PlugPrimary(k.mac, address, gateway)
	return n.box.ConfigurePrimary(k.links[k.mac], address, gateway)
}

func (k *realKernel) plug(mac string) {
	n, w := k.n, k.n.w
	if n.Gone || k.links[mac] != "" {
		return
	}
	k.mirror.Plug(mac)
	_, err := k.links.Plug(w.network, n.box.Netns(), mac)
	w.fail(err)
	k.lease()
	k.stir()
}

// lease gives each link but the first its ENI's primary address, as the DHCP client of a machine does whose system leaves that to it.
func (k *realKernel) lease() {
	n, w := k.n, k.n.w
	if n.system == nil || !n.system.Node.DHCP || k.mac == "" { // its first link comes before its MAC is known
		return
	}
	for _, l := range w.EC2.Links(n.Instance) {
		if e, _ := w.EC2.ENI(l.ENI); k.links[l.MAC] != "" && l.MAC != k.mac && e.Primary.IsValid() {
			w.fail(addLink(n.box.Netns(), k.links[l.MAC], netip.PrefixFrom(e.Primary, w.EC2.CIDROf(e.Subnet).Bits())))
		}
	}
}

// stir: the laboratory has changed the node's kernel, and the daemon will hear of it.
func (k *realKernel) stir() {
	k.n.Changed = true
	k.stirred = time.Now().Add(slowed(kernelTime))
}

// stirs: something of a daemon's or plugin's has just ended, of which it is unknown what follows.
func (k *realKernel) stirs() {
	if k.n.system != nil {
		k.n.Changed = true
		k.stirred = time.Now().Add(slowed(quietTime))
	}
}

// quietTime is how long, in the machine's time, nothing of a daemon that does not say that it waits has to be seen before it is taken to.
const quietTime = 200 * time.Millisecond

// Reboot first ends the daemon.
func (k *realKernel) Reboot() {
	k.n.rebooting = true
	if k.n.phase == absent {
		k.rebooted()
		return
	}
	k.n.kill()
}

// rebooted: the daemon is dead, and so is everything else.
func (k *realKernel) rebooted() {
	n, w := k.n, k.n.w
	n.rebooting, k.booted = false, w.now()
	n.fell()
	w.fail(n.box.Reboot())
	k.mirror.reboot()
	if w.parts.WithoutBooks {
		w.Auditor.Boots(k.booted, int(n.No)) // not now: making it again has taken a while
	}
	k.enumerate()
	w.fail(k.configure())
	k.lease()
	w.fail(n.addAddress(imdsAddr))
	if n.system != nil {
		w.fail(n.listenPolicies())
	}
	w.EC2.Reboot(w.now(), n.Instance)
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.Reboot})
	k.stir()
	w.after(models.BootTime+n.pause, n.start)
}

// enumerate names the ENIs' links as a boot does: in their order, without the gaps that detached ones have left.
func (k *realKernel) enumerate() {
	n, w := k.n, k.n.w
	links := k.mirror.Observe().Links
	for _, l := range links { // out of each other's way
		if old := k.links[l.MAC]; old != "" && old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, "boot-"+l.Name))
			k.links[l.MAC] = "boot-" + l.Name
		}
	}
	for _, l := range links {
		old := k.links[l.MAC]
		if old == "" {
			continue
		}
		if old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, l.Name))
			k.links[l.MAC] = l.Name
		}
		w.fail(machine.Booted(n.box.Netns(), l.Name))
	}
}

// InterruptDumps is never asked, see Can.
func (k *realKernel) InterruptDumps(int, int) verb.Strike { return verb.Strike{} }

// Interfere is done to the kernel, and to its mirror.
func (k *realKernel) Interfere(a kernel.Accident, at cri.Truth) int {
	if a.Netns = at.Netns; at.ID != "" {
		a.Link = k.veth(at.ID)
	}
	count, err := k.n.box.Interfere(a)
	k.n.w.fail(err)
	a.Netns = k.mirror.inodes[a.Netns]
	k.mirror.Suffer(a)
	if a.What != kernel.LoseGateway { // nothing tells of it
		k.stir()
	}
	return count
}

func (k *realKernel) AddThirdParty() (lacks []string) {
	lacks, err := k.n.box.AddThirdParty()
	k.n.w.fail(err)
	k.mirror.AddForeignRule(kernel.ThirdParty)
	k.stir()
	return lacks
}

// veth is the host end of a sandbox's link, "" if there is none.
func (k *realKernel) veth(containerID string) string {
	if !k.n.w.parts.WithoutBooks {
		return k.mirror.VethOf(containerID)
	}
	for t := range k.n.CRI.Sandboxes() {
		if t.ID == containerID {
			return k.linkTo(t.Address)
		}
	}
	return ""
}

// linkTo is the host link behind which an address is, "" if there is none.
func (k *realKernel) linkTo(a netip.Addr) string {
	o, _ := k.n.box.Observe() // what cannot be observed has none
	for _, l := range o.Links {
		if l.Veth && slices.Contains(l.PeerAddresses, a) {
			return l.Name
		}
	}
	return ""
}

// mirrored applies to the model what the daemon has applied.
func (k *realKernel) mirrored(a *ipam.Apply, done *ipam.Applied) {
	if diff := k.mirror.follow(a, done); diff != "" {
		k.n.disagree("kernel: %s", diff)
	}
}

// explain finds out at once how far a dead daemon's plans got: the next one changes the kernel again.
func (k *realKernel) explain() {
	if len(k.mirror.broken) == 0 {
		return
	}
	real, err := k.n.box.Observe()
	if err != nil || !real.Complete {
		return // the next comparison does it
	}
	normalize(&real)
	k.mirror.explain(&real)
}

// doubtTime is how long, in real time, model and kernel may differ while nothing of the node works: what a kernel event, a line of a
// recording, or the end of a namespace takes on a machine that is busy with other things.
const doubtTime = 3 * time.Second

// doubtPause is between two looks in that time.
const doubtPause = 5 * time.Millisecond

// compare holds the model against the real kernel. What differs may only be on its way, so the clock does not jump until they agree;
// what stays is a disagreement.
func (k *realKernel) compare() {
	n, w := k.n, k.n.w
	if w.parts.WithoutBooks { // the model is not told what the daemon did
		return
	}
	real, err := n.box.Observe()
	k.compared = time.Now()
	diff := ""
	if err != nil || !real.Complete {
		diff = fmt.Sprintf("it cannot be observed whole: %v\n", err) // which may pass, like a difference
	} else {
		normalize(&real)
		diff = k.mirror.agree(&real)
	}
	switch {
	case diff == "":
		k.doubt = doubt{}
	case k.doubt.since.IsZero() || k.doubt.steps != n.steps():
		k.doubt = doubt{k.compared, n.steps()}
	case k.compared.Sub(k.doubt.since) > slowed(doubtTime):
		k.doubt = doubt{}
		n.disagree("kernel: the real one and the model differ:\n%s", diff)
	}
}
