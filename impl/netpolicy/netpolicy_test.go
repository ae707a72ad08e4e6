package netpolicy_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/netpolicy"
	"github.com/enilab/enilab/impl/netpolicy/netpolicytest"
	"github.com/enilab/enilab/internal/must"
)

var pod = ipam.Pod{Namespace: "shop", Name: "web-0", UID: "u"}

func socket(t *testing.T) string { return filepath.Join(t.TempDir(), netpolicy.Name) }

func TestCalls(t *testing.T) {
	path := socket(t)
	a := netpolicytest.Start(t, path)
	for _, mode := range []string{netpolicy.Standard, netpolicy.Strict} {
		must.Do(t, netpolicy.Enforce(t.Context(), path, mode, pod))
	}
	must.Do(t, netpolicy.Forget(t.Context(), path, pod))
	want := []netpolicytest.Call{{Method: "EnforceNpToPod", Name: "web-0", Namespace: "shop", Mode: "standard", Interfaces: 1},
		{Method: "EnforceNpToPod", Name: "web-0", Namespace: "shop", Mode: "strict", Interfaces: 1}, {Method: "DeletePodNp", Name: "web-0", Namespace: "shop"}}
	if got := a.Calls(); !slices.Equal(got, want) {
		t.Errorf("the agent was told %+v", got)
	}
}

// TestPodRunsOnlyWhenTheAgentSaysSo: a pod runs only when the agent says so; one that is gone has been told of with
// any answer.
func TestPodRunsOnlyWhenTheAgentSaysSo(t *testing.T) {
	path := socket(t)
	a := netpolicytest.Start(t, path)
	for name, c := range map[string]struct {
		ok   bool
		err  error
		want string
	}{
		"no":          {false, nil, "could not put the pod's policies in force"},
		"an error":    {true, errors.New("failed to load progs: Link not found"), "Link not found"},
		"unavailable": {true, status.Error(codes.Unavailable, "not initialised"), "Unavailable"},
		"a deadline":  {true, status.Error(codes.DeadlineExceeded, "its own"), "DeadlineExceeded"},
	} {
		a.Answer(func(context.Context, netpolicytest.Call) (bool, error) { return c.ok, c.err })
		if err := netpolicy.Enforce(t.Context(), path, netpolicy.Strict, pod); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if err := netpolicy.Forget(t.Context(), path, pod); err != nil {
			t.Errorf("%s: forget: %v", name, err)
		}
	}
}

// TestAgentThatIsGoneOrHangs: none, one that is gone without its socket, one that hangs, and what is none.
func TestAgentThatIsGoneOrHangs(t *testing.T) {
	both := func(ctx context.Context, path string) []error {
		return []error{netpolicy.Enforce(ctx, path, netpolicy.Standard, pod), netpolicy.Forget(ctx, path, pod)}
	}
	for _, err := range both(t.Context(), socket(t)) {
		if !errors.Is(err, netpolicy.ErrAbsent) {
			t.Errorf("no socket: %v", err)
		}
	}
	dead := socket(t)
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, err := range both(t.Context(), dead) {
		if !errors.Is(err, netpolicy.ErrNotListening) || errors.Is(err, netpolicy.ErrAbsent) {
			t.Errorf("a dead socket: %v", err)
		}
	}
	plain := socket(t)
	must.Do(t, os.WriteFile(plain, nil, 0o600))
	for _, err := range both(t.Context(), plain) {
		if !errors.Is(err, netpolicy.ErrNotListening) {
			t.Errorf("a file: %v", err)
		}
	}
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		path := socket(t)
		l := must.Get(net.Listen("unix", path))(t)
		t.Cleanup(func() { l.Close() })
		began := time.Now()
		if err := netpolicy.Forget(t.Context(), path, pod); err == nil || errors.Is(err, netpolicy.ErrNotListening) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took >= netpolicy.ForgetBound {
			t.Errorf("it took %v, as long as a whole call may: who says nothing is left after %v", took, netpolicy.ReachBound)
		}
	})
	t.Run("hangs in the call", func(t *testing.T) {
		t.Parallel()
		path := socket(t)
		a := netpolicytest.Start(t, path)
		a.Answer(func(ctx context.Context, _ netpolicytest.Call) (bool, error) { <-ctx.Done(); return true, ctx.Err() })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for _, err := range both(ctx, path) {
			if err == nil || !strings.Contains(err.Error(), "DeadlineExceeded") {
				t.Errorf("%v", err)
			}
		}
	})
}

// BenchmarkEnforce is what a pod waits for, beside what the agent does.
func BenchmarkEnforce(b *testing.B) {
	path := filepath.Join(b.TempDir(), netpolicy.Name)
	netpolicytest.Start(b, path)
	for b.Loop() {
		must.Do(b, netpolicy.Enforce(b.Context(), path, netpolicy.Standard, pod))
	}
}
