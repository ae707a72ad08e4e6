// Command enilab is the laboratory: it replays outages of a node's addresses, in virtual time or on a real kernel, and says what held.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// The simulator allocates much and lives shortly: collecting a quarter as often saves a tenth of its time (500 nodes), and
	// the memory it costs is given back seconds later.
	debug.SetGCPercent(800)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
