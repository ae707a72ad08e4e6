package netns

import (
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
)

// builds says that a program is of another commit than this one, and what to do; "" where it is not, or where one of them does not say.
func builds(path string) string {
	theirs, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	own, _ := debug.ReadBuildInfo()
	return unlike(path, theirs, own)
}

func unlike(path string, theirs, own *debug.BuildInfo) string {
	a, b := commit(theirs), commit(own)
	if a == "" || b == "" || a == b {
		return ""
	}
	return fmt.Sprintf(" (%s is of commit %s and this program of %s: make build makes both)", path, a, b)
}

// commit is what a program was built from: "" where it does not say.
func commit(b *debug.BuildInfo) (out string) {
	if b == nil {
		return ""
	}
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			out = s.Value
		case s.Key == "vcs.modified" && s.Value == "true" && out != "":
			out += " with changes"
		}
	}
	return out
}
