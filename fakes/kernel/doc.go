// Package kernel is a pure model of one node's kernel, as far as pod networking can tell: devices,
// namespaces, veth pairs, routes, policy rules, neighbours, our NAT table and conntrack.
//
// A [Kernel] is a value. Plans change it ([Kernel.Apply], any part of a plan, so that a crash can leave
// any prefix), dumps read it ([Kernel.Observe]), and packets try it: [Kernel.Trace] (from the VPC and
// back), [Kernel.Egress] (from the pod out) and [Kernel.NodePort]. Runtimes make, close and hold
// namespaces; EC2 plugs and unplugs ENIs; third parties and accidents have verbs of their own.
//
// Modelled after Linux where it matters to a VPC CNI:
//
//   - a veth pair dies with either end; deleting the host's end takes the address from a namespace that
//     is held; routes die with their link, rules do not;
//   - two namespaces may have the same address (nothing in the kernel minds), two links may not have the
//     same name, and rules of one priority are tried in turn: a table without an answer falls through;
//   - inodes of namespaces are reused, lowest first;
//   - an address on a link that is up makes a subnet route in main, and a gateway must be on its link;
//   - a link that goes down loses its routes and its proxy neighbours; one that comes up gets only its
//     subnet routes back;
//   - a proxy neighbour answers only while the host has another way to the address;
//   - a strict rp_filter drops what would be answered by another link;
//   - iptables' chain FORWARD drops pods' packets when its policy is DROP and no rule of ours is there.
//
// Not modelled: IPv6, MTU effects on packets, other firewalls, the local table, ip_forward (it is
// on). The list above was compared with Linux 6.18 by hand, in a namespace.
//
// Determinism: all lists are kept in order, lookups are binary searches, and the only randomness is a
// seeded generator inside the value, which [Kernel.Clone] copies. Costs: an operation and a trace are
// logarithmic in what the node holds, an observation is proportional to it.
package kernel
