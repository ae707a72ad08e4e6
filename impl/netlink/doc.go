// Package netlink speaks netlink with Linux for the daemon and the plugin: sockets, messages, and the attributes of answers.
//
//   - A [Socket] is in the network namespace of the thread that opened it, for ever. Dump calls a list complete only if
//     the kernel says so: NLM_F_DUMP_INTR, an overrun, an errno in NLMSG_DONE and a datagram that was cut short are
//     errors, for absence is a claim.
//   - A [Request] is one or several messages under construction, in memory that is used again. Several go out in one
//     sendmsg, which a kill cannot divide.
//   - A [Refusal] is the kernel's no, with its own words (EXT_ACK) and without those that go-cni takes for a success.
//   - [Attributes] goes through an answer where it lies. [Link] and [ParseAddress] read what both programs ask for;
//     everything else (rules, routes, nftables, conntrack) is read where it is used.
//
// # Why no library
//
// Laboratory and tests use github.com/vishvananda/netlink 1.3.1, which reads and writes the same kernel. In the daemon
// and the plugin it would cost, measured in turns on two busy cores (medians; their ratios are what counts):
//
//	aws-cni, stripped                      3.8 MB    4.2 MB with its links, addresses and routes
//	ipamd, stripped                       11.0 MB   11.6 MB with what the dataplane does
//	aws-cni VERSION, from fork to exit     3.0 ms    3.1 ms: no difference
//	a pod's plan beside 110 pods           1.0 ms    1.3 ms
//	all lists of a node with 110 pods      2.0 ms    2.1 ms without the pods' own addresses and nftables
//
// None of that forbids it. What does is that it has no words for things that rules of the daemon rest on: several
// messages in one sendmsg (no link lives without its alias), the addresses inside a pod's namespace seen from outside
// (IFA_TARGET_NETNSID), whose request caused a notification (the header's port, NLM_F_ECHO), rp_filter without
// /proc/sys (IFLA_INET_CONF), flows deleted by a filter of the kernel's. Beside it, all of this package would be
// needed for those.
package netlink
