package campaign

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Command is how a program that plays a campaign was called: the flags that all of them have.
type Command struct {
	Program, Results string
	Keep, None       bool

	name string
}

// Declare has the flags of a program with that name. do and done are its verb, such as play and played; beside are the programs next to enilab.
func Declare(name, do, done, beside string) *Command {
	c := &Command{name: name}
	flag.BoolVar(&c.Keep, "keep", false, "take what was "+done+" with another enilab or other files, too")
	flag.BoolVar(&c.None, "none", false, do+" nothing, write what was "+done)
	flag.StringVar(&c.Results, "results", filepath.Join("bin", name), "folder of results")
	flag.StringVar(&c.Program, "enilab", filepath.Join("bin", "enilab"), "this `binary`, with "+beside+" beside it")
	return c
}

// Main parses the flags and runs what they ask for, until it is interrupted. An error ends the process with exit code 1.
func (c *Command) Main(run func(context.Context) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, c.name+":", err)
		os.Exit(1)
	}
}

// Open is Open with what the flags say.
func (c *Command) Open() (*Campaign, error) {
	out, err := Open(c.Results, c.Program)
	if err != nil {
		return nil, err
	}
	out.Keep, out.None = c.Keep, c.None
	return out, nil
}

// Each are the words that results give, such as their builds of enilab, in order and each once; "" is none.
func Each(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(s string) bool { return s == "" })
}

// All is Each in prose: one word, unless results were put together.
func All(words []string) string {
	if words = Each(words); len(words) > 0 {
		return strings.Join(words, " and ")
	}
	return "unknown"
}
