package interference_test

import (
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/interference"
)

// inNamespace runs a test in a network namespace of its own, which ends with its thread.
func inNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace of its own")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			t.Errorf("a network namespace: %v", err)
			return
		}
		f(t)
	}()
	<-done
}

// TestThirdParty: what a third party has put on a node is seen, and seen to be gone, thing by thing.
func TestThirdParty(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		look := func() map[string]string {
			t.Helper()
			is, err := interference.ThirdParty()
			if err != nil {
				t.Error(err)
			}
			return is
		}
		if is := look(); slices.ContainsFunc(slices.Collect(maps.Keys(is)), func(name string) bool { return !strings.HasPrefix(name, "sysctl ") }) {
			t.Errorf("before: found %v", is)
		}
		lacks, err := interference.AddThirdParty()
		if err != nil {
			t.Error(err)
			return
		}
		was := look()
		for name, text := range was {
			t.Logf("%s: %s", name, text)
		}
		for _, l := range lacks {
			t.Logf("not there: %s", l)
		}
		if len(was)+len(lacks) != 13 {
			t.Errorf("%d things are there, %d are not: expected 13 of them", len(was), len(lacks))
		}
		gone := func(what string, do func() error, names ...string) {
			t.Helper()
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			is := look()
			for _, name := range names {
				if text, there := is[name]; there && text == was[name] || was[name] == "" && !slices.ContainsFunc(lacks, func(l string) bool { return strings.HasPrefix(l, name) }) {
					t.Errorf("%s: %s is %q, as before", what, name, text)
				}
			}
			for name := range is {
				if is[name] != was[name] && !slices.Contains(names, name) {
					t.Errorf("%s: %s was %q and is %q", what, name, was[name], is[name])
				}
			}
			was = is
		}
		gone("sysctl", func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/log_martians", []byte("0"), 0) }, "sysctl net.ipv4.conf.all.log_martians")
		gone("rules", func() error { _, err := interference.FlushRules(); return err }, "rule 30000")
		gone("a table of routes", func() error { _, err := interference.FlushRoutes(4000); return err }, "route of table 4000")
		gone("another mark", func() error {
			forward := netlink.IPTuple{SrcIP: net.IP{192, 0, 2, 9}, DstIP: net.IP{203, 0, 113, 9}, Protocol: unix.IPPROTO_TCP, SrcPort: 40000, DstPort: 443}
			back := netlink.IPTuple{SrcIP: forward.DstIP, DstIP: forward.SrcIP, Protocol: forward.Protocol, SrcPort: forward.DstPort, DstPort: forward.SrcPort}
			return netlink.ConntrackUpdate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{FamilyType: unix.AF_INET, Forward: forward, Reverse: back, Mark: 0x4080, TimeOut: 86400})
		}, "mark of a connection")
		gone("conntrack", func() error { return netlink.ConntrackTableFlush(netlink.ConntrackTable) }, "mark of a connection")
		gone("a flushed chain", func() error {
			c, err := nftables.New()
			if err != nil {
				return err
			}
			c.FlushChain(&nftables.Chain{Name: "POSTROUTING", Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "nat"}})
			return c.Flush()
		}, "chain THIRD-PARTY of iptables-nft, table nat")
		gone("nft flush ruleset", func() error { _, err := interference.FlushNAT(); return err }, "table inet third-party of nftables", "chain THIRD-PARTY of iptables-nft, table nat",
			"chain THIRD-PARTY of iptables-nft, table mangle", "chain THIRD-PARTY of iptables-nft, table filter")
	})
}
