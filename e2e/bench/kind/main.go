// Command bench measures how fast pods start on one node of a kind cluster: from the moment at which containerd is asked for a sandbox to
// the CNI result, with enilab and with ptp and host-local, in turn, on the same node in the same run.
//
//	sudo go run ./e2e/bench/kind [--pods 60] [--rounds 3]
//
// The beginning is containerd's own log (RunPodSandbox for …), the end is when the plugin that was asked ended, as a recorder in
// front of it saw (e2e/calls); both plugins have the same recorder in front.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/impl/deploy/image"
	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/sim/kind/cluster"
)

func main() {
	pods := flag.Int("pods", 60, "pods that are started at once")
	rounds := flag.Int("rounds", 3, "how often, with each plugin")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *pods, *rounds); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		var l *cluster.Lacking
		if errors.As(err, &l) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

// Type has room for 232 pods, and Pool is what is there before the first one: it is the runtime and the plugin that are measured.
const (
	instanceType = "c5.4xlarge"
	clusterName  = "enilab-bench"
)

func run(ctx context.Context, out io.Writer, pods, rounds int) (err error) {
	if pods < 1 || pods > 100 || rounds < 1 {
		return fmt.Errorf("%d pods in %d rounds: 1 to 100 pods and at least one round are possible", pods, rounds)
	}
	if err := cluster.Available(ctx); err != nil {
		return err
	}
	say := func(s string) { fmt.Fprintln(os.Stderr, "bench: "+s) }
	var archive bytes.Buffer
	o := image.Options{Tag: "bench", Platforms: []string{image.Host()}}
	if err := image.WriteContext(ctx, &archive, o); err != nil {
		return err
	}
	c, err := cluster.Up(ctx, cluster.Config{Name: clusterName, Workers: 1, Type: instanceType, Log: say})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.LoadImage(ctx, archive.Bytes()); err != nil {
		return err
	}
	// Two rounds' worth: what the last round gave back cools down while the next one starts.
	env := map[string]string{"WARM_IP_TARGET": fmt.Sprint(pods + 5), "MINIMUM_IP_TARGET": fmt.Sprint(2*pods + 10)}
	if err := c.Install(ctx, deploy.Options{Image: o.Reference(), Env: env}); err != nil {
		return err
	}
	b, err := newBench(ctx, c, pods)
	if err != nil {
		return err
	}
	var ours, ptp result
	for i := range rounds {
		say(fmt.Sprintf("round %d of %d", i+1, rounds))
		if err := b.withOurs(ctx, &ours); err != nil {
			return err
		}
		if err := b.withPTP(ctx, &ptp); err != nil {
			return err
		}
	}
	report(out, pods, rounds, &ours, &ptp)
	return nil
}

// result is what a plugin's rounds took.
type result struct {
	sandbox percentiles.Times // from RunPodSandbox to the CNI result
	plugin  percentiles.Times // of it, the plugin itself
	all     percentiles.Times // until the last pod of a round had its result
}

func report(out io.Writer, pods, rounds int, ours, ptp *result) {
	fmt.Fprintf(out, "%d pods at once on one node of a kind cluster, %d rounds; %s/%s, %d cores. Milliseconds.\n\n", pods, rounds, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tRUNS\tP50\tP99\tPTP P50\tPTP P99\tP50: OURS/PTP\tP99: OURS/PTP")
	for _, r := range []struct {
		what string
		o, p percentiles.Times
	}{
		{"sandbox asked for, to CNI result", ours.sandbox, ptp.sandbox},
		{"of it, the plugin", ours.plugin, ptp.plugin},
		{"first sandbox asked for, to last CNI result", ours.all, ptp.all},
	} {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%.2f\t%.2f\n", r.what, len(r.o), ms(r.o.P50()), ms(r.o.P99()), ms(r.p.P50()), ms(r.p.P99()),
			ratio(r.o.P50(), r.p.P50()), ratio(r.o.P99(), r.p.P99()))
	}
	t.Flush()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }
