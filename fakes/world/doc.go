// Package world reads a world file: accounts, regions, networks, instances, knobs and faults, as YAML, and makes the clouds of it.
//
//	w, err := world.Parse("small.yaml", data) // Errors, each with its line
//	clouds, err := w.Make()                   // one ec2.Cloud for each region of each account
//
// It is pure; fakes/world/server runs what it made. docs/serve.md describes the file.
//
// # What it promises
//
// A file is refused, with the line and what to do, rather than understood differently than it was meant: unknown and repeated keys,
// subnets that overlap or lie outside of their VPC, unknown instance types, more interfaces or addresses than the type
// allows or the subnet has, names and keys that are used twice, references to what is not there. All mistakes are told
// at once, up to mostErrors. No input makes it panic, none larger than MaxFile is read, and anchors are refused, so
// that the tree is as large as the text.
//
// The same file makes the same clouds: identifiers that it does not give depend on the names in it, and all else on its seed.
package world
