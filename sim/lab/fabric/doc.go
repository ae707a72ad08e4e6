// Package fabric is the VPC of world lab: real packets between real network namespaces.
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
// A namespace lives only by descriptors, and no link, route or sysctl outside the namespaces is touched, so a process that is killed
// leaves nothing. A Fabric is safe for concurrent use, and several live side by side. It needs Linux and CAP_SYS_ADMIN and
// CAP_NET_ADMIN in the user namespace of the process. IPv4 only.
package fabric
