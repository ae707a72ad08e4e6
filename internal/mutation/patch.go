package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch is a change that was once made, or feared, and the test that notices it.
type Patch struct {
	Name string // of its file
	What string // is wrong with it, as a sentence
	Change
	Package string // of the test, such as impl/ipam
	Test    string
}

// ReadPatches reads a folder of patches, one a file:
//
//	What is wrong, as a sentence.
//
//	file   impl/ipam/start.go
//	killed impl/ipam TestRecoveryWaitsForTheRuntime
//	-- old --
//	the text that is there, once
//	-- new --
//	what it becomes
func ReadPatches(dir string) ([]Patch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []Patch
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		p, err := parsePatch(string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		p.Name = strings.TrimSuffix(filepath.Base(f), ".txt")
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: expected patches, found none", dir)
	}
	return out, nil
}

func parsePatch(text string) (p Patch, err error) {
	head, rest, ok := strings.Cut(text, "\n-- old --\n")
	was, now, also := strings.Cut(rest, "\n-- new --\n")
	if !ok || !also {
		return p, fmt.Errorf("expected the lines -- old -- and -- new --, each once")
	}
	p.Old, p.New = was, strings.TrimSuffix(now, "\n")
	for line := range strings.Lines(head) {
		word := strings.Fields(line)
		switch {
		case len(word) == 2 && word[0] == "file":
			p.File = word[1]
		case len(word) == 3 && word[0] == "killed":
			p.Package, p.Test = word[1], word[2]
		default:
			p.What = strings.TrimSpace(p.What + " " + strings.TrimSpace(line))
		}
	}
	if p.What == "" || p.File == "" || p.Test == "" {
		return p, fmt.Errorf("expected a sentence, \"file PATH\" and \"killed PACKAGE TEST\" before -- old --")
	}
	return p, nil
}
