// Package local is what the plugin and the daemon say to each other: one request and one answer over a unix socket.
//
// A message is a length (4 bytes, big-endian, of what follows) and a JSON object. A request may carry open files
// (SCM_RIGHTS, sent with its first byte): ADD passes the pod's network namespace and an rtnetlink socket that was opened
// inside it, so that the daemon never enters a pod. A connection carries one request and one answer; the caller keeps
// it open until it has the answer, because hanging up means that nobody will read it (Peer.Gone).
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
package local
