// Command bench measures the real daemon and the real plugin on one node of the laboratory, as a container runtime sees them: from
// the fork of the plugin to its exit. Run it as root on Linux, from the repository:
//
//	go run ./e2e/bench/netns            # or make bench
//	go run ./e2e/bench/netns --quick    # few samples, no burst: does it work?
//
// It builds ipamd and aws-cni as a release does, starts a node (sim/netns/node) on a VPC (sim/vpc) whose EC2, metadata, API
// server and runtime are the laboratory's models behind their real protocols, and prints one table. Time is real: there is no clock of
// the laboratory, and the daemon's flight recorder streams to nobody. Nothing fails by time: figures of a shared machine are for people
// to read. Nothing is left behind, also after a kill.
//
// # What is compared
//
// ptp with host-local, the simplest pair of the reference plugins (github.com/containernetworking/plugins), is built with the same
// flags and run in turn with ours, in the same namespaces of the same node: on another machine all figures differ, their ratio much
// less. ptp makes a veth pair, an address and routes, as we do; it has no daemon, and no rules, no durable record, no second look.
//
// With -base COMMIT, which make bench gives with the release that testdata/base names, that build is measured too, in turn with this one,
// on nodes of this laboratory: what a change has made faster or slower shows in the ratio of the two, on any machine.
//
// The figures in brackets are amazon-vpc-cni-k8s 1.23.1's, measured with fake servers without latency too.
//
// # What is not as in production
//
// EC2 answers at once (the burst is the exception: there the model's published latencies hold), and IP_COOLDOWN_PERIOD is 0, because
// thousands of ADDs a minute would otherwise wait for addresses that cool down.
package main
