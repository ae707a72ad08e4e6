package world

import "github.com/enilab/enilab/internal/strictyaml"

// MaxFile is the largest file that is read, in bytes: 5,000 instances, each written out, are a tenth of it.
const MaxFile = 8 << 20

// form is what a file should be.
var form = strictyaml.Form{What: "a world file", Max: MaxFile, Begin: "begin with an example of worlds/"}

// Error is a mistake in a file.
type Error = strictyaml.Error

// Errors are all mistakes of a file, in the order of its lines.
type Errors = strictyaml.Errors
