package systems

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/enilab/enilab/internal/must"
)

// getDescription is one of a plugin that can be built or taken out of the image IMAGE, of which "" is none.
func getDescription(image string) []byte {
	if image != "" {
		image = "image: \"" + image + "\", "
	}
	return []byte(`name: mini
get:
  {` + image + `module: example.com/mini, makefile: Makefile, packages: {mini: cmd/mini, later: cmd/later},
   files: [{from: misc/list, to: 10-mini.conflist}, {from: "config/v${MINOR}/m.yaml", to: m.yaml}, {from: config/master/m.yaml, to: m.yaml}, {from: run.sh, to: run.sh, optional: true}]}
files: [{from: mini, to: /opt/cni/bin/mini, image: /app/mini}]
conflist: {name: 10-mini.conflist, from: 10-mini.conflist, image: /app/list}
versions: [{from: 1.0.0, before: 2.0.0}]
`)
}

// miniList is the conflist of the plugin.
const miniList = `{"cniVersion": "1.0.0", "name": "mini", "plugins": [{"type": "mini"}]}`

// release are the sources of a version, over which changes are made: an empty text takes a file away.
func release(changes ...string) map[string]string {
	out := map[string]string{"go.mod": miniMod, "Makefile": "LDFLAGS ?= -X main.version=$(VERSION)\n", "misc/list": miniList, "config/master/m.yaml": "of master\n",
		"cmd/mini/main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n"}
	for i := 0; i < len(changes); i += 2 {
		if out[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(out, changes[i])
		}
	}
	return out
}

// proxy makes a Go module proxy of these versions of example.com/mini, and has the go command ask it alone.
func proxy(t *testing.T, versions map[string]map[string]string) {
	t.Helper()
	folder := t.TempDir()
	at := filepath.Join(folder, "example.com", "mini", "@v")
	var list strings.Builder
	for _, v := range slices.Sorted(maps.Keys(versions)) {
		var archive bytes.Buffer
		z := zip.NewWriter(&archive)
		for name, text := range versions[v] {
			w := must.Get(z.Create("example.com/mini@v" + v + "/" + name))(t)
			must.Get(w.Write([]byte(text)))(t)
		}
		must.Do(t, z.Close())
		list.WriteString("v" + v + "\n")
		write(t, filepath.Join(at, "v"+v+".info"), []byte(`{"Version": "v`+v+`"}`), 0o644)
		write(t, filepath.Join(at, "v"+v+".mod"), []byte(miniMod), 0o644)
		write(t, filepath.Join(at, "v"+v+".zip"), archive.Bytes(), 0o644)
	}
	write(t, filepath.Join(at, "list"), []byte(list.String()), 0o644)
	t.Setenv("GOPROXY", "file://"+folder)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -modcacherw"))
}

// getPlace is a place with the description of that image.
func getPlace(t *testing.T, image string) Options {
	t.Helper()
	o := place(t)
	write(t, filepath.Join(o.Folder, "systems", "mini.yaml"), getDescription(image), 0o644)
	return o
}

// left are the names in the folder of a system, but for locks: these stay.
func left(t *testing.T, o Options) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(o.Systems, "mini"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	return names
}

// notFetched is a get that fails with all these words, and leaves nothing.
func notFetched(t *testing.T, version string, from Origin, unavailable bool, o Options, words ...string) {
	t.Helper()
	s, _, err := Fetch(context.Background(), "mini@"+version, from, "", o)
	if err == nil {
		t.Errorf("%s: expected an error, found %s", version, s.Folder)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: expected %q in the error, found %v", version, w, err)
		}
	}
	if strings.Contains(err.Error(), ".get-") {
		t.Errorf("%s: the error names a folder that nobody will see: %v", version, err)
	}
	if _, is := errors.AsType[*Unavailable](err); is != unavailable {
		t.Errorf("%s: unavailable is %v, expected %v: %v", version, is, unavailable, err)
	}
	if names := left(t, o); len(names) > 0 {
		t.Errorf("%s: a get that failed left %v", version, names)
	}
}

