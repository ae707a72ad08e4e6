package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// space is a network namespace of its own.
type space struct{ netns.NsHandle }

// newSpace makes one, or skips where that is not allowed.
func newSpace(t *testing.T) (s space) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces (CAP_SYS_ADMIN, CAP_NET_ADMIN)")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here := must.Get(netns.Get())(t)
	defer here.Close()
	made, err := netns.New()
	if err != nil {
		t.Skipf("needs CAP_SYS_ADMIN: %v", err)
	}
	must.Do(t, netns.Set(here))
	t.Cleanup(func() { _ = made.Close() })
	return space{made}
}

// do runs f on a thread inside of the namespace.
func (s space) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		if err := netns.Set(s.NsHandle); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// cable joins two namespaces by a veth pair; each end has an address and, with a gateway, a default route by it.
func cable(t *testing.T, name string, a, b space, addrA, addrB, gatewayA, gatewayB string) {
	t.Helper()
	must.Do(t, a.do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name, PeerNamespace: netlink.NsFd(b.NsHandle)})
	}))
	for _, end := range []struct {
		s             space
		addr, gateway string
	}{{a, addrA, gatewayA}, {b, addrB, gatewayB}} {
		must.Do(t, end.s.do(func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(end.addr)
			if err != nil {
				return err
			}
			addr.Flags = 0x2 // nodad: an IPv6 address works at once
			if err := errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link)); err != nil || end.gateway == "" {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(end.gateway)})
		}))
	}
}

// TestHopLimit: a container behind an instance, which routes, and the metadata service beyond the instance's interface. With one hop the
// instance gets its token and the container does not, though it may read; with two both do. It is so again after each other, on one
// connection too.
func TestHopLimit(t *testing.T) {
	service, instance, container := newSpace(t), newSpace(t), newSpace(t)
	must.Do(t, instance.do(func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0), os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	}))
	cable(t, "eth0", instance, service, "10.0.0.4/24", "10.0.0.1/24", "", "10.0.0.4")
	cable(t, "pod0", instance, container, "10.0.1.1/24", "10.0.1.2/24", "", "10.0.1.1")
	cable(t, "eth6", instance, service, "fd00:1::4/64", "fd00:1::1/64", "", "fd00:1::4")
	cable(t, "pod6", instance, container, "fd00:2::1/64", "fd00:2::2/64", "", "fd00:2::1")

	view := newWorldView(t)
	for _, address := range []string{"10.0.0.1", "fd00:1::1", "[::] and 10.0.0.1"} {
		listen := net.JoinHostPort(address, "80")
		if address == "[::] and 10.0.0.1" { // IPv4 over a socket of IPv6
			listen, address = "[::]:80", "10.0.0.1"
		}
		for hops := range 3 { // 0: the default, 1
			t.Run(fmt.Sprintf("%s, %d hops", listen, hops), func(t *testing.T) {
				var l net.Listener
				must.Do(t, service.do(func() (err error) { l, err = net.Listen("tcp", listen); return err }))
				s := Server(Handler(Config{Options: Options{HopLimit: hops, V1: true}, Now: func() time.Duration { return 0 },
					View: func(context.Context) (ec2.IMDS, bool) { return view, true }}))
				defer s.Close()
				go func() { _ = s.Serve(l) }()
				target := net.JoinHostPort(address, "80")
				for _, r := range []struct {
					name   string
					from   space
					method string
					comes  bool
				}{
					{"the instance", instance, "PUT", true},
					{"a container", container, "PUT", hops == 2},
					{"a container's read", container, "GET", true},
					{"the instance again", instance, "PUT", true},
				} {
					c := dialFrom(t, r.from, target)
					if err := ask(c, r.method, r.comes); err == nil != r.comes {
						t.Errorf("%s: %s: %v; expected an answer: %v", r.name, r.method, err, r.comes)
					}
				}
				c := dialFrom(t, container, target)
				if err := ask(c, "GET", true); err != nil {
					t.Errorf("a read: %v", err)
				}
				if err := ask(c, "PUT", hops == 2); err == nil != (hops == 2) {
					t.Errorf("a token on the same connection: %v", err)
				}
				c = dialFrom(t, instance, target)
				for _, method := range []string{"PUT", "GET", "PUT"} {
					if err := ask(c, method, true); err != nil {
						t.Errorf("the instance: %s on one connection: %v", method, err)
					}
				}
			})
		}
	}
}

// unanswered is how long a caller waits for what is not to come.
const unanswered = 250 * time.Millisecond

func dialFrom(t *testing.T, s space, target string) (c net.Conn) {
	t.Helper()
	must.Do(t, s.do(func() (err error) { c, err = net.DialTimeout("tcp", target, patience); return err }))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a token request, or a read, and reads the answer, which comes or not.
func ask(c net.Conn, method string, comes bool) error {
	wait := unanswered
	if comes {
		wait = patience
	}
	path := tokenPath
	if method == "GET" {
		path = macPath
	}
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: imds\r\n"+ttlHeader+": 60\r\n\r\n"); err != nil {
		return err
	}
	p, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer p.Body.Close()
	if _, err := io.Copy(io.Discard, p.Body); err != nil || p.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %w", p.StatusCode, err)
	}
	return nil
}

// TestHopsAreKept: the limit stays on a connection until there is something else to answer: what is lost is sent again.
func TestHopsAreKept(t *testing.T) {
	h, c := newHandler(Config{Options: Options{HopLimit: 2}}), &conn{Conn: &net.TCPConn{}}
	ctx := context.WithValue(t.Context(), connKey{}, c)
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://imds/", nil))(t)
	var hops []int32
	for _, put := range []bool{false, true, true, false, false} {
		if !h.reaches(r, put, &ec2.IMDS{}) {
			t.Error("no answer reaches anybody")
		}
		hops = append(hops, c.hops.Load())
	}
	if fmt.Sprint(hops) != "[0 2 2 64 64]" {
		t.Errorf("limits %v", hops)
	}
}
