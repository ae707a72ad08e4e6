package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// process of a node, with this machine's number.
type process struct {
	pid, parent int
	args        []string
}

// processes of a node, and of the containers in it.
func processes(n *cluster.Node) []process {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // the pattern is good
	}
	all := map[int]process{}
	for _, f := range folders {
		if p, ok := readProcess(f); ok {
			all[p.pid] = p
		}
	}
	var out []process
	for _, p := range all {
		for up := p; up.pid != 0; up = all[up.parent] {
			if up.pid == n.PID() {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// readProcess reads a folder of /proc. One that has ended is none.
func readProcess(folder string) (p process, ok bool) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return p, false
	}
	line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return p, false
	}
	p.args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	p.pid, err = strconv.Atoi(filepath.Base(folder))
	rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the name may hold anything
	if err != nil || len(rest) < 2 {
		return p, false
	}
	p.parent, err = strconv.Atoi(rest[1])
	return p, err == nil
}

// daemonProcess is a node's ipamd: not the init container, and not one of kubelet's probes, which are ipamd's too.
func daemonProcess(n *cluster.Node) (process, error) {
	for _, p := range processes(n) {
		if (p.args[0] == "/ipamd" || p.args[0] == brokenDaemon) && !slices.Contains(p.args, "init") && !slices.Contains(p.args, "status") {
			return p, nil
		}
	}
	return process{}, fmt.Errorf("the daemon does not run on %s", n.Name)
}
