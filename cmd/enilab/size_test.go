package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// maxSize bounds bin/enilab, in bytes. Whatever calls reflect's MethodByName, as text/template and html/template do, has the linker keep every
// method of every type there is: 36 MB more.
const maxSize = 40_000_000

// TestSize: what make build makes of this command is as small as README.md says.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary, which takes a minute with a cold cache")
	}
	makefile := must.Get(os.ReadFile(filepath.Join("..", "..", "Makefile")))(t)
	m := regexp.MustCompile(`(?m)^BUILD := CGO_ENABLED=0 go build (.*) -ldflags '(.*)'$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no line BUILD := CGO_ENABLED=0 go build … -ldflags '…': this test does not know any more how bin/enilab is built")
	}
	file := filepath.Join(t.TempDir(), "enilab")
	args := append([]string{"build"}, strings.Fields(string(m[1]))...)
	c := exec.Command("go", append(args, "-ldflags", string(m[2]), "-o", file, ".")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info := must.Get(os.Stat(file))(t)
	readme := must.Get(os.ReadFile(filepath.Join("..", "..", "README.md")))(t)
	said := regexp.MustCompile("`bin/enilab` \\((\\d+) MB\\)").FindSubmatch(readme)
	if said == nil {
		t.Fatal("README.md does not say any more how many MB `bin/enilab` has")
	}
	const near = 1_500_000 // other architectures and versions of Go differ by less
	if n, err := strconv.ParseInt(string(said[1]), 10, 64); err != nil || n*1_000_000 > info.Size()+near || n*1_000_000 < info.Size()-near {
		t.Errorf("README.md says that bin/enilab has %s MB, and it has %d bytes", said[1], info.Size())
	}
	if info.Size() > maxSize {
		t.Errorf("bin/enilab has %d bytes, expected at most %d: go build -tags grpcnotrace -ldflags=-dumpdep -o /dev/null ./cmd/enilab 2>&1 | grep ReflectMethod "+
			"says what keeps every method alive; go list -deps ./cmd/enilab what is new", info.Size(), maxSize)
	}
}
