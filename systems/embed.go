package systems

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml
var embedded embed.FS

// Embedded are the names of the descriptions that come with enilab.
func Embedded() []string {
	files, err := fs.Glob(embedded, "*.yaml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	slices.Sort(names)
	return names
}
