package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/netns/node"
)

// client puts a client of Docker's into PATH that answers as the script says, and counts on nothing else.
func client(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("world kind needs Linux")
	}
	dir := t.TempDir()
	if script != "" {
		must.Do(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if script == "" {
		t.Setenv("PATH", dir)
	}
}

// Bad input and what a machine lacks: one sentence each, and nothing is made.
func TestUpSaysWhyNot(t *testing.T) {
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	const here = `case "$1 $2" in "version --format") echo ` + "amd64" + `;; "container ps"|"network ls") ;;`
	for name, c := range map[string]struct {
		script, want string
		lacking      bool
	}{
		"no docker":         {"", "no docker in PATH", true},
		"nobody answers":    {`echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock." >&2; exit 1`, "start Docker Engine", true},
		"no permission":     {`echo "permission denied while trying to connect to the Docker daemon socket" >&2; exit 1`, "may not talk to it", true},
		"name taken":        {`case "$1 $2" in "version --format") echo amd64;; "container ps") echo 0123;; "network ls") ;; *) exit 9;; esac`, "enilab down --name t", false},
		"image not there":   {here + ` "image inspect") echo "Error: No such image: $5" >&2; exit 1;; "pull --quiet") echo "no such host" >&2; exit 1;; "network rm"|"container rm") exit 9;; *) exit 8;; esac`, "cannot be pulled", true},
		"image for another": {here + ` "image inspect") echo s390x;; *) exit 8;; esac`, "is for s390x, and this machine is amd64", false},
	} {
		t.Run(name, func(t *testing.T) {
			client(t, c.script)
			_, err := cluster.Up(context.Background(), cluster.Config{Name: "t", NodeImage: "example/node:1"})
			built := cluster.Parts{Image: func(context.Context, bool) ([]byte, string, error) {
				return nil, "", errors.New("the image was built first")
			}}
			_, run := Open(&sim.Cluster{Nodes: 1, Type: "m5.large"}, 1, nil, Config{Name: "t", NodeImage: "example/node:1", Parts: built})
			for _, err := range []error{err, run} {
				var l *cluster.Lacking
				if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &l) != c.lacking {
					t.Fatalf("%v (the machine is to blame: %v); expected %q, %v", err, errors.As(err, &l), c.want, c.lacking)
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one sentence: %q", err)
				}
			}
		})
	}
}
