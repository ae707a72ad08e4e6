package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
)

// pluginOnly is a description of a plugin without a daemon.
func pluginOnly(name, more string) string {
	return "name: " + name + "\nfiles:\n  - {from: plugin, to: /opt/cni/bin/plugin}\nconflist:\n  name: 10-a.conflist\n  words: '{\"cniVersion\": \"1.0.0\", \"name\": \"a\", \"plugins\": [{\"type\": \"plugin\"}]}'\n" + more
}

// systemsHere makes descriptions, and folders of versions of which each has a program.
func systemsHere(t *testing.T) {
	t.Helper()
	in(t, map[string]string{"calm.scn": calm, "still.scn": "cluster nodes=1\nstart pods web 2 on node-1\nfinally converges within 1m\n", "bad.scn": "cluster nodes=1\nat 0s node-1 restrat\n",
		"stale.yaml": "accepted: [{check: x}]\n", "none.json": "{}\n", "file": ""})
	self := must.Get(os.ReadFile(os.Args[0]))(t)
	for path, data := range map[string][]byte{"systems/a.yaml": []byte(pluginOnly("a", "")), "systems/b.yaml": []byte(pluginOnly("b", "")), "systems/c.yaml": []byte(pluginOnly("c", "upgrade: {replaces: [a]}\n")),
		"one/plugin": self, "two/plugin": append(self[:len(self):len(self)], 'x')} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, data, 0o755))
	}
	page := gate.Page{Head: runner.Head{Enilab: gate.Format}, From: "a 1.0.0",
		Scenarios: []gate.Scenario{{Name: "calm", Digest: "another"}}}
	other := page
	other.From = "a 0.9.0"
	for name, p := range map[string]gate.Page{"base.json": page, "other.json": other} {
		data, err := json.Marshal(p)
		if err == nil {
			err = os.WriteFile(name, data, 0o644)
		}
		must.Do(t, err)
	}
}

// TestGateRefuses: bad input ends with code 2 and what to do, before anything is played.
func TestGateRefuses(t *testing.T) {
	systemsHere(t)
	const pair = "gate --from a@1.0.0=./one --to a@1.1.0=./two "
	for _, c := range []struct{ args, says string }{
		{"gate", "gate compares two versions: expected --from SYSTEM and --to SYSTEM"},
		{"gate --from a@1.0.0=./one", "expected --from SYSTEM and --to SYSTEM"},
		{"gate --from nobodys@1.0.0 --to a@1.0.0=./one", "--from there is no system \"nobodys\""},
		{"gate --from a@1.0.0=./one --to a@1.0.0=./three", "--to a@1.0.0=./three"},
		{"gate --from a@1.0.0=./one --to b@1.0.0=./one", "there is no way from a to b: neither description says that it replaces the other"},
		{"gate --from a@1.0.0=./one --to a@1.0.0=./two", "--from and --to are both called a@1.0.0, and their files differ: give one of them another version, such as a@1.0.0-1=FOLDER"},
		{pair + "--timeout -1m", "--timeout and --limit are durations"},
		{pair + "--plays sideways", "--plays sideways: there are old, new, upgrade-image, "},
		{pair + "--seeds 9-2", "runs backwards"},
		{pair + "--in qemu", "--in: expected "},
		{pair + "--out file/x calm.scn", "--out: "},
		{pair + "--json file/x calm.scn", "--json: the report cannot be written: "},
		{pair + "--json x.json --html ./x.json calm.scn", "--html and --json: both name x.json: name two files"},
		{pair + "--json calm.scn calm.scn", "--json calm.scn: it is one of the scenarios"},
		{pair + "clam.scn", "clam.scn: there is no such file (did you mean calm.scn?)"},
		{pair + "socket-mismach", "socket-mismach: there is no such file (did you mean socket-mismatch, which comes with enilab?)"},
		{pair + "--plays sideways socket-mismatch", "--plays sideways"},
		{pair + "bad.scn", `bad.scn:2:14: node-1 cannot "restrat" (did you mean restart?)`},
		{pair + "still.scn", "nothing happens in it at any instant, so there is no middle to change the version in"},
		{pair + "--allow nowhere.yaml calm.scn", "--allow: open nowhere.yaml"},
		{pair + "--allow stale.yaml calm.scn", "stale.yaml:1:12: an accepted difference needs the key reason"},
		{pair + "--baseline nowhere.json calm.scn", "--baseline: open nowhere.json"},
		{pair + "--baseline none.json calm.scn", "--baseline none.json: expected what enilab gate --json wrote (gate/1)"},
		{pair + "--baseline other.json calm.scn", "--baseline other.json is of a 0.9.0, and --from is a 1.0.0"},
		{pair + "--baseline base.json calm.scn", "--baseline base.json is of another set of scenarios: calm is not in it, or is another text there"},
		{pair + "--in vm=calm.scn calm.scn", "--in: "},
		{pair + "--only nobody calm.scn", "--only nobody: nothing of that name would be played: there are calm, load"},
	} {
		refuses(t, c.args, c.says)
	}
}
