package plugin

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// TestInputThatDoesNotCome: reading ends when its time is over, also where nobody says that there is no more.
func TestInputThatDoesNotCome(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := waiting{r, time.Now().Add(20 * time.Millisecond)}.Read(make([]byte, 1))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("found %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it reads on, long after its time")
	}
	w.Close()
}

// TestOtherMessagesAreNoRoutes: what is no route that leads out of the pod is read over.
func TestOtherMessagesAreNoRoutes(t *testing.T) {
	whole := make([]byte, unix.SizeofRtMsg)
	whole[0], whole[7] = unix.AF_INET, unix.RTN_UNICAST
	for what, c := range map[string]struct {
		body []byte
		ok   bool
	}{
		"a route":              {whole, true},
		"half a route":         {whole[:8], false},
		"a route to the local": {append(append([]byte{}, whole[:7]...), append([]byte{unix.RTN_LOCAL}, whole[8:]...)...), false},
	} {
		if _, ok := parseRoute(c.body); ok != c.ok {
			t.Errorf("%s: %v", what, ok)
		}
	}
}

// TestDefaultRouteIsOfItsFamily: the kernel names no destination, and an IPv6 gateway of the pod's stands for no IPv4 one.
func TestDefaultRouteIsOfItsFamily(t *testing.T) {
	for family, want := range map[byte]string{unix.AF_INET: "0.0.0.0/0", unix.AF_INET6: "::/0"} {
		body := make([]byte, unix.SizeofRtMsg)
		body[0], body[7] = family, unix.RTN_UNICAST
		if r, ok := parseRoute(body); !ok || r.dst.String() != want {
			t.Errorf("family %d: a route to %v, expected %s", family, r.dst, want)
		}
	}
}
