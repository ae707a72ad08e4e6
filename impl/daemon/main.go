package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/cloud"
	"github.com/enilab/enilab/impl/cri"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/kube"
	"github.com/enilab/enilab/impl/settings"
)

// Exit codes of Main.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitMachine = 3 // this machine or container lacks something: root, CAP_NET_ADMIN, Linux
)

// flags are what the command line says. Everything that an operator sets is in the environment, as amazon-vpc-cni-k8s has it.
type flags struct {
	clock, record  string
	booted         time.Duration
	recordVersion  int
	print, version bool
	init           bool
	ask            string // what to ask the daemon of this node
	probe          string // with status: who asks
}

const usage = `ipamd owns the elastic network interfaces of an EC2 instance and gives their addresses to pods.

  ipamd                    serve; the settings are environment variables
  ipamd init               install the CNI plugins and prepare the primary link, once, in the init container
  ipamd status             ask the daemon of this node: is it ready, and what is wrong; exit code 1 if it is not
  ipamd status --probe=readiness   has it taken up its work; for the container's readinessProbe
  ipamd status --probe=liveness    does it answer, whatever it says; for the livenessProbe
  ipamd view               ask it for its books: ENIs, addresses, reasons, as JSON
  ipamd record             ask it for its flight recorder, for enilab replay
  ipamd --print-settings   every setting with its value and origin, and what is wrong with them

`

// Main is ipamd: args without the program's name, and what a laboratory replaces. Settings come from the process's environment. It
// returns the exit code.
func Main(args []string, parts Parts) int {
	f, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		return exitUsage
	}
	s, problems := settings.Read(os.LookupEnv)
	problems = append(problems, settings.Unknown(os.Environ())...)
	switch {
	case f.version:
		fmt.Println(versionText())
		return exitOK
	case f.print:
		code := exitCode(settings.Print(os.Stdout, s, problems))
		if slices.ContainsFunc(problems, func(p settings.Problem) bool { return p.Stops }) {
			code = exitFailed
		}
		return code
	}
	if f.ask != "" {
		return exitCode(ask(os.Stdout, f.ask, f.probe, s))
	}
	if why := lacking(); why != "" {
		fmt.Fprintln(os.Stderr, "ipamd: "+why)
		return exitMachine
	}
	frugal()
	if f.init {
		return initialize(s)
	}
	return serve(f, s, problems, parts)
}

func parse(args []string, out io.Writer) (f flags, err error) {
	set := flag.NewFlagSet("ipamd", flag.ContinueOnError)
	set.SetOutput(out)
	set.Usage = func() {
		fmt.Fprint(out, usage)
		set.PrintDefaults()
	}
	set.StringVar(&f.clock, "clock", "", "time comes from a laboratory, at `unix:PATH`")
	set.DurationVar(&f.booted, "booted", 0, "when the machine booted, on a laboratory's clock")
	set.StringVar(&f.record, "record", "", "the flight recorder also writes to `unix:PATH or FILE`, each step before it has a consequence")
	set.IntVar(&f.recordVersion, "record-version", ipam.Version, "write records and speak the local protocol as `version` N does")
	set.BoolVar(&f.print, "print-settings", false, "print the settings and end")
	set.BoolVar(&f.version, "version", false, "print the version and end")
	set.StringVar(&f.probe, "probe", "", "with status: answer `readiness or liveness`")
	if len(args) > 0 && args[0] == "init" {
		f.init, args = true, args[1:]
	} else if len(args) > 0 && asks[args[0]] != nil {
		f.ask, args = args[0], args[1:]
	}
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case set.NArg() > 0:
		return f, fmt.Errorf("unexpected argument %q; see ipamd --help", set.Arg(0))
	case f.probe != "" && f.ask != ipc.Status:
		return f, fmt.Errorf("--probe goes with ipamd status")
	case f.probe != "" && f.probe != readiness && f.probe != liveness:
		return f, fmt.Errorf("--probe %s: expected %s or %s", f.probe, readiness, liveness)
	case f.recordVersion < 1 || f.recordVersion > ipam.Version:
		return f, fmt.Errorf("--record-version %d: expected 1 to %d", f.recordVersion, ipam.Version)
	case f.clock != "" && !strings.HasPrefix(f.clock, "unix:"):
		return f, fmt.Errorf("--clock %s: expected unix:PATH", f.clock)
	}
	return f, nil
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		return exitFailed
	}
	return exitOK
}

// versionText names the build.
func versionText() string {
	v, revision := "unknown", ""
	if b, ok := debug.ReadBuildInfo(); ok {
		v = b.Main.Version
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("ipamd %s%s (records and local protocol: version %d)", v, revision, ipam.Version)
}

// Memory. A node's whole state is a megabyte or two, so the collector's usual head room, as much again as lives and at least 4 MiB, is
// most of what a daemon would hold; and each P keeps caches of its own, of which a machine with 192 CPUs has 192.
const (
	gcPercent = 40
	maxProcs  = 4
	// memoryPart of what the container may have is where the collector begins to work harder, tenths: the rest is the kernel's, for pages and sockets.
	memoryPart = 8
	memoryMax  = "/sys/fs/cgroup/memory.max" // of the container; "max" where there is no limit (cgroup v2)
)

// memoryLimit is what the collector keeps the daemon below, as GOMEMLIMIT does where it is set.
func memoryLimit(max []byte) (bytes int64, limited bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(max)), 10, 64)
	return n / 10 * memoryPart, err == nil && n > 0
}

