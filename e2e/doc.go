// Package e2e is the suite that runs enilab's CNI under a real kubelet, a real containerd and a real API server: on world kind, whose EC2,
// instance metadata and VPC are models (sim/kind/cluster). `make e2e` runs it; it needs Linux, root and Docker, and says
// so in one sentence if they are not there. `go test ./...` skips it.
//
//	make e2e                                     all but what is labelled "long"
//	make e2e LABELS='long || !long'              everything
//	make e2e LABELS=datapath                     some of it: a label filter of Ginkgo's
//	make e2e LABELS='datapath && !nftables'
//	make e2e LABELS=long PROCS=2                 on two clusters at once
//
// # Clusters
//
// A run makes two clusters, one after the other, both named enilab-e2e: a control plane and two workers, t3.medium each (3 ENIs with 6
// addresses, so that few pods need a second ENI). On the first kube-proxy is in iptables mode, and all specs run; on the second it is in
// nftables mode, and those run that are labelled "datapath". Each spec has the mode as a label too.
//
// The scenario files have a cluster for each run of one, with the nodes that the file asks for (files_test.go), and 200 pods at once have one
// of two m5.4xlarge (many_test.go).
//
// PROCS=N is N processes, by Ginkgo's own runner: each has a cluster at a time, enilab-e2e-1 to enilab-e2e-N, and takes the next container of specs when
// it has ended one.
//
// Whatever a cluster consists of is removed at its end, also after a failure, SIGINT or SIGTERM, and AfterSuite proves it, once, when the last process
// has no spec left. After SIGKILL `enilab down --name enilab-e2e` removes it.
//
// # Environment
//
//	ENILAB_E2E            not empty: do run (make e2e sets it)
//	ENILAB_E2E_PROXY      iptables or nftables: only that cluster, with all specs
//	ENILAB_E2E_BROKEN     same-address, no-del or down: the daemon is broken, see e2e/broken, and specs have to turn red
//	ENILAB_E2E_ARTIFACTS  folder of what is kept of a spec that failed; default bin/e2e/artifacts
//	ENILAB_E2E_KEEP       not empty: after a failure wait, with the cluster as it is, until interrupted (without PROCS, where nobody is told at once)
//	ENILAB_E2E_FRESH      not empty: remove the cluster that an earlier run has left
//	KIND_NODE_IMAGE       image of the nodes; default: kind's own
//
// # Specs
//
// Pods run e2e/peer: servers that tell who they are and whom they see, so that a spec knows who has answered, and which translations there
// were on the way. What a pod asks, it asks by that program too.
//
// A file registers its specs with specs, in a container whose function gets the bed: the cluster, and what specs do with it. They may
// leave aws-node as they like only if they put it back (bed.reinstall does at their end), and no pods. A spec waits with a deadline that
// says what it waited for (await), and never sleeps.
package e2e
