// Package worlds holds examples of world files, which enilab serve runs.
package worlds

import "embed"

// Files are the examples.
//
//go:embed *.yaml
var Files embed.FS

// Default is the one that is served by default.
const Default = "small.yaml"
