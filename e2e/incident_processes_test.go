package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process of a node, with this machine's number.
type process struct {
	pid, parent int
	args        []string
}

// processes of the node, and of the containers in it.
func (s *stage) processes() []process {
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
			if up.pid == s.node.PID() {
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

// find is the node's process whose arguments fit.
func (s *stage) find(what string, fits func(args []string) bool) (process, error) {
	for _, p := range s.processes() {
		if fits(p.args) {
			return p, nil
		}
	}
	return process{}, fmt.Errorf("%s does not run on %s", what, s.node.Name)
}

// daemonProcess is ipamd, or the mutant in its place: not the init container, and not one of kubelet's probes, which are ipamd's too.
func (s *stage) daemonProcess() (process, error) {
	return s.find("the daemon", func(args []string) bool {
		return args[0] == "/ipamd" && !slices.Contains(args, "init") && !slices.Contains(args, "status") || len(args) > 1 && args[0] == "/enilab" && args[1] == "play"
	})
}

// killDaemon ends ipamd as an OOM killer would.
func (s *stage) killDaemon() error {
	p, err := s.daemonProcess()
	if err != nil {
		return err
	}
	return ignoreEnded(syscall.Kill(p.pid, syscall.SIGKILL))
}

func ignoreEnded(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
