package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// valueNames are what --help calls the values of flags: --listen ADDR. A flag that means something else at one command stands there with its
// name before it.
var valueNames = map[string]string{
	"admin": "ADDR", "against": "MUTANT", "allow": "FILE", "arch": "ARCHITECTURE", "baseline": "FILE", "cache": "FOLDER", "clock": "CLOCK", "cni": "SYSTEM", "config": "FILE", "endpoint": "URL",
	"for": "DURATION", "found": "FILE", "from": "SYSTEM", "html": "FILE", "image": "IMAGE", "imds-listen": "ADDR", "in": "MACHINE", "inside": "MACHINE", "instance": "ID", "gate json": "FILE", "host": "NAME",
	"junit": "FILE", "keep": "FOLDER", "life": "N", "limit": "DURATION", "listen": "ADDR", "name": "NAME", "netns": "PATH", "node": "N", "nodes": "N", "on": "WORLD", "only": "SCENARIOS", "out": "FILE", "run out": "FOLDER",
	"gate out": "FOLDER", "mode": "MODES", "pause-at": "T", "branch-at": "T", "plays": "PLAYS", "proxy": "MODE", "recordings": "FOLDER", "region": "REGION", "report": "FILE", "rows": "PATTERN", "runs": "FILE", "seed": "N", "seeds": "A-B", "shape": "FILE",
	"subnet": "ID", "then": "FILE", "timeout": "DURATION", "times": "N", "to": "SYSTEM", "tries": "N", "type": "TYPE", "zones": "N",
}

// nameValues gives the flags of a command, and of all below it, the names of their values: pflag would show its types.
func nameValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			return
		}
		name, ok := valueNames[c.Name()+" "+f.Name]
		if !ok {
			name, ok = valueNames[f.Name]
		}
		if ok {
			f.Value = namedValue{f.Value, name}
			if f.DefValue == "[]" {
				f.DefValue = ""
			}
		}
	})
	for _, sub := range c.Commands() {
		nameValues(sub)
	}
}

// namedValue is a flag's value with a name that people read.
type namedValue struct {
	pflag.Value
	name string
}

func (v namedValue) Type() string { return v.name }

// expected is what a flag takes, for people.
func expected(f *pflag.Flag) string {
	v := f.Value
	if n, ok := v.(namedValue); ok {
		v = n.Value
	}
	switch v.Type() {
	case "bool":
		return "true or false"
	case "int", "uint64":
		return "a whole number"
	case "vm[=KERNEL]":
		return "vm or vm=KERNEL"
	case "instant":
		return "an instant of the scenario such as 3m5s"
	}
	return "a value such as " + strings.ToUpper(f.Name)
}

// lacking says of a flag without its value what belongs behind it.
func lacking(f *pflag.Flag) error {
	return usage("--%s lacks its value: expected --%[1]s %s", f.Name, f.Value.Type())
}
