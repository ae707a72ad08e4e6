package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch is a change, and the test that notices it.
type Patch struct {
	Name string // of its file
	What string // is wrong with it, as a sentence; "" where the test's name says it
	Change
	Package string // of the test, such as impl/ipam
	Test    string // a function, or what else the package calls its tests
}

// ReadPatches reads a folder of patches:
//
//	What is wrong, as a sentence.
//
//	file   impl/ipam/recovery.go
//	killed impl/ipam TestRecoveryWaitsForTheRuntime
//	-- old --
//	the text that is there, once
//	-- new --
//	what it becomes
//
// Several in one file have the line -- next -- between them.
func ReadPatches(dir string) ([]Patch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []Patch
	for _, f := range files {
		before := len(out)
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for text := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n-- next --\n") {
			p, err := parsePatch(text)
			if err != nil {
				return nil, fmt.Errorf("%s, patch %d: %w", f, len(out)-before+1, err)
			}
			p.Name = strings.TrimSuffix(filepath.Base(f), ".txt")
			out = append(out, p)
		}
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
	p.Old, p.New = was, now
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
	if p.File == "" || p.Test == "" {
		return p, fmt.Errorf("expected \"file PATH\" and \"killed PACKAGE TEST\" before -- old --")
	}
	return p, nil
}
