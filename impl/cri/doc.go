// Package cri lists a node's pod sandboxes as its container runtime knows them: CRI v1 (k8s.io/cri-api, runtime/v1/api.proto) over a
// unix socket.
//
// A list is whole or it is an error, never empty for want of an answer: a node once gave an ENI with live pods back because it had
// been shown the socket of a runtime that runs no pods (amazon-vpc-cni-k8s 1.5.3). Errors are in the source's words.
//
// A list costs one ListPodSandbox, and one PodSandboxStatus for each sandbox that is new: the address of a sandbox never changes, so
// it is asked for once. Requests are made one after another.
//
// The calls are package unary's, and so is the reading of protobuf. The tests ask a real gRPC server with the real types.
package cri
