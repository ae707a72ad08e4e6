package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// group is a container of specs, on every cluster that its labels allow.
type group struct {
	text   string
	labels Labels
	body   func(b *bed)
}

var groups []group

// inAllModes is the label of specs that run in every mode of kube-proxy.
const inAllModes = "datapath"

func (g group) order() int {
	if slices.Contains(g.labels, inAllModes) {
		return 0
	}
	return 1
}

// specs registers a container of specs. Those labelled "datapath" run in every mode of kube-proxy, the others in the first.
func specs(text string, labels Labels, body func(b *bed)) bool {
	groups = append(groups, group{text, labels, body})
	return true
}

func TestE2E(t *testing.T) {
	if os.Getenv("ENILAB_E2E") == "" {
		t.Skip("needs Docker, root and some minutes: make e2e runs it (it sets ENILAB_E2E)")
	}
	o := must.Get(readOptions())(t)
	must.Do(t, cluster.Available(context.Background()))
	surviveTerminal()
	RegisterFailHandler(Fail)
	describe(&o)
	suite, reporter := GinkgoConfiguration()
	reporter.JUnitReport = cmp.Or(reporter.JUnitReport, o.junit)
	must.Do(t, os.MkdirAll(filepath.Dir(reporter.JUnitReport), 0o755))
	if out, err := os.Stdout.Stat(); err != nil || out.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		reporter.NoColor = true
	}
	if suite.PollProgressAfter == 0 {
		suite.PollProgressAfter, suite.PollProgressInterval = 90*time.Second, time.Minute
	}
	var why []string
	ReportAfterEach(func(r SpecReport) {
		if r.Failed() {
			first, _, _ := strings.Cut(strings.TrimSpace(r.FailureMessage()), "\n")
			why = append(why, r.FullText()+": "+first)
		}
	})
	if !RunSpecs(t, "enilab on kind", suite, reporter) {
		t.Log("what failed, and why:\n" + strings.Join(why, "\n")) // the end of the output is what is left of it in many places
	}
}

// surviveTerminal: without a reader of its output, or without its terminal, the run still ends in order.
func surviveTerminal() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		<-hup
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
}

// describe builds the tree: under one container, for Ginkgo shuffles those at the top. The datapath comes first: its pods need addresses of
// primary ENIs, and a node gives away what is free the longest.
func describe(o *options) {
	s := &site{options: o}
	slices.SortStableFunc(groups, func(a, b group) int { return a.order() - b.order() })
	SynchronizedBeforeSuite(func(SpecContext) {
		for _, ofAnEarlierRun := range []string{o.artifacts, o.ends} {
			check(os.RemoveAll(ofAnEarlierRun))
		}
	}, s.build)
	SynchronizedAfterSuite(s.writeTraces, s.nothingLeft)
	Describe("enilab", func() {
		for i, proxy := range o.proxies {
			Describe(fmt.Sprintf("with kube-proxy in %s mode", proxy), Ordered, ContinueOnFailure, Label(proxy), func() {
				b := &bed{site: s, config: cluster.Config{Workers: 2, Proxy: proxy, Type: "t3.medium"}, first: i == 0}
				BeforeAll(b.up, NodeTimeout(upLimit), GracePeriod(downLimit))
				JustAfterEach(b.keepEvidence, NodeTimeout(evidenceLimit))
				for _, g := range groups {
					if i == 0 || slices.Contains(g.labels, inAllModes) {
						Describe(g.text, g.labels, func() { g.body(b) })
					}
				}
			})
		}
		s.describeMany()
		s.describeFiles()
	})
}

// check fails the spec with the error's text alone.
func check(err error, what ...any) {
	GinkgoHelper()
	if err != nil {
		if len(what) > 0 {
			err = fmt.Errorf("%s: %w", fmt.Sprint(what...), err)
		}
		Fail(err.Error())
	}
}

// got is what a call returned beside a nil error; it fails the spec on another.
func got[T any](v T, err error) T {
	GinkgoHelper()
	check(err)
	return v
}

// await asks until nothing is left to wait for, or fails the spec and says what was.
func await(ctx context.Context, limit time.Duration, what string, ask func(ctx context.Context) (left string, err error)) {
	GinkgoHelper()
	check(awaited(ctx, limit, what, ask))
}

// awaited is await for those who are not in the spec's goroutine.
func awaited(ctx context.Context, limit time.Duration, what string, ask func(ctx context.Context) (left string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	said := "nothing was heard"
	for {
		left, err := ask(ctx)
		if err == nil && left == "" {
			return nil
		}
		if err != nil {
			left = err.Error()
		}
		if ctx.Err() == nil {
			said = left
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %v for %s: %s", time.Since(begin).Round(time.Second), what, said)
		case <-time.After(pollPeriod):
		}
	}
}

// pollPeriod is how often what is waited for is asked about.
const pollPeriod = 200 * time.Millisecond
