package netns_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// eventful is a run in which everything happens that makes processes, namespaces and files, or ends them.
const eventful = `# Daemons, pods and machines come and go.
cluster nodes=2 type=m5.large subnet=10.0.40.0/24 runtime=containerd
start   pods web 4 on node-*
always  "nothing is leaked"
at 1s   pod web-0 hang
at 2s   pod web-0 force-delete
at 10s  node-1 kill
at 20s  node-1 socket cri=absent
at 30s  kube scale web 6
at 1m   node-2 reboot
at 3m   expect kube pods.ready >= 6
at 4m   node-2 terminate
`

// long is a run that is interrupted before anything is expected, and its mutant another.
const long = `# Pods come, and nothing else.
cluster nodes=1 type=m5.large subnet=10.0.40.0/24 runtime=containerd
start   pods web 2 on node-1
always  "every live pod is reachable"
at 1s   expect node-1 pods.ready == 2
at 1s every 1s until 1h kube roll web 1
against rules-left-behind breaks "every del ends in success"
`

// short is long, but its mutant.
var short = strings.Replace(long, "until 1h", "until 3s", 1)

const (
	holds    = eventful + "finally converges within 2m\n"
	violated = eventful + "at 5m expect node-1 addresses.assigned == 99\n"
)

// Whatever becomes of a laboratory, the machine is afterwards what it was before. That is looked at twice: at this machine's own network,
// and, completely, on a machine where nothing else runs.
func TestNothingIsLeft(t *testing.T) {
	if os.Getenv(machineVariable) != "" {
		leaveNothing(t)
		return
	}
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	needLab(t)
	dir := must.Get(binaries())(t)
	before := network(t)
	c := exec.Command("/proc/self/exe", "machine", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	c.Env = append(os.Environ(), machineVariable+"=1", folderVariable+"="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	out, err := c.CombinedOutput()
	t.Logf("%s", bytes.ReplaceAll(out, []byte("\n"), []byte("\n    ")))
	if err != nil {
		t.Errorf("in the machine: %v", err)
	}
	awaitSame(t, before, network)
}

// leaveNothing runs on a machine where nothing else does.
func leaveNothing(t *testing.T) {
	p := parts(t)
	for name, text := range map[string]string{"holds.scn": holds, "violated.scn": violated, "long.scn": long, "short.scn": short} {
		must.Do(t, os.WriteFile(filepath.Join(os.TempDir(), name), []byte(text), 0o644))
	}
	silent := p
	silent.Ipamd = "/bin/false"
	judged(t, silent, holds, runner.Bad) // the thread that starts all nodes of a process stays with it, from the first one on
	for _, x := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"after a run that holds", func(t *testing.T) { judged(t, p, holds, runner.Held) }},
		{"after a run that does not", func(t *testing.T) { judged(t, p, violated, runner.Violated) }},
		{"when the daemon does not start", func(t *testing.T) { judged(t, silent, holds, runner.Bad) }},
		{"after SIGKILL", func(t *testing.T) { killed(t, keeping) }},
		{"after SIGKILL while it starts", func(t *testing.T) { killed(t, starting) }},
		{"after --keep and clean", kept},
		{"after Control-C", interrupted},
		{"after Control-C in a terminal", func(t *testing.T) { toldToEnd(t, "long.scn", "life 1 begins", inTerminal) }},
		{"after SIGTERM while it starts", func(t *testing.T) {
			toldToEnd(t, "long.scn", starting, sigterm, "while its cluster started, run 1 of 2")
		}},
		{"after SIGINT in a mutant's run", func(t *testing.T) {
			toldToEnd(t, "short.scn", "life 1 begins,life 1 begins", sigint, "under mutant rules-left-behind, run 2 of 2; until then 1 expectation judged")
		}},
		{"when a daemon is stopped", func(t *testing.T) { toldToEnd(t, "long.scn", rolling, stop("/app/ipamd"), "nothing wrong") }},
		{"when a machine is stopped", func(t *testing.T) { toldToEnd(t, "long.scn", rolling, stop("enilab node")) }},
		{"when a start hangs", func(t *testing.T) { hangs(t) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := everything(t)
			x.do(t)
			awaitSame(t, before, everything)
		})
	}
}

