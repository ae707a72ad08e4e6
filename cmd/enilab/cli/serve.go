package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/fakes/world"
	worldserver "github.com/enilab/enilab/fakes/world/server"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vpc"
	examples "github.com/enilab/enilab/worlds"
)

// serveFlags are what `enilab serve` was asked for.
type serveFlags struct {
	config, listen, imds, admin, netns string
	hosts                              []string
	json                               bool
}

// Where things listen unless told otherwise.
const (
	ec2Listen   = "127.0.0.1:4566"
	adminListen = "127.0.0.1:4567"
	imdsListen  = "127.0.0.1:1338"
)

func (l *cli) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve ec2|imds|all",
		Short: "runs the fakes of EC2 and instance metadata for other programs",
		Long: `serve runs a cloud that behaves like the real one, throttles, trails and takes its time, for programs that speak to EC2 and to instance
metadata: SDKs, the AWS CLI, a CNI, your own. A world file says what there is: accounts, networks, instances, and how they behave
(docs/serve.md, and worlds/ for examples). Without --config it is worlds/small.yaml.

It prints where it listens and what to export, and runs until Control-C. Each instance's metadata has an address of its own: --imds-listen
is that of the first one, the next one has the next port. --netns puts the first one's on 169.254.169.254 inside a network namespace, too.

The admin endpoint shows what there is, without lag, and does what no API call could: faults, strangers, time that passes.
It has no password. So that no web page reads it under a name of its own it answers to addresses, localhost and --host alone.`,
		Example: `  enilab serve all
  enilab serve all --config worlds/small.yaml
  enilab serve ec2 --config worlds/fleet.yaml --listen 127.0.0.1:9000
  enilab serve imds --listen 127.0.0.1:1338 --netns /run/netns/node-1
  enilab serve all --json --listen 127.0.0.1:0 --imds-listen 127.0.0.1:0 --admin 127.0.0.1:0     free ports, for a script
  curl -X POST '127.0.0.1:4567/instances/node-1/reboot'
  curl 127.0.0.1:4567/state | jq '.regions[].enis[] | select(.status == "available")'`,
		Args: func(_ *cobra.Command, args []string) error {
			kinds := []string{"ec2", "imds", "all"}
			switch {
			case len(args) == 0:
				return usage("serve needs to know what: enilab serve all (there are %s)", strings.Join(kinds, ", "))
			case len(args) > 1:
				return usage("serve takes one word, found %q", strings.Join(args, " "))
			case args[0] != "ec2" && args[0] != "imds" && args[0] != "all":
				return usage("serve cannot serve %q (%s)", args[0], hint(args[0], kinds))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return l.serve(&f, args[0], c.Flags().Changed("imds-listen"))
		},
	}
	c.Flags().StringVar(&f.config, "config", "", `the world file; "-" is standard input (default worlds/`+examples.Default+`)`)
	c.Flags().StringVar(&f.listen, "listen", "", "where EC2 is, or with serve imds the first instance's metadata (default "+ec2Listen+", "+imdsListen+")")
	c.Flags().StringVar(&f.imds, "imds-listen", imdsListen, "with all: where the first instance's metadata is; port 0 gives each a free one")
	c.Flags().StringVar(&f.admin, "admin", adminListen, `where the admin endpoint is; "" is nowhere`)
	c.Flags().StringArrayVar(&f.hosts, "host", nil, "a further name under which the admin endpoint answers, such as that of a container (repeatable)")
	c.Flags().StringVar(&f.netns, "netns", "", "a network namespace in which the first instance's metadata is on 169.254.169.254 (root, Linux)")
	c.Flags().BoolVar(&f.json, "json", false, `write one JSON line instead of text: {"ec2", "admin", "accounts", "metadata"}`)
	return c
}

// options judges the flags.
func (f *serveFlags) options(what string, imdsGiven bool) (o worldserver.Options, err error) {
	or := func(s, or string) string {
		if s == "" {
			return or
		}
		return s
	}
	o = worldserver.Options{Admin: f.admin, Hosts: f.hosts, Netns: f.netns, Inside: listenInside}
	for _, h := range f.hosts {
		if h == "" || strings.ContainsAny(h, ":/@ \t") {
			return o, usage("--host %q: expected a name without scheme and port, such as enilab.test", h)
		}
	}
	switch what {
	case "ec2":
		o.EC2 = or(f.listen, ec2Listen)
		if imdsGiven || f.netns != "" {
			return o, usage("serve ec2 has no metadata: use serve all with --imds-listen and --netns")
		}
	case "imds":
		o.IMDS = or(f.listen, imdsListen)
		if imdsGiven {
			return o, usage("with serve imds, --listen says where the metadata is: leave --imds-listen out")
		}
	default:
		o.EC2, o.IMDS = or(f.listen, ec2Listen), f.imds
	}
	return o, nil
}

func (l *cli) serve(f *serveFlags, what string, imdsGiven bool) error {
	o, err := f.options(what, imdsGiven)
	if err != nil {
		return err
	}
	if o.IMDS != "" {
		if _, err := netip.ParseAddrPort(o.IMDS); err != nil {
			return usage("listen for metadata on %q: expected an address and a port such as %s", o.IMDS, imdsListen)
		}
	}
	if o.World, err = l.world(f.config); err != nil {
		return l.refuseWorld(err)
	}
	o.Say = func(text string) { fmt.Fprintln(l.err, text) }
	debug.SetGCPercent(100) // it lives for days
	s, err := worldserver.Start(o)
	if err != nil {
		return l.refuseWorld(err)
	}
	e := s.Endpoints()
	if f.json {
		err = json.NewEncoder(l.out).Encode(&e) // one line: who reads it knows when it is whole
	} else {
		_, err = fmt.Fprint(l.out, e.String())
	}
	if err == nil {
		<-l.context().Done()
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return nil
}

// world reads a world file.
func (l *cli) world(name string) (*world.World, error) {
	var data []byte
	var err error
	switch name {
	case "":
		name = "worlds/" + examples.Default
		data, err = fs.ReadFile(examples.Files, examples.Default)
	case "-":
		data, err = io.ReadAll(io.LimitReader(l.in, world.MaxFile+1))
	default:
		data, err = readWorld(name)
	}
	if err != nil {
		return nil, err
	}
	return world.Parse(name, data)
}

func readWorld(name string) ([]byte, error) {
	bad := func(hint, text string) error { return world.Errors{{File: name, Text: text, Hint: hint}} }
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, bad(besides(name), "there is no such file")
	}
	if err != nil {
		return nil, bad("", err.Error())
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, bad("name a file in it", "it is a folder, not a world file")
	}
	return io.ReadAll(io.LimitReader(f, world.MaxFile+1))
}

// refuseWorld prints the mistakes of a world file; anything else is what this machine lacks.
func (l *cli) refuseWorld(err error) error {
	list, ok := errors.AsType[world.Errors](err)
	if !ok {
		return &exit{runner.ExitLacking, err.Error()}
	}
	for _, e := range list {
		fmt.Fprintln(l.err, e)
	}
	return &exit{runner.ExitBad, "nothing was served: " + runner.Count(len(list), "mistake")}
}

// listenInside listens in a network namespace.
func listenInside(path, network, addr string) (l net.Listener, err error) {
	ns, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	e := vpc.Do(ns, func() error { l, err = net.Listen(network, addr); return nil })
	return l, errors.Join(e, err)
}
