package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// Flows are TCP connections from Witness to services that send back what they get, one to an address.
type Flows struct {
	network *Network
	port    uint16
	open    map[netip.Addr]*flow
}

// flow is one.
type flow struct {
	conn net.Conn
	owed int // bytes that have not come back
}

// Reply is how a flow answers.
type Reply struct {
	Why string // "" is that it does
	Cut bool   // it is no flow any more: a reset, or its end
}

// Flows are none yet, to services on a port.
func (f *Network) Flows(port uint16) *Flows { return &Flows{f, port, map[netip.Addr]*flow{}} }

// Open opens one, in the place of the one that was there.
func (f *Flows) Open(ctx context.Context, a netip.Addr) error {
	c, err := f.network.Dial(ctx, netip.AddrPortFrom(a, f.port))
	if err != nil {
		return err
	}
	f.Close(a)
	f.open[a] = &flow{conn: c}
	return nil
}

// Close closes this end of one; one that is not open is fine.
func (f *Flows) Close(a netip.Addr) {
	if x := f.open[a]; x != nil {
		_ = x.conn.Close()
		delete(f.open, a)
	}
}

// Echo writes a byte to all of some, and then waits for what each owes, for as long as patience says.
func (f *Flows) Echo(addrs []netip.Addr, patience time.Duration) []Reply {
	out := make([]Reply, len(addrs))
	end := time.Now().Add(patience)
	for i, a := range addrs {
		x := f.open[a]
		if x == nil {
			out[i] = Reply{Why: "it was closed", Cut: true}
			continue
		}
		_ = x.conn.SetWriteDeadline(end)
		if _, err := x.conn.Write([]byte{'.'}); err != nil {
			out[i] = Reply{Why: err.Error(), Cut: !errors.Is(err, os.ErrDeadlineExceeded)}
			continue
		}
		x.owed++
	}
	for i, a := range addrs {
		if out[i].Why == "" {
			out[i] = f.open[a].reply(end)
		}
	}
	return out
}

// reply reads what has come back.
func (f *flow) reply(end time.Time) Reply {
	_ = f.conn.SetReadDeadline(end)
	got, err := io.ReadAtLeast(f.conn, make([]byte, f.owed), f.owed)
	f.owed -= got
	switch {
	case err == nil:
		return Reply{}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Reply{Why: fmt.Sprintf("%d bytes have not come back", f.owed)}
	}
	return Reply{Why: err.Error(), Cut: true}
}
