package npa_test

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
	"github.com/enilab/enilab/impl/npa"
	"github.com/enilab/enilab/impl/npa/npatest"
)

var pod = ipam.Pod{Namespace: "shop", Name: "web-0", UID: "u"}

func socket(t *testing.T) string { return filepath.Join(t.TempDir(), npa.Name) }

func TestCalls(t *testing.T) {
	path := socket(t)
	a := npatest.Start(t, path)
	for _, mode := range []string{npa.Standard, npa.Strict} {
		if err := npa.Enforce(t.Context(), path, mode, pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := npa.Forget(t.Context(), path, pod); err != nil {
		t.Fatal(err)
	}
	want := []npatest.Call{{Method: "EnforceNpToPod", Name: "web-0", Namespace: "shop", Mode: "standard", Interfaces: 1},
		{Method: "EnforceNpToPod", Name: "web-0", Namespace: "shop", Mode: "strict", Interfaces: 1}, {Method: "DeletePodNp", Name: "web-0", Namespace: "shop"}}
	if got := a.Calls(); !slices.Equal(got, want) {
		t.Errorf("the agent was told %+v", got)
	}
}

// TestAnswers: a pod runs only when the agent says so; one that is gone has been told of with any answer.
func TestAnswers(t *testing.T) {
	path := socket(t)
	a := npatest.Start(t, path)
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
		a.Answer(func(context.Context, npatest.Call) (bool, error) { return c.ok, c.err })
		if err := npa.Enforce(t.Context(), path, npa.Strict, pod); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if err := npa.Forget(t.Context(), path, pod); err != nil {
			t.Errorf("%s: forget: %v", name, err)
		}
	}
}

// TestNoAgent: none, one that is gone without its socket, one that hangs, and what is none.
func TestNoAgent(t *testing.T) {
	both := func(ctx context.Context, path string) []error {
		return []error{npa.Enforce(ctx, path, npa.Standard, pod), npa.Forget(ctx, path, pod)}
	}
	for _, err := range both(t.Context(), socket(t)) {
		if !errors.Is(err, npa.ErrAbsent) {
			t.Errorf("no socket: %v", err)
		}
	}
	dead := socket(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, err := range both(t.Context(), dead) {
		if !errors.Is(err, npa.ErrNobody) || errors.Is(err, npa.ErrAbsent) {
			t.Errorf("a dead socket: %v", err)
		}
	}
	plain := socket(t)
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range both(t.Context(), plain) {
		if !errors.Is(err, npa.ErrNobody) {
			t.Errorf("a file: %v", err)
		}
	}
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		path := socket(t)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		began := time.Now()
		if err := npa.Forget(t.Context(), path, pod); err == nil || errors.Is(err, npa.ErrNobody) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took >= npa.ForgetBound {
			t.Errorf("it took %v, as long as a whole call may: who says nothing is left after %v", took, npa.ReachBound)
		}
	})
	t.Run("hangs in the call", func(t *testing.T) {
		t.Parallel()
		path := socket(t)
		a := npatest.Start(t, path)
		a.Answer(func(ctx context.Context, _ npatest.Call) (bool, error) { <-ctx.Done(); return true, ctx.Err() })
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
	path := filepath.Join(b.TempDir(), npa.Name)
	npatest.Start(b, path)
	for b.Loop() {
		if err := npa.Enforce(b.Context(), path, npa.Standard, pod); err != nil {
			b.Fatal(err)
		}
	}
}