// TestGetSource: a version is built as its release is, and is then found.
func TestGetSource(t *testing.T) {
	onLinux(t)
	proxy(t, map[string]map[string]string{"1.2.3": release("config/v1.2/m.yaml", "of 1.2\n", "run.sh", "#!/bin/sh\n"), "1.2.4": release(),
		"1.3.0": release("misc/list", ""), "1.3.1": release("config/master/m.yaml", ""), "1.3.2": release("cmd/mini/main.go", "", "cmd/mini/none.go", "package main\n"),
		"1.3.3": release("Makefile", "LDFLAGS = -X main.version=$(NAME)\n"), "1.3.4": release("Makefile", "all:\n"), "1.3.5": release("misc/list", "{"),
		"1.3.6": release("cmd/mini/main.go", ""), "1.3.7": release("misc/list", `{"plugins": [{"type": "later"}]}`), "1.3.8": release("go.mod", ""), "2.0.0": release()})
	o := getPlace(t, "")
	refused(t, "mini@1.2.3", o, "version 1.2.3 is not there; to fetch it: enilab systems get mini@1.2.3")
	get := func(text string) (*System, bool) {
		t.Helper()
		s, fetched, err := Fetch(context.Background(), text, FromAny, "", o)
		must.Do(t, err)
		return s, fetched
	}
	s, fetched := get("mini@v1.2.3")
	if !fetched || s.Folder != filepath.Join(o.Systems, "mini", "1.2.3") || says(t, s) != "v1.2.3" {
		t.Errorf("fetched %v into %s; it says %q, expected v1.2.3 by the release's linker flags", fetched, s.Folder, says(t, s))
	}
	var names []string
	entries := must.Get(os.ReadDir(s.Folder))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"10-mini.conflist", "m.yaml", "mini", "run.sh"}; !slices.Equal(names, want) {
		t.Errorf("expected %v, found %v", want, names)
	}
	if text, err := os.ReadFile(filepath.Join(s.Folder, "m.yaml")); err != nil || string(text) != "of 1.2\n" {
		t.Errorf("expected the manifest of 1.2, which comes before master's, found %q, %v", text, err)
	}
	if found := find(t, "mini@1.2.3", o); found.Folder != s.Folder {
		t.Errorf("found in %s", found.Folder)
	}
	if _, fetched := get("mini@1.2.3"); fetched {
		t.Error("fetched twice")
	}
	if s, fetched := get("mini@1.2"); fetched || s.Version != "1.2.3" {
		t.Errorf("1.2: 1.2.3 is at hand, found %s, fetched %v", s.Version, fetched)
	}
	if s, fetched := get("mini@1.0.0=" + s.Folder); fetched || s.Version != "1.0.0" {
		t.Errorf("a folder is left as it is: fetched %v, %s", fetched, s.Version)
	}
	// One that lost a file since is told, and not fetched over.
	must.Do(t, os.Remove(filepath.Join(s.Folder, "mini")))
	if _, _, err := Fetch(context.Background(), "mini@1.2.3", FromAny, "", o); err == nil || !strings.Contains(err.Error(), "remove "+s.Folder+", and get it again") {
		t.Errorf("a folder that is not whole: %v", err)
	}
	d := must.Get(Describe("mini", o))(t)
	if list, err := Available(context.Background(), d, o); err != nil || len(list) != 2 || !strings.Contains(list[0], "lists 1.3.8, 1.3.7, ") || strings.Contains(list[0], "2.0.0") || !strings.Contains(list[1], ": 1.2.3") {
		t.Errorf("available: %v, %v", list, err)
	}

	bare := getPlace(t, "")
	notFetched(t, "1.3.0", FromAny, false, bare, "example.com/mini 1.3.0 has no misc/list for 10-mini.conflist")
	notFetched(t, "1.3.1", FromAny, false, bare, "example.com/mini 1.3.1 has no config/v1.3/m.yaml and no config/master/m.yaml for m.yaml")
	notFetched(t, "1.3.2", FromAny, true, bare, "build mini of example.com/mini 1.3.2", "function main is undeclared")
	notFetched(t, "1.3.3", FromAny, false, bare, "expected linker flags of which only the version is left open, found $(NAME)")
	notFetched(t, "1.3.4", FromAny, false, bare, "expected a line LDFLAGS = …, found none")
	notFetched(t, "1.3.5", FromAny, false, bare, "not whole, and was thrown away", "expected a CNI network configuration list")
	notFetched(t, "1.3.6", FromAny, false, bare, "not whole, and was thrown away", "expected the file mini for version 1.3.6, found 10-mini.conflist, m.yaml")
	notFetched(t, "1.3.7", FromAny, false, bare, "calls the plugin later, which the folder does not have")
	notFetched(t, "1.3.8", FromAny, false, bare, "older than Go modules")
	notFetched(t, "1.9.9", FromAny, false, bare, "the Go module proxy has no example.com/mini 1.9.9 (it lists 2.0.0, 1.3.8, ")
	notFetched(t, "1.9", FromAny, false, bare, "the Go module proxy lists no version of 1.9")
	notFetched(t, "2.0.0", FromAny, false, bare, "version 2.0.0 is in no range")
	notFetched(t, "1.2.3", FromImage, false, bare, "names no image: the key get.image")
	foreign := bare
	foreign.Arch = "mips"
	notFetched(t, "1.2.3", FromAny, false, foreign, `no architecture "mips"`)
	t.Setenv("GOPROXY", "file://"+t.TempDir())
	t.Setenv("GOMODCACHE", t.TempDir())
	notFetched(t, "1.2.3", FromAny, true, bare, "is the Go module proxy there")
	t.Setenv("PATH", t.TempDir())
	notFetched(t, "1.2.3", FromAny, true, bare, "executable file not found", "go in PATH?")
}

