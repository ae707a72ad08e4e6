package cli

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// nodePath are the folders in which a node looks for programs: it has them of this computer.
var nodePath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// lookTool finds one of this computer's programs where a node would, whatever PATH the user has.
func lookTool(name string) (string, error) {
	for _, dir := range nodePath {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// needs are what systems need of the machine that they are played on, and what that machine has.
type needs struct {
	found   map[string]*systems.System // by what they were asked for
	machine string                     // in a sentence
	tool    func(name string) bool
	kernel  string                   // in a sentence
	module  func(module string) bool // nil: nobody knows which the kernel has
}

// missing says in sentences what the machine lacks; empty: nothing.
func (n *needs) missing() string {
	var all []systems.Need
	var said []string
	for _, name := range slices.Sorted(maps.Keys(n.found)) {
		all = append(all, n.found[name].Needs()...)
	}
	if text := systems.Missing(all, n.machine, n.tool); text != "" {
		said = append(said, text)
	}
	for _, name := range slices.Sorted(maps.Keys(n.found)) {
		if n.module == nil {
			break
		}
		if text := n.found[name].MissingModules(n.kernel, n.module); text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// toolsOf are the programs that a system executes.
func toolsOf(s *systems.System) []string { return tools(map[string]*systems.System{"": s}) }

// tools are the programs that systems execute, sorted, each once.
func tools(found map[string]*systems.System) (out []string) {
	for _, s := range found {
		for _, n := range s.Needs() {
			if !slices.Contains(out, n.Tool) {
				out = append(out, n.Tool)
			}
		}
	}
	slices.Sort(out)
	return out
}

// modules are those of the kernel that systems need, sorted, each once.
func modules(found map[string]*systems.System) (out []string) {
	for _, s := range found {
		out = append(out, s.Modules()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasTool says whether this computer has a program where a node looks for it.
func hasTool(name string) bool {
	_, err := lookTool(name)
	return err == nil
}

// checkComputer refuses to play systems on this computer's own kernel that need what it has not.
func checkComputer(found map[string]*systems.System) error {
	k := vm.Running()
	n := needs{found: found, machine: "this computer", tool: hasTool, kernel: "Linux " + k.Version}
	if has, err := k.Has(); err == nil { // without a list of its modules nobody knows what is in it
		n.module = func(m string) bool { return has(m) || vm.Loaded(m) }
	}
	if text := n.missing(); text != "" {
		return &exit{runner.ExitLacking, text}
	}
	return nil
}

// needsOf are what the machine's systems need, and what it will be given.
func (t *theatre) needsOf(k *vm.Kernel) (*needs, error) {
	n := &needs{found: t.f.found, machine: "this computer", tool: hasTool, kernel: "kernel " + k.Version}
	if t.foreign() {
		n.machine, n.tool = "a virtual machine of "+t.f.arch+", which is given Debian's busybox-static,", vm.IsApplet
	}
	if len(modules(t.f.found)) == 0 {
		return n, nil
	}
	var err error
	n.module, err = k.Has()
	return n, err
}
