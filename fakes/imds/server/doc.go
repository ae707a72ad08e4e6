// Package server is an instance metadata service over HTTP, versions 1 and 2, for one instance of the model in fakes/ec2.
//
//	srv := server.Server(server.Handler(server.Config{View: …, Now: clock.Now}))
//	go srv.Serve(listener)       // on 169.254.169.254:80 in the node's namespace; or AWS_EC2_METADATA_SERVICE_ENDPOINT
//
// What the tree says is fakes/imds's; this package is about who may read it.
//
// # What it promises
//
// PUT /latest/api/token gives a token for X-aws-ec2-metadata-token-ttl-seconds, 1 to 21600: without that header or with another
// value 400. Reads need a token unless Config.V1: 401 without one, with one that is old by Config.Now, made up, or
// another instance's; a token that is sent must be good also where none is needed. X-Forwarded-For is refused with 403 on
// every request (the real service: on PUT), a disabled service answers 403 to everything, verbs other than GET, HEAD and that PUT are a 405.
// A View that is silent hangs the caller until it gives up, token requests too.
//
// Tokens are not stored: they are sealed by a key that a Handler makes for itself, so they end with it, and no number
// of them costs memory.
//
// Source: "Use the Instance Metadata Service to access instance metadata" of the EC2 user guide.
//
// # What it leaves out
//
// The hop limit is the network's: it belongs where packets are. The real service throttles per interface (1024 packets a
// second); this one does not.
package server
