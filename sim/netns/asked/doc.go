// Package asked has no code of its own but its test: daemons of amazon-vpc-cni-k8s as they were released, in a node, against the servers of
// fakes, outside of any scenario. The test sees each of them serve, and answer an ADD and a DEL of its own plugin, and tells what it asked
// of whom and how that was answered (go test -v).
package asked
