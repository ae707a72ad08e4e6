// Command aws-cni is the CNI plugin; a container runtime runs it, see package plugin.
package main

import (
	"os"

	"github.com/enilab/enilab/impl/plugin"
)

func main() { os.Exit(plugin.Main()) }
