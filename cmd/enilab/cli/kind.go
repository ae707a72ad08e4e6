package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// Names of clusters: of those that `enilab up` makes, and of those that a scenario runs on.
const (
	upName  = "enilab"
	runName = "enilab-run"
)

// kindBinary is the binary that has world kind: cmd/enilab-kind.
const kindBinary = "enilab-kind"

// needKind goes on in the binary that has world kind, unless this one does: same process, arguments, environment and descriptors.
func (l *cli) needKind() error {
	if l.kind != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	path, err := findKind(filepath.Dir(self))
	if err != nil {
		return err
	}
	if l.interrupted() { // it would not know
		return &exit{code: runner.ExitInterrupted}
	}
	err = syscall.Exec(path, append([]string{path}, l.args...), os.Environ())
	return &exit{runner.ExitLacking, fmt.Sprintf("execute %s, which has world kind: %v", path, err)}
}

// findKind finds the binary in this folder or in PATH.
func findKind(dir string) (path string, err error) {
	if path, err := exec.LookPath(filepath.Join(dir, kindBinary)); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(kindBinary); err == nil {
		return path, nil
	}
	return "", &exit{runner.ExitLacking, fmt.Sprintf("world kind needs the binary %s, which is neither in %s nor in PATH: "+
		"in a clone make build makes it, and bin/enilab finds it; elsewhere go install github.com/enilab/enilab/cmd/%[1]s@latest", kindBinary, dir)}
}

// kindError is an error of world kind with its exit code: 3 when this machine lacks something, otherwise 2.
func (l *cli) kindError(err error) error {
	if l.kind.Lacks(err) {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return &exit{runner.ExitBad, err.Error()}
}

// kindPlace is world kind on this machine, or what the machine lacks.
func (l *cli) kindPlace(name string, mutants bool) (*runner.Place, error) {
	if err := l.needKind(); err != nil {
		return nil, err
	}
	if err := l.kind.Available(l.context()); err != nil {
		return nil, l.kindError(err)
	}
	var log func(time.Duration, string)
	switch {
	case l.verbose() != nil:
		log = func(at time.Duration, text string) {
			when := ""
			if at > 0 {
				when = fmt.Sprintf("%.3fs", at.Seconds())
			}
			fmt.Fprintf(l.err, "%11s  %s\n", when, text)
		}
	case terminal(l.err): // making a cluster takes a minute or two
		log = func(at time.Duration, text string) {
			if at == 0 {
				fmt.Fprintln(l.err, text)
			}
		}
	}
	p, err := l.kind.Place(l.context(), name, mutants, log, func() bool { return l.interrupted() && l.leave(name) })
	if err != nil {
		return nil, l.kindError(err)
	}
	return p, nil
}

// kindPossible says what stands in the way of clusters of that name, one after another.
func (l *cli) kindPossible(name string) error {
	if err := l.kind.Possible(l.context(), name, func(text string) { fmt.Fprintln(l.err, text) }); err != nil {
		return l.kindError(err)
	}
	return nil
}

// tellCluster says where a scenario's cluster is.
func (l *cli) tellCluster(w runner.World) {
	name, kubeconfig := l.kind.Cluster(w)
	fmt.Fprintf(l.err, "the cluster is up, at %s of the scenario; look around in another terminal:\n%sControl-C, or enilab down --name %s, ends it\n",
		runner.Short(w.Now()), lookAround(name, kubeconfig), name)
}

// lookAround is what to type in a cluster, a line each.
func lookAround(name, kubeconfig string) string {
	return fmt.Sprintf(`  export KUBECONFIG=%s
  kubectl get pods -A -o wide                    without kubectl: docker exec %[2]s-control-plane kubectl get pods -A -o wide
  docker exec %[2]s-worker ip rule
  docker exec %[2]s-worker ip route show table 2
`, kubeconfig, name)
}