// judged runs a scenario in this process.
func judged(t *testing.T, p netns.Parts, text string, want runner.Status) {
	t.Helper()
	c := must.Get(runner.Load(netns.Place(p), "test.scn", []byte(text)))(t)
	if r := c.Run(runner.Options{Seed: runner.DefaultSeed}); r.Status != want {
		t.Errorf("expected that it ends as %v, found\n%s", want, r.Report())
	}
}

// command is a laboratory in a process of its own: the real command.
type command struct {
	*exec.Cmd
	said  *bufio.Reader // standard error
	heard bytes.Buffer
	out   bytes.Buffer // standard output
}

func enilab(t *testing.T, args ...string) *command {
	t.Helper()
	dir := must.Get(binaries())(t)
	return enilabIn(t, dir, args...)
}

// enilabIn is enilab from a folder, beside which its daemon and plugin lie.
func enilabIn(t *testing.T, dir string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command(filepath.Join(dir, "enilab"), args...)}
	c.Dir, c.Stdout = os.TempDir(), &c.out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	c.Env = append(os.Environ(), "ENILAB_VERBOSE=1")
	errs := must.Get(c.StderrPipe())(t)
	c.said = bufio.NewReader(io.TeeReader(errs, &c.heard))
	must.Do(t, c.Start())
	late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	return c
}

// What enilab says when a laboratory stays up, and, with ENILAB_VERBOSE, when the first daemon of one that starts is there.
const (
	keeping  = "the laboratory is up"
	starting = "ipamd is started, life 1"
)

// hears reads until the process says something.
func (c *command) hears(t *testing.T, what string) {
	t.Helper()
	for {
		line, err := c.said.ReadString('\n')
		if strings.Contains(line, what) {
			return
		}
		if err != nil {
			t.Fatalf("enilab ended before it said %q (%v, %v):\n%s", what, err, c.Wait(), &c.heard)
		}
	}
}

// ends reads the rest and gives the exit code.
func (c *command) ends() int {
	_, _ = io.Copy(io.Discard, c.said)
	_ = c.Wait()
	return c.ProcessState.ExitCode()
}

// killed: the laboratory's process is gone from one instant to the next. What it leaves is its entry in the registry.
func killed(t *testing.T, when string) {
	without := everything(t)
	c := enilab(t, "run", "--on", "netns", "--keep", "holds.scn")
	c.hears(t, when)
	if differences(without, everything(t)) == "" {
		t.Error("a laboratory runs, and the inventory does not show it: it proves nothing")
	}
	must.Do(t, c.Process.Signal(syscall.SIGKILL))
	c.ends()
	cleaned(t, 0, 1)
}

// kept: `enilab netns clean` ends a laboratory that was left up.
func kept(t *testing.T) {
	c := enilab(t, "run", "--on", "netns", "--keep", "holds.scn")
	c.hears(t, keeping)
	done := make(chan int, 1)
	go func() { done <- c.ends() }() // a process that nobody reaps is there
	cleaned(t, 1, 0)
	if code := <-done; code != runner.ExitHeld {
		t.Errorf("a laboratory that was kept and cleaned ends with code %d, expected %d\n%s", code, runner.ExitHeld, &c.heard)
	}
}

// interrupted: Control-C in the middle of a run.
func interrupted(t *testing.T) {
	c := enilab(t, "run", "--on", "netns", "violated.scn")
	c.hears(t, "life 2 begins") // after node-1 kill
	must.Do(t, c.Process.Signal(syscall.SIGINT))
	if code := c.ends(); code != runner.ExitInterrupted {
		t.Errorf("after Control-C it ends with code %d, expected %d\n%s", code, runner.ExitInterrupted, &c.heard)
	}
	cleaned(t, 0, 0)
}