func frugal() {
	debug.SetGCPercent(gcPercent)
	if data, err := os.ReadFile(memoryMax); err == nil && os.Getenv("GOMEMLIMIT") == "" {
		if limit, limited := memoryLimit(data); limited {
			debug.SetMemoryLimit(limit)
		}
	}
	runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), maxProcs))
}

// serve is the daemon.
func serve(f flags, s *settings.Settings, problems []settings.Problem, parts Parts) int {
	log, closeLog := logOf(s)
	defer closeLog()
	c := configure(s, problems, log)
	c.Version, c.Parts = f.recordVersion, parts
	if err := equip(&c, f); err != nil {
		log.Error("ipamd cannot start", "err", err)
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		return exitUsage
	}
	kernel, err := linux.Open(linux.Options{Floor: s.Floor})
	if err != nil {
		log.Error("ipamd cannot start", "err", err)
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		return exitMachine
	}
	defer kernel.Close()
	c.Kernel = kernel
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return exitCode(Run(ctx, c))
}

// logOf is the log that the settings ask for, which begins with those that are not defaults.
func logOf(s *settings.Settings) (log *slog.Logger, end func()) {
	w, end, err := openLog(s.LogFile)
	log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.LogLevel}))
	if err != nil {
		log.Warn("the log file cannot be written; this goes to standard error alone", "err", err)
	}
	for _, v := range s.Values {
		if v.Origin == settings.Environment {
			log.Info("setting", "name", v.Name, "value", v.Value, "origin", v.Origin.String())
		}
	}
	return log, end
}

// configure makes a Config of the settings. What cannot be made is one more problem, so that all of them are said at once.
func configure(s *settings.Settings, problems []settings.Problem, log *slog.Logger) Config {
	c := Config{Settings: s.IPAM, RunDir: s.RunDir, LibDir: s.LibDir, Socket: s.Socket, Checkpoint: s.Checkpoint, Rival: s.Rival,
		ExcludeSNAT: s.ExcludeSNAT, Cluster: s.Cluster, PolicyMode: s.PolicyMode,
		Self: ipam.Pod{Namespace: s.PodNamespace, Name: s.Pod}, Log: log}
	for _, p := range problems {
		if p.Stops {
			c.Problems = append(c.Problems, p.String())
		} else if p.Unread {
			c.Unread = append(c.Unread, p.String())
		} else {
			c.Unusual = append(c.Unusual, p.String())
		}
	}
	if filepath.IsAbs(s.LogFile) {
		c.LogDir = filepath.Dir(s.LogFile)
	}
	if s.Pod == "" {
		c.Self = ipam.Pod{}
	}
	c.ConfDir, c.Conflist = s.ConfDir, conflistOf(s)
	fault := func(err error) { c.Problems = append(c.Problems, err.Error()) }
	ec2, err := cloud.New(context.Background(), cloud.Config{Cluster: s.Cluster, Tags: s.ENITags, NoEC2: s.IPAM.IMDSOnly, Timeout: s.HTTPTimeout, Log: log})
	if err != nil {
		fault(err)
		c.Cloud = noCloud{err}
	} else {
		c.Cloud = ec2
	}
	if s.Runtime != "" {
		if r, err := cri.Dial(s.Runtime); err != nil {
			fault(err)
		} else {
			c.Runtime = r
		}
	}
	if s.Node != "" && (s.Endpoint != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "") {
		if k, err := kube.New(kube.Config{Node: s.Node, Endpoint: s.Endpoint, Log: log}); err != nil {
			fault(err)
		} else {
			c.Pods, c.Tell, c.HasPolicies = k, k.Tell, k.HasPolicies
		}
	} else if s.IPAM.CustomNetwork {
		fault(errNoServer)
	}
	return c
}

// errNoServer: only the API server says which ENIConfig is the node's.
var errNoServer = errors.New("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: true: no API server can be asked for the node's ENIConfig: set MY_NODE_NAME to " +
	"spec.nodeName, and CLUSTER_ENDPOINT where the daemon runs in no pod")

// noCloud stands where EC2 cannot be asked because of the environment. A daemon with such a problem asks nothing.
type noCloud struct{ err error }

func (n noCloud) Call(context.Context, *ipam.Call) ipam.Result {
	return ipam.Result{Class: ipam.Unavailable, Code: n.err.Error()}
}
func (n noCloud) Metadata(context.Context) (*ipam.IMDS, error)       { return nil, n.err }
func (n noCloud) ENIs(context.Context, []string) ([]ipam.ENI, error) { return nil, n.err }
func (n noCloud) Leaked(context.Context) ([]ipam.ENI, error)         { return nil, n.err }
func (n noCloud) Attached(context.Context) ([]ipam.ENI, error)       { return nil, n.err }
func (n noCloud) Subnets(context.Context) ([]ipam.Subnet, error)     { return nil, n.err }

// equip adds what the command line asks for.
func equip(c *Config, f flags) (err error) {
	c.Clock, c.Booted = clock.Boot(), f.booted
	if path, ok := strings.CutPrefix(f.clock, "unix:"); ok {
		if c.Clock, err = clock.Dial(path); err != nil {
			return err
		}
	}
	if f.record == "" {
		return nil
	}
	if path, ok := strings.CutPrefix(f.record, "unix:"); ok {
		conn, err := net.DialTimeout("unix", path, probeTimeout)
		if err != nil {
			return fmt.Errorf("--record %s: %w", f.record, err)
		}
		c.Record = conn
		return nil
	}
	file, err := os.OpenFile(f.record, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	c.Record = file
	return nil
}
