package operatorfaults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

// TestMain is also the node's helper: this binary is executed again for each node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "helper" {
		if err := node.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			unix.Exit(1)
		}
		unix.Exit(0)
	}
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue { // these tests wait more than they work
		_ = flag.Set("test.parallel", "8") // a number
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

var built string

// binaries are the real ones, built once into a folder that everybody may read: one test is nobody.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "enilab-trouble")
	if err != nil {
		return "", err
	}
	built = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", dir, "github.com/enilab/enilab/cmd/enilab", "github.com/enilab/enilab/cmd/ipamd", "github.com/enilab/enilab/cmd/aws-cni")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return dir, nil
})

// binary is the path of a program.
func binary(t *testing.T, name string) string {
	t.Helper()
	dir := must.Get(binaries())(t)
	return filepath.Join(dir, name)
}
