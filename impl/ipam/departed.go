package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// departed is an address or an ENI that is not the node's and that a view may list: the node has given it back, or EC2, asked, did not
// list it. Metadata goes on listing such things for minutes or hours (amazon-vpc-cni-k8s #1967), and EC2's own replicas for a moment.
// Addresses that the node gave back are durable for as long as EC2's replicas may: the next daemon asks them too.
type departed struct {
	IP     netip.Addr
	ENI    string
	At     time.Duration // given back
	Stored bool          // RunStore has it
	Listed time.Duration // metadata has listed it last
	Ask    time.Duration // not before; then EC2 is asked again whether it has come back
	Pause  time.Duration // until it is asked once more
}

// Pauses between questions about what metadata lists and EC2 does not. EC2's answer may be the older one, once; an hour behind, metadata
// is believed no more for being asked about often.
const (
	hearsayPause     = 10 * time.Second
	mostHearsayPause = 10 * time.Minute
)

// depart remembers an address that EC2 has taken back.
func (ev *evidence) depart(now time.Duration, ip netip.Addr) {
	ev.Departures = append(ev.Departures, departed{IP: ip, At: now, Stored: true, Ask: now + consistency,
		Pause: hearsayPause})
	ev.ledger.putRow(RunStore, Row{Address: ip, State: Departed, ReleasedAt: now})
}

// departENI remembers an ENI that was deleted.
func (ev *evidence) departENI(now time.Duration, id string) {
	if id != "" {
		ev.Departures = append(ev.Departures, departed{ENI: id, At: now, Ask: now + consistency, Pause: hearsayPause})
	}
}

// rememberedFor is how long what was given back is on record: an answer that may be of before it can come late.
const rememberedFor = consistency + time.Minute

// hasDeparted says whether the last answer of a source, which lists the address or the ENI, is a stale one. It counts when that was asked for.
func (ev *evidence) hasDeparted(by What, ip netip.Addr, id string) bool {
	for i := range ev.Departures {
		d := &ev.Departures[i]
		if d.is(ip, id) {
			return ev.policy.Stale(ev.Looks[by].At - d.At)
		}
	}
	return false
}

func (d *departed) is(ip netip.Addr, id string) bool {
	return d.IP.IsValid() && d.IP == ip || d.ENI != "" && d.ENI == id
}

// hearsay is what metadata alone lists: EC2 is asked, at once about news, and seldom about what it denies.
func (ev *evidence) hearsay(now time.Duration, ip netip.Addr, id string) (asks bool) {
	i := slices.IndexFunc(ev.Departures, func(d departed) bool { return d.is(ip, id) })
	if i < 0 {
		i = len(ev.Departures)
		ev.Departures = append(ev.Departures, departed{IP: ip, ENI: id, At: now - consistency, Ask: now,
			Pause: hearsayPause})
	}
	d := &ev.Departures[i]
	d.Listed = now
	if d.Ask > now {
		return false
	}
	ev.want(LookAttached, now)
	d.Ask, d.Pause = now+d.Pause, min(2*d.Pause, mostHearsayPause)
	return true
}

// listed says whether metadata lists an address that the records do not have.
func (ev *evidence) listed(ip netip.Addr) bool {
	return slices.ContainsFunc(ev.Departures, func(d departed) bool { return d.IP == ip && d.Listed > 0 })
}

// lasting is how long metadata has to list something, or not to list it, where EC2 is not asked (ENABLE_IMDS_ONLY_MODE): it may be behind by less.
const lasting = 10 * time.Minute

// lasts says whether metadata has listed something at all looks for that long.
func (ev *evidence) lasts(now time.Duration, ip netip.Addr, id string) bool {
	i := slices.IndexFunc(ev.Departures, func(d departed) bool { return d.is(ip, id) })
	if i < 0 {
		ev.Departures = append(ev.Departures, departed{IP: ip, ENI: id, At: now, Listed: now, Ask: now +
			consistency, Pause: hearsayPause})
		return false
	}
	ev.Departures[i].Listed = now
	return now-ev.Departures[i].At >= lasting
}
