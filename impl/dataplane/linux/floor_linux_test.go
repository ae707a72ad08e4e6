package linux

import (
	"reflect"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// TestRenameBeforeLinux62 (Options.Floor): a link that was down for its new name has its routes and proxy neighbours again, in their order, and
// another pod's link keeps its own.
func TestRenameBeforeLinux62(t *testing.T) {
	k := openNew(t, Options{Floor: true})
	var links []netlink.Link
	for i := range 2 {
		s := newSpace(t)
		w := spec(i, s.inode)
		apply(t, k, dataplane.PodPlan(w), s.pod(t))
		links = append(links, must.Get(netlink.LinkByName(w.HostVeth))(t))
	}
	gateway := dataplane.Gateway()
	for _, l := range links {
		must.Do(t, netlink.NeighAdd(&netlink.Neigh{LinkIndex: l.Attrs().Index, Family: netlink.FAMILY_V4, Flags: netlink.NTF_PROXY, IP: gateway.AsSlice()}))
	}
	state := func() (routes []dataplane.Route, proxies []int) {
		routes = observe(t, k).Routes
		for _, n := range must.Get(netlink.NeighProxyList(0, netlink.FAMILY_V4))(t) {
			proxies = append(proxies, n.LinkIndex)
		}
		slices.Sort(proxies)
		return routes, proxies
	}
	routes, proxies := state()
	if len(routes) < 2 || len(proxies) != 2 {
		t.Fatalf("two pods have the routes %+v and proxies on %v", routes, proxies)
	}
	apply(t, k, one(dataplane.Op{Kind: dataplane.RenameLink, Alias: links[0].Attrs().Alias, Name: "other"}), nil)
	for i := range routes {
		if routes[i].Link == links[0].Attrs().Name {
			routes[i].Link = "other"
		}
	}
	again, proxiesAgain := state()
	if !reflect.DeepEqual(again, routes) || !slices.Equal(proxiesAgain, proxies) {
		t.Errorf("routes %+v and proxies on %v; before the link was renamed %+v and %v", again, proxiesAgain, routes, proxies)
	}
	if l := must.Get(netlink.LinkByName("other"))(t); l.Attrs().OperState == netlink.OperDown {
		t.Error("the link is down")
	}
}
