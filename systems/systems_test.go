package systems

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/actions"
)

// program is an executable for an architecture, as far as its first bytes say.
func program(arch string) []byte {
	m := machines[arch]
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(m.machine), Version: 1, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF")
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(m.class), byte(m.data), 1
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// native is one for this machine.
func native() []byte { return program(runtime.GOARCH) }

// write makes a file and its folders.
func write(t *testing.T, file string, data []byte, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, data, mode))
	if err := os.Chmod(file, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

// place is a working folder, a folder of systems and a cache, all empty.
func place(t *testing.T) Options {
	t.Helper()
	return Options{Folder: t.TempDir(), Systems: t.TempDir(), Cache: t.TempDir()}
}

func find(t *testing.T, text string, o Options) *System {
	t.Helper()
	return must.Get(Find(context.Background(), text, o))(t)
}

// refused is the error of a system that cannot be had: it has all these words.
func refused(t *testing.T, text string, o Options, words ...string) {
	t.Helper()
	s, err := Find(context.Background(), text, o)
	if err == nil {
		t.Errorf("%s: expected an error, found %s %s in %s", text, s.Name, s.Version, s.Folder)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: expected %q in the error, found %v", text, w, err)
		}
	}
}

// filled are placeholders' values that tell which is which.
func filled() Words {
	w := Words{}
	for _, p := range Placeholders {
		w[p.Name] = "<" + p.Name + ">"
	}
	w["POD_RANGES"] = `[{"subnet": "10.0.0.32/28"}]`
	return w
}

// aws is a folder of amazon-vpc-cni-k8s as a build of it leaves one.
func aws(t *testing.T, folder, manifest string, plugins ...string) {
	t.Helper()
	for _, f := range append([]string{"aws-k8s-agent", "aws-cni"}, plugins...) {
		write(t, filepath.Join(folder, f), native(), 0o755)
	}
	write(t, filepath.Join(folder, "10-aws.conflist"), []byte(`{"cniVersion": "0.4.0", "name": "aws-cni", "plugins": [
  {"type": "aws-cni", "vethPrefix": "__VETHPREFIX__", "mtu": "__MTU__", "pluginLogFile": "__PLUGINLOGFILE__"},
  {"type": "egress-cni", "enabled": "__EGRESSPLUGINENABLED__", "ipam": {"type": "host-local"}},
  {"type": "portmap", "snat": true}]}`), 0o644)
	if manifest != "" {
		write(t, filepath.Join(folder, "aws-k8s-cni.yaml"), []byte(manifest), 0o644)
	}
}

func TestEmbedded(t *testing.T) {
	if want, got := []string{"amazon-vpc-cni-k8s", "enilab", "ptp"}, Embedded(); !slices.Equal(got, want) {
		t.Errorf("expected %v, found %v", want, got)
	}
	for _, name := range Embedded() {
		d, err := Describe(name, place(t))
		if err != nil {
			t.Error(err)
		} else if d.Name != name || d.About == "" {
			t.Errorf("%s: name %q, about %q", name, d.Name, d.About)
		}
	}
}

