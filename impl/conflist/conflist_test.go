package conflist

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"github.com/enilab/enilab/internal/must"
)

// upstream is what amazon-vpc-cni-k8s 1.23.1 writes on an IPv4 node.
const upstream = `{"cniVersion":"0.4.0","name":"aws-cni","disableCheck":true,"plugins":[
	{"name":"aws-cni","type":"aws-cni","vethPrefix":"eni","mtu":"9001","podSGEnforcingMode":"strict","pluginLogFile":"/var/log/aws-routed-eni/plugin.log","pluginLogLevel":"DEBUG","capabilities":{"io.kubernetes.cri.pod-annotations":true}},
	{"name":"egress-cni","type":"egress-cni","mtu":"9001","enabled":"false","ipam":{"type":"host-local"}},
	{"type":"portmap","capabilities":{"portMappings":true},"snat":true}%s]}`

// settings are those of the stock manifest.
var settings = Options{VethPrefix: "eni", MTU: 9001, PodSGEnforcingMode: "strict", PluginLogFile: "/var/log/aws-routed-eni/plugin.log", PluginLogLevel: "DEBUG",
	Chained: []json.RawMessage{PortMap()}}

func with(o Options, more ...json.RawMessage) Options {
	o.Chained = append(slices.Clone(o.Chained), more...)
	return o
}

// read is a list as libcni of today reads it: a runtime does that.
func read(t *testing.T, raw []byte) (version string, plugins []string) {
	t.Helper()
	l, err := libcni.ConfListFromBytes(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if l.Name != Network {
		t.Errorf("network %q", l.Name)
	}
	for _, p := range l.Plugins {
		plugins = append(plugins, p.Network.Type)
	}
	return l.CNIVersion, plugins
}

// A list as libcni of today and of containerd 1.7 reads it.
func TestListIsReadByLibcni(t *testing.T) {
	raw := Make(with(settings, json.RawMessage(`{`), Bandwidth(), NoIPv6()))
	version, plugins := read(t, raw)
	if want := []string{"aws-cni", "portmap", "bandwidth", "tuning"}; version != "1.1.0" || !slices.Equal(plugins, want) {
		t.Errorf("version %s, plugins %v, expected %v", version, plugins, want)
	}
	var old struct{ CNIVersion string }
	if err := json.Unmarshal(raw, &old); err != nil || old.CNIVersion != "0.4.0" {
		t.Errorf("a reader that knows no cniVersions takes %q", old.CNIVersion)
	}
	if _, plugins := read(t, Make(Options{})); !slices.Equal(plugins, []string{"aws-cni"}) {
		t.Errorf("plugins %v", plugins)
	}
}

// A list that cannot be encoded ends the program: an empty one in its place would take the node's network away.
func TestWhatCannotBeEncodedIsNoEmptyList(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it is a list")
		}
	}()
	t.Logf("%s", indented(json.RawMessage("{")))
}

