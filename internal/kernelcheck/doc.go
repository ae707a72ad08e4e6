// Package kernelcheck holds the model of a kernel (fakes/kernel) and the real one (impl/dataplane/linux) next to each other: the
// same plans and the same accidents must give the same results and the same observations. It is all tests; they need root on
// Linux, and work in network namespaces of their own.
//
// Masked are what the two number differently: link indexes and the inodes of namespaces. An ENI, which the test plugs in
// as a veth, looks like one, and what its cable leads to is the test's own doing.
package kernelcheck
