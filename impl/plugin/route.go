package plugin

import (
	"fmt"
	"net/netip"
)

// link is a network device as seen inside a namespace.
type link struct {
	index   int
	mac     string
	mtu     int // bytes
	up      bool
	alias   string
	peer    int  // index of a veth's other end, in that end's namespace
	crosses bool // the other end is in another namespace
}

// route is one route of a namespace.
type route struct {
	table int
	dst   netip.Prefix
	via   netip.Addr // invalid: none
	link  int        // index; 0: none
}

func (r route) String() string {
	if r.via.IsValid() {
		return fmt.Sprintf("route %v via %v in table %d", r.dst, r.via, r.table)
	}
	return fmt.Sprintf("route %v in table %d", r.dst, r.table)
}
