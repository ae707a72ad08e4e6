// Command ipamd is the node's daemon: see package daemon.
package main

import (
	"os"

	"github.com/enilab/enilab/impl/daemon"
)

func main() { os.Exit(daemon.Main(os.Args[1:], daemon.Parts{})) }
