package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	ourcluster "github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/runner"
)

// suite is which specs are asked for: regular expressions over their names.
type suite struct {
	ends, doc string // how their names end
	skip      []exclusion
}

// focus is the specs of a suite whose names have a part; none: all.
func (s *suite) focus(part string) string {
	if part != "" {
		part = "(" + part + ").*"
	}
	return `\[sig-network\].*` + part + s.ends
}

// exclusion is what is left out, and why.
type exclusion struct{ pattern, why string }

var suites = map[string]suite{
	"conformance": {ends: `\[Conformance\]`, doc: "the conformance specs"},
	"more": {doc: "the other specs that need neither a cloud nor a feature gate", skip: []exclusion{
		{`\[Conformance\]`, "the other suite has them"},
		{`\[Feature:|\[FeatureGate:|\[Alpha\]|\[Beta\]`, "they need features that a cluster as released does not have"},
		{`\[Serial\]|\[Disruptive\]|\[Slow\]`, "they take the cluster apart, or many minutes each"},
		{`GCE|GKE|LoadBalancer|\[Feature:Ingress\]`, "they need a cloud's load balancers"},
		{`\[Feature:IPv6DualStack\]|IPv6`, "they need IPv6, which this CNI refuses"},
	}},
}

// asked is how the command was called.
type asked struct {
	suite, broken  string
	focus          string // a part of the specs' names, a regular expression; empty: all
	control, kills bool
	resume         bool
	workers        int
	procs          int // how many specs run at once
	proxy          string
	tests, kubectl string // e2e.test and kubectl
	images         string
	archive        []byte // of the CNI's image, unless it is the control
	image          string // its name
	results        string
	limit          time.Duration
}

func main() {
	a := asked{tests: os.Getenv("E2E_TEST"), kubectl: os.Getenv("E2E_KUBECTL"), images: os.Getenv("E2E_IMAGES")}
	flag.StringVar(&a.suite, "specs", "conformance", "which specs: conformance or more")
	flag.StringVar(&a.focus, "focus", "", "run those of the specs alone in whose names this regular expression is found")
	flag.StringVar(&a.broken, "broken", "", "break the datapath: "+strings.Join(breakages(), ", "))
	flag.BoolVar(&a.control, "control", false, "ptp and plain routes in place of enilab's CNI")
	flag.BoolVar(&a.kills, "kills", false, "delete aws-node of a worker by force every ten seconds")
	flag.BoolVar(&a.resume, "resume", false, "go on with a run of the same flags that was interrupted: what passed or failed in it stands")
	flag.IntVar(&a.workers, "workers", 3, "how many workers the cluster has")
	flag.IntVar(&a.procs, "procs", 1, "how many specs run at once: more than one for those that wait long, as with -broken")
	flag.StringVar(&a.proxy, "proxy", "iptables", "kube-proxy's mode: iptables or nftables")
	flag.StringVar(&a.results, "results", filepath.Join("bin", "conformance"), "folder of results")
	flag.DurationVar(&a.limit, "timeout", time.Hour, "how long the specs may take, before -resume has to go on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := a.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	os.Exit(code)
}

// check says what is wrong with the request (a usage error), or what the machine lacks.
func (a *asked) check() error {
	if _, ok := suites[a.suite]; !ok {
		return usage("-specs %s: expected conformance or more", a.suite)
	}
	if _, err := regexp.Compile(a.focus); err != nil {
		return usage("-focus %s: expected a regular expression: %v", a.focus, err)
	}
	if _, ok := broken[a.broken]; !ok && a.broken != "" {
		return usage("-broken %s: expected one of %s", a.broken, strings.Join(breakages(), ", "))
	}
	if a.procs < 1 {
		return usage("-procs %d: expected at least 1", a.procs)
	}
	if a.control && (a.kills || a.broken != "") {
		return usage("-control has no aws-node and nothing broken: without -kills and -broken")
	}
	for name, path := range map[string]*string{"E2E_TEST": &a.tests, "E2E_KUBECTL": &a.kubectl, "E2E_IMAGES": &a.images} {
		if *path == "" && name == "E2E_IMAGES" {
			continue // the nodes pull them
		}
		if *path == "" {
			return fmt.Errorf("%s is not set: the path of a file of a Kubernetes release, https://dl.k8s.io/VERSION/kubernetes-test-linux-amd64.tar.gz has e2e.test", name)
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := absolute(path); err != nil {
			return err
		}
	}
	return absolute(&a.results)
}

// absolute is a path for whoever works in another folder: Ginkgo's runner does, in that of e2e.test.
func absolute(path *string) (err error) {
	*path, err = filepath.Abs(*path)
	return err
}

// usageError is what the caller is to blame for.
type usageError struct{ error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// name is what the run is called in files and on the terminal.
func (a *asked) name() string {
	parts := []string{a.suite}
	for part, is := range map[string]bool{"control": a.control, "some": a.focus != "", "kills": a.kills, "broken-" + a.broken: a.broken != "", "nftables": a.proxy == "nftables"} {
		if is {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, "-")
}

// dir is the folder of the run's results.
func (a *asked) dir() string { return filepath.Join(a.results, a.name()) }

// begin makes everything ready that needs no cluster.
func (a *asked) begin(ctx context.Context) (*past, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if !a.control {
		var err error
		if a.archive, a.image, err = ourcluster.PartsIn(".").Image(ctx, false); err != nil {
			return nil, err
		}
	}
	stamp, err := a.stamp()
	if err != nil {
		return nil, err
	}
	return begin(a.dir(), stamp, a.resume)
}

// run makes the cluster, runs the specs, and tells what they found.
func (a *asked) run(ctx context.Context) (code int, err error) {
	past, err := a.begin(ctx)
	if err != nil {
		if _, ok := errors.AsType[*usageError](err); ok {
			return runner.ExitBad, err
		}
		return runner.ExitLacking, err
	}
	defer past.Close()
	began := time.Now()
	var short error
	c, err := a.cluster(ctx)
	if err == nil {
		say("the cluster is up after %v", time.Since(began).Round(time.Second))
		var found *found
		if found, err = a.specs(ctx, c, past); err == nil {
			err = found.tell(os.Stdout, a.name())
			code = found.code()
			if found.cut {
				short = fmt.Errorf("the specs did not end within %v (-timeout): -resume (RESUME=1) goes on", a.limit)
			}
			if b, ok := broken[a.broken]; ok && err == nil {
				if hit, e := b.struck(ctx, c); e != nil || !hit {
					err = errors.Join(e, fmt.Errorf("%s has not struck: no packet met it, and what the specs say proves nothing", a.broken))
				}
			}
		}
		err = errors.Join(err, c.close())
	}
	switch {
	case ctx.Err() != nil:
		return runner.ExitInterrupted, errors.New("interrupted; the cluster is gone again, and -resume (RESUME=1) goes on")
	case err != nil:
		return runner.ExitLacking, err
	case short != nil:
		return cmp.Or(code, runner.ExitLacking), short // of the others nothing is known
	}
	return code, past.end()
}

// say tells a line of progress.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05")}, args...)...)
}

// clusterName is what the cluster of a run is called; two runs at once would fight for it, and the second one is told.
const clusterName = "enilab-conformance"

// cluster is what the specs run on.
type cluster struct {
	kubeconfig string
	nodes      []string // containers, the control plane first
	ours       *ourcluster.Cluster
	close      func() error
}
