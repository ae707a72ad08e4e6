package vm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/vm"
)

// built is a folder with enilab and its neighbours, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "enilab-vm-test-")
	if err != nil {
		return "", err
	}
	folder = dir
	c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", dir+"/", "./cmd/enilab", "./cmd/ipamd", "./cmd/aws-cni")
	c.Dir, c.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return dir, errors.New(string(out))
	}
	return dir, nil
})

// folder is what TestMain removes.
var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// binaries needs what a machine is made of.
func binaries(t *testing.T) (dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a virtual machine takes a quarter of a minute")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64 (apt-get install --no-install-recommends qemu-system-x86)")
	}
	if len(vm.Find()) == 0 {
		t.Skip("needs a kernel: " + vm.HowToGet())
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// short is a scenario that takes seconds.
const short = `# A pod comes, and the daemon is started again. Nobody minds.
# Source: a test.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 2 on node-1
always  "nothing is leaked"
at 1m   node-1 restart
at 2m   expect node-1 addresses.assigned == 2
finally converges within 1m
`

// play executes enilab with a scenario beside it.
func play(t *testing.T, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := binaries(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "short.scn"), []byte(short), 0o644); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	c := exec.Command(filepath.Join(dir, "enilab"), append([]string{"run", "--on", "netns"}, args...)...)
	c.Dir, c.Stdout, c.Stderr, c.Env = work, &o, &e, append(os.Environ(), env...)
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), o.String(), e.String()
}

// TestPlays: a machine plays a scenario, and everything that came of it is brought back.
func TestPlays(t *testing.T) {
	folder := t.TempDir()
	code, out, errs := play(t, nil, "--in", "vm", "--seed", "3", "--out", folder, "short.scn")
	if code != 0 || !strings.HasPrefix(out, "held  short  ") {
		t.Fatalf("expected that it holds, found exit code %d\n%s%s", code, out, errs)
	}
	for name, begins := range map[string]string{"console.txt": "", "short/report.txt": "held  short", "short/report.json": "{", "short/1/ec2.jsonl": `{"at":`,
		"short/1/router.pcap": "\x4d\x3c\xb2\xa1", "short/1/node-1.pcap": "\x4d\x3c\xb2\xa1", "short/1/timeline.txt": " "} {
		data, err := os.ReadFile(filepath.Join(folder, "seed-3", name))
		if err != nil {
			t.Error(err)
		} else if len(data) == 0 || !strings.HasPrefix(string(data), begins) {
			t.Errorf("%s: expected that it begins with %q, found %q", name, begins, data[:min(len(data), 40)])
		}
	}
}

// TestTwice: two machines with one seed are the same in every byte, and one that is different is found.
func TestTwice(t *testing.T) {
	code, _, errs := play(t, nil, "--in", "vm", "--twice", "short.scn")
	if code != 0 || !strings.Contains(errs, "played twice, and all is the same: ") {
		t.Errorf("expected that it repeats, found exit code %d\n%s", code, errs)
	}
	code, _, errs = play(t, []string{"ENILAB_VM_AGAIN=another"}, "--in", "vm", "--twice", "short.scn")
	if code != 4 || !strings.Contains(errs, "short/1/router.pcap, byte ") || !strings.Contains(errs, "  second  ") {
		t.Errorf("expected that other entropy is found, found exit code %d\n%s", code, errs)
	}
}

// machine is one that is ready.
func machine(t *testing.T, change func(*vm.Machine)) *vm.Machine {
	t.Helper()
	dir := binaries(t)
	k, err := vm.Open("")
	if err != nil {
		t.Fatal(err)
	}
	m := &vm.Machine{Kernel: k, Image: vm.NewImage(), Self: filepath.Join(dir, "enilab"), Timeout: 10 * time.Minute, Quiet: 5 * time.Minute}
	change(m)
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestMachineFails: a machine that panics, hangs or is too slow ends as what this computer lacks, with what its console said and what to do.
func TestMachineFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*vm.Machine)
		says   []string
	}{
		"panic":   {func(m *vm.Machine) { m.Words = "rdinit=/nothing" }, []string{"ended before its command did", "Kernel panic", "enilab vm kernels"}},
		"hang":    {func(m *vm.Machine) { m.Quiet = time.Nanosecond }, []string{"hangs: nothing was heard of it"}},
		"timeout": {func(m *vm.Machine) { m.Timeout = time.Millisecond }, []string{"--timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := machine(t, c.change).Run(t.Context(), &vm.Job{Args: []string{"version"}, Dir: "/tmp"}, vm.Sinks{Stdout: io.Discard, Stderr: io.Discard})
			if lack, ok := errors.AsType[*vm.Lacking](err); !ok {
				t.Fatalf("expected a *Lacking, found %v", err)
			} else {
				for _, want := range c.says {
					if !strings.Contains(lack.Why, want) {
						t.Errorf("expected %q in\n%s", want, lack.Why)
					}
				}
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := machine(t, func(*vm.Machine) {}).Run(ctx, &vm.Job{Args: []string{"version"}, Dir: "/tmp"}, vm.Sinks{Stdout: io.Discard, Stderr: io.Discard})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("expected that it was cancelled, found %v", err)
		}
	})
}

// TestKilled: an enilab that is killed takes its machine along.
func TestKilled(t *testing.T) {
	dir := binaries(t)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "short.scn"), []byte(short), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(dir, "enilab"), "run", "--on", "netns", "--in", "vm", "short.scn")
	c.Dir, c.Env = work, append(os.Environ(), "ENILAB_VERBOSE=1")
	lines, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(lines).ReadString('\n'); err != nil { // the machine runs
		t.Fatal(err)
	}
	children, err := filepath.Glob("/proc/" + strconv.Itoa(c.Process.Pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var watched []unix.PollFd
	for _, name := range children {
		data, _ := os.ReadFile(name)
		for _, pid := range strings.Fields(string(data)) {
			n, _ := strconv.Atoi(pid)
			fd, err := unix.PidfdOpen(n, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if len(watched) != 1 {
		t.Fatalf("expected one child, found %d", len(watched))
	}
	if n, err := unix.Poll(watched, 60_000); n != 1 || err != nil {
		t.Errorf("a minute after enilab was killed its machine runs: %v", err)
	}
}
