// Package vpc is the VPC of worlds netns and kind: real packets between real network namespaces.
//
// One anonymous network namespace is the VPC's router. An ENI that is attached is a cable, a veth pair: one end in the router, the
// other, with the ENI's MAC, in the instance's namespace (Plug; Unplug pulls it). An address that EC2's model has assigned to an ENI
// (Assign, Unassign) is one /32 route and one permanent neighbour in the router:
//
//	          router namespace (Namespace)                          an instance's namespace
//	Witness, Internet ── lo      10.0.1.10/32 dev e16 ═══════════════ eth0, MAC of the ENI
//	                             10.0.1.11/32 dev e16
//	                             10.0.1.20/32 dev e17 ═══════════════ eth1, MAC of another ENI
//	                             default      blackhole
//
// What follows from that:
//
//   - Delivery. A packet for an assigned address goes to the ENI's MAC, and the instance is never asked by ARP. A packet for any other
//     address vanishes without an ICMP error, as in a VPC.
//   - Source check. rp_filter is strict and every address is a /32 route, so a packet is forwarded only if it came in by the cable
//     of the ENI that owns its source: a spoofed address is dropped, and so is the address of one ENI sent out by another ENI of the
//     same node (EC2 User Guide, "Source/destination checking": the instance must be the source or destination of its traffic).
//     The route of the router itself (blackhole) makes every unknown source invalid.
//   - ARP. One packet socket answers for the subnet's gateway and any other address of the subnet, with the router's MAC, and only
//     a sender address that the ENI owns. An ENI's own addresses are not answered, so duplicate address detection
//     (RFC 5227: sender 0.0.0.0) finds the addresses of other ENIs and no others.
//   - Addresses belong to ENIs. They stay assigned while the cable is unplugged and work again when it is plugged elsewhere; an address
//     that is assigned twice is the last ENI's (AssignPrivateIpAddresses, AllowReassignment).
//
// Like any veth, a cable whose instance has just set its end up may lose the router's first packet (see responder.awake); Ping repeats, TCP
// does so after a second.
//
// Beyond the router is one address of the internet. A TCP service there tells each peer its own address, so SNAT is visible. The
// router's own probes (Ping, Dial) come from Witness, an address of the VPC in no subnet: a CNI must not SNAT the answers.
//
// # A shared segment
//
// Elsewhere a machine's first link exists before the VPC does: a container's eth0 on a Docker network, which is one Ethernet for all machines. Then
// the router works in a namespace that it borrows (Config.Namespace), whose link Config.Segment is on that Ethernet and has the addresses of the
// gateways of one or several subnets; the network is those subnets. An ENI is either plugged in or a machine on the segment (Join, Leave):
//
//	          borrowed namespace: table 233, before all others      the machines' namespaces
//	10.0.0.2/32  dev eth0, permanent neighbour ─┐
//	10.0.0.70/32 dev eth0, permanent neighbour ─┼─ eth0 ── one Ethernet ─┬─ eth0, MAC of a joined ENI; arp_ignore=8
//	10.0.0.62/32 dev eth0, asked by ARP ────────┘                        └─ a stranger (Config.Strangers), 10.0.0.62
//	10.0.0.71/32 dev e1, permanent neighbour ═════════════════════════════ eth1, MAC of a plugged ENI
//	default      blackhole
//
// What follows from that:
//
//   - Delivery. Whatever goes between two machines comes in and goes out by the same link, without ICMP redirects. The routes that the
//     namespace had (the link's network, a default route) stay where they are, unused: a routing rule of the VPC's comes first.
//   - Source check. rp_filter cannot tell ENIs apart that share a link. There nftables does: a packet from the MAC of an ENI that has joined with a
//     source that the ENI does not own is dropped and counted (nft list table ip enilab-vpc). Packets from other MACs pass, if rp_filter
//     lets them: a machine that has not joined has no address, a stranger has its own.
//   - ARP. The router answers, with its MAC there, for the gateway and for all addresses of attached ENIs: to everybody, but to a machine that has
//     joined only if it asks with an address that its ENI owns. It does not answer for the asking ENI's own, for
//     addresses that no ENI has, for strangers, or for ENIs that are not attached: they may be machines that have not
//     joined yet, which answer for themselves. Machines that have joined must not (arp_ignore=8); else neighbours find
//     them directly.
//   - A machine that asks by ARP tells everybody its own MAC, and the machines that have it as a neighbour believe it.
//     The router contradicts at once with an announcement (responder.announce), and announces addresses when they come
//     to it. What it does not hear are unicast requests: a stranger that a machine asks again that way sends past the
//     router until its own kernel asks again by broadcast. Between machines that does not happen: all their neighbours
//     have the router's MAC. Only frames to the router's MAC are checked.
//   - Strangers are reached by cables too: there, the router answers for them, as for all of the subnet.
//   - The gateway's address answers ARP and nothing else.
//   - MTU. The segment's is the link's (Docker: 1500), cables keep theirs (9001). A packet that is larger than its next link is cut, or with DF
//     dropped and answered by ICMP "fragmentation needed" from Witness, which is never limited in rate (EC2 User Guide, "Path MTU
//     Discovery"). A /32 route needs no MTU of its own: no machine on the segment takes less than the router's link. A machine
//     that believes in more (a CNI has set eth0 to 9001) is worse: the wire drops its larger frames in silence. So SYNs that cross the segment
//     have their MSS lowered to what fits, as AWS's Transit Gateway does, and TCP works without any ICMP; UDP does not. A network with MTU 9001
//     needs none of this.
//
// Close leaves a borrowed namespace as it was found: links, addresses, routes, rules, neighbours, settings, nftables. A process that is
// killed does not; New refuses such a namespace, and its maker removes it.
//
// # Limits
//
// A namespace lives only by descriptors, and no link, route or sysctl outside the namespaces is touched, so a process that is killed
// leaves nothing, unless it had borrowed a namespace. A Network is safe for concurrent use, and several live side by side. It needs
// Linux and CAP_SYS_ADMIN and CAP_NET_ADMIN in the user namespace of the process, and nftables for a segment. IPv4 only.
package vpc
