package plugin_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/impl/netpolicy/netpolicytest"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// policed is a node whose daemon says that an agent has to hear of its pods, in that mode.
func policed(t *testing.T, mode string) *node {
	t.Helper()
	n := newNode(t)
	n.daemon.set(func(d *daemon) {
		d.change = func(r *ipc.Response) {
			if r.Code == 0 {
				r.PolicyMode = mode
			}
		}
	})
	return n
}

func (n *node) agent() string { return filepath.Join(n.dir, netpolicy.Name) }

// noted are the DELs that the daemon is to finish.
func (n *node) noted() int {
	n.t.Helper()
	list, bad, err := ipc.ReadIntents(filepath.Join(n.dir, filepath.Base(ipc.IntentDir)))
	if err != nil || len(bad) > 0 {
		n.t.Fatal(bad, err)
	}
	return len(list)
}

// deadSocket is one on which nobody listens.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
}

// TestPolicies: the agent hears of a pod when its interface is there and before ADD succeeds, and after DEL has taken the interface away.
func TestPolicies(t *testing.T) {
	for _, mode := range []string{netpolicy.Standard, netpolicy.Strict} {
		n := policed(t, mode)
		var seen []int // attachments of the daemon when the agent was called
		a := netpolicytest.Start(t, n.agent())
		a.Answer(func(context.Context, netpolicytest.Call) (bool, error) {
			seen = append(seen, n.daemon.holds())
			return true, nil
		})
		c := of("ADD", pod(t))
		n.result(c)
		c.verb = "DEL"
		n.ok(c)
		n.ok(c) // it may have been told only half the first time
		want := []netpolicytest.Call{{Method: "EnforceNpToPod", Name: "web-0", Namespace: "default", Mode: mode, Interfaces: 1},
			{Method: "DeletePodNp", Name: "web-0", Namespace: "default"}, {Method: "DeletePodNp", Name: "web-0", Namespace: "default"}}
		if got := a.Calls(); !slices.Equal(got, want) || !slices.Equal(seen, []int{1, 0, 0}) {
			t.Errorf("the agent was told %+v while the daemon had %v attachments", got, seen)
		}
		if n.noted() != 0 {
			t.Error("a DEL was noted although the agent was told")
		}
	}
}

// TestNoPolicies: without a mode nobody is told, and nobody is missed for a pod without a name. Without an agent pods start in mode
// standard; in mode strict none does, nothing of it is left, and it starts once there is an agent.
func TestNoPolicies(t *testing.T) {
	n := newNode(t)
	a := netpolicytest.Start(t, n.agent())
	c := of("ADD", pod(t))
	n.result(c)
	c.verb = "DEL"
	n.ok(c)
	if got := a.Calls(); len(got) > 0 {
		t.Errorf("without a mode the agent was told %+v", got)
	}
	for _, mode := range []string{netpolicy.Standard, netpolicy.Strict} {
		n := policed(t, mode)
		c := of("ADD", pod(t))
		if mode == netpolicy.Strict {
			n.fails(c, 11, "no network policy agent listens")
			if held := n.daemon.holds(); held != 0 {
				t.Errorf("%d attachments are left of a pod that must not start", held)
			}
		} else {
			n.result(c)
		}
		c.verb = "DEL"
		n.ok(c)
		if n.noted() != 0 {
			t.Error("a DEL was noted for an agent that is not there")
		}
		a := netpolicytest.Start(t, n.agent())
		c = of("ADD", pod(t))
		c.args = ""
		n.result(c)
		c.verb = "DEL"
		n.ok(c)
		if got := a.Calls(); len(got) > 0 {
			t.Errorf("the agent was told of a nameless pod: %+v", got)
		}
	}
}

// TestPoliciesRefused: a pod whose policies are not in force does not run, and nothing of it is left; one that runs already is left alone.
func TestPoliciesRefused(t *testing.T) {
	n := policed(t, netpolicy.Standard)
	a := netpolicytest.Start(t, n.agent())
	c := of("ADD", pod(t))
	for _, no := range []struct {
		ok  bool
		err error
	}{{false, nil}, {true, errors.New("failed to load progs: Link not found")}} {
		a.Answer(func(context.Context, netpolicytest.Call) (bool, error) { return no.ok, no.err })
		n.fails(c, 11, "network policy agent", "try again")
		if n.daemon.holds() != 0 {
			t.Error("the address was not given back")
		}
	}
	a.Answer(func(context.Context, netpolicytest.Call) (bool, error) { return true, nil })
	n.result(c)
	a.Answer(func(context.Context, netpolicytest.Call) (bool, error) { return false, nil })
	n.fails(c, 11, "network policy agent")
	if n.daemon.holds() != 1 {
		t.Error("a living pod's address was given back because its ADD was repeated")
	}
	a.Stop()
	deadSocket(t, n.agent())
	other := of("ADD", pod(t))
	other.id = "c2"
	n.fails(other, 11, "nobody listens", "has to be removed")
	if n.daemon.holds() != 1 {
		t.Error("the address was not given back")
	}
}

// TestPoliciesForgotten: DEL has succeeded whatever the agent does, within seconds, and the daemon gets a note of what the agent has not heard.
func TestPoliciesForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		agent func(t *testing.T, n *node)
		noted int
	}{
		"it fails": {func(t *testing.T, n *node) {
			netpolicytest.Start(t, n.agent()).Answer(func(context.Context, netpolicytest.Call) (bool, error) { return false, errors.New("no such map") })
		}, 0}, // it tries no second time either
		"it is dead":    {func(t *testing.T, n *node) { deadSocket(t, n.agent()) }, 1},
		"it is no gRPC": {func(t *testing.T, n *node) { nonsense(t, n.agent()) }, 1},
		"it hangs": {func(t *testing.T, n *node) {
			l := must.Get(net.Listen("unix", n.agent()))(t)
			t.Cleanup(func() { l.Close() })
		}, 1},
		"it hangs later": {func(t *testing.T, n *node) {
			netpolicytest.Start(t, n.agent()).Answer(func(ctx context.Context, _ netpolicytest.Call) (bool, error) { <-ctx.Done(); return true, nil })
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := policed(t, netpolicy.Standard)
			add := of("ADD", pod(t))
			n.result(add)
			c.agent(t, n)
			del := add
			del.verb = "DEL"
			n.ok(del) // within a moment, and the agent would never answer
			if n.daemon.holds() != 0 || n.noted() != c.noted {
				t.Errorf("%d attachments, %d notes; expected 0 and %d", n.daemon.holds(), n.noted(), c.noted)
			}
		})
	}
	t.Run("nor can it be noted", func(t *testing.T) {
		t.Parallel()
		n := policed(t, netpolicy.Standard)
		deadSocket(t, n.agent())
		must.Do(t, os.WriteFile(filepath.Join(n.dir, filepath.Base(ipc.IntentDir)), nil, 0o600))
		n.fails(of("DEL", ""), 11, "could not be left a note", "try again")
	})
}

// nonsense is somebody else's socket.
func nonsense(t *testing.T, path string) {
	t.Helper()
	l := must.Get(net.Listen("unix", path))(t)
	t.Cleanup(func() { l.Close() })
	go accept.Each(l.Accept, func(c net.Conn) {
		_, _ = c.Write([]byte("220 hello\r\n"))
		c.Close()
	})
}
