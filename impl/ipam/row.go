package ipam

import (
	"net/netip"
	"time"
)

// Version of the records and of the local protocol that this package writes.
const Version = 2

// Store is one of the two places where rows live.
type Store uint8

const (
	// RunStore is on a tmpfs: allocations and cool-downs die with the pods they speak of.
	RunStore Store = iota
	// LibStore survives a reboot: intents and tombstones of EC2 mutations. No ADD waits for it.
	LibStore
	stores = iota
)

var storeNames = [...]string{"run", "lib"}

func (s Store) String() string { return name(storeNames[:], int(s)) }

// Key names a row in its store: an address in RunStore, an intent's token in LibStore.
type Key struct {
	Address netip.Addr
	Token   string
}

// Row is one durable record. Address rows live in RunStore, intent rows in LibStore.
type Row struct {
	Address    netip.Addr // of an address row
	State      State
	Att        Attachment
	Pod        Pod
	Netns      uint64 // since version 2
	Veth       string // since version 2
	MAC        string // of the host veth, when it is not ours to choose: another CNI made it; since version 2
	ENI        string
	Allocated  time.Duration // CLOCK_BOOTTIME
	ReleasedAt time.Duration
	SeenCRI    bool   // the runtime has listed it
	Prefixed   bool   `json:",omitzero"` // a /28 prefix of the ENI carries it
	Extra      string // fields that this version does not know, as they were read (rule C)

	Node   *Facts  // of the row of the node's own address
	Intent *Intent // of an intent row
}

// Key of the row.
func (r *Row) Key() Key {
	if r.Intent != nil {
		return Key{Token: r.Intent.Token}
	}
	return Key{Address: r.Address}
}

// Intent is the write-ahead record of work on one ENI (rule I). It goes when the ENI is ready or deleted.
type Intent struct {
	Token    string // also the client token of CreateNetworkInterface
	Stage    Stage
	ENI      ENI // as known so far
	Doing    Action
	Count    int          // addresses asked for, or prefixes
	Before   []netip.Addr // Assign: secondaries before; Unassign: those to go
	Prefixed bool         `json:",omitzero"` // Count is of /28 prefixes, and Before are the addresses of prefixes
	Wall     int64        // wall time of the intent, in seconds since 1970: the createdAt tag
	Foreign  bool         // another instance's leaked ENI, to be deleted
	Extra    string       // fields that this version does not know, as they were read (rule C)
}

// State of an address.
type State uint8

const (
	Free State = iota + 1
	Assigned
	Cooling
	Quarantined
	Departed // in records alone: given back to EC2, and still listed by stale views
)

var stateNames = [...]string{"", "free", "assigned", "cooling", "quarantined", "departed"}

func (s State) String() string { return name(stateNames[:], int(s)) }

// Stage of an ENI.
type Stage uint8

const (
	Intended   Stage = iota + 1 // an intent is being written, then CreateNetworkInterface
	Created                     // exists in EC2
	Attached                    // EC2 accepted the attachment
	Configured                  // its link is set up
	Ready                       // addresses may be given away
	Draining                    // nothing is given away; evidence is being gathered
	Detached                    // EC2 accepted the detachment
	Tombstoned                  // to be deleted, whatever happens
)

var stageNames = [...]string{"", "intended", "created", "attached", "configured", "ready", "draining", "detached", "tombstoned"}

func (s Stage) String() string { return name(stageNames[:], int(s)) }
