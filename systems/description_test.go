package systems

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/strictyaml"
)

const small = `name: small
files: [{from: d, to: /app/d}, {from: p, to: /opt/cni/bin/p}]
conflist: {name: 10-p.conflist, words: '{"plugins": [{"type": "p"}]}'}
daemon:
  argv: [/app/d]
  environment: {A: "1", B: "2"}
  serves: {tcp: "127.0.0.1:50051", grpc: true}
`

func TestParse(t *testing.T) {
	d := must.Get(Parse("small.yaml", []byte(small+`versions:
  - {from: 2.0.0, daemon: {environment: {A: ~, C: "${NODE}"}, serves: {unix: /run/d.sock, within: 5s}}, files: [{from: d, to: /app/d, mode: 0700}]}
  - {before: 2.0.0, upgrade: {steps: [start], rollback: [stop, start]}}
`)))(t)
	old := must.Get(d.Of("1.0.0"))(t)
	young := must.Get(d.Of("2.0.0"))(t)
	if q := young.Daemon.Serves; q.TCP != "" || q.Unix != "/run/d.sock" || !q.GRPC || q.Within != 5*time.Second {
		t.Errorf("one question takes the other's place, found %+v", q)
	}
	if e := young.Daemon.Environment; len(e) != 2 || e["B"] != "2" || e["C"] != "${NODE}" {
		t.Errorf("environment of the newer range: %v", e)
	}
	if e := old.Daemon.Environment; len(e) != 2 || e["A"] != "1" {
		t.Errorf("environment of the older range: %v", e)
	}
	if len(young.Files) != 1 || young.Files[0].Mode != 0o700 || len(old.Files) != 2 || old.Files[0].Mode != 0o755 {
		t.Errorf("files: %v and %v", young.Files, old.Files)
	}
	if q := old.Daemon.Serves; q.Within != longServe || old.Daemon.Stop.Signal != "TERM" || old.Runtime.API != "none" || old.Conflist.To != ConfigFolder {
		t.Errorf("defaults: %+v, %+v", q, old)
	}
	if !slices.Equal(old.Upgrade.Rollback, []Step{StepStop, StepStart}) {
		t.Errorf("rollback: %v", old.Upgrade.Rollback)
	}
}

