package linux

import (
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// Attributes of a rule (linux/fib_rules.h).
const (
	fraDst = 1 + iota
	fraSrc
	fraIIFName
	fraGoto
	_
	fraPriority
)

const (
	fraFwmark            = 10
	fraFlow              = 11
	fraTunnel            = 12
	fraSuppressIfgroup   = 13
	fraSuppressPrefixlen = 14
	fraTable             = 15
	fraFwmask            = 16
	fraOIFName           = 17
	fraL3MDev            = 19
	fraUIDRange          = 20
	fraProtocol          = 21
	fraIPProtocol        = 22
	fraSourcePort        = 23
	fraDestinationPort   = 24
	fraDSCP              = 25

	ruleHeader   = 12 // struct fib_rule_hdr
	ruleInverted = 0x2
)

// rule is a policy rule, with what is needed to remove exactly it.
type rule struct {
	dataplane.Rule
	protocol byte
}

// parse reads struct fib_rule_hdr and what follows. ok is false for the kernel's own rules, and for those
// that select or do what a dataplane.Rule has no words for: to print them without would be to lie.
func (r *rule) parse(body []byte) (ok bool) {
	if len(body) < ruleHeader || body[0] != unix.AF_INET {
		return false
	}
	*r = rule{Rule: dataplane.Rule{Table: int(body[4])}}
	toBits, fromBits, tos, action, flags := int(body[1]), int(body[2]), body[3], body[7], netlink.Native.Uint32(body[8:])
	mask, from, to := uint32(0), netip.IPv4Unspecified(), netip.IPv4Unspecified()
	ok = tos == 0 && action == unix.FR_ACT_TO_TBL && flags&ruleInverted == 0
	for c := netlink.Attributes(body[ruleHeader:]); c.Next(); {
		switch c.Kind {
		case fraDst:
			to = c.IP()
		case fraSrc:
			from = c.IP()
		case fraPriority:
			r.Priority = int(c.U32())
		case fraTable:
			r.Table = int(c.U32())
		case fraFwmark:
			r.Mark = c.U32()
		case fraFwmask:
			mask = c.U32()
		case fraProtocol:
			r.protocol = c.U8()
		case fraSuppressPrefixlen, fraSuppressIfgroup:
			ok = ok && int32(c.U32()) == -1
		case fraL3MDev:
			ok = ok && c.U8() == 0
		case fraIIFName, fraOIFName, fraGoto, fraFlow, fraTunnel, fraUIDRange, fraIPProtocol, fraSourcePort, fraDestinationPort, fraDSCP:
			ok = false
		}
	}
	if toBits > 0 {
		r.To = netip.PrefixFrom(to, toBits)
	}
	if fromBits > 0 {
		r.From = netip.PrefixFrom(from, fromBits)
	}
	return ok && mask == r.Mark && r.protocol != unix.RTPROT_KERNEL
}

// rule is the message about one rule.
func ruleMessage(r *netlink.Request, kind, flags uint16, w *rule) {
	r.Message(kind, flags|unix.NLM_F_ACK)
	bits := func(p netip.Prefix) byte {
		if p.IsValid() {
			return byte(p.Bits())
		}
		return 0
	}
	r.Raw(unix.AF_INET, bits(w.To), bits(w.From), 0, unix.RT_TABLE_UNSPEC, 0, 0, unix.FR_ACT_TO_TBL, 0, 0, 0, 0)
	if w.To.IsValid() {
		r.IP(fraDst, w.To.Masked().Addr())
	}
	if w.From.IsValid() {
		r.IP(fraSrc, w.From.Masked().Addr())
	}
	r.U32(fraPriority, uint32(w.Priority))
	r.U32(fraTable, uint32(w.Table))
	if w.Mark != 0 {
		r.U32(fraFwmark, w.Mark)
		r.U32(fraFwmask, w.Mark)
	}
	r.U8(fraProtocol, w.protocol)
}

func (a *applier) ensureRule(w dataplane.Rule) error {
	if w.Table <= 0 || w.Priority <= 0 {
		return failed(dataplane.Invalid, "a rule needs a priority and a table")
	}
	want := rule{w, unix.RTPROT_STATIC}
	ruleMessage(a.r.Reset(), unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, &want)
	err := a.s.Do(a.r)
	if netlink.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

func askRules(r *netlink.Request) *netlink.Request {
	r.Reset().Message(unix.RTM_GETRULE, unix.NLM_F_DUMP)
	r.Raw(unix.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	return r
}

// removeRules removes the rules like w in its table, in every table (0), or, others, in every table but
// its own. It removes what it has seen: the kernel's delete alone would take a third party's rule that has
// more selectors.
func (a *applier) removeRules(w dataplane.Rule, others bool) error {
	like, err := a.k.rules.like(w)
	if err != nil {
		return err
	}
	for i := range like {
		if w.Table != 0 && (like[i].Table == w.Table) == others {
			continue
		}
		ruleMessage(a.r.Reset(), unix.RTM_DELRULE, 0, &like[i])
		if err = a.s.Do(a.r); err != nil && !netlink.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// rulebook knows all rules: a dump of those of 725 pods takes as long as making a pod's link.
type rulebook struct {
	lock sync.Mutex
	told

	// By the rule without its table. One that came while all were read may be there twice.
	rules map[dataplane.Rule][]rule
}

// like are the rules that differ from w in nothing but the table.
func (b *rulebook) like(w dataplane.Rule) ([]rule, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	err := b.update(b.hear, b.fill)
	return slices.Clone(b.rules[anyTable(w)]), err
}

func anyTable(w dataplane.Rule) dataplane.Rule {
	w.Table = 0
	return w
}

func (b *rulebook) hear(kind uint16, body []byte) {
	var r rule
	if kind != unix.RTM_NEWRULE && kind != unix.RTM_DELRULE || !r.parse(body) {
		return
	}
	if kind == unix.RTM_NEWRULE {
		b.add(r)
		return
	}
	key := anyTable(r.Rule)
	if at := slices.Index(b.rules[key], r); at >= 0 {
		if b.rules[key] = slices.Delete(b.rules[key], at, at+1); len(b.rules[key]) == 0 {
			delete(b.rules, key)
		}
	}
}

func (b *rulebook) fill() error {
	b.rules = map[dataplane.Rule][]rule{}
	var r rule
	return b.ask.Dump(askRules(&b.r), func(body []byte) {
		if r.parse(body) {
			b.add(r)
		}
	})
}

func (b *rulebook) add(r rule) {
	key := anyTable(r.Rule)
	b.rules[key] = append(b.rules[key], r)
}
