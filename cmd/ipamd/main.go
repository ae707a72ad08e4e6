// Command ipamd is the node's daemon: see package agent.
package main

import (
	"os"

	"github.com/enilab/enilab/impl/agent"
)

func main() { os.Exit(agent.Main(os.Args[1:], agent.Parts{})) }
