// Command upstreamspecs compares docs/upstream-specs.md with the integration specs of amazon-vpc-cni-k8s, from the root of this repository:
//
//	go run ./internal/upstreamspecs CHECKOUT
//
// CHECKOUT is a folder with amazon-vpc-cni-k8s's source. What the table lacks is printed as rows to be filled in, then what it has that is
// not there, then the figures of its head. Exit code 1 says that table and source differ.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// table is the document, below the root.
const table = "docs/upstream-specs.md"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "expected one argument, a folder with the source of amazon-vpc-cni-k8s")
		os.Exit(2)
	}
	same, err := compare(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if !same {
		os.Exit(1)
	}
}

func compare(checkout string) (same bool, err error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return false, fmt.Errorf("run this from the root of the repository: %w", err)
	}
	rows, err := rowsOf(string(text))
	if err != nil {
		return false, err
	}
	there, err := specsIn(filepath.Join(checkout, "test", "integration"))
	if err != nil {
		return false, err
	}
	var left []spec
	for _, r := range rows {
		left = append(left, r.spec)
	}
	same = true
	for _, s := range there {
		if i := slices.Index(left, s); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		same = false
		fmt.Printf("%s lacks, below %s:\n| `%s` | %s | none yet |\n", table, s.folder, s.file, s.words)
	}
	for _, s := range left {
		same = false
		fmt.Printf("%s has a row, and there is no such spec: %s, %s: %s\n", table, s.folder, s.file, s.words)
	}
	fmt.Printf("%d specs in %s; %s: %s\n", len(there), checkout, table, figures(rows))
	return same, nil
}

// row is one of the table.
type row struct {
	spec
	equal string // what tests the same here, "needs ..." or "none yet"
}

// rowsOf reads the rows below each heading, which is a folder.
func rowsOf(text string) ([]row, error) {
	var out []row
	folder := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			folder = name
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s: expected three cells in %s", table, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, row{spec{folder, strings.Trim(cells[0], "`"), cells[1]}, cells[2]})
	}
	return out, nil
}

func (r *row) needs() bool { return strings.HasPrefix(r.equal, "needs ") }
func (r *row) none() bool  { return strings.HasPrefix(r.equal, "none yet") }

// figures are those of the document's head.
func figures(rows []row) string {
	needs, none := 0, 0
	for _, r := range rows {
		switch {
		case r.needs():
			needs++
		case r.none():
			none++
		}
	}
	return fmt.Sprintf("%d specs, of which %d have an equal here, %d need what this laboratory has not, and %d have none yet",
		len(rows), len(rows)-needs-none, needs, none)
}
