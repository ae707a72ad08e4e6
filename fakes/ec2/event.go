package ec2

import (
	"net/netip"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	_                    EventKind = iota
	LinkPlugged                    // the kernel device appears on the instance
	LinkUnplugged                  // the kernel device disappears from the instance
	ENICreated                     // with all its addresses: there is no AddressAssigned for those
	ENIAttached                    // the status has become in-use
	ENIDetachStarted               // the status has become detaching; traffic ends here
	ENIDetached                    // the status has become available
	ENIDeleted                     // with all its addresses
	AddressAssigned                // one per secondary or IPv6 address
	AddressUnassigned              // one per secondary or IPv6 address
	InstanceTerminated             // after the events of its interfaces
	PrefixAssigned                 // one per prefix, IPv4 or IPv6
	PrefixUnassigned               // one per prefix
	InstanceRunning                // after pending; at its launch after the events of its primary interface
	InstanceShuttingDown           // a TerminateInstances was executed
	InstanceRebooted               // a RebootInstances took effect
	InstanceStopping               // a StopInstances was executed
	InstanceStopped                // its software has ended, and metadata with it
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case LinkPlugged:
		return "LinkPlugged"
	case LinkUnplugged:
		return "LinkUnplugged"
	case ENICreated:
		return "ENICreated"
	case ENIAttached:
		return "ENIAttached"
	case ENIDetachStarted:
		return "ENIDetachStarted"
	case ENIDetached:
		return "ENIDetached"
	case ENIDeleted:
		return "ENIDeleted"
	case AddressAssigned:
		return "AddressAssigned"
	case AddressUnassigned:
		return "AddressUnassigned"
	case InstanceTerminated:
		return "InstanceTerminated"
	case PrefixAssigned:
		return "PrefixAssigned"
	case PrefixUnassigned:
		return "PrefixUnassigned"
	case InstanceRunning:
		return "InstanceRunning"
	case InstanceShuttingDown:
		return "InstanceShuttingDown"
	case InstanceRebooted:
		return "InstanceRebooted"
	case InstanceStopping:
		return "InstanceStopping"
	case InstanceStopped:
		return "InstanceStopped"
	}
	return "unknown"
}

// Event is one thing that really happened, at the instant it did. Auditors judge by it.
type Event struct {
	At       time.Duration
	Kind     EventKind
	Instance InstanceID // the instance it happened to, "" for an interface that is on none
	ENI      ENIID
	MAC      string
	Device   int
	Address  netip.Addr   // AddressAssigned, AddressUnassigned
	Prefix   netip.Prefix // PrefixAssigned, PrefixUnassigned
	By       InstanceID   // whose call caused it; "" is a third party or EC2 itself
}

// Events returns what happened since the last call, in order. The slice is reused by the next call.
// Nothing else drains it: events that are never asked for pile up.
func (c *Cloud) Events() []Event {
	out := c.events
	c.events, c.drained = c.drained[:0], out
	return out
}

// emit records an event about e; the instance is the one e is (or was until now) attached to.
func (c *Cloud) emit(at time.Duration, kind EventKind, e *eni, by int32) {
	c.events = append(c.events, Event{
		At: at, Kind: kind, Instance: c.instanceID(e.att.instance), ENI: e.id, MAC: e.mac,
		Device: int(e.att.device), By: c.instanceID(by),
	})
}

// emitAddress records that an address of e came or went.
func (c *Cloud) emitAddress(at time.Duration, kind EventKind, e *eni, a netip.Addr, by int32) {
	c.emit(at, kind, e, by)
	c.events[len(c.events)-1].Address = a
}

// emitPrefix records that a prefix of e came or went.
func (c *Cloud) emitPrefix(kind EventKind, e *eni, p netip.Prefix, by int32) {
	c.emit(c.now, kind, e, by)
	c.events[len(c.events)-1].Prefix = p
}
