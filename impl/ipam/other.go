package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ordinaryENI is what EC2 calls an interface that carries nothing but addresses.
const ordinaryENI = "interface"

// other is an attached ENI that is not ours, or of which that is not known yet: it occupies a device index, and nothing is done to it. It is
// in no list that the ENI machine works on.
type other struct {
	ID, MAC string
	Device  int
	Why     string       // it is not ours; "" while EC2 is asked whose it is
	Keeps   []netip.Addr // its addresses: rules and routes of them are its owner's
	Asking  bool         // EC2 is to be asked whether it is still attached

	Unlisted time.Duration // since when metadata does not list it, where EC2 is not asked; 0 is that it does
}

func (ev *evidence) otherByID(id string) *other {
	for i := range ev.Others {
		if ev.Others[i].ID == id {
			return &ev.Others[i]
		}
	}
	return nil
}

// unread is how many attached ENIs wait for EC2's word on whose they are.
func (ev *evidence) unread() (count int) {
	for i := range ev.Others {
		if ev.Others[i].Why == "" {
			count++
		}
	}
	return count
}

// asksWhose says whether EC2's word on whose an attached ENI is may come soon.
func (ev *evidence) asksWhose() bool {
	return ev.unread() > 0 && ev.Looks[LookAttached].Fails < 3 && !ev.Set.IMDSOnly
}

// vouched says whether an ENI whose tags cannot be read (ENABLE_IMDS_ONLY_MODE) is ours by what is on record: a daemon
// of this boot had it in service, or metadata listed it with secondary addresses when the first one started.
func (ev *evidence) vouched(id string) bool {
	is := func(v ENI) bool { return v.ID == id }
	return slices.Contains(ev.Found, id) || ev.ledger.Facts != nil && (slices.Contains(ev.ledger.Facts.Found, id) ||
		slices.ContainsFunc(ev.ledger.Facts.ENIs, is))
}

// kept says whether EC2 shows that another owner keeps the ENI.
func (v *ENI) kept() bool { return v.Kind != "" && v.Kind != ordinaryENI || v.NoManage == "true" }

// whose says for people why an ENI is not ours.
func (v *ENI) whose() string {
	switch {
	case v.Kind != "" && v.Kind != ordinaryENI:
		return "its kind is " + v.Kind
	case v.NoManage == "true":
		return "it is tagged node.k8s.amazonaws.com/no_manage=true"
	}
	return "it is not tagged with this instance, and MANAGE_UNTAGGED_ENI is false"
}

// setAside takes an ENI for one that is not ours; read says that it is EC2's word.
func (ev *evidence) setAside(v *ENI, read bool) {
	o := ev.otherByID(v.ID)
	if o == nil {
		ev.Others = append(ev.Others, other{ID: v.ID})
		o, ev.calm = &ev.Others[len(ev.Others)-1], false
	}
	o.MAC, o.Device = v.MAC, v.Device
	if v.Primary.IsValid() {
		o.Keeps = append(o.Keeps[:0:0], v.Primary)
		for ip := range v.carried() {
			o.Keeps = append(o.Keeps, ip)
		}
	}
	if !read {
		if ev.Set.IMDSOnly && o.Why == "" {
			o.Why = ev.unknown(v)
			ev.note(Note{Point: ENINotOurs, ENI: o.ID, Text: o.Why})
		}
		return
	}
	if o.Why == "" {
		ev.note(Note{Point: ENINotOurs, ENI: o.ID, Text: v.whose()})
	}
	o.Why, o.Asking = v.whose(), false
}

// unknown says for people why an ENI is left alone of which metadata alone speaks.
func (ev *evidence) unknown(v *ENI) string {
	if ev.Set.Excluded.Has(v.Device) {
		return "ENILAB_IMDS_ONLY_EXCLUDED_DEVICES names its device index"
	}
	return "ENABLE_IMDS_ONLY_MODE: nobody says its tags, no record names it, and it had no addresses for pods when the first daemon of this boot started"
}

// takeOther takes over an ENI that was held for another owner's.
func (ev *evidence) takeOther(id string) {
	ev.Others = slices.DeleteFunc(ev.Others, func(o other) bool { return o.ID == id })
}

// absentOthers asks EC2 about those that metadata does not list: they may be detached, or metadata behind.
func (ev *evidence) absentOthers(now time.Duration, view []ENI) {
	for i := range ev.Others {
		o := &ev.Others[i]
		switch {
		case slices.ContainsFunc(view, func(v ENI) bool { return v.ID == o.ID || v.MAC == o.MAC }):
			o.Unlisted = 0
		case !ev.Set.IMDSOnly:
			o.Asking = true
			ev.want(LookENI, now)
		case o.Unlisted == 0:
			o.Unlisted = now
		}
	}
	ev.Others = slices.DeleteFunc(ev.Others, func(o other) bool {
		return ev.Set.IMDSOnly && o.Unlisted != 0 && now-o.Unlisted >= lasting
	})
}

// othersHave says whether an address is on an ENI that is not ours.
func (ev *evidence) othersHave(ip netip.Addr) bool {
	return slices.ContainsFunc(ev.Others, func(o other) bool { return slices.Contains(o.Keeps, ip) })
}

// others says for people what ENIs that are not ours keep from the node.
func (ev *evidence) others() string {
	var ids []string
	for i := range ev.Others {
		o := &ev.Others[i]
		why := cmp.Or(o.Why, "EC2 has not said its tags")
		ids = append(ids, o.ID+" ("+why+")")
	}
	return strings.Join(ids, ", ")
}
