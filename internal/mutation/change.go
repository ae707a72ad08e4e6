package mutation

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Change is a change of one file: Old, which is there once, becomes New.
type Change struct {
	File     string // below some root, with slashes
	Old, New string
}

// Mutant is a file with a change.
type Mutant struct {
	Path     string // of the file
	Was, Now string // its text
}

// Apply gives the file with the change, which is one only as long as its old text is there exactly once.
func (c Change) Apply(root string) (*Mutant, error) {
	path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(c.File)))
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &Mutant{Path: path, Was: string(data)}
	if n := strings.Count(m.Was, c.Old); n != 1 {
		return nil, fmt.Errorf("%s: expected its old text once, found it %d times: %s", c.File, n, c.Old)
	}
	m.Now = strings.Replace(m.Was, c.Old, c.New, 1)
	if m.Now == m.Was {
		return nil, fmt.Errorf("%s: it changes nothing: %s", c.File, c.Old)
	}
	_, err = parser.ParseFile(token.NewFileSet(), path, m.Now, parser.SkipObjectResolution)
	return m, err
}
