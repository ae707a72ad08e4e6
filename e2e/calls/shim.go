package calls

import (
	"os"
	"path/filepath"
	"strings"
)

// Main is the program that stands before a plugin: in a folder whose name ends in RecorderFolder it records, in any other it falters.
func Main() {
	self, work := self(), falter
	if strings.HasSuffix(filepath.Dir(self), RecorderFolder) {
		work = record
	}
	os.Exit(work(self))
}

// next is the plugin behind the one that runs as self: the next file of its name in the folders of CNI_PATH that come after
// its own. Folders before it are not looked at, so that shims do not call one another for ever. False when there is none.
func next(self, cniPath string) (plugin string, ok bool) {
	dirs := filepath.SplitList(cniPath)
	for i, d := range dirs {
		if sameFile(d, filepath.Dir(self)) {
			dirs = dirs[i+1:]
			break
		}
	}
	for _, d := range dirs {
		p := filepath.Join(d, filepath.Base(self))
		if i, err := os.Stat(p); err == nil && i.Mode().IsRegular() {
			return p, true
		}
	}
	return "", false
}

func sameFile(a, b string) bool {
	i, err := os.Stat(a)
	if err != nil {
		return false
	}
	j, err := os.Stat(b)
	return err == nil && os.SameFile(i, j)
}

// self is the path under which this program was run. libcni runs a plugin by its full path, and with it as the first
// argument, also where that path is a link; otherwise the executable's own path.
func self() string {
	if filepath.IsAbs(os.Args[0]) {
		return os.Args[0]
	}
	if p, err := os.Executable(); err == nil {
		return p
	}
	return os.Args[0]
}
