package systems

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listed is a description and what there is of it.
type Listed struct {
	Name        string
	Description *Description // nil: Err says why
	Err         error
	AtHand      []string // versions in the folder for systems, the newest first
}

// List are all descriptions that Describe finds by their names, sorted.
func List(o Options) ([]Listed, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	names, err := names(o)
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, n := range names {
		l := Listed{Name: n}
		if l.Description, l.Err = Describe(n, o); l.Err == nil {
			f := finder{d: l.Description, o: o}
			l.AtHand = f.versions()
		}
		out = append(out, l)
	}
	return out, nil
}

// names are those that Describe finds, sorted.
func names(o Options) ([]string, error) {
	names := Embedded()
	for _, dir := range []string{filepath.Join(o.Folder, "systems"), o.Systems} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errNotFolder) {
			return nil, err
		}
		for _, e := range entries {
			if n, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && isName(n) && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
