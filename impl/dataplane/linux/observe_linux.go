package linux

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// observer reads the whole namespace. It keeps its memory, and the texts of links, from one observation to
// the next: they rarely change, and a text that is the same need not be made again.
type observer struct {
	s, nft *netlink.Socket
	r      netlink.Request

	texts map[int]texts // by link index
	place map[int]int   // link index to its place in the observation
	extra []linkExtra   // beside the observation's links
}

type texts struct {
	name, alias string
	mac         macText
	macText     string
	seen        bool
}

// linkExtra is what of a link is needed to observe the rest.
type linkExtra struct {
	netnsid  int
	loopback bool
	stacked  bool // is made on top of others: a bridge, a VLAN
}

// Observe reads the kernel, sorted. A list that changed while it was read is read again, a few times. Where a list was not complete the error says which and why, Complete
// is false, and absence means nothing.
func (k *Kernel) Observe() (dataplane.Observation, error) {
	k.observing.Lock()
	defer k.observing.Unlock()
	o := &k.seen
	var out dataplane.Observation
	steps := []struct {
		name string
		read func(*dataplane.Observation) error
	}{{"links", o.links}, {"addresses", o.addresses}, {"proxy neighbours", o.proxies}, {"pods' addresses", o.peers},
		{"routes", o.routes}, {"rules", o.rules}, {"nftables", o.nat}, {"the chain " + forwardChain, o.forward}}
	var failure error
	for _, step := range steps {
		if err := retry(func() error { return step.read(&out) }); err != nil && failure == nil {
			failure = fmt.Errorf("observe the kernel: %s: %w", step.name, err)
		}
	}
	o.dropLoopback(&out)
	out.Complete = failure == nil
	out.Sort()
	return out, failure
}

func (o *observer) links(out *dataplane.Observation) error {
	if o.texts == nil {
		o.texts, o.place = map[int]texts{}, map[int]int{}
	}
	clear(o.place)
	o.extra = o.extra[:0]
	out.Links = make([]dataplane.Link, 0, len(o.texts)+8)
	var v netlink.Link
	err := o.s.Dump(o.r.AskLinks(), func(body []byte) {
		if !v.Parse(body) {
			return
		}
		if _, twice := o.place[v.Index]; twice {
			return
		}
		o.place[v.Index] = len(out.Links)
		t := o.textsOf(&v)
		out.Links = append(out.Links, dataplane.Link{Index: v.Index, Name: t.name, MAC: t.macText, Alias: t.alias, Adopted: v.Group == dataplane.AdoptedGroup, Up: v.Up(), MTU: v.MTU,
			RPFilter: v.RPFilter, Veth: v.Veth(), PeerLive: v.Veth() && v.NetNSID >= 0})
		o.extra = append(o.extra, linkExtra{netnsid: v.NetNSID, loopback: v.Loopback(), stacked: len(v.Kind) > 0 && !v.Veth()})
	})
	for index, t := range o.texts {
		if !t.seen {
			delete(o.texts, index)
		} else {
			t.seen = false
			o.texts[index] = t
		}
	}
	return err
}

// textsOf are a link's texts, made anew only where they changed.
func (o *observer) textsOf(v *netlink.Link) texts {
	t := o.texts[v.Index]
	if string(v.Name) != t.name {
		t.name = string(v.Name)
	}
	if string(v.Alias) != t.alias {
		t.alias = string(v.Alias)
	}
	if mac := textOfMAC(v.MAC); mac != t.mac {
		t.mac, t.macText = mac, ""
		if mac[0] != 0 {
			t.macText = string(mac[:])
		}
	}
	t.seen = true
	o.texts[v.Index] = t
	return t
}

// link is the observed link of an index, or nil.
func (o *observer) link(out *dataplane.Observation, index int) *dataplane.Link {
	if at, ok := o.place[index]; ok {
		return &out.Links[at]
	}
	return nil
}

func (o *observer) addresses(out *dataplane.Observation) error {
	for i := range out.Links {
		out.Links[i].Addresses = nil
	}
	r := o.r.Reset()
	r.Address(unix.RTM_GETADDR, unix.NLM_F_DUMP, 0, 0)
	return o.s.Dump(r, func(body []byte) {
		if index, p, ok := netlink.ParseAddress(body); ok {
			if l := o.link(out, index); l != nil {
				l.Addresses = append(l.Addresses, p)
			}
		}
	})
}

