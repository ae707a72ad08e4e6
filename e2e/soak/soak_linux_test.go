package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
)

// TestMain is also the helper of the laboratory's node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		if err := node.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKills: ENILAB_SOAK=full kills 500 daemons and 200 plugins during 1,000 ADDs and DELs, which takes some minutes; ENILAB_SEED is the
// seed, ENILAB_VERBOSE=1 tells what happens.
func TestKills(t *testing.T) {
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	o := Short(seed(t))
	if os.Getenv("ENILAB_SOAK") == "full" {
		o = Full(o.Seed)
	} else if testing.Short() {
		t.Skip("it takes half a minute")
	}
	story := tail{all: os.Getenv("ENILAB_VERBOSE") != ""}
	o.Log = story.add
	r, err := Run(parts(t), o)
	if r != nil {
		fmt.Println(r) // also without -v: these are the figures
	}
	if err != nil {
		t.Errorf("the laboratory broke: %v", err)
	}
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("what happened last:\n%s", &story)
	}
}

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("ENILAB_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ENILAB_SEED: %v", err)
	}
	return n
}

// parts builds the daemon and the plugin as they are shipped.
func parts(t *testing.T) netns.Parts {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", dir, "../../cmd/ipamd", "../../cmd/aws-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build ipamd and aws-cni: %v\n%s", err, out)
	}
	return netns.Parts{Self: []string{"soak.test", "node"}, Ipamd: filepath.Join(dir, "ipamd"), Plugin: filepath.Join(dir, "aws-cni"), Capabilities: netns.DaemonCapabilities()}
}

// tail keeps the last lines of a story.
type tail struct {
	all   bool
	lines []string
}

const tailLines = 400

func (s *tail) add(at time.Duration, text string) {
	line := fmt.Sprintf("%10.3fs  %s", at.Seconds(), text)
	if s.all {
		fmt.Println(line)
		return
	}
	if s.lines = append(s.lines, line); len(s.lines) > 2*tailLines {
		s.lines = append(s.lines[:0], s.lines[tailLines:]...)
	}
}

func (s *tail) String() string {
	out := ""
	for _, l := range s.lines {
		out += l + "\n"
	}
	return out
}
