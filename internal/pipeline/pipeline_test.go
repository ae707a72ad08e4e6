package pipeline

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/internal/must"
)

const root = "../.."

// action is what of action.yml is used here.
type action struct {
	Inputs map[string]struct {
		Description, Default string
	}
	Runs struct {
		Steps []step
	}
}

// step is one of a job or an action.
type step struct {
	Name, ID, If, Uses, Shell, Run string
	With, Env                      map[string]string
}

// workflow is an example for GitHub.
type workflow struct {
	Jobs map[string]struct {
		Steps []step
	}
}

// job is one of GitLab's.
type job struct {
	Image     string
	Variables map[string]string
	Script    []string
	Artifacts struct {
		Paths   []string
		Reports map[string]string
	}
}

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// examples are those of docs/ci.md under a heading.
func examples(t *testing.T, heading string) [][]byte {
	t.Helper()
	_, text, ok := strings.Cut(string(read(t, root+"/docs/ci.md")), "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var out [][]byte
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		out = append(out, []byte(m[1]))
	}
	if !ok || len(out) != 2 {
		t.Fatalf("docs/ci.md: expected two examples under %q, found %d", heading, len(out))
	}
	return out
}

// The examples use the action as it is: its name stands for this repository, whose inputs actionlint then compares.
func TestLint(t *testing.T) {
	project := t.TempDir()
	for name, data := range map[string][]byte{".git/HEAD": nil, "action.yml": read(t, root+"/action.yml")} {
		write(t, filepath.Join(project, name), data)
	}
	options := &actionlint.LinterOptions{WorkingDir: project}
	if path, err := exec.LookPath("shellcheck"); err == nil {
		options.Shellcheck = path
	}
	linter := must.Get(actionlint.NewLinter(io.Discard, options))(t)
	known := must.Get(actionlint.NewProject(project))(t)
	lint := func(name string, data []byte) []*actionlint.Error {
		t.Helper()
		file := filepath.Join(project, ".github/workflows", name)
		write(t, file, data)
		return must.Get(linter.LintFile(file, known))(t)
	}
	ours := func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte("uses: enilab/enilab@main"), []byte("uses: ./"))
	}
	all := map[string][]byte{"steps.yml": asWorkflow(t)}
	for i, data := range examples(t, "GitHub Actions") {
		all[fmt.Sprintf("example-%d.yml", i)] = ours(data)
	}
	files := must.Get(filepath.Glob(root + "/.github/workflows/*.yml"))(t)
	for _, file := range files {
		all[filepath.Base(file)] = read(t, file)
	}
	for name, data := range all {
		for _, e := range lint(name, data) {
			t.Errorf("%v", e)
		}
	}
	wrong := bytes.Replace(ours(examples(t, "GitHub Actions")[0]), []byte("timeout: 30m"), []byte("timeouts: 30m"), 1)
	if found := lint("wrong.yml", wrong); len(found) != 1 || !strings.Contains(found[0].Message, `input "timeouts" is not defined in action`) {
		t.Errorf("an input that the action does not have: expected one mistake, found %v", found)
	}
}

// asWorkflow makes a job of the action's steps, for actionlint reads workflows: expressions and shell are the same there.
func asWorkflow(t *testing.T) []byte {
	t.Helper()
	var a struct {
		Inputs map[string]map[string]any
		Runs   struct{ Steps []any }
	}
	must.Do(t, yaml.Unmarshal(read(t, root+"/action.yml"), &a))
	for _, in := range a.Inputs {
		in["type"] = "string"
	}
	data := must.Get(yaml.Marshal(map[string]any{
		"on":   map[string]any{"workflow_call": map[string]any{"inputs": a.Inputs}},
		"jobs": map[string]any{"action": map[string]any{"runs-on": "ubuntu-latest", "steps": a.Runs.Steps}},
	}))(t)
	return data
}

// runner is a computer of a pipeline.
type runner struct {
	t                        *testing.T
	source, workspace, files string
	path                     string
	env                      []string
	outputs                  map[string]string // of steps, ID.name
}

