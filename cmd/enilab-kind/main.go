// Command enilab-kind is cmd/enilab with world kind in it. client-go and kind make it almost four times as large, and who simulates needs
// neither: cmd/enilab executes this binary for what it cannot do itself. It can also be called like enilab.
package main

import "github.com/enilab/enilab/cmd/enilab/cli"

func main() { cli.Main(world{}) }
