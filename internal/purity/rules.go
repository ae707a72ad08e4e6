package purity

import (
	"path"
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/enilab/enilab"

// rel is a path below the module; others stay as they are.
func rel(path string) string {
	if path == Module {
		return "."
	}
	return strings.TrimPrefix(path, Module+"/")
}

// pure are the packages that are stepped: patterns of path.Match, below the module. A package that a pattern newly matches is
// judged from its first commit.
var pure = []string{"impl/ipam", "impl/dataplane", "fakes/*", "sim", "sim/judge", "sim/scn", "sim/mutants",
	"sim/timeline", "sim/draw", "sim/verb", "sim/actions", "sim/models", "sim/virtual",
	"sim/swarm",
	"internal/spelling", "internal/splitmix", "internal/strictyaml"}

// isPure says whether the package at that path below the module must be pure.
func isPure(rel string) bool {
	return slices.ContainsFunc(pure, func(p string) bool {
		ok, _ := path.Match(p, rel)
		return ok
	})
}

// allowed of the standard library. A list of what is allowed fails closed; what is missing here and pure can be added.
var allowed = map[string]bool{
	"bufio": true, "bytes": true, "cmp": true, "container/heap": true, "container/list": true, "container/ring": true,
	"encoding": true, "encoding/base64": true, "encoding/binary": true, "encoding/hex": true, "encoding/json": true,
	"encoding/xml": true, "errors": true, "fmt": true, "hash": true, "hash/crc32": true, "hash/fnv": true, "io": true,
	"iter": true, "maps": true, "math": true, "math/bits": true, "math/rand": true, "math/rand/v2": true, "net/netip": true,
	"crypto/sha1": true, "crypto/sha256": true, "net/url": true, "path": true, "slices": true, "sort": true, "strconv": true, "strings": true,
	"text/tabwriter": true, "time": true, "unicode": true, "unicode/utf8": true,
	"go.yaml.in/yaml/v3": true, // not of the standard library, but bytes in, a tree out
}

// refused says why some imports are refused; the rest is just not on the list.
var refused = map[string]string{
	"os":          "files, environment and processes belong to the shell: take what is read as an input",
	"io/ioutil":   "files belong to the shell: take what is read as an input",
	"sync":        "a value that is stepped needs no lock: whoever shares it guards it",
	"sync/atomic": "a value that is stepped needs no lock: whoever shares it guards it",
	"context":     "an instant and a deadline are inputs: take time.Duration",
	"net":         "sockets belong to a server or the shell; addresses are in net/netip",
	"syscall":     "the kernel is fakes/kernel here, and the shell's elsewhere",
	"unsafe":      "plain data needs none, and it would get around every rule here",
	"runtime":     "a pure package does not know what runs it",
	"log":         "what matters is returned: an effect, an event, an error",
	"crypto/rand": "randomness comes from a seeded generator that is part of the value",
	"C":           "C code cannot be judged",
}

// why is the reason for a refused import.
func why(imp string) string {
	for p := imp; p != "."; p = path.Dir(p) {
		if reason := refused[p]; reason != "" {
			return reason
		}
	}
	return "it is not in the list of the standard library's pure packages (internal/purity/rules.go); if it is pure, add it"
}

// forbidden are functions and variables of allowed packages that are not pure.
var forbidden = map[string]string{
	"fmt.Print": printing, "fmt.Printf": printing, "fmt.Println": printing,
	"fmt.Scan": printing, "fmt.Scanf": printing, "fmt.Scanln": printing,
	"iter.Pull": "it runs a coroutine: use a for range", "iter.Pull2": "it runs a coroutine: use a for range",
	"time.Now": clock, "time.Since": clock, "time.Until": clock,
	"time.Sleep": waiting, "time.After": waiting, "time.AfterFunc": waiting, "time.Tick": waiting,
	"time.NewTimer": waiting, "time.NewTicker": waiting,
	"time.LoadLocation": "it reads the machine's files: use time.UTC", "time.Local": "it is the machine's: use time.UTC",
}

const (
	printing = "only mains print: return the text, or write to an io.Writer that was given"
	clock    = "take the instant as an argument: now time.Duration"
	waiting  = "say in Next() when to be stepped again"
)

// layer is a rule about imports inside the module: whatever matches from imports nothing that matches never, except.
type layer struct {
	from, never, except []string // "x/..." is x and everything below
	why                 string
}

var layers = []layer{
	{[]string{"impl/..."}, []string{"fakes/...", "sim/...", "cmd/...", "scenarios/...", "e2e/...", "internal/..."}, []string{"internal/splitmix"},
		"what runs in production knows nothing of fakes, scenarios or worlds; only its random numbers are the same"},
	{[]string{"internal/..."}, []string{"impl/...", "fakes/...", "systems/...", "sim/...", "report/...", "gate/...", "cmd/...", "scenarios/...", "e2e/..."}, nil,
		"everybody may import internal, so it imports nobody: a program that plays goes beside what it plays"},
	{[]string{"fakes/..."}, []string{"sim/...", "cmd/...", "scenarios/...", "e2e/..."}, nil,
		"a model knows nothing of the world that asks it"},
	{[]string{"fakes/..."}, []string{"impl/..."}, []string{"impl/dataplane"},
		"a model that knew the core could agree with its mistakes; only plans, which are data, are shared"},
	{[]string{"sim/judge"}, []string{"sim/...", "cmd/...", "scenarios/...", "e2e/..."}, []string{"sim/mutants", "sim/timeline"},
		"the judge and the language serve every world, so they know none"},
	{[]string{"sim/scn"}, []string{"sim/...", "cmd/...", "scenarios/...", "e2e/..."}, nil,
		"the judge and the language serve every world, so they know none"},
	{[]string{"sim"}, []string{"sim/...", "cmd/...", "e2e/..."}, []string{"sim/judge", "sim/scn", "sim/mutants",
		"sim/timeline", "sim/verb"},
		"worlds import the engine; the engine knows none of them"},
	{[]string{"sim/verb", "sim/draw"}, []string{"sim/...", "cmd/...", "scenarios/...", "e2e/..."},
		[]string{"sim/draw", "sim/judge", "sim/scn"},
		"a verb strikes the nouns of a world; it knows none of them"},
	{[]string{"sim/mutants"}, []string{"fakes/...", "sim/...", "cmd/...", "scenarios/...", "e2e/...", "internal/..."}, nil,
		"a mutant is a change to impl and works in every world"},
	{[]string{"sim/virtual"}, []string{"sim/...", "cmd/...", "e2e/..."}, []string{"sim", "sim/actions", "sim/judge",
		"sim/models", "sim/scn", "sim/mutants", "sim/timeline", "sim/verb"},
		"one world does not know another"},
	{[]string{"report"}, []string{"gate/...", "cmd/...", "e2e/..."}, nil,
		"commands and the gate write reports; a report is data and text"},
	{[]string{"gate"}, []string{"cmd/...", "e2e/..."}, nil, "commands ask the gate, and so may any program"},
	{[]string{"sim/..."}, []string{"report", "gate/...", "cmd/...", "e2e/..."}, nil,
		"whoever plays in worlds imports them; what a world needs is its own"},
}

// binary is a rule about what a command links: nothing that matches never, however far away it is imported, except. The patterns are of
// whole import paths.
type binary struct {
	cmd           string
	never, except []string
}

var binaries = []binary{
	{"cmd/ipamd", onNodes, shared},
	{"cmd/aws-cni", onNodes, shared},
	{"cmd/enilab", clusters, nil}, // cmd/enilab-kind has world kind, and three times the size
}

// mostBytes is how large bin/enilab may be. It is copied into every virtual machine.
const mostBytes = 40_000_000

// clusters are others' packages that make and ask a Kubernetes cluster.
var clusters = []string{"k8s.io/client-go/...", "sigs.k8s.io/kind/..."}

// onNodes are what nodes do not carry. With a template the linker keeps every method there is.
var onNodes = append([]string{Module + "/fakes/...", Module + "/sim/...", Module + "/scenarios/...", Module + "/internal/...",
	"text/template/...", "html/template/..."}, clusters...)

// shared are the exceptions: splitmix is twenty lines, and the core draws from it.
var shared = []string{Module + "/internal/splitmix"}

// within says whether a path matches one of the patterns.
func within(patterns []string, imp string) bool {
	for _, p := range patterns {
		if base, all := strings.CutSuffix(p, "/..."); imp == base || all && strings.HasPrefix(imp, base+"/") {
			return true
		}
	}
	return false
}

// forbiddenLayer says which rule an import by the package from, below the module, breaks; "" is none.
func forbiddenLayer(from, path string) string {
	imp := rel(path)
	for _, l := range layers {
		if within(l.from, from) && strings.HasPrefix(path, Module+"/") && within(l.never, imp) && !within(l.except, imp) && from != imp {
			return l.why
		}
	}
	return ""
}