func (o *observer) proxies(out *dataplane.Observation) error {
	for i := range out.Links {
		out.Links[i].Proxy = nil
	}
	room := make([]netip.Addr, 0, len(out.Links)) // one each, as a rule: one allocation for all
	return o.s.Dump(askProxies(&o.r), func(body []byte) {
		index, addr, ok := parseProxy(body)
		l := o.link(out, index)
		if !ok || l == nil {
			return
		}
		if l.Proxy == nil && len(room) < cap(room) {
			room = append(room, addr)
			l.Proxy = room[len(room)-1 : len(room) : len(room)]
			return
		}
		l.Proxy = append(l.Proxy, addr)
	})
}

// peers asks every namespace behind a veth for its addresses. A namespace may end meanwhile, some time before
// its veth is gone.
func (o *observer) peers(out *dataplane.Observation) error {
	room := make([]netip.Addr, 0, len(out.Links)+len(out.Links)/4)
	for i := range out.Links {
		l := &out.Links[i]
		if !l.PeerLive {
			continue
		}
		start, netnsid := len(room), uint32(o.extra[i].netnsid)
		if err := addressesIn(o.s, &o.r, netnsid, func(addr netip.Addr) { room = append(room, addr) }); err != nil {
			if l.PeerLive = !o.ended(netnsid); l.PeerLive {
				return err
			}
			continue
		}
		if len(room) > start {
			l.PeerAddresses = room[start:len(room):len(room)]
		}
	}
	return nil
}

// addressesIn gives the addresses of a namespace, without those of its loopback.
func addressesIn(s *netlink.Socket, r *netlink.Request, netnsid uint32, give func(netip.Addr)) error {
	r.Reset().Address(unix.RTM_GETADDR, unix.NLM_F_DUMP, 0, 0)
	r.U32(ifaTargetNetnsid, netnsid)
	return s.Dump(r, func(body []byte) {
		if _, p, ok := netlink.ParseAddress(body); ok && !p.Addr().IsLoopback() {
			give(p.Addr())
		}
	})
}

// ended says whether the kernel knows no living namespace of that number.
func (o *observer) ended(netnsid uint32) bool {
	r := o.r.Reset()
	r.Message(unix.RTM_GETNSID, 0)
	r.Raw(unix.AF_UNSPEC, 0, 0, 0)
	r.U32(unix.NETNSA_NSID, netnsid)
	_, err := o.s.Get(r)
	return netlink.Is(err, unix.ENOENT)
}

// ifaTargetNetnsid is IFA_TARGET_NETNSID: the dump is of the namespace with that number (Linux 4.20).
const ifaTargetNetnsid = unix.IFA_TARGET_NETNSID

func (o *observer) routes(out *dataplane.Observation) error {
	out.Routes = make([]dataplane.Route, 0, len(out.Links)+16)
	var v routeView
	return o.s.Dump(askRoutes(&o.r, 0), func(body []byte) {
		if !v.parse(body) || !v.observed() {
			return
		}
		route := dataplane.Route{Table: v.table, Dst: netip.PrefixFrom(v.dst, v.bits), Via: v.via}
		if l := o.link(out, v.index); l != nil {
			route.Link = l.Name
		}
		out.Routes = append(out.Routes, route)
	})
}

func (o *observer) rules(out *dataplane.Observation) error {
	out.Rules = make([]dataplane.Rule, 0, 2*len(out.Links)+16)
	var v rule
	return o.s.Dump(askRules(&o.r), func(body []byte) {
		if v.parse(body) {
			out.Rules = append(out.Rules, v.Rule)
		}
	})
}

func (o *observer) nat(out *dataplane.Observation) (err error) {
	out.NAT, err = o.observeNAT(func(mac string) string {
		var found *dataplane.Link
		stacked := false
		for i := range out.Links { // as applier.eni chooses; they are in the order of their indexes still
			l := &out.Links[i]
			if l.MAC != mac || l.Alias != "" || o.extra[i].loopback {
				continue
			}
			if found == nil || stacked && !o.extra[i].stacked {
				found, stacked = l, o.extra[i].stacked
			}
		}
		if found == nil {
			return ""
		}
		return found.Name
	})
	return err
}

// dropLoopback leaves out lo, unless somebody configured a real address there: that one is in use.
func (o *observer) dropLoopback(out *dataplane.Observation) {
	kept := out.Links[:0]
	for i := range out.Links {
		l := &out.Links[i]
		if o.extra[i].loopback && !hasReal(l.Addresses) {
			continue
		}
		kept = append(kept, *l)
	}
	out.Links = kept
}

func hasReal(addresses []netip.Prefix) bool {
	return slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() })
}
