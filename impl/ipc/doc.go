// Package ipc is what the plugin and the daemon say to each other: one request and one answer over a unix socket, or, while no daemon
// runs, a file that the next one reads.
//
// A message is a length (4 bytes, big-endian, of what follows) and a JSON object. A request may carry open files
// (SCM_RIGHTS, sent with its first byte): ADD passes the pod's network namespace and an rtnetlink socket that was opened
// inside it, so that the daemon never enters a pod. A connection carries one request and one answer; the caller keeps
// it open until it has the answer, because hanging up means that it will not be read (Peer.Gone).
//
//	caller                                          daemon
//	Dial ── connect ──────────────────────────────► Accept    PID and UID by SO_PEERCRED
//	Call ── length, Request, files ───────────────► Read
//	        (hangs up: a runtime killed it) ──────► Gone
//	     ◄───────────────────── length, Response ── Write
//
// # Versions
//
// Every message says which version of the protocol its sender speaks. Members that a reader does not know are ignored,
// and a member's meaning never changes, so a plugin and a daemon of neighbouring versions understand each other (rule C);
// whether a daemon serves a plugin of that version is ipam.Policy.Speaks, not this package.
//
// # Limits
//
// A request is at most MaxRequest bytes and MaxFiles files, an answer at most MaxResponse bytes. What is larger or
// malformed is an error, and files that came with it are closed. A peer that connects and says nothing is given up
// after a few seconds.
//
// # DELs that the daemon has not heard of
//
// The plugin writes an [Intent] when no daemon answers on the socket, and then tells the runtime that its DEL has
// succeeded (rule F: DEL always ends). The daemon watches the folder, does each as a DEL, and removes the file once
// its release is durable.
//
// One attachment is one file, <hash of the attachment>.json, however often its DEL is repeated. A file shows up whole and
// durable or not at all: it is written under a name that begins with a dot, synced, renamed, and the folder is synced.
// The folder is on a tmpfs, where the pods' other records are: what it speaks of dies with a reboot.
package ipc