// newRunner has what an image of Debian with Go has. Packages are not installed: what they bring is there, or the test is skipped. With
// ENILAB_FRESH=1 the machine is somebody's to throw away (.ci/bare pipeline): the steps install what they need, and nothing is skipped.
func newRunner(t *testing.T) *runner {
	t.Helper()
	fresh := os.Getenv("ENILAB_FRESH") != ""
	if !fresh {
		for _, name := range []string{"bash", "make", "git", "qemu-system-x86_64"} {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("skipped: %v", err)
			}
		}
		if err := exec.Command(root + "/.ci/vm-kernel").Run(); err != nil {
			t.Skip("skipped: there is no kernel for a virtual machine (enilab vm kernels says how to get one)")
		}
	}
	source := must.Get(filepath.Abs(root))(t)
	dir := t.TempDir()
	r := &runner{t: t, source: filepath.Join(dir, "source"), workspace: filepath.Join(dir, "workspace"), files: filepath.Join(dir, "files"), outputs: map[string]string{}}
	must.Do(t, os.Mkdir(r.workspace, 0o755))
	copied := exec.Command("bash", "-euc", `mkdir "$1"
		if git rev-parse --git-dir >/dev/null 2>&1; then
			git ls-files -z --cached --others --exclude-standard | tar --null -cf - --ignore-failed-read -T -
		else
			tar -cf - --exclude ./bin .
		fi | tar -C "$1" -xf -`, "copy", r.source)
	copied.Dir = source
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("copy the source: %v: %s", err, out)
	}
	stubs := filepath.Join(dir, "stubs")
	if !fresh {
		write(t, stubs+"/apt-get", []byte("#!/bin/sh\necho apt-get \"$@\"\n"))
	}
	write(t, stubs+"/sudo", []byte("#!/bin/sh\necho \"no sudo: $*\" >&2\nexit 1\n"))
	write(t, stubs+"/git", []byte(fmt.Sprintf("#!/bin/sh\nfor to; do :; done\n[ \"$1\" = clone ] && exec cp -r '%s' \"$to\"\nexec %s \"$@\"\n", r.source, look(t, "git"))))
	r.path = stubs + ":" + os.Getenv("PATH")
	for _, name := range []string{"path", "env", "output", "summary"} {
		write(t, filepath.Join(r.files, name), nil)
		r.env = append(r.env, "GITHUB_"+strings.ToUpper(strings.ReplaceAll(name, "summary", "step_summary"))+"="+filepath.Join(r.files, name))
	}
	write(t, filepath.Join(r.workspace, "scenarios/eni-removed.scn"), read(t, root+"/scenarios/eni-removed.scn"))
	return r
}

