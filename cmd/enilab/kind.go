package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	kindworld "github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/runner"
)

// Names of clusters: of those that `enilab up` makes, and of those that a scenario runs on.
const (
	upName  = "enilab"
	runName = "enilab-run"
)

// kindError is an error of world kind with its exit code: 3 when this machine lacks something, otherwise 2.
func kindError(err error) error {
	if _, lacks := errors.AsType[*kindworld.Lacking](err); lacks {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return &exit{runner.ExitBad, err.Error()}
}

// kindParts are what a cluster's nodes run: built from the source that this binary, or the working directory, is in.
func kindParts() (kindworld.Parts, error) {
	here, err := os.Getwd()
	if err != nil {
		return kindworld.Parts{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return kindworld.Parts{}, err
	}
	dir, err := kindworld.Source(here, filepath.Dir(self))
	if err != nil {
		return kindworld.Parts{}, err
	}
	return kindworld.PartsIn(dir), nil
}

// kindPlace is world kind on this machine, or what the machine lacks.
func (l *cli) kindPlace(name string) (*runner.Place, error) {
	if err := kindworld.Available(l.context()); err != nil {
		return nil, err
	}
	parts, err := kindParts()
	if err != nil {
		return nil, err
	}
	cfg := kindworld.WorldConfig{Context: l.context(), Name: name, Parts: parts, Leave: func() bool { return l.interrupted() && l.leave(name) }}
	switch {
	case os.Getenv("ENILAB_VERBOSE") != "":
		cfg.Log = func(at time.Duration, text string) {
			when := ""
			if at > 0 {
				when = fmt.Sprintf("%.3fs", at.Seconds())
			}
			fmt.Fprintf(l.err, "%11s  %s\n", when, text)
		}
	case terminal(l.err): // making a cluster takes a minute or two
		cfg.Log = func(at time.Duration, text string) {
			if at == 0 {
				fmt.Fprintln(l.err, text)
			}
		}
	}
	return kindworld.Place(cfg), nil
}

// kindPossible says what stands in the way of clusters of that name, one after another.
func (l *cli) kindPossible(name string) error {
	if err := kindworld.Possible(l.context(), name, func(text string) { fmt.Fprintln(l.err, text) }); err != nil {
		return kindError(err)
	}
	return nil
}

// stayOnKind leaves a scenario's cluster up for people to look around.
func (l *cli) stayOnKind(w *kindworld.World) {
	if l.interrupted() {
		return
	}
	c := w.Cluster()
	fmt.Fprintf(l.err, "the cluster is up, at %s of the scenario; look around in another terminal:\n%sControl-C, or enilab down --name %s, ends it\n",
		runner.Short(w.Now()), lookAround(c.Name(), c.Kubeconfig()), c.Name())
	w.Stay(l.interrupted)
}

// lookAround is what to type in a cluster, a line each.
func lookAround(name, kubeconfig string) string {
	return fmt.Sprintf(`  export KUBECONFIG=%s
  kubectl get pods -A -o wide                    without kubectl: docker exec %[2]s-control-plane kubectl get pods -A -o wide
  docker exec %[2]s-worker ip rule
  docker exec %[2]s-worker ip route show table 2
`, kubeconfig, name)
}
