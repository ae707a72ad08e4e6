package image

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// budget is what an image of one platform may weigh, compressed.
const budget = 40 << 20

// TestBinariesAreStaticAndStart: the real binaries for this machine's architecture are static, of their platform, and
// start.
func TestBinariesAreStaticAndStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles and links the daemon and six plugins")
	}
	if !slices.Contains(Platforms(), Host()) {
		t.Skip("there are no images for " + Host())
	}
	p := must.Get(v1.ParsePlatform(Host()))(t)
	dir := filepath.Join(t.TempDir(), p.Architecture)
	o := Options{Roots: pemFile(t, 1)}
	must.Get(o.check())(t)
	var compressed int64
	img := must.Get(o.platform(t.Context(), p, dir, []byte("roots"), compile))(t)
	m := must.Get(img.Manifest())(t)
	for _, l := range m.Layers {
		compressed += l.Size
	}
	t.Logf("compressed: %.1f MiB", mib(compressed))
	if compressed > budget {
		t.Errorf("the image has %d bytes, expected at most %d", compressed, budget)
	}
	found, err := built(dir)
	if err != nil || len(found) != 7 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, f := range found {
		checkBinary(t, f)
	}
	if runtime.GOOS == "linux" {
		checkRuns(t, filepath.Join(dir, "ipamd"), []string{"--version"}, nil, "records and local protocol")
		checkRuns(t, filepath.Join(dir, "cni", "portmap"), nil, []string{"CNI_COMMAND=VERSION"}, "cniVersion")
	}
}

func checkBinary(t *testing.T, f file) {
	t.Helper()
	b, err := buildinfo.ReadFile(f.from)
	if err != nil {
		t.Errorf("%s: %v", f.at, err)
		return
	}
	have := map[string]string{}
	for _, s := range b.Settings {
		have[s.Key] = s.Value
	}
	if have["CGO_ENABLED"] != "0" || have["-trimpath"] != "true" || have["vcs.revision"] != "" || "linux/"+have["GOARCH"] != Host() {
		t.Errorf("%s was built with %v", f.at, have)
	}
	e, err := elf.Open(f.from)
	if err != nil {
		t.Errorf("%s: %v", f.at, err)
		return
	}
	defer e.Close()
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker, which the image has not", f.at)
		}
	}
}

// checkRuns runs a binary of the image with no environment but that one.
func checkRuns(t *testing.T, binary string, args, env []string, want string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), binary, args...)
	c.Env = append([]string{"NOTHING=else"}, env...)
	c.Stdin = strings.NewReader(`{"cniVersion":"1.0.0"}`)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%s %v: %v: %s", binary, args, err, out)
	}
}

// TestNotTheModule: elsewhere there is nothing to build from, and one sentence says so.
func TestNotTheModule(t *testing.T) {
	o := Options{Dir: t.TempDir(), Platforms: []string{"linux/amd64"}, Roots: pemFile(t, 1)}
	err := Write(&bytes.Buffer{}, o)
	if err == nil || !strings.Contains(err.Error(), "expected a folder of module github.com/enilab/enilab") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// TestCallersEnvironmentMakesNoOtherBinary: it is passed on, for proxies and caches, but for what
// decides what is built.
func TestCallersEnvironmentMakesNoOtherBinary(t *testing.T) {
	written := filepath.Join(t.TempDir(), "env") // as by `go env -w`, which an empty variable does not hide
	must.Do(t, os.WriteFile(written, []byte("GOFLAGS=-tags=theirs\n"), 0o600))
	t.Setenv("GOENV", written)
	t.Setenv("GOPROXY", "https://proxy.example")
	for name, value := range map[string]string{"CGO_ENABLED": "1", "GOOS": "plan9", "GOARCH": "386",
		"GOAMD64": "v3", "GOARM64": "v9.0", "GOFLAGS": "", "GOEXPERIMENT": "nosuch", "GOWORK": "/theirs/go.work"} {
		t.Setenv(name, value)
	}
	for platform, level := range map[string]string{"linux/amd64": "GOAMD64=v1", "linux/arm64": "GOARM64=v8.0"} {
		p := must.Get(v1.ParsePlatform(platform))(t)
		name, value, _ := strings.Cut(level, "=")
		names := []string{"GOPROXY", "GOOS", "GOARCH", "CGO_ENABLED", name, "GOFLAGS", "GOEXPERIMENT", "GOWORK"}
		want := []string{"https://proxy.example", p.OS, p.Architecture, "0", value, "-trimpath", "", "off"}
		o := Options{Dir: t.TempDir()}
		text := must.Get(o.goCommand(t.Context(), p, append([]string{"env"}, names...)...))(t)
		if have := strings.Split(text, "\n"); !slices.Equal(have, want) {
			t.Errorf("%s: %q, expected %q", platform, have, want)
		}
	}
}

// TestImageIsBuiltWithTheFlagsOfMake: the image's binaries are those of `make build`.
func TestImageIsBuiltWithTheFlagsOfMake(t *testing.T) {
	make := must.Get(os.ReadFile("../../../Makefile"))(t)
	if !strings.Contains(string(make), "CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '-s -w'") {
		t.Error("the Makefile builds with other flags than compile does: change both")
	}
}

// TestPluginDir: `ipamd init` looks for the plugins where the image has them.
func TestPluginDir(t *testing.T) {
	s, _ := settings.Read(func(string) (string, bool) { return "", false })
	for _, v := range s.Values {
		if v.Name == "ENILAB_PLUGIN_DIR" && v.Value == pluginDir {
			return
		}
	}
	t.Errorf("ENILAB_PLUGIN_DIR is not %s unless somebody sets it", pluginDir)
}

// TestChainedPluginsAreToolsOfThisModule: each is a tool of this module, so that its version is this module's word.
func TestChainedPluginsAreToolsOfThisModule(t *testing.T) {
	c := exec.CommandContext(t.Context(), "go", "list", "tool")
	c.Env = append(os.Environ(), "GOFLAGS=")
	out := must.Get(c.Output())(t)
	tools := strings.Fields(string(out))
	for _, p := range chained {
		if !slices.Contains(tools, plugins+"/plugins/"+p) {
			t.Errorf("%s is no tool of this module (go.mod); there are %v", p, tools)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]string{"": "", " \n": "", "a\nb\n": ": a; b", strings.Repeat("x", maxExcerpt+1): ": " + strings.Repeat("x", maxExcerpt) + "…"} {
		if have := excerpt(text); have != want {
			t.Errorf("%q: %q, expected %q", text, have, want)
		}
	}
	for dir, want := range map[string]string{"": "the working directory", "/src": "/src"} {
		if have := (&Options{Dir: dir}).folder(); have != want {
			t.Errorf("%q: %q", dir, have)
		}
	}
}
