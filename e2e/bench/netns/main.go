package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
)

// The roles of this binary besides the command itself: what a node's namespaces are made of, and who runs plugins in them.
const (
	helperRole = "helper"
	driverRole = "driver"
)

func main() {
	role()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(command(ctx, os.Args[1:], os.Stdout))
}

// role is what this binary does when a node executes it; it does not return then.
func role() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case helperRole:
		exit(node.Main())
	case driverRole:
		exit(drive(os.Args[2], os.Stdout))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// patience is more than all of it takes on any machine that is not stuck.
const patience = time.Hour

// command is the benchmark from its arguments to its table. What the machine lacks is said and is no error.
func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "few samples, no burst: does it work?")
	ipamd := flags.String("ipamd", "", "measure this `binary`; empty: build it")
	plugin := flags.String("plugin", "", "measure this `binary`; empty: build it")
	base := flags.String("base", "", "measure the build of this `commit` too, in turn")
	keepLog := flags.Bool("log", false, "print the daemon's log at the end")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if why := netns.Available(); why != nil {
		_, err := fmt.Fprintln(out, "bench: ADD, DEL, exec, start, memory and burst on a real kernel are skipped:", why)
		return err
	}
	b, err := build(ctx, binaries{Ipamd: *ipamd, Plugin: *plugin})
	if err != nil {
		return err
	}
	defer b.remove()
	s := full
	if *quick {
		s = few
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := report{machine: describeMachine(), side: os.Stderr}
	if *base == "" {
		err = measure(ctx, b, s, &r, *keepLog)
		r.print(out)
		return err
	}
	then, err := buildAt(ctx, *base, b)
	if err != nil {
		return err
	}
	defer then.remove()
	c := &comparison{commit: *base, now: r}
	err = compare(ctx, b, then, s, c, *keepLog)
	c.print(out)
	return err
}
