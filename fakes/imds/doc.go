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
// A path is taken literally: nothing is unescaped, and "..", "." and empty elements name nothing. A folder answers with and
// without a slash at its end; a leaf only without. A listing names one entry per line, folders with a slash, without a line
// break at the end, in the order of the alphabet: the order of MACs says nothing about device indexes. What a listing names
// can be read, except below a MAC whose entry is Partial: its leaves are listed and answer 404
// (amazon-ec2-net-utils#38). Optional keys that the instance has no use for are a 404: IPv6, prefixes, public addresses, tags,
// user-data, and network-card, which exists only on types with several cards (amazon-ec2-net-utils#104).
//
// Sources: "Instance metadata categories" and "Instance identity documents" of the EC2 user guide.
//
// # What it leaves out
//
// The dated versions beside "latest", AMI and launch data, which the model does not know, and signatures of
// the identity document. Security groups have no names in the model: security-groups gives their identifiers.
package imds
