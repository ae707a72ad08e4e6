// Package server runs a world (fakes/world) for other people's programs: EC2, instance metadata, and a door for who tests with them.
//
//	w, err := world.Parse(name, data)
//	s, err := server.Start(server.Options{World: w, EC2: "127.0.0.1:4566", IMDS: "127.0.0.1:1338", Admin: "127.0.0.1:4567"})
//	defer s.Close()
//	fmt.Println(s.Endpoints())
//
// One EC2 endpoint serves all accounts and regions: the access key of a request says whose it is, and the scope of its signature which
// region. Each instance has a metadata endpoint of its own.
//
// # Time
//
// The clouds live by the wall clock, World.Speed seconds of theirs in each second, and by what the door skips. A cloud needs no goroutine: it
// does what is due at every request. One lock guards each. What takes time in the model (a request under way, a slow
// call) is waited for without it.
//
// # The door
//
// The admin endpoint shows and changes what no API call could; GET / lists it. It has no password: keep it on a loopback address. Requests that a
// browser sends for another site are refused.
package server