// TestGetImage: a version is taken out of its image where there are no sources, or somebody asks for it.
func TestGetImage(t *testing.T) {
	onLinux(t)
	proxy(t, map[string]map[string]string{"1.0.0": release()})
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push := func(tag string, image v1.Image) {
		t.Helper()
		r, err := name.ParseReference(host + "/mini:" + tag)
		if err == nil {
			err = remote.Write(r, image)
		}
		must.Do(t, err)
	}
	good := layerOf(t, "app/mini", string(native()), "app/list", miniList)
	push("v1.1.0", imageOf(t, runtime.GOARCH, "", good))
	push("v1.1.1", imageOf(t, runtime.GOARCH, "", layerOf(t, "app/list", miniList)))
	push("v1.1.2", imageOf(t, runtime.GOARCH, "", layerOf(t, "app/mini", string(native()))))
	push("v1.1.3", imageOf(t, runtime.GOARCH, "", layerOf(t, "app/mini", string(program(other())), "app/list", miniList)))
	push("v1.1.4", imageOf(t, other(), "", good))
	push("mirror-1.1.9", imageOf(t, runtime.GOARCH, "", good))

	o := getPlace(t, host+"/mini:v${VERSION}")
	var told []string
	o.Tell = func(text string) { told = append(told, text) }
	s, fetched, err := Fetch(context.Background(), "mini@1.1.0", FromAny, "", o)
	if err != nil || !fetched || s.Folder != filepath.Join(o.Systems, "mini", "1.1.0") {
		t.Fatalf("1.1.0: %v, fetched %v, %+v", err, fetched, s)
	}
	if !slices.ContainsFunc(told, func(s string) bool {
		return strings.Contains(s, "the Go module proxy has no example.com/mini 1.1.0 (it lists 1.0.0)")
	}) {
		t.Errorf("it was not told why the image was taken: %q", told)
	}
	if _, fetched, err := Fetch(context.Background(), "mini@1.1.9", FromAny, host+"/mini:mirror-${VERSION}", o); err != nil || !fetched {
		t.Errorf("an image of one's own: %v", err)
	}
	bare := getPlace(t, host+"/mini:v${VERSION}")
	notFetched(t, "1.1.1", FromImage, false, bare, "not whole, and was thrown away: expected the file mini for version 1.1.1, found 10-mini.conflist")
	notFetched(t, "1.1.2", FromImage, false, bare, "expected the conflist 10-mini.conflist for version 1.1.2, found mini")
	notFetched(t, "1.1.3", FromImage, false, bare, "mini: expected an executable for linux/"+runtime.GOARCH, "found one for")
	notFetched(t, "1.1.4", FromImage, true, bare, "expected an image for linux/"+runtime.GOARCH)
	notFetched(t, "1.1.5", FromImage, false, bare, "the registry has no such image", "/mini:v1.1.5")
	notFetched(t, "1.1.5", FromAny, false, bare, "it lists 1.0.0", "the registry has no such image")
	server.Close()
	notFetched(t, "1.1.0", FromImage, true, bare, "/mini:v1.1.0", "connection refused", "docker login")
}

// TestGetTwice: of two gets at once one fetches, and the other waits and finds.
func TestGetTwice(t *testing.T) {
	onLinux(t)
	proxy(t, map[string]map[string]string{"1.2.3": release()})
	o := getPlace(t, "")
	// What a get leaves that was killed is removed by the next one; a pre-release's is not this version's.
	for _, d := range []string{".get-1.2.3+17", ".get-1.2.3-rc1+17"} {
		must.Do(t, os.MkdirAll(filepath.Join(o.Systems, "mini", d), 0o755))
	}
	const many = 4
	var all sync.WaitGroup
	fetched, errs := make([]bool, many), make([]error, many)
	for i := range many {
		all.Go(func() { _, fetched[i], errs[i] = Fetch(context.Background(), "mini@1.2.3", FromAny, "", o) })
	}
	all.Wait()
	must.Do(t, errors.Join(errs...))
	if n := len(slices.DeleteFunc(slices.Clone(fetched), func(b bool) bool { return !b })); n != 1 {
		t.Errorf("%d of %d gets have fetched, expected 1", n, many)
	}
	if names := left(t, o); !slices.Equal(names, []string{".get-1.2.3-rc1+17", "1.2.3"}) {
		t.Errorf("left: %v", names)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Fetch(ctx, "mini@1.2.3", FromAny, "", getPlace(t, "")); err == nil {
		t.Error("a get that was cancelled has fetched")
	}
}
