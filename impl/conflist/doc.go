// Package conflist is the network configuration list that a container runtime reads: what it says of this CNI, and how it takes the
// place of one that is there.
//
// # Others in the list
//
// A service mesh or a policy engine chains its plugin into the list of the CNI that it finds, and a CNI that writes
// the list anew without it switches it off on every node. [Merge] therefore takes the list that is there: plugins that
// are another project's stay, as they are and where they are; this CNI's own entry is replaced, and so are those of
// amazon-vpc-cni-k8s that it stands in for.
//
//	aws-cni             replaced where it stands
//	egress-cni          taken out: amazon-vpc-cni-k8s's other half, of IPv6 clusters and IPv6 egress
//	portmap             stays as it is; put behind aws-cni if it is not there
//	bandwidth, tuning   one that says exactly what ours would follows the settings, any other stays
//	anything else       stays
//
// # Versions
//
// A list of ours says that it may be read as any version up to 1.1.0, of which STATUS and GC are worth having. libcni then uses the
// highest for every plugin in it, and one that does not speak that fails every pod and makes STATUS, and with it the node, fail. So a list with
// another project's plugin keeps the versions, and whatever else it says of itself: who chained it knew those.
package conflist
