package netns_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vpc"
)

// A machine with a DHCP client gives a further ENI's link that ENI's primary address, when it is attached and after a reboot; one without gives none.
func TestDHCP(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("waits until an ENI is attached, in real time")
	}
	for _, dhcp := range []bool{true, false} {
		t.Run(fmt.Sprint(dhcp), func(t *testing.T) {
			t.Parallel() // it mostly waits: these worlds are in real time
			p := parts(t)
			p.System = strangeSystem(t, "", "")
			p.System.Node.DHCP = dhcp
			c, err := runner.Load(netns.Place(p), "dhcp.scn", []byte("cluster nodes=1 subnet=10.0.40.0/24\nat 1s ec2 attach\nat 10s node-1 reboot\nat 12s expect node-1 enis == 2\n"))
			must.Do(t, err)
			r, opened, err := c.Variants[0].Open(runner.DefaultSeed, nil)
			must.Do(t, err)
			w := opened.(*netns.World)
			defer func() { must.Do(t, w.Close()) }()
			for _, at := range []time.Duration{9 * time.Second, 12 * time.Second} {
				r.To(at, nil)
				in, _ := w.EC2.InstanceOf(w.Instance(1))
				var want []string
				for _, l := range w.EC2.Links(w.Instance(1)) {
					if e, _ := w.EC2.ENI(l.ENI); dhcp && l.MAC != in.PrimaryMAC {
						want = append(want, e.Primary.String()+"/24")
					}
				}
				if got := addressesOf(t, w, "eth1"); !slices.Equal(got, want) || dhcp && len(want) != 1 {
					t.Errorf("at %v: expected %v, found %v", at, want, got)
				}
			}
		})
	}
}

func addressesOf(t *testing.T, w *netns.World, name string) (out []string) {
	t.Helper()
	must.Do(t, vpc.Do(w.Handle(1).Box().Netns(), func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		list, err := netlink.AddrList(l, netlink.FAMILY_V4)
		for _, a := range list {
			out = append(out, a.IPNet.String())
		}
		return err
	}))
	return out
}
