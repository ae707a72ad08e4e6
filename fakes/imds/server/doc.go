// Package server is an instance metadata service over HTTP, versions 1 and 2, for one instance of the model in fakes/ec2.
//
//	srv := server.Server(server.Handler(server.Config{View: …, Now: clock.Now}))
//	go srv.Serve(listener)       // on 169.254.169.254:80 in the node's namespace; or AWS_EC2_METADATA_SERVICE_ENDPOINT
//
// What the tree says is fakes/imds's; this package is about who may read it.
//
// # Many instances in one process
//
// A metadata service knows whom it talks to by where the packets come from, so each instance has a listener of its own: one Config,
// one Handler, one Server and one listener for each (ports of one address, addresses, or 169.254.169.254 in as many network
// namespaces). They share nothing but what the Config's functions share: View, Now, Extras and Wall are called concurrently, by all of
// them, and must see to their own lock. A Handler costs a few hundred bytes and no goroutine; a Server costs what its connections
// cost. An instance that was terminated is closed by its owner (http.Server.Close); until then its View is false, and it is silent.
// Signer is the exception: give all of them the same one, or each makes a key when it is first asked for a signature (0.1 s).
//
// # What it promises
//
// PUT /latest/api/token gives a token for X-aws-ec2-metadata-token-ttl-seconds, 1 to 21600: without that header or with another
// value 400. A PUT to a dated version's api/token is a 403. Reads need a token unless Options.V1: 401 without one, with one that is
// old by Config.Now, made up, or another instance's; a token that is sent must be good also where none is needed. X-Forwarded-For is
// refused with 403 on every request (the real service: on PUT), a disabled service answers 403 to everything, verbs other than GET,
// HEAD and that PUT are a 405. A View that is silent hangs the caller until it gives up, token requests too.
//
// Tokens are not stored: they are sealed by a key that a Handler makes for itself, so they end with it, and no number
// of them costs memory.
//
// Hop limit: the answer to a token request, and nothing else, leaves in packets whose TTL (IPv6: hop limit) is Options.HopLimit, so a
// caller that is further away waits until it gives up, as with the real service; there is no error to see. It needs Linux, and a
// Server of this package. A service that listens inside of the instance's own namespace is one hop nearer to containers than the real
// one, which is beyond the instance's interface: Options.Inside counts that hop, for every caller but those that talk from the service's
// own address or the instance's primary one, and works on every system.
//
// Throttling: Options.Throttle is a token bucket per instance; what finds it empty is answered 429, token requests too. The user guide
// ("Query throttling") says that queries are throttled per instance and names neither rate nor status; 429 is what clients saw
// (aws-sdk-go-v2#1995). The published limit of 1024 packets a second for all link-local services, at about five packets for a read on a
// connection of its own, allows some 200 reads a second; beyond it the real one loses packets.
// The zero Options.Throttle never throttles. Connections at once are limited too ("Query throttling" again, without a number): a Server
// closes what is more than maxConnections (Options.Connections) without an answer.
//
// Signatures of the identity document verify, as the user guide says how, with Signer.Certificate instead of Amazon's: signature by
// openssl dgst -sha256, pkcs7 and rsa2048 by openssl smime. (Amazon's pkcs7 is a DSA signature, ours is RSA.)
//
// Answers keep the connection, as clients may ask; the real service was seen to say "Connection: close", which Options.Close does.
//
// Sources: "Use the Instance Metadata Service to access instance metadata", "Access instance metadata for an EC2 instance" and
// "Configure the instance metadata options" of the EC2 user guide.
package server
