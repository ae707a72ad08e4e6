// Package server is the part of a Kubernetes API server that a node's daemon reads, over HTTP and in JSON:
//
//	GET /api/v1/nodes/NAME
//	GET /api/v1/nodes?fieldSelector=metadata.name=NAME             a list of one or none
//	GET /api/v1/nodes?watch=true&fieldSelector=metadata.name=NAME  with resourceVersion, bookmarks, timeoutSeconds
//	GET /api/v1/pods?fieldSelector=spec.nodeName=NAME              with limit and continue
//	GET /apis/networking.k8s.io/v1/networkpolicies                 of which there are none
//	GET /apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/NAME
//
// # What it promises
//
// A watch without a resourceVersion, or with "0", begins with the object as it is; with another one it continues there, and
// misses nothing: from a version that is no longer known (logLimit changes back) it gets an ERROR event of code 410, and must read
// again. As the real server's, that answer has HTTP status 200. A version is counted for each change that the server
// saw; what changes back between two looks was no change. Bookmarks come when asked for, every minute, and before a watch
// ends by itself.
//
// A list that is cut by limit is continued from the list as it was; only the last snapshotLimit ones are kept, and a token of
// an older one is a 410. All errors are Status objects. With a token configured, requests without it are a 401.
//
// It is stricter than the real server: nodes and pods are listed only for one node (a node's own credentials allow no more:
// KEP-4601), and label selectors, other fields and watches of pods are refused instead of ignored.
//
// Sources: "Kubernetes API Concepts"; k8s.io/apiserver for what a watch does.
//
// # What it leaves out
//
// Protobuf and tables, other resources, RBAC, and writing: Events are accepted and dropped. The model does not keep
// when a pod's deletion began: deletionTimestamp is there if and only if the pod is being deleted, and its value is
// the time of creation.
package server
