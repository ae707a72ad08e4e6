package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

const root = "../.."

// fewestEquals is how many of upstream's specs have an equal at least.
const fewestEquals = 60

// What a cell can name: a scenario's file, a spec of e2e, a Go test and perhaps its case, a target of make.
var (
	scenario = regexp.MustCompile(`\[([a-z0-9-]+)\]\(\.\./(scenarios/[a-z0-9-]+\.scn)\)`)
	ofE2E    = regexp.MustCompile(`"[^"]+"`)
	goTest   = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)(?:/(\\w+))?`")
	target   = regexp.MustCompile("`make ([a-z-]+)`")
)

// TestEqualsAreThere: what the table names exists, its head has its figures, and enough specs have an equal.
func TestEqualsAreThere(t *testing.T) {
	text := string(must.Get(os.ReadFile(filepath.Join(root, table)))(t))
	rows := must.Get(rowsOf(text))(t)
	if want := figures(rows); !strings.Contains(text, want) {
		t.Errorf("%s: expected %q in its head", table, want)
	}
	equals := 0
	for _, r := range rows {
		named, missing := references(t, r.equal)
		for _, m := range missing {
			t.Errorf("%s, %s: %s: there is no %s", r.folder, r.file, r.words, m)
		}
		if r.needs() || r.none() {
			continue
		}
		if equals++; named == 0 {
			t.Errorf("%s, %s: %s: %q names no test, nor begins with needs or none yet", r.folder, r.file, r.words, r.equal)
		}
	}
	if equals < fewestEquals {
		t.Errorf("%d specs have an equal, expected %d at least", equals, fewestEquals)
	}
}

// references are how many things a cell names, and those that do not exist or are named in another form.
func references(t *testing.T, cell string) (named int, missing []string) {
	t.Helper()
	note := func(what string, exists bool) string {
		if named++; !exists {
			missing = append(missing, what)
		}
		return ""
	}
	rest := scenario.ReplaceAllStringFunc(cell, func(s string) string {
		m := scenario.FindStringSubmatch(s)
		_, err := os.Stat(filepath.Join(root, m[2]))
		return note(s, err == nil && m[2] == "scenarios/"+m[1]+".scn")
	})
	rest = goTest.ReplaceAllStringFunc(rest, func(s string) string {
		m := goTest.FindStringSubmatch(s)
		tests := testsOf(t, m[1])
		return note(s, strings.Contains(tests, "func "+m[2]+"(t *testing.T)") && (m[3] == "" || strings.Contains(tests, `"`+m[3]+`"`)))
	})
	rest = ofE2E.ReplaceAllStringFunc(rest, func(s string) string { return note("e2e "+s, strings.Contains(testsOf(t, "e2e"), "It("+s+",")) })
	rest = target.ReplaceAllStringFunc(rest, func(s string) string {
		makefile := string(must.Get(os.ReadFile(filepath.Join(root, "Makefile")))(t))
		return note(s, strings.Contains(makefile, "\n"+target.FindStringSubmatch(s)[1]+":"))
	})
	if odd := regexp.MustCompile("\\S*(Test[A-Z]|\\.scn|`make)\\S*").FindString(rest); odd != "" {
		missing = append(missing, odd+" in a form that this test knows")
	}
	return named, missing
}

// testsOf is the text of a package's tests.
func testsOf(t *testing.T, pkg string) string {
	t.Helper()
	var out strings.Builder
	for _, path := range must.Get(filepath.Glob(filepath.Join(root, pkg, "*_test.go")))(t) {
		out.Write(must.Get(os.ReadFile(path))(t))
	}
	return out.String()
}

// TestWhatIsMissingIsSeen: of each kind of name.
func TestWhatIsMissingIsSeen(t *testing.T) {
	for cell, missing := range map[string]int{
		"[prefix](../scenarios/prefix.scn), `impl/ipam.TestWarmTargets`, `make soak`, e2e \"resolves names for pods\"": 0,
		"[nothing](../scenarios/nothing.scn)":                   1,
		"[prefix](../scenarios/drift.scn)":                      1,
		"`impl/ipam.TestWarmTarget`":                            1,
		"`impl/daemon.TestUpstreamEffects/WARM_IP_TARGET`":      0,
		"`impl/daemon.TestUpstreamEffects/WARM_IP_TARGETS`":     1,
		"`make nothing`, e2e \"resolves names\"":                2,
		"TestWarmTargets of impl/ipam, or scenarios/prefix.scn": 1,
	} {
		if _, found := references(t, cell); len(found) != missing {
			t.Errorf("%s: missing %q, expected %d", cell, found, missing)
		}
	}
}

// TestSpecs: of each form in which Ginkgo's are written.
func TestSpecs(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "cni"), 0o755))
	for name, text := range map[string]string{
		"cni/traffic_test.go": `package cni
import . "github.com/onsi/ginkgo/v2"
var _ = Describe("[CANARY] pods", Ordered, func() {
	By("no spec")
	It("start", func() {})
	Context("on two nodes", func() {
		BeforeEach(func() { Entry.It() })
		Specify(fmt.Sprintf("reach %s | back", where), func() {})
		PIt("rest", func() {})
	})
	XContext("on three", func() { FIt("start there", func() {}) })
	DescribeTable("by mode", func(mode string) {}, Entry("iptables", "a"), Entry(nil, "b"))
})
func shared() { for range 3 { It("is in a loop, and has more words than a row of the table has room for: the words that come after these are left out of it", nil) } }`,
		"cni/other.go": "package cni\nfunc f() { It(\"is not Ginkgo's\") }",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	var want []spec
	for _, words := range []string{"pods: start", "on two nodes: reach %s / back", "pending: on two nodes: rest", "pending: on three: start there",
		"by mode: iptables", "by mode:", "is in a loop, and has more words than a row of the table has room for: the words that come after these are left out of ..."} {
		want = append(want, spec{"cni", "traffic", words})
	}
	if got := must.Get(specsIn(dir))(t); !slices.Equal(got, want) {
		t.Errorf("found\n%q, expected\n%q", got, want)
	}
}
