package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/enilab/enilab/fakes/ec2"
)

// maxHops is the largest HttpPutResponseHopLimit, and what packets leave with that have no limit.
const maxHops = 64

// connKey is the context key of a connection.
type connKey struct{}

// conn is a connection, and how far its packets get now; 0: as far as the system says.
type conn struct {
	net.Conn
	hops atomic.Int32
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{Conn: c})
}

// reaches sees to it that the answer to a token request gets as far as it may, and any other as far as the network lets it; false: no
// answer would reach this caller. The limit stays on the connection until another request comes: the packets are sent again and again.
func (h *handler) reaches(r *http.Request, put bool, v *ec2.IMDS) bool {
	hops := maxHops
	if put {
		hops = h.HopLimit
		if h.Inside && !near(r, v) {
			hops--
		}
		if hops == 0 {
			return false
		}
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok || !put && c.hops.Load() == 0 || int(c.hops.Load()) == hops {
		return true
	}
	c.hops.Store(int32(hops))
	setHops(c.Conn, hops)
	return true
}

// near says whether the caller is in the network namespace of the instance, where the service listens.
func near(r *http.Request, v *ec2.IMDS) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true // no IP, no hops
	}
	a := from.Addr().Unmap()
	if a.IsLoopback() || a == v.Instance.PrimaryAddress {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == a
}
