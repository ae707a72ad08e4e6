// Package grpclite makes gRPC calls with one question and one answer over a unix socket: "gRPC over HTTP2" (grpc/doc/PROTOCOL-HTTP2.md) on HTTP/2
// (RFC 9113) with prior knowledge, and reads protobuf (protobuf.dev, "Encoding").
//
// Daemon and plugin ask a runtime and a network policy agent four such questions with fifteen fields between them. gRPC's own client and the
// generated types would cost the daemon 5 MB of memory, and net/http's the plugin half of its run, which is one for every pod. So this is the
// client's part of HTTP/2 that a unary call needs: one stream at a time, no push, no priorities, a window that holds the largest answer.
//
// Serve is the other side, for one call: another CNI's plugin has our daemon's socket, and has to hear in its own words that it is the wrong one.
//
// An answer is whole, and its sender vouches for it with a status of 0, or there is an error.
package grpclite
