// Package server is a container runtime's CRI v1 socket for the model in fakes/cri: what a node's daemon asks of
// it, and nothing that changes anything.
//
//	s := server.New(backend)
//	go s.Serve(listener)         // usually of a unix socket
//	defer s.Stop()
//
// # What it promises
//
// ListPodSandbox filters by identifier (whole, never a prefix), state and labels, all of which must match, and gives rows in the
// Backend's order. Labels are kubelet's, io.kubernetes.pod.name, .namespace and .uid. PodSandboxStatus has the address that
// ADD answered while the model has one, none for a pod of the host's network, and the network mode NODE or POD, for a
// reader can tell host-network pods by nothing else; the list does not say it. An unknown sandbox is NotFound. An answer is whole
// or an error: with an error of the Backend its rows are dropped.
//
// WithAlpha serves the same under runtime.v1alpha2, and Docker the same sandboxes as the Docker Engine's API shows them.
//
// All other methods and services are Unimplemented, as by a runtime that is older or has them off. Unimplemented makes a
// server without any service, which is what another program's socket looks like to a CRI client.
//
// Sources: k8s.io/cri-api/pkg/apis/runtime/v1/api.proto; the Docker Engine API's reference, and dockershim of Kubernetes 1.20 for what
// its containers are named and labelled.
package server
