// Command conformance runs Kubernetes' own specs of [sig-network] against a kind cluster with enilab's CNI: what nobody here wrote.
//
//	make conformance                      the conformance specs
//	make conformance SPECS=more           the others that need neither a cloud nor a feature gate
//	make conformance KILLS=1              the same while aws-node of a worker is deleted by force every ten seconds
//	make conformance CONTROL=1            the same on a cluster with ptp and plain routes: what fails there too is not ours
//	make conformance BROKEN=no-udp        the same with a datapath that is broken: which specs notice
//	make conformance PROCS=8              beside the others: that many specs at once
//	make conformance RESUME=1             beside the others: goes on with a run of them that was interrupted, or whose time was over
//
// It needs what world kind needs (Linux, root, Docker, a node image), and three things of a Kubernetes release: E2E_TEST, the path of its
// e2e.test; E2E_KUBECTL, of its kubectl; and E2E_IMAGES, an archive of the images that the specs run, or nothing where the nodes can pull
// them. JUnit, the log and what was found are in bin/conformance. What each spec was is in the table at the end: those that failed and
// those that were skipped by name, with their reasons. A run in which nothing passed is no green one.
package main
