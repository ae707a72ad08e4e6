package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

func parse(t *testing.T, name, text string) *scn.File {
	t.Helper()
	return must.Get(scn.Parse(name, []byte(text)))(t)
}

const script = `# a headline
cluster nodes=1 type=m5.large
start pods web 3 on node-1
at 1m node-1 hold
at 2m node-1 unhold
at 3m kube roll web 1
at 3m expect node-1 daemon.starts == 2
at 3m30s expect kube pods.ready == 3
at 9m expect kube pods.ready == 3
finally converges within 2m
-- story --
x
`

func TestScripts(t *testing.T) {
	pair := Pair{From: "my-cni@1.0.0", To: "my-cni@1.1.0", Role: []string{"CreateTags", "DescribeFleets"}, Tokens: "required"}
	f := parse(t, "x.scn", script)
	scripts := must.Get(pair.Scripts(f, false))(t)
	want := map[Play][2]string{
		Old: {"my-cni@1.0.0", "node-* restart"}, New: {"my-cni@1.1.0", "node-* restart"},
		UpgradeImage: {"my-cni@1.0.0", "node-* upgrade to=my-cni@1.1.0 env=keep"}, Upgrade: {"my-cni@1.0.0", "node-* upgrade to=my-cni@1.1.0"},
		RollbackImage: {"my-cni@1.1.0", "node-* upgrade to=my-cni@1.0.0 env=keep"}, Rollback: {"my-cni@1.1.0", "node-* upgrade to=my-cni@1.0.0"},
	}
	for _, s := range scripts {
		w := want[s.Play]
		if s.System != w[0] || !strings.Contains(s.Text, "at 4m30s "+w[1]+"  # the change\n") {
			t.Errorf("%s: %s\n%s", s.Play, s.System, s.Text)
		}
		g := parse(t, "x.scn", s.Text)
		if _, err := sim.Check(g); err != nil {
			t.Errorf("%s: %v", s.Play, err)
		}
		for i, l := range f.Lines { // numbers stay, so that expectations can be compared
			if i != 1 && l.Stmt != nil && !strings.Contains(l.Raw, "daemon.starts") && g.Lines[i].String() != l.String() {
				t.Errorf("%s: line %d: %q, expected %q", s.Play, i+1, g.Lines[i].String(), l.String())
			}
		}
		if !strings.Contains(g.Lines[1].String(), "role=CreateTags tokens=required") || strings.Contains(s.Text, "\nat 3m expect node-1 daemon.starts") {
			t.Error(s.Text)
		}
	}
	same := Pair{From: "my-cni@1.0.0", To: "my-cni@1.0.0"}
	scripts = must.Get(same.Scripts(f, false))(t)
	for _, s := range scripts[1:] {
		if s.Text != scripts[0].Text || s.System != scripts[0].System {
			t.Errorf("from a version to itself, %s is played otherwise than %s", s.Play, scripts[0].Play)
		}
	}
}

func TestChangeAt(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		want        time.Duration
	}{
		{"the middle", "at 0s kube roll web 1\nat 10m kube roll web 1", 5 * time.Minute},
		{"not while something waits", "at 1m within 5m expect kube pods.ready == 3\nat 10m kube roll web 1", 6*time.Minute + 40*time.Second},
		{"not while a daemon is kept down", "at 4m node-1 hold\nat 7m node-1 unhold\nat 10m kube roll web 1", 3*time.Minute + 45*time.Second},
		{"not while any is", "at 4m node-* hold\nat 7m node-1 unhold\nat 10m kube roll web 1", 3*time.Minute + 45*time.Second},
		{"as the file says", "vary change=9m\nat 10m kube roll web 1", 9 * time.Minute},
		{"it is crowded", "at 0s every 5s until 1m kube roll web 1\nat 20s kube roll web 1\nat 1m kube roll web 1", 30 * time.Second},
	} {
		f := parse(t, "x.scn", "cluster nodes=1\nstart pods web 3 on node-1\n"+c.lines+"\n")
		if got, err := changeAt(f); err != nil || got != c.want {
			t.Errorf("%s: %v, %v; expected %v", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "at 0s within 5m expect kube pods.ready == 3", "vary change=soon\nat 1m kube roll web 1", "vary change=1m,2m\nat 1m kube roll web 1", "at 0s node-1 hold"} {
		if at, err := changeAt(parse(t, "x.scn", "cluster nodes=1\nstart pods web 3 on node-1\n"+bad+"\n")); err == nil {
			t.Errorf("%q: changed at %v", bad, at)
		}
	}
}

// TestHold: where a scenario holds no flows itself, the gate does, behind all of its lines; the change stays the last one, and when it was.
func TestHold(t *testing.T) {
	pair := Pair{From: "a@1.0.0", To: "b@1.0.0"}
	for text, want := range map[string]string{
		script: "maybe at 1s kube hold-flows  # the gate's\nat 4m30s node-* upgrade to=b@1.0.0  # the change",
		strings.Replace(script, "kube roll web 1", "kube hold-flows", 1): "finally converges within 2m\nat 4m30s node-* upgrade to=b@1.0.0  # the change",
	} {
		scripts := must.Get(pair.Scripts(parse(t, "x.scn", text), true))(t)
		s := scripts[3]
		g := parse(t, "x.scn", s.Text)
		if got := g.Lines[s.Line-2].String() + "\n" + g.Lines[s.Line-1].String(); got != want {
			t.Errorf("%q in %s", got, s.Text)
		}
		if _, err := sim.Check(g); err != nil {
			t.Error(err)
		}
	}
}

// TestBuiltin: the gate's own scenarios can be played, and no line of theirs knows a version.
func TestBuiltin(t *testing.T) {
	for _, name := range []string{Change, Load} {
		data := must.Get(Files.ReadFile(name))(t)
		f := parse(t, name, string(data))
		g := must.Get(f.Expand(f.Variants()[0]))(t)
		if _, err := sim.Check(g); err != nil {
			t.Error(err)
		}
		pair := Pair{From: "a@1.0.0", To: "b@1.0.0"}
		if _, err := pair.Scripts(f, false); err != nil {
			t.Error(err)
		}
	}
}
