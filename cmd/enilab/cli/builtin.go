package cli

import (
	"embed"
	"path"
	"strings"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/scenarios"
)

// builtins are the folders of scenarios that this binary has within it, by their names in the repository.
var builtins = []struct {
	folder string
	files  *embed.FS
}{{"scenarios", &scenarios.Files}, {"gate", &gate.Files}}

// builtin is a scenario that this binary has within it: socket-mismatch, socket-mismatch.scn or scenarios/socket-mismatch.scn. Files of those
// names come first, so it is only asked for what is no file.
func builtin(name string) ([]byte, bool) {
	dir, file := path.Split(path.Clean(name))
	if !strings.HasSuffix(file, ".scn") {
		file += ".scn"
	}
	for _, b := range builtins {
		if dir != "" && dir != b.folder+"/" {
			continue
		}
		if data, err := b.files.ReadFile(file); err == nil {
			return data, true
		}
	}
	return nil, false
}

// builtinNames are all of them, without ending.
func builtinNames() (names []string) {
	for _, b := range builtins {
		entries, err := b.files.ReadDir(".")
		if err != nil {
			panic(err) // every embedded file system has a root
		}
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(e.Name(), ".scn"))
		}
	}
	return names
}
