package cli

import (
	"path/filepath"
	"strconv"
)

// seedFolder is where --out has a seed's files.
func seedFolder(seed uint64) string { return "seed-" + strconv.FormatUint(seed, 10) }

// outFolder is where --out has a file's: below its seed's.
func outFolder(out string, seed uint64, name string) string {
	return filepath.Join(out, seedFolder(seed), name)
}
