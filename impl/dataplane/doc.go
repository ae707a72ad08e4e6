// Package dataplane says what a node's kernel should look like, as data, and compares it with what
// the kernel is seen to look like.
//
// Three nouns and three verbs:
//
//   - A [Plan] is an ordered list of operations ([Op]): plain comparable data that prints, compares
//     and diffs. [HostPlan], [ENIPlan] and [PodPlan] make what should be, [ENIRemoval] and
//     [PodRemoval] take it away. Applying a plan is the work of a kernel or of its model.
//   - A spec ([HostSpec], [ENISpec], [PodSpec]) is what a plan is made of. Equal specs, equal plans.
//   - An [Observation] is what netlink dumps say, sorted, so that two of them compare. Its [Index]
//     answers quickly: is this address used ([Index.Uses]), and what is left of it
//     ([Index.Residue])?
//   - [RepairHost], [RepairENI] and [RepairPod] return the operations of a plan that the observation
//     lacks, restricted to what the host's side can do; [Residue] returns the operations that remove
//     what is no longer wanted, and leaves what third parties made alone.
//
// # The datapath
//
// It is amazon-vpc-cni-k8s's (1.23.1), so that running pods survive a swap of one CNI for the other in either
// direction: per pod one veth pair, a /32 in the pod, 169.254.1.1 as its gateway with a permanent
// neighbour entry, a host route, a rule 512 to the pod and, when the address belongs to a secondary
// ENI, a rule 1536 from the pod to that ENI's table. Where it differs, on purpose:
//
//   - the host veth's alias is the exact attachment key ([Alias]), so that nothing is ever found by
//     the name of a pod, and a lost checkpoint is rebuilt with exact keys;
//   - the host veth's MAC is a function of that alias ([VethMAC]), so that it can be put back when
//     a third party changes it (amazon-vpc-cni-k8s #2103, #3155) without entering the pod;
//   - the host veth answers ARP for 169.254.1.1, so that a pod that lost its permanent neighbour
//     entry recovers;
//   - stale rules from the same address to another table are removed before new ones are written;
//   - removal deletes the host veth first: that takes the address from a namespace that a stuck
//     process keeps alive.
//
// IPv4 only. The package imports nothing of ours and is pure: no clock, goroutine, socket or file.
package dataplane