// endsWithin is how long a run may take to end once it is told to.
const endsWithin = 5 * time.Second

// rolling is what a daemon says once the scenario's time runs.
const rolling = "scenario: kube roll"

// Ways to tell a run to end.
func sigint(_ *testing.T, c *command) error     { return c.Process.Signal(syscall.SIGINT) }
func sigterm(_ *testing.T, c *command) error    { return c.Process.Signal(syscall.SIGTERM) }
func inTerminal(_ *testing.T, c *command) error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }

// stop keeps a process from doing anything, SIGTERM included, before it tells the run to end.
func stop(name string) func(*testing.T, *command) error {
	return func(t *testing.T, c *command) error {
		dirs := must.Get(filepath.Glob("/proc/[0-9]*"))(t)
		stopped := 0
		for _, dir := range dirs {
			line, _ := os.ReadFile(dir + "/cmdline") // one that has just ended is none
			pid, _ := strconv.Atoi(filepath.Base(dir))
			if strings.HasPrefix(string(line), strings.ReplaceAll(name, " ", "\x00")) {
				must.Do(t, syscall.Kill(pid, syscall.SIGSTOP))
				stopped++
			}
		}
		if stopped == 0 {
			t.Errorf("there is no process %s", name)
		}
		return sigint(t, c)
	}
}

// toldToEnd: whatever hangs, a run that is told to end does, says what was known, and leaves nothing. when is what it says on standard error
// before that.
func toldToEnd(t *testing.T, file, when string, tell func(*testing.T, *command) error, says ...string) {
	c := enilab(t, "run", "--on", "netns", file)
	c.endsSoon(t, when, tell, append(says, "interrupted  "+strings.TrimSuffix(file, ".scn"))...)
}

func (c *command) endsSoon(t *testing.T, when string, tell func(*testing.T, *command) error, says ...string) {
	t.Helper()
	for _, what := range strings.Split(when, ",") {
		c.hears(t, what)
	}
	must.Do(t, tell(t, c))
	began := time.Now()
	code := c.ends()
	if took := time.Since(began); code != runner.ExitInterrupted || took > endsWithin {
		t.Errorf("it ends %v after it was told to, with code %d; expected %d within %v\n%s%s", took, code, runner.ExitInterrupted, endsWithin, &c.out, &c.heard)
	}
	for _, want := range says {
		if !strings.Contains(c.out.String(), want) {
			t.Errorf("expected that it says %q:\n%s", want, &c.out)
		}
	}
	cleaned(t, 0, 0)
}

// hangs: the init step of the daemon never ends.
func hangs(t *testing.T) {
	from := must.Get(binaries())(t)
	dir, err := os.MkdirTemp("", "hangs-") // not the test's own, which is removed after the inventory
	must.Do(t, err)
	defer os.RemoveAll(dir)
	for _, name := range []string{"enilab", "aws-cni"} {
		data := must.Get(os.ReadFile(filepath.Join(from, name)))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "ipamd"), []byte("#!/bin/sh\ntrap '' TERM INT\necho begun > /run/aws-node/hangs\nsleep 1000\n"), 0o755))
	c := enilabIn(t, dir, "run", "--on", "netns", "long.scn")
	c.endsSoon(t, "", func(t *testing.T, c *command) error {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if found, _ := filepath.Glob("/proc/[0-9]*/root/run/aws-node/hangs"); len(found) > 0 {
				return sigterm(t, c)
			}
			if time.Now().After(end) {
				t.Fatal("no start hangs")
			}
		}
	}, "while its cluster started")
}

// cleaned holds what Clean did against what it should find.
func cleaned(t *testing.T, ended, dead int) {
	t.Helper()
	e, d, err := netns.Clean()
	if err != nil || e != ended || d != dead {
		t.Errorf("clean: %s, expected %s", fmt.Sprint(e, " ended, ", d, " dead, ", err), fmt.Sprint(ended, " ended, ", dead, " dead"))
	}
}