// TestRefused: each mistake is told at its place, with what to do.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x.yaml: the file is empty (begin with the example of docs/systems.md)"},
		{"not a mapping", "[a]", "x.yaml:1:1: a description: expected keys and values"},
		{"no name", "about: x\nconflist: {name: a, words: b}\n", "x.yaml:1:1: a description needs the key name"},
		{"no YAML", "name: [", "x.yaml:1:1: "},
		{"two documents", small + "---\nname: b\n", "there is a second document in the file (keep one)"},
		{"bad name", "name: My CNI\n", "x.yaml:1:7: name: expected a word of small letters"},
		{"nothing in it", "name: a\n", "x.yaml:1:1: all versions: there is neither a daemon nor a conflist"},
		{"unknown key", small + "deamon: {}\n", `x.yaml:8:1: a description has no key "deamon" (did you mean daemon?)`},
		{"unknown key below", strings.Replace(small, "grpc", "gprc", 1), `x.yaml:7:36: serves has no key "gprc" (did you mean grpc?)`},
		{"twice", small + "name: b\n", `x.yaml:8:1: a description has the key "name" twice, first in line 1`},
		{"wrong type", strings.Replace(small, "argv: [/app/d]", "argv: /app/d", 1), `x.yaml:5:9: argv: expected a list`},
		{"wrong choice", small + "runtime: {api: crio, socket: /a}\n", `x.yaml:8:16: api cannot be "crio" (did you mean cri?)`},
		{"no choice", small + "ec2: {by: [name]}\n", `x.yaml:8:11: by: expected one of endpoint, name, none, found a list`},
		{"anchor", "name: &a small\n", "anchors and aliases are not read"},
		{"placeholder", strings.Replace(small, `"2"`, `"${NOD}"`, 1), "x.yaml:6:28: there is no placeholder ${NOD} (did you mean ${NODE}?)"},
		{"placeholder of nothing", strings.Replace(small, `"2"`, `"${env.}"`, 1), "${env.} names no variable"},
		{"endless placeholder", strings.Replace(small, `"2"`, `"${NODE"`, 1), "the placeholder ${NODE has no end"},
		{"relative path", strings.Replace(small, "/app/d}", "app/d}", 1), `x.yaml:2:23: to: expected an absolute path`},
		{"path with dots", strings.Replace(small, "/app/d}", "/app/../d}", 1), `to: expected an absolute path`},
		{"path out of the folder", strings.Replace(small, "from: d", "from: ../d", 1), "x.yaml:2:16: from: expected a path inside the version's folder"},
		{"absolute path in the folder", strings.Replace(small, "from: d", "from: /d", 1), "from: expected a path inside the version's folder"},
		{"two files to one place", strings.Replace(small, "/app/d}", "/opt/cni/bin/p}", 1), "d and p both go to /opt/cni/bin/p (give one of them another to)"},
		{"file without to", strings.Replace(small, ", to: /app/d", "", 1), "one of the files has no from or no to"},
		{"mode", strings.Replace(small, "/app/d}", "/app/d, mode: rwx}", 1), `mode: expected permission bits from 0400 to 0777, such as 0644, found "rwx"`},
		{"mode of set-uid", strings.Replace(small, "/app/d}", "/app/d, mode: 4755}", 1), `found "4755"`},
		{"no question", strings.Replace(small, `serves: {tcp: "127.0.0.1:50051", grpc: true}`, "", 1), "the daemon does not say how it is known to serve"},
		{"two questions", strings.Replace(small, "grpc: true", "unix: /a", 1), "x.yaml:7:36: serves has tcp and unix (keep one of them)"},
		{"long wait", strings.Replace(small, "grpc: true", "within: 2h", 1), "within: expected a duration from 1ms to 1h"},
		{"no wait", strings.Replace(small, "grpc: true", "within: 0s", 1), "within: expected a duration from 1ms to 1h"},
		{"capability", strings.Replace(small, "argv:", "capabilities: [net_admin]\n  argv:", 1), `capabilities: expected a name such as CAP_NET_ADMIN, found "net_admin"`},
		{"signal", strings.Replace(small, "argv:", "stop: {signal: SIGTERM}\n  argv:", 1), `signal cannot be "SIGTERM" (there are TERM, INT, QUIT, HUP, KILL)`},
		{"variable", strings.Replace(small, `A: "1"`, `A=B: "1"`, 1), "environment: expected a name without ="},
		{"setting twice", strings.Replace(small, "argv:", "settings: [A, A]\n  argv:", 1), `settings names "A" twice (keep one)`},
		{"step", small + "upgrade: {steps: [stop, begin]}\n", `x.yaml:8:25: a step cannot be "begin"`},
		{"step twice", small + "upgrade: {steps: [start, start]}\n", "steps has start twice"},
		{"no start", small + "upgrade: {steps: [stop]}\n", "an upgrade's steps have no start"},
		{"resource", small + "kubernetes: {by: url, resources: [eniconfigs]}\n", `resources: expected group/version/plural`},
		{"no socket", small + "runtime: {api: cri}\n", "the runtime's API is cri, and there is no socket"},
		{"relative argv", strings.Replace(small, "[/app/d]", "[d]", 1), `the daemon's argv begins with "d", which is no absolute path`},
		{"manifest without container", strings.Replace(small, "argv:", "manifest: a.yaml\n  argv:", 1), "the daemon has a manifest and no container"},
		{"init without argv", strings.Replace(small, "argv:", "init: [{within: 1s}]\n  argv:", 1), "an init step's argv has to begin with an absolute path"},
		{"conflist without name", strings.Replace(small, "name: 10-p.conflist, ", "", 1), "the conflist needs the key name"},
		{"conflist of nothing", strings.Replace(small, `, words: '{"plugins": [{"type": "p"}]}'`, "", 1), "the conflist needs one of the keys from and words"},
		{"conflist with a slash", strings.Replace(small, "10-p.conflist", "a/b", 1), "has a slash: to is its folder"},
		{"build without module", small + "build: {packages: {p: cmd/p}}\n", "x.yaml:8:8: build needs the key module"},
		{"build of a flag", small + "build: {module: -x.com/y, packages: {p: cmd/p}}\n", "module: expected a module's path"},
		{"build out of the module", small + "build: {module: example.com/x, packages: {p: ../cmd}}\n", "a package: expected a path inside"},
		{"no ranges", small + "versions: []\n", "x.yaml:8:1: versions is an empty list"},
		{"no version", small + "versions: [{from: 1.9}]\n", `x.yaml:8:19: from: expected a version such as 1.9.0, found "1.9"`},
		{"empty range", small + "versions: [{from: 1.9.0, before: 1.9.0}]\n", "x.yaml:8:12: the range from 1.9.0 before 1.9.0 is empty"},
		{"backward range", small + "versions: [{from: 1.10.0, before: 1.9.0}]\n", "is empty"},
		{"overlap", small + "versions:\n  - {from: 1.0.0, before: 1.10.0}\n  - {from: 1.9.0}\n", "x.yaml:10:5: the ranges 1.0.0 to before 1.10.0 (line 9) and 1.9.0 and newer (line 10) overlap (end one where the other begins)"},
		{"overlap without an end", small + "versions:\n  - {from: 1.0.0}\n  - {from: 1.9.0}\n", "overlap"},
		{"overlap without a beginning", small + "versions:\n  - {before: 1.0.0}\n  - {before: 2.0.0}\n", "overlap"},
		{"a range's own name", small + "versions: [{name: b}]\n", `a range of versions has no key "name"`},
		{"a range's mistake", small + "versions: [{from: 1.0.0, runtime: {api: docker}}]\n", "x.yaml:8:12: 1.0.0 and newer: the runtime's API is docker, and there is no socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text))
			list, ok := err.(strictyaml.Errors)
			if !ok || !strings.Contains(list.Error(), c.want) {
				t.Errorf("expected %s\nfound    %v", c.want, err)
			}
		})
	}
	if _, err := Parse("x.yaml", make([]byte, MaxFile+1)); err == nil || !strings.Contains(err.Error(), "at most 262144") {
		t.Errorf("a large file: %v", err)
	}
}

