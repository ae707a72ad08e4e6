// Package linux makes a real kernel look like a [dataplane.Plan], and says what it looks like.
//
// A [Kernel] is one network namespace: the one that the calling thread was in at [Open]. It holds
// netlink sockets, which belong to their namespace for ever, so everything else may be called from
// any goroutine.
//
//   - [Kernel.Apply] runs the operations of a plan one after the other and stops at the first that
//     fails. Each operation is what its [dataplane.Kind] says.
//   - [Kernel.Observe] reads everything a [dataplane.Observation] holds. It leaves out what that
//     type has no words for: lo (unless somebody configured a real address there), the local table,
//     rules of protocol kernel and rules with selectors that a [dataplane.Rule] does not have.
//   - [Kernel.Watch] says that another program changed something.
//
// # The pod's side
//
// The daemon never enters a pod's namespace. The plugin passes it as a [Pod]: the namespace's file and
// an rtnetlink socket that was opened inside. The veth pair is made from the host's side with its peer
// already in the pod (IFLA_NET_NS_FD); the pod's address, routes and neighbour go through the socket.
// A Pod pins its namespace, so it is closed as soon as the plan has run.
//
// # Privileges
//
// CAP_NET_ADMIN in the user namespace that owns the network namespaces is enough, in the host's and
// in the pod's; pods with user namespaces of their own are descendants and therefore included.
// Only a Sysctl other than rp_filter writes /proc/sys, which needs it mounted for writing, and uid 0.
//
// # Kernels
//
// The floor is Linux 5.10. What is newer is tried, and has a fallback that Options.Floor forces:
//
//   - renaming a link that is up needs 6.2; below, it goes down for it, and its routes and proxy
//     neighbours are put back;
//   - forgetting flows by a filter needs 6.11; below, a dump is filtered, and its walk of the table takes 10 ms;
//   - notifications say whose request caused them for links since 6.2 only; below, Watch gives a hint
//     too many.
//
// # Nftables
//
// Table and rules are written and read back over package netlink, not github.com/google/nftables 0.3.0, which tests
// and laboratory use and which writes the very same table. In the daemon it would cost (medians in turns on two busy
// cores): a write 1.6 ms instead of 0.17, a read 1.7 ms instead of 0.08 (all else of an observation beside 110 pods
// takes 2), ten times the allocations of either, 0.35 MB of ipamd. That could be borne. But what it reads cannot be
// trusted as an observation has to be:
//
//   - it does not look at NLM_F_DUMP_INTR, so half a list is a list;
//   - it drops expressions that it does not know (expr.exprsFromBytes): a rule that another program has added one to
//     would be as we wrote it;
//   - a chain that is gone is an error without a number, like any other failure (Conn.ListChain).
//
// # Facts
//
// Found on Linux 6.18 and in its sources, and held by the tests of this package:
//
//   - RTM_NEWLINK takes no IFLA_IFALIAS when it creates, so the alias is a second message, and up another, for
//     an alias that comes with it makes the kernel walk all IPv6 routes (rt6_sync_down_dev): half a millisecond beside 725 pods.
//     They go out in one sendmsg, which a kill cannot divide: no link lives without its alias.
//   - each link that comes up walks all IPv6 routes (rt6_sync_up), of which a link with an IPv6 address has three more: the host's
//     ends have none (IFLA_INET6_ADDR_GEN_MODE, which RTM_NEWLINK does not take either, and a kernel without IPv6 refuses).
//   - a veth cannot be up while it is made (ENOTCONN): the pod's end is brought up from inside.
//   - a link's alias, unlike its name, cannot be looked up, and a dump of 110 links costs as much as making
//     one: a roster is kept by notifications, and so is a book of rules. A new alias of a link that is down
//     causes no notification.
//   - a deleted veth is gone after a millisecond; the kernel's answer comes twenty later (rcu_barrier), and no caller
//     waits for it.
//   - where many namespaces end at once, each change waits 5 to 20 ms for its turn: their links are unregistered under the one lock (rtnl).
//   - where any rule of the machine masquerades (Docker's, kube-proxy's), the kernel walks its whole conntrack for each link that goes down
//     (nf_nat_masquerade, iterate_cleanup_work): with 200,000 flows and two cores, a removal takes three times as long
//     beside it, for any caller.
//   - routes die with their link, rules do not, and neither sends a notification for that; nor do proxy neighbours.
//   - a link that loses its last address loses its routes, those with a gateway too.
//   - rp_filter can be set over netlink (IFLA_INET_CONF), with CAP_NET_ADMIN and without /proc/sys.
package linux
