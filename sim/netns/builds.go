package netns

import (
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
)

// builds says that a program is of another commit than this one, and what to do; "" where it is not, or where one of
// them does not say.
func builds(path string) string {
	theirs, err := buildinfo.ReadFile(path)
	own, ok := debug.ReadBuildInfo()
	if err != nil || !ok {
		return ""
	}
	return unlike(path, theirs.Main.Version, own.Main.Version)
}

func unlike(path, theirs, own string) string {
	const unstamped = "(devel)" // built without git, or with -buildvcs=false
	if theirs == own || theirs == "" || own == "" || theirs == unstamped || own == unstamped {
		return ""
	}
	return fmt.Sprintf(" (%s is %s and this program %s: make build makes both)", path, theirs, own)
}
