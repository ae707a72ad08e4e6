// Package kube reads the three things that a node needs of the Kubernetes API, as REST over net/http: which pods are bound to it, what its
// Node object says of it, and its ENIConfig. (The official client would cost 14 MB of memory.)
//
// Lists are whole or are errors. Nothing is written but Events about the node, and nothing is cached: "the API server has no such pod" is a hint to look, never
// proof (ipam).
package kube
