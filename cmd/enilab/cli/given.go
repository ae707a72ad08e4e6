package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// giveTools writes into systems which tools a machine has for them.
func giveTools(found map[string]*systems.System, look func(tool string) string) {
	known := map[string]string{}
	for _, s := range found {
		s.Given = nil
		for _, n := range s.Needs() {
			if known[n.Tool] == "" {
				known[n.Tool] = look(n.Tool)
			}
			s.Given = append(s.Given, known[n.Tool])
		}
	}
}

// given are the tools that the machine has for systems, each once.
func given(found map[string]*systems.System) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, g := range found[name].Given {
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// versionWithin is how long a tool may take to say its version.
const versionWithin = 5 * time.Second

// thisComputer is a tool of this computer with its version, or its digest where it says none.
func thisComputer(tool string) string {
	path, err := lookTool(tool)
	if err != nil {
		return tool + ", which this computer has not"
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !strings.ContainsAny(line, "0123456789") || len(line) > 100 {
		return tool + ", " + digestText(path) + ", from this computer"
	}
	if !strings.HasPrefix(line, tool+" ") {
		line = tool + ": " + line
	}
	return line + " from this computer"
}

// busyboxOf is thisComputer for machines of another architecture: Busybox cannot be executed here.
func busyboxOf(arch string) func(tool string) string {
	return func(tool string) string {
		path, err := vm.Busybox(arch)
		if err != nil {
			return tool + ", for which there is no Busybox"
		}
		return tool + " of busybox-static, " + digestText(path)
	}
}

func digestText(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "which cannot be read"
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "which cannot be read"
	}
	return fmt.Sprintf("sha256 %x", h.Sum(nil)[:8])
}