func TestExpand(t *testing.T) {
	w := Words{"NODE": "node-1", "CA": ""}
	env := map[string]string{"A": "a", "EMPTY": ""}
	for text, want := range map[string]string{
		"":                              "",
		"plain $ {} }":                  "plain $ {} }",
		"${NODE}-${NODE}":               "node-1-node-1",
		"$${NODE} $$${NODE}":            "${NODE} $${NODE}",
		"${env.A} ${env.B} ${env.B:-b}": "a  b",
		"${env.EMPTY:-x${CA}":           "x${CA",
		"${CA}":                         "",
	} {
		if got, err := w.Expand(text, env); got != want || err != nil {
			t.Errorf("%q: expected %q, found %q, %v", text, want, got, err)
		}
	}
	if _, err := w.Expand("${POD}", env); err == nil || !strings.Contains(err.Error(), "this world has nothing for ${POD}") {
		t.Errorf("found %v", err)
	}
}

// FuzzParse: whatever the bytes, there is a description or a mistake with its place, and a description's versions can be asked for.
func FuzzParse(f *testing.F) {
	for _, name := range Embedded() {
		data := must.Get(embedded.ReadFile(name + ".yaml"))(f)
		f.Add(data, "1.5.3")
	}
	f.Add([]byte(small+"versions: [{from: 1.0.0, before: 2.0.0}, {before: 1.0.0}]\n"), "1.0.0-rc1")
	f.Add([]byte("name: a\n? [b]\n: c\n"), "")
	f.Add([]byte("name: !!binary a\nversions: &a [*a]\n"), "v1")
	f.Add([]byte("name: a\nfiles: [{from: a, to: /b}, ~, 7]\ndaemon: ~\n"), "1")
	f.Fuzz(func(t *testing.T, data []byte, version string) {
		d, err := Parse("x.yaml", data)
		if err != nil {
			if _, ok := err.(strictyaml.Errors); !ok {
				t.Errorf("no mistakes of the file: %v", err)
			}
			return
		}
		s, err := d.Of(version)
		if err != nil {
			return
		}
		env, err := s.Environment(filled(), nil)
		if err != nil {
			t.Errorf("a placeholder passed that cannot be filled: %v", err)
		}
		if s.Conflist.From == "" {
			_, _ = s.Configuration(filled(), env) // no configuration, or one
		}
	})
}

// FuzzManifest: whatever the bytes, there is a container or an error.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(newManifest))
	f.Add([]byte(oldManifest))
	f.Add([]byte("kind: List\nitems: [7, {kind: DaemonSet}]\n"))
	f.Add([]byte("a: &a [*a]\n---\nkind: DaemonSet\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest("m.yaml", data, "aws-node")
		if err != nil {
			return
		}
		for k, v := range m.Environment {
			if _, err := filled().Expand(v, nil); err != nil {
				t.Errorf("%s: %v", k, err)
			}
		}
	})
}

// TestManual: the tables of docs/systems.md are those of the code.
func TestManual(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join("..", "docs", "systems.md")))(t)
	for name, rows := range map[string]string{"keys": keyTable(), "placeholders": placeholderTable()} {
		begin, end := "<!-- "+name+": checked by systems -->\n", "<!-- end -->"
		_, rest, ok := strings.Cut(string(data), begin)
		got, _, closed := strings.Cut(rest, end)
		if !ok || !closed || got != rows {
			t.Errorf("docs/systems.md: expected between %q and %q\n%s", strings.TrimSpace(begin), end, rows)
		}
	}
}

func keyTable() string {
	var b strings.Builder
	b.WriteString("| Key | Form | |\n|---|---|---|\n")
	var walk func(prefix string, fields []field)
	walk = func(prefix string, fields []field) {
		for _, f := range fields {
			b.WriteString("| `" + prefix + f.key + "` | " + f.form + " | " + f.doc + " |\n")
			dot := "."
			if f.form == "list" {
				dot = "[]."
			}
			walk(prefix+f.key+dot, f.below)
		}
	}
	walk("", keys())
	return b.String()
}

func placeholderTable() string {
	var b strings.Builder
	b.WriteString("| Placeholder | |\n|---|---|\n")
	for _, p := range Placeholders {
		b.WriteString("| `${" + p.Name + "}` | " + p.Doc + " |\n")
	}
	b.WriteString("| `${env.VARIABLE}`, `${env.VARIABLE:-otherwise}` | a variable of the daemon's environment |\n")
	return b.String()
}

// keys are those of a description, with what they are for; tests compare them with docs/systems.md.
func keys() []field {
	r := &reader{strictyaml.NewReader("")}
	fields := r.head(&Description{}, new(*yaml.Node))
	fields[len(fields)-1].below = r.span(&Range{})
	return append(fields, r.fields(&System{})...)
}
