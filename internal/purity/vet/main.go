// Command vet judges packages by the rules of package purity for go vet -vettool=FILE ./... (make lint).
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/enilab/enilab/internal/purity"
)

func main() { unitchecker.Main(purity.Analyzers...) }
