package vpc

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// TestRedirect: who connects to a port of an address arrives where the connections are sent, and the port stays free at all addresses.
func TestRedirect(t *testing.T) {
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	from, to := netip.MustParseAddrPort("127.1.1.1:80"), netip.MustParseAddrPort("127.1.1.2:1080")
	must.Do(t, Redirect(ns, from, to))
	serve := func(addr, says string) {
		t.Helper()
		var l net.Listener
		if e := Do(ns, func() error { l, err = net.Listen("tcp", addr); return nil }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		t.Cleanup(func() { l.Close() })
		go accept.Each(l.Accept, func(c net.Conn) {
			_, _ = io.WriteString(c, says)
			c.Close()
		})
	}
	serve(to.String(), "metadata")
	serve("0.0.0.0:80", "ingress")
	for addr, want := range map[string]string{from.String(): "metadata", "127.0.0.1:80": "ingress", to.String(): "metadata"} {
		var c net.Conn
		if e := Do(ns, func() error { c, err = net.DialTimeout("tcp", addr, 10*time.Second); return nil }); e != nil || err != nil {
			t.Fatal(e, err)
		}
		got, err := io.ReadAll(c)
		c.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s said %q (%v), expected %q", addr, got, err, want)
		}
	}
}