// TestAmazon: what differs between versions, as upstream's sources have it.
func TestAmazon(t *testing.T) {
	d := must.Get(Describe("amazon-vpc-cni-k8s", place(t)))(t)
	const own, before, after = "[stop files plugins conflist start serves]", "[stop files init plugins start serves conflist]", "[stop files start serves plugins conflist]"
	for _, c := range []struct{ version, runtime, ec2, kubernetes, serves, steps, plugin, confTo string }{
		{"1.3.0", "docker", "name", "in-cluster", "127.0.0.1:50051", own, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.5.1", "docker", "name", "kubeconfig", "127.0.0.1:50051", own, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.5.2", "docker", "name", "kubeconfig", "127.0.0.1:50051", after, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.5.3", "docker", "name", "kubeconfig", "127.0.0.1:50051", own, "/app/aws-cni", "/app"},
		{"1.5.7", "docker", "name", "kubeconfig", "127.0.0.1:50051", own, "/app/aws-cni", "/app"},
		{"1.6.4", "cri-v1alpha2", "name", "kubeconfig", "127.0.0.1:50051", after, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.7.10", "cri-v1alpha2", "name", "kubeconfig", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.8.0", "cri-v1alpha2", "name", "in-cluster", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.11.5", "cri-v1alpha2", "name", "in-cluster", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.12.0", "none", "name", "in-cluster", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.13.0", "none", "endpoint", "kubeconfig", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.22.4", "none", "endpoint", "kubeconfig", "127.0.0.1:50051", before, "/opt/cni/bin/aws-cni", ConfigFolder},
		{"1.23.0", "none", "endpoint", "kubeconfig", "/var/run/aws-node/ipamd.sock", before, "/opt/cni/bin/aws-cni", ConfigFolder},
	} {
		s, err := d.Of(c.version)
		if err != nil {
			t.Error(err)
			continue
		}
		steps := "["
		for i, st := range s.Upgrade.Steps {
			steps += strings.Repeat(" ", min(i, 1)) + string(st)
		}
		plugin := s.Files[slices.IndexFunc(s.Files, func(f File) bool { return f.From == "aws-cni" })].To
		got := []string{c.version, s.Runtime.API, s.EC2.By, s.Kubernetes.By, s.Daemon.Serves.TCP + s.Daemon.Serves.Unix, steps + "]", plugin, s.Conflist.To}
		if want := []string{c.version, c.runtime, c.ec2, c.kubernetes, c.serves, c.steps, c.plugin, c.confTo}; !slices.Equal(got, want) {
			t.Errorf("expected %q\nfound    %q", want, got)
		}
		if health := semver.Compare("v"+c.version, "v1.5.2") >= 0; s.Daemon.Serves.GRPC != health { // there was none before
			t.Errorf("%s: gRPC health is asked: expected %v", c.version, health)
		}
	}
	for _, v := range []string{"1.2.1", "1.24.0", "2.0.0"} {
		if _, err := d.Of(v); err == nil || !strings.Contains(err.Error(), "1.23.0 to before 1.24.0") {
			t.Errorf("%s: expected an error that names the ranges, found %v", v, err)
		}
	}
}

// TestOurs: the description is of what the worlds give our daemon themselves.
// TestBuildIsWhereItsVersionIs: an image of Amazon EKS is a build of a version, and what is said of that version is true of it.
func TestBuildIsWhereItsVersionIs(t *testing.T) {
	d := must.Get(Describe("amazon-vpc-cni-k8s", place(t)))(t)
	for i := range d.Ranges {
		version := d.Ranges[i].From
		want := must.Get(d.Of(version))(t)
		for _, build := range []string{version + "-eksbuild.1", version + "-rc1"} {
			got := must.Get(d.Of(build))(t)
			got.Version = version
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s is described otherwise than %s", build, version)
			}
		}
	}
}

