// Package imds turns what the model of EC2 says about an instance's metadata (ec2.IMDS) into the tree of texts that software on
// the instance reads below /latest. It is pure: a view and a path give a status and a text.
//
//	v, ok := cloud.IMDS(now, instance)
//	r := imds.Get(&imds.View{IMDS: v}, "/latest/meta-data/mac")
//
// fakes/imds/server serves it over HTTP, with tokens.
//
// # What it promises
//
// A path is taken literally: nothing is unescaped, and "..", "." and empty elements name nothing. One slash at the end changes nothing,
// neither of a folder nor of a value (amazon-vpc-cni-k8s up to 1.6 reads placement/availability-zone/ on real instances). A listing names one entry per line, folders with a slash (but not dynamic and
// meta-data below the version, nor public-keys/0), without a line break at the end, in the order of the alphabet: the order of MACs
// says nothing about device indexes. What a listing names can be read, except below a MAC whose entry is Partial: the leaves that
// every interface has are listed and answer 404 (amazon-ec2-net-utils#38).
//
// What an instance has no use for is a 404 and in no listing: IPv6 and prefixes, iam without a role, tags unless Extras.Tags,
// user-data, public-keys, spot, rebalance and lifecycle notices, and network-card, which exists only on types with several cards
// (amazon-ec2-net-utils#104). A folder with nothing in it is not there either.
//
// Beside latest are the dated builds; each has the categories that had been released by then, and / lists them.
//
// The signatures of the identity document are View.Sign's. The identity role's credentials (identity-credentials) are
// valid nowhere: InstanceOf does not know their key.
//
// Sources: "Instance metadata categories", with the build that each came with, "Access instance metadata for an EC2 instance" and
// "Instance identity documents" of the EC2 user guide.
//
// # What is assumed
//
// Two categories are in no list and are on every instance: hibernation/configured and profile. Availability zone identifiers number
// the zones by their letters; the real numbers differ by account. An instance profile is named as its role.
//
// # What it leaves out
//
// Public addresses (public-ipv4, public-hostname, ipv4-associations), which the model does not have; placement groups, hosts and
// partitions; product codes, kernels and RAM disks; elastic GPUs; metrics/vhostmd, which is "no longer available"; and the dsa2048
// signature.
package imds
