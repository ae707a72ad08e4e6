package purity

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// bad are snippets that must be found: the checker cannot silently pass.
var bad = []struct{ name, pkg, src, want string }{
	// Imports.
	{"os", "", `import _ "os"`, `x.go:2: purity: imports "os"; files, environment and processes`},
	{"os/exec", "", `import _ "os/exec"`, `imports "os/exec"; files, environment and processes`},
	{"sync", "", `import _ "sync"`, `imports "sync"; a value that is stepped needs no lock`},
	{"atomic", "", `import _ "sync/atomic"`, `imports "sync/atomic"; a value that is stepped needs no lock`},
	{"context", "", `import _ "context"`, `imports "context"; an instant and a deadline are inputs`},
	{"net", "", `import _ "net"`, `imports "net"; sockets belong`},
	{"http", "fakes/ec2", `import _ "net/http"`, `imports "net/http"; sockets belong`},
	{"syscall", "", `import _ "syscall"`, `imports "syscall"; the kernel is`},
	{"unsafe", "", `import _ "unsafe"`, `imports "unsafe"; plain data`},
	{"runtime", "", `import _ "runtime"`, `imports "runtime"; a pure package`},
	{"debug", "", `import _ "runtime/debug"`, `imports "runtime/debug"; a pure package`},
	{"log", "sim/judge", `import _ "log/slog"`, `imports "log/slog"; what matters is returned`},
	{"C", "", `import "C"`, `imports "C"; C code`},
	{"maphash", "", `import _ "hash/maphash"`, `imports "hash/maphash"; it is not in the list`},
	{"third party", "", `import _ "golang.org/x/sys/unix"`, `imports "golang.org/x/sys/unix"; it is not in the list`},
	{"impure package", "sim", `import _ "github.com/enilab/enilab/internal/purity"`, "sim imports internal/purity; a pure package imports pure packages only"},

	// Layers.
	{"internal knows a world", "internal/campaign", `import _ "github.com/enilab/enilab/fakes/ec2"`, "layers: internal/campaign imports fakes/ec2; everybody may"},
	{"impl knows a fake", "impl/ipam", `import _ "github.com/enilab/enilab/fakes/ec2"`, "layers: impl/ipam imports fakes/ec2; what runs in production"},
	{"impl knows a world", "impl/daemon", `import _ "github.com/enilab/enilab/sim/virtual"`, "impl/daemon imports sim/virtual; what runs in production"},
	{"impl knows a command", "impl/daemon", `import _ "github.com/enilab/enilab/cmd/enilab"`, "impl/daemon imports cmd/enilab; what runs in production"},
	{"a fake knows the sim", "fakes/cri", `import _ "github.com/enilab/enilab/sim"`, "fakes/cri imports sim; a model knows nothing"},
	{"a server knows the sim", "fakes/ec2/server", `import _ "github.com/enilab/enilab/sim/judge"`, "fakes/ec2/server imports sim/judge; a model knows nothing"},
	{"a fake knows the core", "fakes/cri", `import _ "github.com/enilab/enilab/impl/ipam"`, "fakes/cri imports impl/ipam; a model that knew the core"},
	{"the judge knows a world", "sim/judge", `import _ "github.com/enilab/enilab/sim/virtual"`, "sim/judge imports sim/virtual; the judge and the language"},
	{"the language knows the engine", "sim/scn", `import _ "github.com/enilab/enilab/sim"`, "sim/scn imports sim; the judge and the language"},
	{"the engine knows a world", "sim", `import _ "github.com/enilab/enilab/sim/virtual"`, "sim imports sim/virtual; worlds import the engine"},
	{"a mutant knows a fake", "sim/mutants", `import _ "github.com/enilab/enilab/fakes/kernel"`, "sim/mutants imports fakes/kernel; a mutant is a change to impl"},
	{"a mutant knows the sim", "sim/mutants", `import _ "github.com/enilab/enilab/sim/judge"`, "sim/mutants imports sim/judge; a mutant is a change to impl"},
	{"a world knows another", "sim/virtual", `import _ "github.com/enilab/enilab/sim/netns"`, "sim/virtual imports sim/netns; one world"},

	// Clock, randomness, printing.
	{"now", "", `import "time"; func f() { _ = time.Now() }`, "x.go:2: purity: uses time.Now; take the instant as an argument"},
	{"now by another name", "", `import t "time"; var f = t.Now`, "uses time.Now"},
	{"since", "", `import "time"; func f(t time.Time) { _ = time.Since(t) }`, "uses time.Since"},
	{"until", "", `import "time"; func f(t time.Time) { _ = time.Until(t) }`, "uses time.Until"},
	{"sleep", "", `import "time"; func f() { time.Sleep(1) }`, "uses time.Sleep; say in Next()"},
	{"after", "", `import "time"; func f() { _ = time.After(1) }`, "uses time.After"},
	{"after func", "", `import "time"; func f() { time.AfterFunc(1, nil) }`, "uses time.AfterFunc"},
	{"tick", "", `import "time"; func f() { _ = time.Tick(1) }`, "uses time.Tick"},
	{"timer", "", `import "time"; func f() { time.NewTimer(1) }`, "uses time.NewTimer"},
	{"ticker", "", `import "time"; func f() { time.NewTicker(1) }`, "uses time.NewTicker"},
	{"zone", "", `import "time"; var z = time.Local`, "uses time.Local"},
	{"dot import", "", `import . "time"; func f() { _ = Now() }`, "uses time.Now"},
	{"rand", "", `import "math/rand"; func f() int { return rand.Int() }`, "uses the global generator: math/rand.Int"},
	{"rand v2", "", `import "math/rand/v2"; func f() int { return rand.N(10) }`, "uses the global generator: math/rand/v2.N"},
	{"print", "", `import "fmt"; func f() { fmt.Println() }`, "uses fmt.Println; only mains print"},
	{"println", "", `func f() { println() }`, "calls println"},
	{"coroutine", "", `import "iter"; func f(s iter.Seq[int]) { iter.Pull(s) }`, "uses iter.Pull"},

	// Concurrency.
	{"go", "", `func f() { go f() }`, "starts a goroutine; a value that is stepped has no concurrency"},
	{"make chan", "", `var c = make(chan int)`, "has a channel"},
	{"chan in a struct", "", `type t struct { c <-chan int }`, "has a channel"},
	{"send", "", `func f[C ~chan int](c C) { c <- 1 }`, "sends to a channel"},
	{"receive", "", `import "time"; func f(t time.Timer) { <-t.C }`, "receives from a channel"},
	{"range over a chan", "", `import "time"; func f(t time.Timer) { for range t.C {} }`, "receives from a channel"},
	{"select", "", `func f() { select {} }`, "selects"},

	// Package-level state.
	{"assign", "", `var n int; func f() { n = 1 }`, "package state: assigns to the package-level variable n; package-level variables are constants"},
	{"count", "", `var n int; func f() { n++ }`, "assigns to the package-level variable n"},
	{"element", "", `var m = map[int]int{}; func f() { m[1] = 2 }`, "assigns to the package-level variable m"},
	{"deep", "", `var m [3]struct{ p *struct{ n int } }; func f() { m[1].p.n += 2 }`, "assigns to the package-level variable m"},
	{"pointer", "", `var p *int; func f() { *p = 2 }`, "assigns to the package-level variable p"},
	{"another package's", "", `import "io"; func f() { io.EOF = nil }`, "assigns to the package-level variable EOF"},
	{"range assigns", "", `var n int; func f() { for n = range 3 {} }`, "assigns to the package-level variable n"},
	{"address", "", `var n int; func f() *int { return &n }`, "takes the address of the package-level variable n"},
	{"delete", "", `var m = map[int]int{}; func f() { delete(m, 1) }`, "delete changes the package-level variable m"},
	{"clear", "", `var m = map[int]int{}; func f() { clear(m) }`, "clear changes the package-level variable m"},
	{"append", "", `var s []int; func f() []int { return append(s, 1) }`, "append changes the package-level variable s"},
	{"copy", "", `var s []int; func f() { copy(s[1:], s) }`, "copy changes the package-level variable s"},
	{"sort", "", `import "slices"; var s []int; func f() { slices.Sort(s) }`, "Sort changes the package-level variable s"},
	{"reverse", "", `import "slices"; var s []int; func f() { slices.Reverse(s) }`, "Reverse changes the package-level variable s"},
	{"method", "", `type t int; func (p *t) inc() { *p++ }; var n t; func f() { n.inc() }`, "calls a method that may change the package-level variable n"},
	{"method of a pointer", "", `type t int; func (p *t) inc() { *p++ }; var n = new(t); func f() { n.inc() }`, "calls a method that may change the package-level variable n"},
	{"in a function value", "", `var n int; var f = func() { n = 1 }`, "assigns to the package-level variable n"},
	{"in a closure", "", `var n int; func f() func() { return func() { n = 1 } }`, "assigns to the package-level variable n"},

	// Map order.
	{"collects", "", `func f(m map[int]int) (s []int) { for k := range m { s = append(s, k) }; return s }`,
		"x.go:2: map order: the order of m may show: line 2 assigns s: the last element wins; range over a sorted slice"},
	{"sorts something else", "", `import "slices"; func f(m map[int]int) (s, t []int) { for k := range m { s = append(s, k) }; slices.Sort(t); return s, t }`, "the order of m may show"},
	{"sorts before", "", `import "slices"; func f(m map[int]int) (s []int) { slices.Sort(s); for k := range m { s = append(s, k) }; return s }`, "the order of m may show"},
	{"first", "", `func f(m map[int]int) int { for k := range m { return k }; return 0 }`, "returns something of the element that came first"},
	{"two ends", "", `func f(m map[int]int) int { for k := range m { if k == 1 { return 1 }; if k == 2 { return 2 } }; return 0 }`, "ends the loop in more than one way"},
	{"count, then end", "", `func f(m map[int]int) (n int) { for k := range m { n++; if k == 1 { break } }; return n }`, "ends the loop early, after it changed n"},
	{"set, or end", "", `func f(m map[int]int) (b bool) { for k := range m { if k == 2 { b = true }; if k == 1 { break } }; return b }`, "ends the loop early, after it changed b"},
	{"last", "", `func f(m map[int]int) (n int) { for k := range m { n = k }; return n }`, "assigns n: the last element wins"},
	{"last key", "", `func f(m map[int]int) (k int) { for k = range m { }; return k }`, "keeps the last key"},
	{"two constants", "", `func f(m map[int]int) (n int) { for k := range m { if k == 1 { n = 1 } else { n = 2 } }; return n }`, "changes n in two ways"},
	{"float", "", `func f(m map[int]float64) (n float64) { for _, v := range m { n += v }; return n }`, "adds to n, which is no integer"},
	{"text", "", `func f(m map[int]string) (s string) { for _, v := range m { s += v }; return s }`, "adds to s, which is no integer"},
	{"shift", "", `func f(m map[int]int) (n int) { for _, v := range m { n <<= v }; return n }`, "does not commute"},
	{"numbers them", "", `func f(m map[int]*int) { n := 0; for _, v := range m { n++; *v = n } }`, "the order of m may show"},
	{"numbers them in a map", "", `func f(m map[int]int) map[int]int { o, n := map[int]int{}, 0; for k := range m { n++; o[k] = n }; return o }`, "changes n, which the body also reads"},
	{"numbers by length", "", `func f(m map[int]int) map[int]int { o := map[int]int{}; for k := range m { o[k] = len(o) }; return o }`, "changes o, which the body also reads"},
	{"count and maximum", "", `func f(m map[int]int) (n int) { for k := range m { n++; n = max(n, k) }; return n }`, "changes n in two ways"},
	{"least of two", "", `func f(m map[int]int) (a, b int) { for k, v := range m { if v < a { a, b = v, k } }; return a, b }`, "the last element wins"},
	{"inverts", "", `func f(m map[int]int) map[int]int { o := map[int]int{}; for k, v := range m { o[v] = k }; return o }`, "assigns o[v]: the last element wins"},
	{"grows itself", "", `func f(m map[int]bool) { for k := range m { m[k+1] = true } }`, "assigns m[k + 1]: the last element wins"},
	{"deletes others of itself", "", `func f(m map[int]int) { for _, v := range m { delete(m, v) } }`, "deletes what may or may not have been seen"},
	{"changes its key", "", `func f(m, o map[int]int) { for k, v := range m { k = 3; o[k] = v } }`, "changes the range's own key"},
	{"changes part of its key", "", `func f(m, o map[struct{ a, b int }]int) { for k, v := range m { k.a = 3; o[k] = v } }`, "changes the range's own key"},
	{"numbers them by pointer", "", `func f(m map[int]*struct{ n int }, n int) { for _, v := range m { v.n = n } }`, "assigns v.n: the last element wins"},
	{"calls", "", `func g(int) {}; func f(m map[int]int) { for k := range m { g(k) } }`, "calls g, which may do anything"},
	{"calls in a condition", "", `func g(int) bool { return true }; func f(m map[int]int) (n int) { for k := range m { if g(k) { n++ } }; return n }`, "calls g, which may do anything"},
	{"method that writes", "", `import "strings"; func f(m map[string]int, b *strings.Builder) { for k := range m { b.WriteString(k) } }`, "which may do anything"},
	{"calls a function value", "", `func f(m map[int]int, g func()) { for range m { g() } }`, "calls g, which may do anything"},
	{"defers", "", `func f(m map[int]int) { for k := range m { defer panic(k) } }`, "is more than the test of package purity understands"},
	{"appends in an element", "", `func f(m map[int]int) (o [3][]int) { for k, v := range m { o[v] = append(o[v], k) }; return o }`, "the order of m may show"},
	{"named map", "", `type t map[int]int; func f(m t) (n int) { for k := range m { n = k }; return n }`, "the last element wins"},
	{"type parameter", "", `func f[M ~map[int]int](m M) (n int) { for k := range m { n = k }; return n }`, "the last element wins"},
	{"mark without a reason", "", "func f(m map[int]int) (n int) {\n\tfor k := range m { // the order does not show\n\t\tn = k\n\t}\n\treturn n\n}", "the last element wins"},
	{"in a function value", "", `var f = func(m map[int]int) (n int) { for k := range m { n = k }; return n }`, "the last element wins"},
	{"keys", "", `import ("maps"; "slices"); func f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }`, "the order of maps.Keys shows; write slices.Sorted(maps.Keys(m))"},
	{"range over keys", "", `import "maps"; func f(m map[int]int) { for range maps.Values(m) {} }`, "the order of maps.Values shows"},
}

