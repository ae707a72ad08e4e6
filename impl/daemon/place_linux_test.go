package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// confRig is a node whose daemon writes the conflist.
func confRig(t *testing.T) (r *rig, path string) {
	t.Helper()
	r = newRig(t, 2)
	r.c.ConfDir = filepath.Join(filepath.Dir(r.c.RunDir), "net.d")
	must.Do(t, os.Mkdir(r.c.ConfDir, 0o755))
	r.c.Conflist = conflist.Options{MTU: 1500, Chained: []json.RawMessage{conflist.PortMap()}}
	return r, filepath.Join(r.c.ConfDir, conflist.Name)
}

// holds waits until a file has these contents.
func (r *rig) holds(path string, want []byte) {
	r.t.Helper()
	r.eventually(path+" is written", func() bool { got, err := os.ReadFile(path); return err == nil && string(got) == string(want) })
}

// TestConflist: there is none before pods can be taken; then it is there, and stays when the daemon ends. What others change stays until the
// next start, and what they chain stays for good.
func TestConflist(t *testing.T) {
	r, path := confRig(t)
	r.startSilent()
	if out := r.status(); exists(path) || out.Serving {
		t.Errorf("a conflist before metadata has answered; status %+v", out)
	}
	close(r.cloud.silent)
	r.serves().holds(path, conflist.Make(r.c.Conflist))
	r.eventually("a rolling update may go on", func() bool { return r.status().Serving })
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	r.end()
	if list, err := os.ReadDir(r.c.ConfDir); err != nil || len(list) != 1 {
		t.Errorf("after the daemon's end there are %v, %v", list, err)
	}
	data := must.Get(os.ReadFile(path))(t)
	chained := strings.Replace(string(data), "    }\n  ]", "    },\n    {\"type\": \"istio-cni\"}\n  ]", 1)
	must.Do(t, os.WriteFile(path, []byte(chained), 0o644))
	r.c.Conflist.MTU = 9001
	r.startSilent()
	if out := r.status(); !out.Ready || out.Serving {
		t.Errorf("a restart is no outage, and a rolling update waits for its end: %+v", out)
	}
	close(r.cloud.silent)
	r.serves()
	r.eventually("the new MTU is in it", func() bool { got, _ := os.ReadFile(path); return strings.Contains(string(got), `"mtu": "9001"`) })
	if got, _ := os.ReadFile(path); !strings.Contains(string(got), "istio-cni") {
		t.Errorf("somebody else's plugin is gone:\n%s", got)
	}
}

// TestConflistAsItShouldBe: it is not written anew; a runtime would read its configuration again.
func TestConflistAsItShouldBe(t *testing.T) {
	r, path := confRig(t)
	must.Do(t, os.WriteFile(path, conflist.Make(r.c.Conflist), 0o600))
	r.start().serves()
	r.eventually("it says so", func() bool { return strings.Contains(r.log.String(), "as it should be") })
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v: it was written", st.Mode(), err)
	}
}

// TestNoConflist: what stands in the way is said, in the log once and in STATUS as long as it does; the node is not ready without a list, and the
// daemon tries again.
func TestNoConflist(t *testing.T) {
	const cut = `{"cniVersion":"0.4.0","name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"isti`
	for name, c := range map[string]struct {
		spoil, mend func(r *rig, path string) error
		why         string
		ready       bool
	}{
		"no folder": {func(r *rig, _ string) error { return os.Remove(r.c.ConfDir) }, func(r *rig, _ string) error { return os.Mkdir(r.c.ConfDir, 0o755) },
			"mount the host's /etc/cni/net.d", false},
		"cut off": {func(_ *rig, path string) error { return os.WriteFile(path, []byte(cut), 0o644) }, func(_ *rig, path string) error { return os.Remove(path) },
			"stays as it is, for others may be chained into it: expected a JSON object", false},
		"a folder": {func(_ *rig, path string) error { return os.Mkdir(path, 0o755) }, func(_ *rig, path string) error { return os.Remove(path) },
			"expected a file", false},
		"not writable": {func(r *rig, path string) error {
			if err := os.WriteFile(path, conflist.Make(conflist.Options{}), 0o644); err != nil {
				return err
			}
			return os.MkdirAll(path+".new/in/the/way", 0o755)
		}, func(_ *rig, path string) error { return os.RemoveAll(path + ".new") }, "is a directory", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, path := confRig(t)
			must.Do(t, c.spoil(r, path))
			r.start()
			says := func() bool { return strings.Contains(join(r.status().Reasons), c.why) }
			r.eventually("STATUS says why", func() bool { return exists(r.socket()) && says() })
			again := r.c.Clock.Now() + 2*conflistRetry
			r.eventually("it was tried again", func() bool { return r.c.Clock.Now() > again })
			if out := r.status(); out.Ready != c.ready || out.Serving != c.ready || !says() {
				t.Errorf("status %+v", out)
			}
			if got, err := os.ReadFile(path); name == "cut off" && (err != nil || string(got) != cut) {
				t.Errorf("the list that cannot be understood is %q, %v", got, err)
			}
			if n := strings.Count(r.log.String(), "the conflist cannot be written; ipamd tries again"); n != 1 {
				t.Errorf("the log says it %d times", n)
			}
			must.Do(t, c.mend(r, path))
			r.holds(path, conflist.Make(r.c.Conflist))
			r.eventually("all is well", func() bool { out := r.status(); return out.Ready && out.Serving && len(out.Reasons) == 0 })
			r.end()
			r.replays()
		})
	}
}

// TestConflistOf: every setting that the plugin or the chain hears of.
func TestConflistOf(t *testing.T) {
	env := map[string]string{"AWS_VPC_K8S_CNI_VETHPREFIX": "pod", "AWS_VPC_ENI_MTU": "1500", "POD_SECURITY_GROUP_ENFORCING_MODE": "standard",
		"AWS_VPC_K8S_PLUGIN_LOG_FILE": "/p.log", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "ERROR", "ENABLE_BANDWIDTH_PLUGIN": "true", "DISABLE_POD_V6": "true",
		"ENILAB_SOCKET": "/run/other/s", "ENILAB_RUN_DIR": "/run/other"}
	s, problems := settings.Read(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if slices.ContainsFunc(problems, func(p settings.Problem) bool { return p.Stops }) {
		t.Fatal(problems)
	}
	var l struct{ Plugins []map[string]any }
	if err := json.Unmarshal(conflist.Make(conflistOf(s)), &l); err != nil || len(l.Plugins) != 4 {
		t.Fatalf("%v %v", l.Plugins, err)
	}
	for k, v := range map[string]string{"vethPrefix": "pod", "mtu": "1500", "podSGEnforcingMode": "standard", "pluginLogFile": "/p.log", "pluginLogLevel": "ERROR",
		"socket": "/run/other/s", "stateDir": "/run/other"} {
		if l.Plugins[0][k] != v {
			t.Errorf("%s is %v, expected %s", k, l.Plugins[0][k], v)
		}
	}
	for i, kind := range []string{"aws-cni", "portmap", "bandwidth", "tuning"} {
		if l.Plugins[i]["type"] != kind {
			t.Errorf("plugin %d is %v, expected %s", i, l.Plugins[i]["type"], kind)
		}
	}
	s, _ = settings.Read(func(string) (string, bool) { return "", false })
	if o := conflistOf(s); o.Socket != "" || o.StateDir != "" || len(o.Chained) != 1 {
		t.Errorf("by default %+v", o)
	}
}
