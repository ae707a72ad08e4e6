package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/enilab/enilab/internal/percentiles"
)

// row is one line of the table.
type row struct {
	what, asked string
	ours, ptp   percentiles.Times
	upstream    string // its figures, in milliseconds unless they say otherwise
	memory      [2]int // RSS and RssAnon in KiB
	counted     bool   // what counts is how many failed
	failed      int
}

// report is what is printed at the end.
type report struct {
	machine string
	side    io.Writer // for progress
	rows    []row
	failed  []string // what should not have
	tail    string   // of the daemon's log
}

// progress says what is being measured, to whoever waits.
func (r *report) progress(what string) { fmt.Fprintln(r.side, "bench: "+what+" …") }

func (r *report) add(x row) { r.rows = append(r.rows, x) }

func (r *report) print(out io.Writer) {
	fmt.Fprintln(out, "One node: real ipamd, aws-cni and kernel; EC2, metadata, API server and runtime are the laboratory's. Milliseconds, from fork to exit.")
	fmt.Fprintln(out, "On a machine that does something else as well, look at the fastest tenth (P10) and at the ratio to ptp, which ran in turn with ours.")
	fmt.Fprintln(out, r.machine)
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tASKED (AT MOST)\tRUNS\tP10\tP50\tP99\tAMAZON-VPC-CNI 1.23.1\tPTP P50\tPTP P99\tP50: OURS/PTP\tP99: OURS/PTP")
	for i := range r.rows {
		fmt.Fprintln(t, strings.Join(r.rows[i].cells(), "\t"))
	}
	t.Flush()
	for _, f := range r.failed {
		fmt.Fprintln(out, "failed:", f)
	}
	if r.tail != "" {
		fmt.Fprintln(out, "\nThe daemon's log:")
		fmt.Fprint(out, r.tail)
	}
}

func (x *row) cells() []string {
	up := ""
	if x.upstream != "" {
		up = "[" + x.upstream + "]"
	}
	if x.memory[0] != 0 {
		return []string{x.what, x.asked, "", "", fmt.Sprintf("%.1f MB", mega(x.memory[0])), fmt.Sprintf("(%.1f anon)", mega(x.memory[1])), up}
	}
	what := x.what
	if x.counted {
		what = fmt.Sprintf("%s: %d failed", what, x.failed)
	}
	c := []string{what, x.asked, fmt.Sprint(len(x.ours)), ms(x.ours.At(0.1)), ms(x.ours.P50()), ms(x.ours.P99()), up}
	if len(x.ptp) > 0 && len(x.ours) > 0 {
		c = append(c, ms(x.ptp.P50()), ms(x.ptp.P99()), ratio(x.ours.P50(), x.ptp.P50()), ratio(x.ours.P99(), x.ptp.P99()))
	}
	return c
}

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(b, 1))) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

// mega is KiB in MB.
func mega(kib int) float64 { return float64(kib) * 1024 / 1e6 }

// describeMachine says what the figures were measured on.
func describeMachine() string {
	read := func(path string) string {
		data, _ := os.ReadFile(path)
		return strings.TrimSpace(string(data))
	}
	cpu := "unknown CPU"
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return fmt.Sprintf("Machine: %d cores (%s), Linux %s, %s; load average %s when it began.", runtime.NumCPU(), cpu, read("/proc/sys/kernel/osrelease"), runtime.Version(), load)
}
