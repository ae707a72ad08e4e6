package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/systems"
)

// script is an executable that any machine takes.
const script = "#!/bin/sh\n"

// TestSystems: a description of one's own is listed and shown; a mistake in one does not hide the others.
func TestSystems(t *testing.T) {
	in(t, nil)
	t.Setenv("ENILAB_SYSTEMS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, dir := range []string{"systems", "build"} {
		must.Do(t, os.Mkdir(dir, 0o755))
	}
	files := map[string]string{"systems/bad.yaml": "name: bad\ndeamon: {}\n", "build/mine": script, "build/mined": script, "systems/mine.yaml": `name: mine
about: a CNI of one's own
files: [{from: mine, to: /opt/cni/bin/mine}, {from: mined, to: /app/mined}]
conflist: {name: 10-mine.conflist, words: '{"plugins": [{"type": "mine", "range": "${POD_RANGE}"}]}'}
daemon:
  argv: [/app/mined, --node, "${NODE}"]
  environment: {REGION: "${REGION}"}
  serves: {tcp: "127.0.0.1:80"}
`}
	for name, text := range files {
		must.Do(t, os.WriteFile(name, []byte(text), 0o755))
	}
	shown := []string{"a CNI of one's own", "/app/mined --node ${NODE} (in /)", `"range": "${POD_RANGE}"`, "REGION=${REGION}", "127.0.0.1:80 within 2m0s", "SIGTERM, 30s",
		"/opt/cni/bin/mine, 0755", "all: it is privileged"}
	for _, c := range []struct {
		args  string
		code  int
		words []string
	}{
		{"systems", 0, []string{"amazon-vpc-cni-k8s", "1.23.0 to before 1.24.0", "no daemon", "mine", `did you mean daemon?`}},
		{"systems show mine@1.0.0=./build", 0, append([]string{"mine 1.0.0, in "}, shown...)},
		{"systems show mine@build", 0, []string{"mine build, in "}},
		{"systems show ./systems/mine.yaml@build", 0, shown},
		{"systems show bad@build", 2, []string{`bad.yaml:2:1: a description has no key "deamon" (did you mean daemon?)`}},
		{"systems show mind@build", 2, []string{`no system "mind" (did you mean mine?)`}},
		{"systems show mine", 2, []string{"does not say which one"}},
		{"systems show", 2, []string{"takes one argument, NAME@WHERE, found 0"}},
		{"systems show amazon-vpc-cni-k8s@1.5.3", 2, []string{"to fetch it: enilab systems get amazon-vpc-cni-k8s@1.5.3"}},
		{"systems show mine@build --arch mips", 2, []string{`no architecture "mips"`}},
		{"systems shew", 2, []string{"did you mean", "show"}},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		text := strings.Join(strings.Fields(out+errs), " ")
		if code != c.code {
			t.Errorf("enilab %s: expected code %d, found %d: %s", c.args, c.code, code, errs)
		}
		for _, w := range c.words {
			if !strings.Contains(text, w) {
				t.Errorf("enilab %s: expected %q in %s", c.args, w, text)
			}
		}
	}

	var list struct {
		Systems []struct{ Name, Error string }
	}
	code, out, errs := enilab(t, "systems", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list.Systems) != 5 || list.Systems[1].Name != "bad" || list.Systems[1].Error == "" {
		t.Errorf("systems --json: code %d, %v, %s%s", code, err, out, errs)
	}
	var one struct {
		Version string
		Daemon  struct{ Argv []string }
	}
	code, out, errs = enilab(t, "systems", "show", "mine@2.0.0=build", "--json")
	if err := json.Unmarshal([]byte(out), &one); err != nil || code != 0 || one.Version != "2.0.0" || len(one.Daemon.Argv) != 3 {
		t.Errorf("systems show --json: code %d, %v, %s%s", code, err, out, errs)
	}
}