func TestMerge(t *testing.T) {
	const istio, other = `{"type":"istio-cni","log_level":"info","kubernetes":{"cni_bin_dir":"/opt/cni/bin","n":12345678901234567890}}`, `{"type":"first"}`
	chained := func(s string) string { return fmt.Sprintf(upstream, s) }
	ours := string(Make(settings))
	for name, c := range map[string]struct {
		there   string
		o       Options
		version string // "": ours
		plugins string
	}{
		"nothing":                {there: " \n", plugins: "aws-cni portmap"},
		"no plugins":             {there: `{"plugins":[]}`, plugins: "aws-cni portmap"},
		"ours":                   {there: ours, plugins: "aws-cni portmap"},
		"amazon's":               {there: chained(""), plugins: "aws-cni portmap"},
		"amazon's with its own":  {there: chained("," + string(Bandwidth()) + "," + string(NoIPv6())), plugins: "aws-cni portmap"},
		"switched on":            {there: ours, o: with(settings, Bandwidth(), NoIPv6()), plugins: "aws-cni portmap bandwidth tuning"},
		"switched on already":    {there: chained("," + string(Bandwidth())), o: with(settings, Bandwidth()), plugins: "aws-cni portmap bandwidth"},
		"somebody else's tuning": {there: chained(`,{"type":"tuning","mtu":1400}`), o: with(settings, NoIPv6()), plugins: "aws-cni portmap tuning tuning"},
		"a bandwidth of its own": {there: chained(`,{"type":"bandwidth","ingressRate":1}`), o: with(settings, Bandwidth()), plugins: "aws-cni portmap bandwidth"},
		"a portmap of its own":   {there: strings.Replace(ours, `"snat": true`, `"snat": false`, 1), plugins: "aws-cni portmap"},
		"behind":                 {there: chained("," + istio), version: "0.4.0", plugins: "aws-cni portmap istio-cni"},
		"behind, and switched on": {there: chained("," + istio), o: with(settings, Bandwidth()), version: "0.4.0",
			plugins: "aws-cni portmap bandwidth istio-cni"},
		"before": {there: `{"cniVersion":"1.0.0","name":"aws-cni","plugins":[` + other + `,{"type":"aws-cni"},` + istio + `]}`, version: "1.0.0",
			plugins: "first aws-cni portmap istio-cni"},
		"portmap before":  {there: `{"plugins":[{"type":"portmap"},{"type":"aws-cni"}]}`, o: with(settings, Bandwidth()), plugins: "portmap aws-cni bandwidth"},
		"its versions":    {there: `{"cniVersion":"0.4.0","cniVersions":["0.4.0","1.0.0"],"plugins":[{"type":"aws-cni"},` + istio + `]}`, version: "1.0.0", plugins: "aws-cni portmap istio-cni"},
		"no version":      {there: `{"cniVersion":7,"plugins":[{"type":"aws-cni"},` + istio + `]}`, version: "0.4.0", plugins: "aws-cni portmap istio-cni"},
		"twice":           {there: `{"cniVersion":"1.0.0","plugins":[` + other + `,{"type":"aws-cni"},{"type":"aws-cni"}]}`, version: "1.0.0", plugins: "first aws-cni portmap"},
		"another network": {there: `{"cniVersion":"1.0.0","name":"x","plugins":[{"type":"aws-cni"},` + other + `]}`, version: "1.0.0", plugins: "aws-cni portmap first"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Chained == nil {
				c.o = settings
			}
			got := must.Get(Merge([]byte(c.there), c.o))(t)
			version, plugins := read(t, got)
			if want := map[bool]string{true: "1.1.0", false: c.version}[c.version == ""]; version != want || strings.Join(plugins, " ") != c.plugins {
				t.Errorf("version %s, plugins %v; expected %s, %s\n%s", version, plugins, want, c.plugins, got)
			}
			if again, err := Merge(got, c.o); err != nil || string(again) != string(got) {
				t.Errorf("the second time it is another: %v\n%s\n%s", err, got, again)
			}
		})
	}
	got := must.Get(Merge([]byte(chained(","+istio)), settings))(t)
	for _, want := range []string{"12345678901234567890", `"disableCheck": true`, `"mtu": "9001"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is lost:\n%s", want, got)
		}
	}
	if got, _ := Merge([]byte(strings.Replace(ours, `"snat": true`, `"snat": false`, 1)), settings); !strings.Contains(string(got), `"snat": false`) {
		t.Errorf("somebody's portmap is lost:\n%s", got)
	}
}

// What cannot be understood is not replaced.
func TestMergeKeepsWhatItCannotRead(t *testing.T) {
	for there, want := range map[string]string{
		`{"plugins":[{"type":"aws-cni"},`:     "JSON object",
		`[]`:                                  "JSON object",
		`null`:                                "plugins: expected a list",
		`{"name":"aws-cni","type":"aws-cni"}`: "plugins: expected a list",
		`{"plugins":[{"name":"x"}]}`:          "plugins[0]: expected an object with a type",
		`{"plugins":[{"type":"aws-cni"},"istio-cni"]}`: "plugins[1]",
		`{"plugins":[{"type":"ptp"}]}`:                 "another network's",
	} {
		if got, err := Merge([]byte(there), settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q\n%s", there, err, want, got)
		}
	}
}

// FuzzMerge: nothing in the list that is there makes it panic, what comes of it is a list, and the same list again.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(upstream, "")), true)
	f.Add([]byte(fmt.Sprintf(upstream, `,{"type":"x","<":"\u0000"}`)), false)
	f.Add(Make(with(settings, Bandwidth(), NoIPv6())), false)
	f.Add([]byte(`{"cniVersion":"","cniVersions":3,"plugins":[{"type":"aws-cni","type":"b"},{"type":"tuning"}],"plugins":[]}`), true)
	f.Fuzz(func(t *testing.T, there []byte, on bool) {
		o := settings
		if on {
			o = with(o, Bandwidth(), NoIPv6())
		}
		got, err := Merge(there, o)
		if err != nil {
			return
		}
		var l struct{ Plugins []map[string]any }
		if err := json.Unmarshal(got, &l); err != nil || !slices.ContainsFunc(l.Plugins, func(p map[string]any) bool { return p["type"] == plugin }) {
			t.Fatalf("%v: no list with %s:\n%s", err, plugin, got)
		}
		if again, err := Merge(got, o); err != nil || string(again) != string(got) {
			t.Fatalf("the second time it is another: %v\n%s\n%s", err, got, again)
		}
	})
}

// A runtime does not read the file under the name that it has while it is written.
func TestNameOnTheWay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{Name, Name + ".new"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), Make(settings), 0o600))
	}
	got, err := libcni.ConfFiles(dir, []string{".conf", ".conflist", ".json"})
	if err != nil || len(got) != 1 || filepath.Base(got[0]) != Name {
		t.Errorf("a runtime reads %v, %v", got, err)
	}
}
