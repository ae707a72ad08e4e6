// Package known is the list of violations that the swarm has found and that are not mended yet: a shrunk scenario for each, and one line
// that says by which seed it breaks what, and by what cause. A test plays them all: one that does not break any more must go.
package known

import (
	"embed"

	"github.com/enilab/enilab/sim/swarm"
)

// All files, for a list that has become empty has no *.scn.
//
//go:embed *
var files embed.FS

// List is the whole list.
func List() ([]swarm.Entry, error) {
	list, err := files.ReadFile("known.txt")
	if err != nil {
		return nil, err
	}
	return swarm.Known(string(list), files.ReadFile)
}