// shell runs a text as a step does, and says how it ended.
func (r *runner) shell(text string, env map[string]string) (string, int) {
	r.t.Helper()
	c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text)
	c.Dir = r.workspace
	c.Env = append(append(os.Environ(), r.env...), "PATH="+r.path, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z._-]+) *\}\}`)

// steps runs a job's or an action's. An action of somebody else is not run.
func (r *runner) steps(steps []step, words map[string]string) (string, int) {
	r.t.Helper()
	expand := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			if value, ok := words[name]; ok {
				return value
			}
			if id, output, ok := strings.Cut(strings.TrimPrefix(name, "steps."), ".outputs."); ok {
				return r.outputs[id+"."+output]
			}
			r.t.Fatalf("%s has no value here", e)
			return ""
		})
	}
	var said strings.Builder
	for _, s := range steps {
		with, env := map[string]string{}, map[string]string{}
		for name, value := range s.With {
			with[name] = expand(value)
		}
		for name, value := range s.Env {
			env[name] = expand(value)
		}
		out, code := "", 0
		switch {
		case s.If == "inputs.world == 'vm'" && words["inputs.world"] != "vm":
		case s.Uses == "enilab/enilab@main":
			out, code = r.action(with)
		case s.Run != "":
			if expression.MatchString(s.Run) {
				r.t.Errorf("step %q has an expression in its shell: what a value holds would be run", s.Name)
			}
			out, code = r.shell(s.Run, env)
		}
		said.WriteString(out)
		if code != 0 {
			return said.String(), code
		}
		r.after(s.ID)
	}
	return said.String(), 0
}

// after takes over what a step left for the next ones.
func (r *runner) after(id string) {
	take := func(name string, f func(line string)) {
		file := filepath.Join(r.files, name)
		for line := range strings.Lines(string(read(r.t, file))) {
			f(strings.TrimSpace(line))
		}
		must.Do(r.t, os.Truncate(file, 0))
	}
	take("path", func(line string) { r.path = line + ":" + r.path })
	take("env", func(line string) { r.env = append(r.env, line) })
	take("output", func(line string) {
		name, value, _ := strings.Cut(line, "=")
		r.outputs[id+"."+name] = value
	})
}

// action runs the steps of this repository's action.
func (r *runner) action(with map[string]string) (string, int) {
	r.t.Helper()
	var a action
	must.Do(r.t, yaml.Unmarshal(read(r.t, root+"/action.yml"), &a))
	words := map[string]string{"github.action_path": r.source}
	for name, in := range a.Inputs {
		words["inputs."+name] = in.Default
	}
	for name, value := range with {
		words["inputs."+name] = value
	}
	return r.steps(a.Runs.Steps, words)
}

// report sees that a page and a JUnit document are there, with so many failures.
func (r *runner) report(failures int) {
	r.t.Helper()
	if page := read(r.t, filepath.Join(r.workspace, "enilab-report/index.html")); !bytes.Contains(page, []byte("</html>")) {
		r.t.Errorf("the page has no end: %d bytes", len(page))
	}
	var junit struct {
		Suites []struct {
			Cases []struct {
				Failure *struct{} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	must.Do(r.t, xml.Unmarshal(read(r.t, filepath.Join(r.workspace, "enilab-report/junit.xml")), &junit))
	cases, failed := 0, 0
	for _, s := range junit.Suites {
		for _, c := range s.Cases {
			cases++
			if c.Failure != nil {
				failed++
			}
		}
	}
	if cases == 0 || (failed > 0) != (failures > 0) {
		r.t.Errorf("junit.xml: expected failures: %v, found %d of %d", failures > 0, failed, cases)
	}
}

func TestReplayOnGitHub(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it builds, and plays in a virtual machine")
	}
	r := newRunner(t)
	var w workflow
	must.Do(t, yaml.Unmarshal(examples(t, "GitHub Actions")[0], &w))
	if out, code := r.steps(w.Jobs["replay"].Steps, nil); code != 0 || r.outputs["play.verdict"] != "held" {
		t.Fatalf("expected held, found exit code %d, %v: %s", code, r.outputs, out)
	}
	r.report(0)
	if summary := read(t, filepath.Join(r.files, "summary")); !bytes.HasPrefix(summary, []byte("### enilab: held\n```\nheld  eni-removed")) {
		t.Errorf("the summary is %s", summary)
	}

	// What breaks fails the job, and leaves its report.
	red := map[string]string{"scenarios": "scenarios/*.scn", "world": "sim", "arguments": "--against asks-once"}
	if out, code := r.action(red); code != 1 || !strings.Contains(string(read(t, filepath.Join(r.files, "output"))), "verdict=violated") {
		t.Errorf("expected violated, found exit code %d: %s", code, out)
	}
	r.report(1)
	if out, code := r.action(map[string]string{"world": "moon"}); code != 2 || !strings.Contains(out, "world is vm, netns or sim, found moon") {
		t.Errorf("expected exit code 2, found %d: %s", code, out)
	}
}

func TestReplayOnGitLab(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it builds, and plays in a virtual machine")
	}
	r := newRunner(t)
	var jobs map[string]job
	must.Do(t, yaml.Unmarshal(examples(t, "GitLab")[0], &jobs))
	j := jobs["replay"]
	text := strings.ReplaceAll(strings.Join(j.Script, "\n"), "/tmp/enilab", filepath.Join(t.TempDir(), "enilab"))
	if out, code := r.shell(text, j.Variables); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	r.report(0)
	if j.Artifacts.Reports["junit"] != "enilab-report/junit.xml" {
		t.Errorf("the job keeps %+v", j.Artifacts)
	}
}

func look(t *testing.T, name string) string {
	t.Helper()
	return must.Get(exec.LookPath(name))(t)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(file))(t)
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, data, 0o755))
}
