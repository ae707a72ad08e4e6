package ipam

import (
	"net/netip"

	"github.com/enilab/enilab/impl/dataplane"
)

// Sources are what a new daemon knows before it serves.
type Sources struct {
	Network    string // of attachments that the kernel cannot name
	Checkpoint []Row
	Kernel     *dataplane.Index
	Sandboxes  []Sandbox
	Runtime    bool // the runtime's list is whole
}

// Witnesses are the sources whose word counts for the rest of this daemon's life.
type Witnesses struct{ Kernel, Runtime bool }

// Recollection is what a new daemon goes by.
type Recollection struct {
	Rows    []Row        // the allocations
	Refuted []netip.Addr // their rows of the checkpoint are not believed, and dropped before Rows are taken
	Witnesses
}

// unionOfWitnesses: an allocation that any of checkpoint, kernel and runtime knows is an allocation. The kernel's
// alias carries the exact key and wins over a checkpoint that gives its address to another attachment, unless that
// one lives too.
func unionOfWitnesses(s *Sources) Recollection {
	var rows []Row
	at := map[netip.Addr]int{}
	for _, r := range s.Checkpoint {
		at[r.Address] = len(rows)
		rows = append(rows, r)
	}
	for i := range s.Kernel.Observation.Links {
		l := &s.Kernel.Observation.Links[i]
		network, id, ifName, a, ok := dataplane.ParseAlias(l.Alias)
		if !ok || !l.Veth || !l.PeerLive {
			continue
		}
		att := Attachment{network, id, ifName}
		j, known := at[a]
		switch {
		case !known:
			at[a] = len(rows)
			rows = append(rows, Row{Address: a, State: Assigned, Att: att, Veth: l.Name, MAC: ownMAC(l)})
		case rows[j].Att == att: // assigned, or a removal that a crash cut short
		case s.Kernel.LinkByAlias(alias(rows[j].Att, a)) == nil:
			rows[j] = Row{Address: a, State: Assigned, Att: att, Veth: l.Name, MAC: ownMAC(l)}
		}
	}
	for i := range s.Sandboxes {
		b := &s.Sandboxes[i]
		j, known := at[b.Address]
		if known && (rows[j].State != Quarantined || rows[j].Att != Attachment{}) || !b.Address.IsValid() || !s.Runtime {
			continue
		}
		user := s.Kernel.User(b.Address)
		if user == nil || !user.Veth {
			continue // the runtime remembers an address that nothing has, or the host itself
		}
		row := Row{Address: b.Address, State: Assigned, Pod: b.Pod, Att: Attachment{s.Network, b.ID, "eth0"}, SeenCRI: true, Veth: user.Name, MAC: user.MAC}
		if known { // set aside while its owner could not be asked
			rows[j] = row
			continue
		}
		at[b.Address] = len(rows)
		rows = append(rows, row)
	}
	return Recollection{Rows: rows, Witnesses: Witnesses{Kernel: true, Runtime: true}}
}

// ownMAC is the MAC that a link with our alias should have: the alias's function, unless the kernel says that another CNI made the link.
// What it has now may be a third party's doing (amazon-vpc-cni-k8s #2103).
func ownMAC(l *dataplane.Link) string {
	if l.Adopted {
		return l.MAC
	}
	return dataplane.VethMAC(l.Alias)
}

func alias(att Attachment, a netip.Addr) string {
	return dataplane.Alias(att.Network, att.ContainerID, att.IfName, a)
}
