package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Overlay are the files that a mutant changes, as go build -overlay takes them: by absolute path, the whole text.
func (m *Mutant) Overlay(root string) (map[string]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, c := range m.Changes {
		path := filepath.Join(root, filepath.FromSlash(c.File))
		text, changed := out[path]
		if !changed {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			text = string(data)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			return nil, fmt.Errorf("mutant %s: %s: expected its old text once, found it %d times: %s", m.Name, c.File, n, c.Old)
		}
		out[path] = strings.Replace(text, c.Old, c.New, 1)
	}
	return out, nil
}

// Describe is a description of enilab with two versions, of which the later one is the mutant's.
func (m *Mutant) Describe(base string) string {
	text := base + fmt.Sprintf("\nversions:\n  - {from: %s, before: %s}\n  - from: %s\n", From, To, To)
	for line := range strings.Lines(m.Range) {
		text += "    " + line
	}
	return text
}

// Build makes the binaries of a version in a folder: ipamd and aws-cni.
func (m *Mutant) Build(ctx context.Context, root, folder string) error {
	overlay, err := m.Overlay(root)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "gate-mutant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	replace := map[string]string{}
	for path, text := range overlay {
		file := filepath.Join(temp, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		replace[path] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	spec := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(spec, data, 0o600); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-s -w", "-overlay", spec}
	args = append(append(args, m.Flags...), "-o", folder+string(filepath.Separator), "./cmd/ipamd", "./cmd/aws-cni")
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("mutant %s does not build: %w\n%s", m.Name, err, out)
	}
	return nil
}