func TestOurs(t *testing.T) {
	d := must.Get(Describe("enilab", place(t)))(t)
	s := must.Get(d.Of("0123456789ab"))(t)
	if !s.Books || s.Version != "0123456789ab" {
		t.Errorf("books %v, version %s", s.Books, s.Version)
	}
	settings := ipam.Settings{}
	known := slices.Sorted(maps.Keys(actions.Environment(&settings)))
	if got := slices.Sorted(slices.Values(s.Daemon.Settings)); !slices.Equal(got, known) {
		t.Errorf("settings: expected those of scenarios, %v\nfound %v", known, got)
	}
	env, err := s.Environment(filled(), map[string]string{"AWS_VPC_ENI_MTU": "1500", "ENABLE_POD_ENI": "false"})
	must.Do(t, err)
	if env["MY_NODE_NAME"] != "<NODE>" || env["AWS_VPC_ENI_MTU"] != "1500" || env["ENABLE_POD_ENI"] != "" {
		t.Errorf("environment: %v", env)
	}
	got := must.Get(s.Configuration(filled(), env))(t)
	if want := conflist.Make(conflist.Options{MTU: 1500}); !sameJSON(t, got, want) {
		t.Errorf("conflist: expected %s\nfound %s", want, got)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	must.Do(t, json.Unmarshal(a, &x))
	must.Do(t, json.Unmarshal(b, &y))
	return reflect.DeepEqual(x, y)
}

const newManifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: aws-node}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: aws-node}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 10
      initContainers:
        - name: aws-vpc-cni-init
          env: [{name: ENABLE_IPv6, value: "false"}]
      containers:
        - name: aws-node
          image: example.com/amazon-k8s-cni:v1.18.3
          env:
            - {name: ENABLE_IPv4, value: "true"}
            - {name: WARM_ENI_TARGET, value: "1"}
            - {name: AWS_VPC_K8S_CNI_LOG_FILE, value: /host/var/log/ipamd.log}
            - {name: BRACES, value: "a ${NODE} that stays"}
            - {name: TWICE, value: "$(WARM_ENI_TARGET) and $$(WARM_ENI_TARGET) and $(NOWHERE)"}
            - {name: MY_NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
            - {name: MY_POD_NAME, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
            - {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
            - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
          securityContext: {capabilities: {add: [NET_ADMIN], drop: [MKNOD]}}
          volumeMounts: [{mountPath: /host/opt/cni/bin, name: bin}, {mountPath: /run/xtables.lock, name: lock}]
        - name: aws-eks-nodeagent
      volumes: [{name: bin, hostPath: {path: /opt/cni/bin}}, {name: lock, hostPath: {path: /run/xtables.lock}}]
`

const oldManifest = `
kind: List
items:
- kind: DaemonSet
  metadata: {name: aws-node}
  spec:
    template:
      spec:
        containers:
        - name: aws-node
          env: [{name: WARM_ENI_TARGET, value: "2"}]
          securityContext: {privileged: true}
`

func TestManifest(t *testing.T) {
	o := place(t)
	aws(t, filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.18.3"), newManifest)
	aws(t, filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.9.1"), oldManifest)
	s := find(t, "amazon-vpc-cni-k8s@v1.18.3", o)
	env := must.Get(s.Environment(filled(), map[string]string{"WARM_ENI_TARGET": "0", "UNKNOWN": "1"}))(t)
	for k, want := range map[string]string{"ENABLE_IPv4": "true", "WARM_ENI_TARGET": "0", "AWS_VPC_K8S_CNI_LOG_FILE": "stdout", "BRACES": "a ${NODE} that stays",
		"TWICE": "1 and $(WARM_ENI_TARGET) and $(NOWHERE)", "MY_NODE_NAME": "<NODE>", "MY_POD_NAME": "<POD>", "HOST": "<ADDRESS>", "CPU": "", "UNKNOWN": "",
		"AWS_ENDPOINT_URL_EC2": "<EC2_URL>"} {
		if env[k] != want {
			t.Errorf("%s: expected %q, found %q", k, want, env[k])
		}
	}
	if c := s.Capabilities(); !slices.Contains(c, "CAP_NET_ADMIN") || !slices.Contains(c, "CAP_NET_RAW") || slices.Contains(c, "CAP_MKNOD") || slices.Contains(c, "CAP_SYS_ADMIN") {
		t.Errorf("capabilities: %v", c)
	}
	want := []Mount{{"/host/opt/cni/bin", "/opt/cni/bin"}, {"/host/etc/cni/net.d", "/etc/cni/net.d"}, {"/host/var/log/aws-routed-eni", "/var/log/aws-routed-eni"}}
	if !slices.Equal(s.AllMounts(), want) {
		t.Errorf("mounts: expected %v, found %v", want, s.AllMounts())
	}
	if s.Daemon.Stop.Grace.Seconds() != 10 {
		t.Errorf("grace: %v", s.Daemon.Stop.Grace)
	}
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "CPU comes from a resource") || !strings.Contains(notes, "egress-cni is taken out") {
		t.Errorf("notes: %v", notes)
	}

	// The image alone is changed: the older manifest's environment, the newer version's endpoints, binaries and configuration.
	mixed := s.WithManifest(find(t, "amazon-vpc-cni-k8s@1.9.1", o))
	env = must.Get(mixed.Environment(filled(), nil))(t)
	if _, set := env["ENABLE_IPv4"]; set || env["WARM_ENI_TARGET"] != "2" || env["AWS_ENDPOINT_URL_EC2"] != "<EC2_URL>" || mixed.Folder != s.Folder {
		t.Errorf("environment of an upgrade of the image alone: %v", env)
	}
	if mixed.Capabilities() != nil {
		t.Errorf("a privileged container has all capabilities, found %v", mixed.Capabilities())
	}
	if s.Manifest.From != "1.18.3" || mixed.Manifest.From != "1.9.1" {
		t.Errorf("manifests of %s and %s", s.Manifest.From, mixed.Manifest.From)
	}
}

func TestManifestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no set":          {"kind: Pod\n", "found no DaemonSet"},
		"other container": {strings.ReplaceAll(newManifest, "name: aws-node\n          image", "name: aws-nod\n          image"), "found aws-node/aws-nod, aws-node/aws-eks-nodeagent"},
		"no YAML":         {"kind: [", "did not find expected"},
		"wrong type":      {"kind: DaemonSet\nspec: 7\n", "cannot unmarshal"},
	} {
		o := place(t)
		aws(t, filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.18.3"), c.text)
		t.Run(name, func(t *testing.T) { refused(t, "amazon-vpc-cni-k8s@1.18.3", o, "aws-k8s-cni.yaml", c.want) })
	}
}

func TestWithoutManifest(t *testing.T) {
	o := place(t)
	aws(t, filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.23.0"), "", "portmap", "egress-cni", "host-local", "aws-vpc-cni-init")
	s := find(t, "amazon-vpc-cni-k8s@1.23", o)
	env := must.Get(s.Environment(filled(), nil))(t)
	if env["ENABLE_IPv4"] != "true" {
		t.Errorf("without a manifest the defaults are its environment: %v", env)
	}
	if want := []string{"aws-cni", "egress-cni", "portmap"}; !slices.Equal(s.Plugins, want) {
		t.Errorf("plugins: expected %v, found %v", want, s.Plugins)
	}
	if len(s.Daemon.Init) != 1 || len(s.Notes) != 2 || !strings.Contains(s.Notes[1], "the folder has no aws-vpc-cni") {
		t.Errorf("init %v, notes %q", s.Daemon.Init, s.Notes)
	}
	own, err := s.InitEnvironment(s.Daemon.Init[0], filled(), env)
	if err != nil || own["AWS_EC2_METADATA_SERVICE_ENDPOINT"] != "<METADATA_URL>" || own["ENABLE_IPv4"] != "" {
		t.Errorf("the init container's environment is not the daemon's: %v, %v", own, err)
	}
}

func TestConflist(t *testing.T) {
	o := place(t)
	folder := filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.23.0")
	aws(t, folder, newManifest)
	s := find(t, "amazon-vpc-cni-k8s@1.23.0", o)
	got := must.Get(s.Configuration(filled(), map[string]string{"AWS_VPC_ENI_MTU": `15"00`}))(t)
	want := `{"cniVersion": "0.4.0", "name": "aws-cni", "plugins": [
	  {"type": "aws-cni", "vethPrefix": "eni", "mtu": "15\"00", "pluginLogFile": "/var/log/aws-routed-eni/plugin.log"}]}`
	if !sameJSON(t, got, []byte(want)) {
		t.Errorf("expected %s\nfound %s", want, got)
	}
	for name, c := range map[string]struct{ text, want string }{
		"a plugin that is not there":         {`{"plugins": [{"type": "aws-cni"}, {"type": "bandwidth"}]}`, "calls the plugin bandwidth, which"},
		"the first one is never taken out":   {`{"plugins": [{"type": "portmap"}, {"type": "aws-cni"}]}`, "calls the plugin portmap, which"},
		"addresses from what is not there":   {`{"plugins": [{"type": "aws-cni", "ipam": {"type": "host-local"}}]}`, "aws-cni calls host-local for addresses"},
		"no JSON":                            {`{`, "expected a CNI network configuration list"},
		"no plugins":                         {`{"plugins": []}`, "an empty one"},
		"a plugin by its path":               {`{"plugins": [{"type": "../aws-cni"}]}`, "no proper one"},
		"a configuration that is a plugin's": {`{"type": "aws-cni"}`, "its plugins are no list"},
		"plugins that are no configurations": {`{"plugins": ["aws-cni"]}`, "no proper one"},
	} {
		write(t, filepath.Join(folder, "10-aws.conflist"), []byte(c.text), 0o644)
		t.Run(name, func(t *testing.T) { refused(t, "amazon-vpc-cni-k8s@1.23.0", o, "10-aws.conflist", c.want) })
	}
	must.Do(t, os.Remove(filepath.Join(folder, "10-aws.conflist")))
	refused(t, "amazon-vpc-cni-k8s@1.23.0", o, "expected the conflist", "10-aws.conflist", "aws-k8s-agent")
}

func TestBinaries(t *testing.T) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	o := place(t)
	folder := filepath.Join(o.Systems, "amazon-vpc-cni-k8s", "1.23.0")
	agent := filepath.Join(folder, "aws-k8s-agent")
	aws(t, folder, newManifest)
	for name, c := range map[string]struct {
		data  []byte
		mode  os.FileMode
		words []string
	}{
		"other architecture": {program(other), 0o755, []string{agent, "for linux/" + runtime.GOARCH, "found one for", "GOARCH=" + runtime.GOARCH}},
		"no ELF":             {[]byte("MZ, says Windows"), 0o755, []string{agent, "no ELF file"}},
		"empty":              {nil, 0o755, []string{agent, "no ELF file"}},
		"half an ELF":        {native()[:20], 0o755, []string{agent, "no ELF file"}},
		"not executable":     {native(), 0o644, []string{agent, "chmod +x"}},
	} {
		write(t, agent, c.data, c.mode)
		t.Run(name, func(t *testing.T) { refused(t, "amazon-vpc-cni-k8s@1.23.0", o, c.words...) })
	}
	write(t, agent, []byte("#!/bin/sh\n"), 0o755) // a script is its interpreter's
	find(t, "amazon-vpc-cni-k8s@1.23.0", o)
	must.Do(t, os.Remove(agent))
	refused(t, "amazon-vpc-cni-k8s@1.23.0", o, "expected the file "+agent, "found 10-aws.conflist, aws-cni, aws-k8s-cni.yaml")
	must.Do(t, os.Mkdir(agent, 0o755))
	refused(t, "amazon-vpc-cni-k8s@1.23.0", o, "expected a file, found a folder")

	asked := o
	asked.Arch = other
	for _, f := range []string{"aws-k8s-agent", "aws-cni"} {
		must.Do(t, os.RemoveAll(filepath.Join(folder, f)))
		write(t, filepath.Join(folder, f), program(other), 0o755)
	}
	find(t, "amazon-vpc-cni-k8s@1.23.0", asked)
	asked.Arch = "mips"
	refused(t, "amazon-vpc-cni-k8s@1.23.0", asked, `no architecture "mips"`)
}

func TestWhere(t *testing.T) {
	o := place(t)
	at := func(parts ...string) string {
		return filepath.Join(append([]string{o.Systems, "amazon-vpc-cni-k8s"}, parts...)...)
	}
	for _, v := range []string{"1.5.3", "1.5.10", "1.23.0", "1.23.1-rc1", "newest", "1.6"} {
		aws(t, at(v), "")
	}
	for text, want := range map[string]string{"1.5.3": "1.5.3", "v1.5.3": "1.5.3", "1.5": "1.5.10", "1": "1.23.0", "1.23.1-rc1": "1.23.1-rc1"} {
		if s := find(t, "amazon-vpc-cni-k8s@"+text, o); s.Version != want || s.Folder != at(want) {
			t.Errorf("%s: expected %s, found %s in %s", text, want, s.Version, s.Folder)
		}
	}
	refused(t, "amazon-vpc-cni-k8s@1.22.0", o, "version 1.22.0 is not there", "1.23.1-rc1, 1.23.0, 1.5.10, 1.5.3")
	refused(t, "amazon-vpc-cni-k8s@1.24.0", o, "is in no range", "1.23.0 to before 1.24.0")
	refused(t, "amazon-vpc-cni-k8s", o, "does not say which one")
	refused(t, "amazon-vpc-cni@1.5.3", o, "did you mean amazon-vpc-cni-k8s?")
	refused(t, "../etc@1.5.3", o, "expected NAME@WHERE")
	refused(t, "amazon-vpc-cni-k8s@./nowhere", o, "no folder or file ./nowhere")
	refused(t, "amazon-vpc-cni-k8s@nowhere", o, "no folder or file nowhere")
	refused(t, "amazon-vpc-cni-k8s@some/where", o, "no folder some/where", "docker.io/some/where")

	// A folder says its version by a file, its manifest's tag, or its name; or it is said for it.
	folder := filepath.Join(o.Folder, "build")
	aws(t, folder, "")
	refused(t, "amazon-vpc-cni-k8s@./build", o, "does not say its version", "amazon-vpc-cni-k8s@1.2.3=")
	if s := find(t, "amazon-vpc-cni-k8s@1.12.1=./build", o); s.Version != "1.12.1" || s.Folder != folder {
		t.Errorf("found %s in %s", s.Version, s.Folder)
	}
	refused(t, "amazon-vpc-cni-k8s@9.9.9=./build", o, "is in no range")
	write(t, filepath.Join(folder, "aws-k8s-cni.yaml"), []byte(newManifest), 0o644)
	if s := find(t, "amazon-vpc-cni-k8s@build", o); s.Version != "1.18.3" {
		t.Errorf("of the manifest's tag: found %s", s.Version)
	}
	write(t, filepath.Join(folder, "VERSION"), []byte("v1.20.0\n"), 0o644)
	if s := find(t, "amazon-vpc-cni-k8s@"+folder, o); s.Version != "1.20.0" {
		t.Errorf("of the file VERSION: found %s", s.Version)
	}
	write(t, filepath.Join(folder, "VERSION"), []byte("new\n"), 0o644)
	refused(t, "amazon-vpc-cni-k8s@build", o, "VERSION", `found "new"`)
	if s := find(t, "amazon-vpc-cni-k8s@"+at("1.5.10"), o); s.Version != "1.5.10" {
		t.Errorf("of the folder's name: found %s", s.Version)
	}

	t.Setenv("ENILAB_SYSTEMS", "")
	unset := o
	unset.Systems = ""
	refused(t, "amazon-vpc-cni-k8s@1.5.3", unset, "version 1.5.3 is not there; to fetch it: enilab systems get amazon-vpc-cni-k8s@1.5.3", "ENILAB_SYSTEMS names another place")
}

// TestDescriptions: the nearest description is the one.
func TestDescriptions(t *testing.T) {
	o := place(t)
	about := func(text string) []byte {
		return []byte("name: ptp\nabout: " + text + "\nconflist: {name: a.conflist, words: '{\"plugins\": [{\"type\": \"ptp\"}]}'}\n")
	}
	read := func(name, want string) {
		t.Helper()
		if d, err := Describe(name, o); err != nil || !strings.HasPrefix(d.About, want) {
			t.Errorf("%s: expected the one that is %q, found %+v, %v", name, want, d, err)
		}
	}
	read("ptp", "The reference plugins")
	write(t, filepath.Join(o.Systems, "ptp.yaml"), about("in ENILAB_SYSTEMS"), 0o644)
	read("ptp", "in ENILAB_SYSTEMS")
	write(t, filepath.Join(o.Folder, "systems", "ptp.yaml"), about("in the working folder"), 0o644)
	read("ptp", "in the working folder")
	write(t, filepath.Join(o.Folder, "other.yaml"), about("by its path"), 0o644)
	read("other.yaml", "by its path")
	write(t, filepath.Join(o.Folder, "systems", "mine.yaml"), about("of another name"), 0o644)
	if _, err := Describe("mine", o); err == nil || !strings.Contains(err.Error(), "expected the name mine") {
		t.Errorf("found %v", err)
	}
	list := must.Get(List(o))(t)
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	if want := []string{"amazon-vpc-cni-k8s", "enilab", "mine", "ptp"}; !slices.Equal(names, want) || list[2].Err == nil {
		t.Errorf("expected %v, the third with an error, found %v", want, names)
	}
}

// TestReal: whatever is in ENILAB_SYSTEMS can be had.
func TestReal(t *testing.T) {
	if os.Getenv("ENILAB_SYSTEMS") == "" {
		t.Skip("needs ENILAB_SYSTEMS, a folder of amazon-vpc-cni-k8s/VERSION")
	}
	list := must.Get(List(Options{Folder: t.TempDir()}))(t)
	for _, l := range list {
		for _, v := range l.AtHand {
			s, err := Find(context.Background(), l.Name+"@"+v, Options{})
			if err != nil {
				t.Error(err)
				continue
			}
			env, err := s.Environment(filled(), nil)
			if err != nil {
				t.Error(err)
			}
			data, err := s.Configuration(filled(), env)
			if err != nil || strings.Contains(string(data), "__") {
				t.Errorf("%s@%s: %v, %s", l.Name, v, err, data)
			}
		}
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s", program)
	}
}
