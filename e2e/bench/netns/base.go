package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// buildAt makes the programs of another commit of this repository, and takes those of the reference plugins from b.
func buildAt(ctx context.Context, commit string, b *binaries) (base *binaries, err error) {
	dir, err := os.MkdirTemp("", "enilab-bench-base-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	tree := filepath.Join(dir, "tree")
	run := func(in, name string, args ...string) error {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env = in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build the commit %s: %s %s: %w\n%s", commit, name, args[0], err, out)
		}
		return nil
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, err
	}
	if err := run("", "git", "archive", "--format=tar", "-o", tree+".tar", commit); err != nil { // a worktree would leave its name in .git if this is killed
		return nil, err
	}
	if err := run("", "tar", "-xf", tree+".tar", "-C", tree); err != nil {
		return nil, err
	}
	if err := run(tree, "go", slices.Concat(release, []string{"-o", dir, "./cmd/ipamd", "./cmd/aws-cni"})...); err != nil {
		return nil, err
	}
	return &binaries{Ipamd: filepath.Join(dir, "ipamd"), Plugin: filepath.Join(dir, "aws-cni"), PTP: b.PTP, HostLocal: b.HostLocal, dir: dir}, nil
}

// comparison is what two builds took, in the same run.
type comparison struct {
	commit    string
	now, base report
}

// turns is how often each of two builds is measured: what the machine does besides meets both.
const turns = 2

func compare(ctx context.Context, b, base *binaries, s samples, c *comparison, printLog bool) error {
	for range turns {
		for _, x := range []struct {
			what string
			b    *binaries
			into *report
		}{{"the build of " + c.commit, base, &c.base}, {"this build", b, &c.now}} {
			c.now.progress(x.what)
			r := report{side: c.now.side}
			err := measure(ctx, x.b, s, &r, printLog)
			x.into.merge(&r)
			if err != nil {
				return fmt.Errorf("%s: %w", x.what, err)
			}
		}
	}
	return nil
}

// merge adds what another turn has measured.
func (r *report) merge(turn *report) {
	for _, x := range turn.rows {
		i := slices.IndexFunc(r.rows, func(have row) bool { return have.what == x.what })
		if i < 0 {
			r.add(x)
			continue
		}
		have := &r.rows[i]
		have.ours, have.ptp, have.failed = append(have.ours, x.ours...), append(have.ptp, x.ptp...), have.failed+x.failed
		have.memory = [2]int{max(have.memory[0], x.memory[0]), max(have.memory[1], x.memory[1])}
	}
	r.failed = append(r.failed, turn.failed...)
	r.tail = cmp.Or(turn.tail, r.tail)
}

func (c *comparison) print(out io.Writer) {
	c.now.print(out)
	fmt.Fprintf(out, "\nThe build of %s, in turn with this one:\n\n", c.commit)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tTHEN P10\tP50\tP99\tNOW P10\tP50\tP99\tP50: NOW/THEN")
	for i := range c.now.rows {
		x := &c.now.rows[i]
		if at := slices.IndexFunc(c.base.rows, func(y row) bool { return y.what == x.what }); at >= 0 {
			fmt.Fprintln(t, strings.Join(x.beside(&c.base.rows[at]), "\t"))
		}
	}
	t.Flush()
	for _, f := range c.base.failed {
		fmt.Fprintf(out, "failed, of %s: %s\n", c.commit, f)
	}
}

func (x *row) beside(then *row) []string {
	switch {
	case x.memory[0] != 0:
		return []string{x.what, "", fmt.Sprintf("%.1f MB", mega(then.memory[0])), "", "", fmt.Sprintf("%.1f MB", mega(x.memory[0])), "",
			fmt.Sprintf("%.2f", float64(x.memory[0])/float64(max(then.memory[0], 1)))}
	case x.counted:
		return []string{x.what, "", fmt.Sprintf("%d failed", then.failed), ms(then.ours.P99()), "", fmt.Sprintf("%d failed", x.failed), ms(x.ours.P99()), ""}
	}
	return []string{x.what, ms(then.ours.At(0.1)), ms(then.ours.P50()), ms(then.ours.P99()), ms(x.ours.At(0.1)), ms(x.ours.P50()), ms(x.ours.P99()),
		ratio(x.ours.P50(), then.ours.P50())}
}