// good are snippets that look like the bad ones and are right.
var good = []struct{ name, src string }{
	{"durations", `import ("time"; "net/netip"); func f(now time.Duration, a netip.Addr) time.Duration { return now + 3*time.Second }`},
	{"own generator", `import "math/rand/v2"; func f(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }`},
	{"text", `import "fmt"; func f() string { return fmt.Sprintf("%d", 1) }`},
	{"constant tables", `var names = [...]string{"a", "b"}; var m = map[string]int{"a": 1}; func f(i int) (string, int) { return names[i], m["a"] }`},
	{"a table made by init", `var t [256]int; func init() { for i := range t { t[i] = i } }`},
	{"a local of that name", `var n int; func f() int { n := n; n++; return n }`},
	{"a value's method", `type t int; func (v t) next() t { return v + 1 }; var n t; func f() t { return n.next() }`},
	{"a copy is sorted", `import "slices"; var s = []int{2, 1}; func f() []int { c := slices.Clone(s); slices.Sort(c); return c }`},
	{"counts", `func f(m map[int]int) (n, sum, bits int) { for _, v := range m { n++; if v > 3 { continue }; sum += v; bits |= v }; return }`},
	{"counts by kind", `func f(m map[int]int) (n [3]int) { for _, v := range m { n[v]++ }; return n }`},
	{"deletes", `func f(m map[int]int, o map[int]bool) { for k, v := range m { if v == 0 { delete(m, k) }; delete(o, v) } }`},
	{"clones", `import "slices"; func f(m map[int][]int) map[int][]int { c := map[int][]int{}; for k, v := range m { c[k] = slices.Clone(v) }; return c }`},
	{"changes its values", `func f(m map[int]int) { for k, v := range m { m[k] = v + 1 } }`},
	{"changes part of its values", `func f(m map[int]struct{ n int }) { for k, v := range m { v.n = 2; m[k] = v } }`},
	{"set of values", `func f(m map[int]int) map[int]bool { o := map[int]bool{}; for _, v := range m { o[v] = true }; return o }`},
	{"collects and sorts", `import "slices"; func f(m map[int]int) (s []int) { for k := range m { s = append(s, k) }; slices.Sort(s); return s }`},
	{"collects and sorts by", `import "sort"; func f(m map[int]int) (s []int) { for k := range m { s = append(s, k) }; sort.Slice(s, func(i, j int) bool { return s[i] < s[j] }); return s }`},
	{"sorted keys", `import ("maps"; "slices"); func f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }`},
	{"maximum", `func f(m map[int]int) (a, b, c int) { for _, v := range m { a = max(a, v); if v > b { b = v }; if v < c { c = v } }; return }`},
	{"any", `func f(m map[int]int) bool { for k, v := range m { if k > 1 { return true }; if v > 1 { return true } }; return false }`},
	{"found", `func f(m map[int]int) (found bool) { for _, v := range m { if v == 3 { found = true; break } }; return found }`},
	{"inner loops", `func f(m map[int][]int) (n int) { for _, s := range m { for _, v := range s { if v == 0 { break }; n += v } }; return n }`},
	{"locals", `import "strings"; func f(m map[string]int) (n int) { for k := range m { short := strings.TrimSpace(k); if len(short) > 3 { short = short[:3] }; switch short { case "abc": n++ } }; return n }`},
	{"mark", "func f(m map[int]int) (n int) {\n\tfor k := range m { // one element: the order does not show\n\t\tn = k\n\t}\n\treturn n\n}"},
	{"mark above", "func f(m map[int]int) (n int) {\n\t// a set: the order does not show\n\tfor k := range m {\n\t\tn = k\n\t}\n\treturn n\n}"},
}

func TestBadSnippets(t *testing.T) {
	for _, s := range bad {
		t.Run(s.name, func(t *testing.T) {
			pkg := cmp.Or(s.pkg, "impl/ipam")
			found := judge(t, pkg, s.src)
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, s.want) }) {
				t.Errorf("expected a finding with\n  %s\nfound\n  %s", s.want, strings.Join(found, "\n  "))
			}
		})
	}
}

func TestGoodSnippets(t *testing.T) {
	for _, s := range good {
		t.Run(s.name, func(t *testing.T) {
			for _, f := range judge(t, "impl/ipam", s.src) {
				t.Error(f)
			}
		})
	}
}
