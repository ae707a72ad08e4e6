// Package apiserver is a Kubernetes API server for clients of other projects: daemons of other CNIs with client-go or
// controller-runtime of any version. fakes/kube/server is the small and strict one for a daemon of our own.
//
//	s := apiserver.New(cluster, apiserver.WithToken(token))
//	go apiserver.Serve(s).Serve(listener)
//	s.Put(object)                  // what the cluster behind it does not have: a ConfigMap, an ENIConfig, a CustomResourceDefinition
//
// # What it promises
//
// Nodes and pods are those of the Cluster, which says when something has changed: nothing is polled. What clients write of them, such as
// a label, an annotation, a capacity or a condition, is kept, and stays when the Cluster changes other fields. All other objects live
// here. /version, health, discovery (/api, /apis, one list per group and version), GET, LIST and WATCH with selectors of labels and
// fields, limit and continue; POST, PUT and PATCH (JSON, merge and, of built-in kinds, strategic merge), their /status where the real
// server has one; DELETE of what is not the Cluster's. One counter numbers all changes. A watch begins with the state (resourceVersion
// absent or "0"), with the state and a bookmark that says where it ends (sendInitialEvents), or goes on behind a version and misses
// nothing: a version that is no longer known (historyLimit) is an ERROR event of code 410. A selector is applied before and after each
// change: what begins to match is ADDED, what ceases to is DELETED.
//
// Bodies may be JSON, YAML or, of built-in kinds, protobuf, in which generated clients write whatever they are told to read.
//
// A CustomResourceDefinition, put or posted, makes its resource served, as those that upstream CNIs have are from the beginning
// (resources.go).
//
// What is wrong is answered as the real server does, with a Status: unknown resources and objects 404, methods 405, Accept without JSON
// 406, stale versions 409, bodies that are no JSON 415, too large 413, versions that are not yet there 504.
//
// Sources: "Kubernetes API Concepts"; k8s.io/apiserver (endpoints/handlers, storage/cacher, registry/generic).
//
// # What it leaves out
//
// Answers in protobuf, CBOR, tables and metadata-only objects (406: every client names JSON as well), aggregated discovery (clients fall back),
// OpenAPI, server-side apply, RBAC, admission, validation of fields, defaults, managedFields, finalizers, garbage collection, namespaces'
// deletion. Events of core/v1 and of events.k8s.io are not shown as each other.
package apiserver
