// Command shim stands before a CNI plugin in a node of kind, and records how it is called, or makes it fail: package calls.
package main

import "github.com/enilab/enilab/e2e/calls"

func main() { calls.Main() }
