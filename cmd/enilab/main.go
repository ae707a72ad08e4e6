// Command enilab is the laboratory: it replays outages of a node's addresses, in virtual time or on a real kernel, and says what held.
// For world kind it executes cmd/enilab-kind.
package main

import "github.com/enilab/enilab/cmd/enilab/cli"

func main() { cli.Main(nil) }
