package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Set are mutants that are built together.
type Set struct{ files map[string]*switched }

// Add takes a mutant in, under a number from 1. It is false when what is changed cannot be chosen at run time (a constant,
// a type, two things, a generic function, one that recovers from a panic): that one is built [Alone].
func (s *Set) Add(number int, m *Mutant) (bool, error) {
	if s.files == nil {
		s.files = map[string]*switched{}
	}
	if s.files[m.Path] == nil {
		f, err := newSwitched(m.Was)
		if err != nil {
			return false, err
		}
		s.files[m.Path] = f
	}
	return s.files[m.Path].add(number, m.Now), nil
}

// Overlay are the files of a build with all of them.
func (s *Set) Overlay() map[string]string {
	out := map[string]string{}
	for path, f := range s.files {
		if len(f.changed) > 0 {
			out[path] = f.source()
			out[filepath.Join(filepath.Dir(path), "enilab_mutant.go")] = fmt.Sprintf(chosenSource, f.file.Name.Name)
		}
	}
	return out
}

// Alone is the overlay of one mutant, which is it whatever [Env] says.
func (m *Mutant) Alone() map[string]string { return map[string]string{m.Path: m.Now} }

// Environ are this process's own variables of this package, for tests that give their programs an environment of their own.
func Environ() []string {
	return []string{Env + "=" + os.Getenv(Env), Reached + "=" + os.Getenv(Reached)}
}

// BuildTest builds a package's tests, from the folder dir of the module, with some files replaced. The temporary files are below temp; one of them
// is the overlay, for tests that build programs themselves: GOFLAGS=-overlay=FILE.
func BuildTest(ctx context.Context, temp, dir, pkg, binary string, overlay map[string]string) (file string, err error) {
	files, err := os.MkdirTemp(temp, "overlay")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range overlay {
		replace[path] = filepath.Join(files, fmt.Sprintf("mutant%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	file = filepath.Join(files, "overlay.json")
	if err = errors.Join(err, os.WriteFile(file, spec, 0o600)); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", "grpcnotrace", "-ldflags=-s -w", "-gcflags=-e", "-overlay", file, "-o", binary, pkg)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutants do not build: %w\n%s", err, quoted(string(out), files))
	}
	return file, nil
}

// quoted is what the compiler said, with the lines that it is about.
func quoted(out, dir string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		b.WriteString(line + "\n")
		part := strings.Split(line, ":")
		if data, err := os.ReadFile(filepath.Join(dir, filepath.Base(part[0]))); err == nil && len(part) > 2 {
			if n, err := strconv.Atoi(part[1]); err == nil {
				lines := strings.Split(string(data), "\n")
				b.WriteString("\t" + strings.Join(lines[max(0, n-6):min(n+3, len(lines))], "\n\t") + "\n")
			}
		}
	}
	return b.String()
}
