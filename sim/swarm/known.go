package swarm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/judge"
)

// Entry of the list of known violations: a scenario that shows one that is not mended yet.
type Entry struct {
	File      string
	Seed      uint64
	Invariant string
	Cause     string
	Text      string // the scenario
}

// columns of a line of the list: file, seed, invariant, cause.
const columns = 4

// Line is the entry as the list has it.
func (e *Entry) Line() string {
	return strings.Join([]string{e.File, strconv.FormatUint(e.Seed, 10), e.Invariant, e.Cause}, " | ")
}

// Known reads the list. read gives a scenario by the name of its file.
func Known(list string, read func(file string) ([]byte, error)) ([]Entry, error) {
	var out []Entry
	for n, line := range strings.Split(list, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := entry(line)
		if err != nil {
			return nil, fmt.Errorf("known violations, line %d: %w", n+1, err)
		}
		text, err := read(e.File)
		if err != nil {
			return nil, fmt.Errorf("known violations, line %d: %w", n+1, err)
		}
		e.Text = string(text)
		out = append(out, e)
	}
	return out, nil
}

func entry(line string) (Entry, error) {
	f := strings.SplitN(line, " | ", columns)
	if len(f) != columns {
		return Entry{}, fmt.Errorf("expected FILE | SEED | INVARIANT | CAUSE, found %d of these", len(f))
	}
	seed, err := strconv.ParseUint(strings.TrimSpace(f[1]), 10, 64)
	if err != nil {
		return Entry{}, fmt.Errorf("expected a seed, found %q", f[1])
	}
	e := Entry{File: strings.TrimSpace(f[0]), Seed: seed, Invariant: strings.TrimSpace(f[2]), Cause: strings.TrimSpace(f[3])}
	if _, ok := judge.ByPhrase(e.Invariant); !ok && e.Invariant != Expectation && e.Invariant != Settled {
		return Entry{}, fmt.Errorf("unknown invariant %q: enilab invariants lists them", e.Invariant)
	}
	return e, nil
}

// Check plays the scenario. The error says that it does not break any more, or not as the list says.
func (e *Entry) Check() error {
	o, err := Play(e.File, e.Text, e.Seed, nil)
	switch {
	case err != nil:
		return err
	case o.Broken == nil:
		return fmt.Errorf("%s: it holds with seed %d: what the list knows does not happen any more; take the file and its line out", e.File, e.Seed)
	case o.Broken.Invariant != e.Invariant || o.Broken.Cause != e.Cause:
		return fmt.Errorf("%s: with seed %d it breaks otherwise: expected %q by %q, found %q by %q", e.File, e.Seed, e.Invariant, e.Cause,
			o.Broken.Invariant, o.Broken.Cause)
	}
	return nil
}
