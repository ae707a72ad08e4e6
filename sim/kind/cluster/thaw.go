package cluster

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// thaw thaws what is frozen inside a container. runc freezes a pod's cgroup for as long as it kills it; when runc itself is killed then, with
// the node, the pod stays frozen for ever, and under cgroup v1 Docker cannot remove the node ("tried to kill container, but did not receive an
// exit event"). Version 2 has no such tree and needs none: there what is frozen dies of SIGKILL.
func thaw(container string) {
	const freezer = "/sys/fs/cgroup/freezer"
	for _, pattern := range []string{"/docker/" + container + "*", "/system.slice/docker-" + container + "*"} { // by Docker's cgroup driver
		trees, _ := filepath.Glob(freezer + pattern)
		for _, tree := range trees {
			_ = filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == "freezer.state" {
					if state, _ := os.ReadFile(p); strings.TrimSpace(string(state)) != "THAWED" {
						_ = os.WriteFile(p, []byte("THAWED"), 0) // Docker says what still does not go
					}
				}
				return nil
			})
		}
	}
}