// TestSystemsShow: every description that comes with enilab can be shown, in every range of its versions, with and without the files that a
// version may lack.
func TestSystemsShow(t *testing.T) {
	in(t, nil)
	t.Setenv("ENILAB_SYSTEMS", "")
	shown := 0
	for _, name := range systems.Embedded() {
		d := must.Get(systems.Describe(name, systems.Options{}))(t)
		for i := range d.Ranges {
			g := &d.Ranges[i]
			version := cmp.Or(g.From, "1.0.0")
			for _, whole := range []bool{true, false} {
				where := fmt.Sprintf("%s@%s=./%s", name, version, folderOf(t, name, &g.System, whole))
				code, out, errs := enilab(t, "systems", "show", where)
				if shown++; code != 0 {
					t.Errorf("systems show %s: exit code %d: %s", where, code, errs)
				}
				for _, p := range systems.Placeholders { // what a description leaves to the node is shown as it is
					if word := "${" + p.Name + "}"; strings.Contains(g.System.Conflist.Words, word) && !strings.Contains(out, word) {
						t.Errorf("systems show %s: the configuration has lost %s: %s", where, word, out)
					}
				}
			}
		}
	}
	if shown < 20 {
		t.Errorf("%d were shown: this test does not know any more how to find ranges", shown)
	}
}

// folderOf makes a folder with the files of a version, all or only those that it may not lack.
func folderOf(t *testing.T, name string, s *systems.System, whole bool) string {
	t.Helper()
	folder := must.Get(os.MkdirTemp(".", name))(t)
	plugin := ""
	for _, f := range s.Files {
		if !f.Optional && strings.HasSuffix(f.From, "-cni") {
			plugin = f.From
		}
		if f.Optional && !whole {
			continue
		}
		must.Do(t, os.WriteFile(filepath.Join(folder, f.From), []byte(script), 0o755))
	}
	if s.Conflist.From != "" {
		text := `{"cniVersion": "0.4.0", "name": "x", "plugins": [{"type": "` + plugin + `"}]}`
		must.Do(t, os.WriteFile(filepath.Join(folder, s.Conflist.From), []byte(text), 0o644))
	}
	return folder
}

// TestSystemsGet: what cannot be fetched ends with the exit code that says why; what is at hand is left as it is.
func TestSystemsGet(t *testing.T) {
	in(t, nil)
	t.Setenv("ENILAB_SYSTEMS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOPROXY", "file://"+t.TempDir())
	t.Setenv("GOMODCACHE", t.TempDir())
	for name, text := range map[string]string{"systems/a.yaml": pluginOnly("a", "get: {image: \"127.0.0.1:1/a:v${VERSION}\"}\n"), "systems/b.yaml": pluginOnly("b", ""), "build/plugin": script} {
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text), 0o755))
	}
	checkEndings(t, []ending{
		{"systems get", 2, "needs NAME@VERSION"},
		{"systems get amazon-vpc-cni-k8z@1.23.1", 2, "did you mean amazon-vpc-cni-k8s?"},
		{"systems get amazon-vpc-cni-k8s@9.0.0", 2, "version 9.0.0 is in no range"},
		{"systems get amazon-vpc-cni-k8s@1.23.1 --from source", 3, "is the Go module proxy there"},
		{"systems get a@1.0.0", 3, "127.0.0.1:1/a:v1.0.0"},
		{"systems get a@1.0.0 --from source", 2, "names no sources"},
		{"systems get a@1.0.0 --from there", 2, `--from: expected image or source, found "there"`},
		{"systems get a@1.0.0 --from source --image x/y:z", 2, "leave one of them out"},
		{"systems get b@1.0.0", 2, "version 1.0.0 is not there ("},
		{"systems get a@1.0.0=./build b@1.0.0=./build", 0, "b@1.0.0 is at hand: "},
		{"systems get a", 0, "a: out of the image 127.0.0.1:1/a:v${VERSION}"},
		{"systems get b", 0, "does not say from where"},
		{"systems get ptp", 0, "built where it is needed"},
		{"run --on netns --in vm --cni a@1.0.0 drift", 2, "to fetch it: enilab systems get a@1.0.0"},
		{"gate --from a@1.0.0 --to a@1.1.0", 2, "--from a@1.0.0: version 1.0.0 is not there; to fetch it: enilab systems get a@1.0.0"},
	})
}
