// Package scenarios holds the incidents, as files that a person on call can read.
package scenarios

import "embed"

// Files are all incidents, so that one binary can replay them anywhere.
//
//go:embed *.scn
var Files embed.FS
