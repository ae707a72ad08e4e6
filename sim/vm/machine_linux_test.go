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
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/vm"
)

// built is a folder with enilab and its neighbours, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "enilab-vm-test-")
	if err != nil {
		return "", err
	}
	folder = dir
	return dir, build(runtime.GOARCH, dir)
})

func build(arch, dir string) error {
	c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", dir+"/", "./cmd/enilab", "./cmd/ipamd", "./cmd/aws-cni")
	c.Dir, c.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := c.CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	return nil
}

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
	dir = must.Get(built())(t)
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
	return playWith(t, "", env, args...)
}

// playWith is play with something on standard input.
func playWith(t *testing.T, in string, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := binaries(t)
	work := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(work, "short.scn"), []byte(short), 0o644))
	var o, e bytes.Buffer
	c := exec.Command(filepath.Join(dir, "enilab"), append([]string{"run", "--on", "netns"}, args...)...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr, c.Env = work, strings.NewReader(in), &o, &e, append(os.Environ(), env...)
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
	k := must.Get(vm.Open("", runtime.GOARCH))(t)
	m := &vm.Machine{Kernel: k, Image: vm.NewImage(), Self: filepath.Join(dir, "enilab"), Timeout: 10 * time.Minute, Quiet: 5 * time.Minute}
	change(m)
	must.Do(t, m.Prepare())
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
	must.Do(t, os.WriteFile(filepath.Join(work, "short.scn"), []byte(short), 0o644))
	c := exec.Command(filepath.Join(dir, "enilab"), "run", "--on", "netns", "--in", "vm", "short.scn")
	c.Dir, c.Env = work, append(os.Environ(), "ENILAB_VERBOSE=1")
	lines := must.Get(c.StderrPipe())(t)
	must.Do(t, c.Start())
	if _, err := bufio.NewReader(lines).ReadString('\n'); err != nil { // the machine runs
		t.Fatal(err)
	}
	children := must.Get(filepath.Glob("/proc/" + strconv.Itoa(c.Process.Pid) + "/task/*/children"))(t)
	var watched []unix.PollFd
	for _, name := range children {
		data, _ := os.ReadFile(name)
		for _, pid := range strings.Fields(string(data)) {
			n, _ := strconv.Atoi(pid)
			fd := must.Get(unix.PidfdOpen(n, 0))(t)
			defer unix.Close(fd)
			watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	must.Do(t, c.Process.Kill())
	_ = c.Wait()
	if len(watched) != 1 {
		t.Fatalf("expected one child, found %d", len(watched))
	}
	if n, err := unix.Poll(watched, 60_000); n != 1 || err != nil {
		t.Errorf("a minute after enilab was killed its machine runs: %v", err)
	}
}

// TestPauses: a machine that is paused is until then the one that is not, carries out what is on standard input, and gets there again.
func TestPauses(t *testing.T) {
	const commands = "cat report.txt\nip -n node-1 rule\nip netns exec router ip -br link\nenilab netns exec node-1 -- ls /run/aws-node\ncat /proc/uptime\nfalse\n"
	folders := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
	var outs [3]string
	var all sync.WaitGroup
	binaries(t)
	for k, folder := range folders {
		all.Go(func() {
			args := []string{"--in", "vm", "--seed", "3", "--out", folder, "short.scn"}
			if k > 0 {
				args = append(args, "--pause-at", "65s")
			}
			code, out, errs := playWith(t, commands, nil, args...)
			if code != 0 {
				t.Errorf("run %d: expected exit code 0, found %d\n%s%s", k, code, out, errs)
			}
			if k > 0 && (!strings.Contains(errs, "paused at 1m5.0") || !strings.Contains(errs, "node-1.web-") || !strings.Contains(errs, "is not judged to its end")) {
				t.Errorf("expected the instant, the namespaces and that nothing is judged, found\n%s", errs)
			}
			outs[k] = out
		})
	}
	all.Wait()
	if outs[1] != outs[2] {
		t.Errorf("expected that the same seed gets to the same instant, found\n%s\nand\n%s", outs[1], outs[2])
	}
	for _, want := range []string{"paused  short  at 1m5", "ahead  at 2m  line 7: ", "lookup main", "ipamd.sock"} {
		if !strings.Contains(outs[1], want) {
			t.Errorf("expected %q in\n%s", want, outs[1])
		}
	}
	for _, name := range []string{"console.txt", "short/1/timeline.txt", "short/1/ec2.jsonl", "short/1/router.pcap", "short/1/node-1.pcap"} {
		var data [3][]byte
		for k, folder := range folders {
			data[k] = must.Get(os.ReadFile(filepath.Join(folder, "seed-3", name)))(t)
		}
		if name == "console.txt" { // its last line is that of power-off
			for k := range data {
				data[k] = data[k][:bytes.LastIndexByte(bytes.TrimSpace(data[k]), '\n')]
			}
		}
		if !bytes.HasPrefix(data[0], data[1]) || len(data[1]) == 0 {
			t.Errorf("%s: expected that the run which is paused begins as the other, found %d and %d bytes that differ", name, len(data[1]), len(data[0]))
		}
		if !bytes.Equal(data[1], data[2]) {
			t.Errorf("%s: two runs that are paused at one instant differ", name)
		}
	}
}

// TestArm64: a machine of another architecture plays a scenario, twice in the same way.
func TestArm64(t *testing.T) {
	dir := binaries(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("is for a computer of amd64")
	}
	if os.Getenv("ENILAB_ARM64") == "" {
		t.Skip("takes minutes: ENILAB_ARM64=1 plays it")
	}
	if _, err := exec.LookPath("qemu-system-aarch64"); err != nil {
		t.Skip("needs qemu-system-aarch64 (apt-get install --no-install-recommends qemu-system-arm)")
	}
	if _, err := vm.Open("", "arm64"); err != nil {
		t.Skip(err)
	}
	if _, err := vm.Busybox("arm64"); err != nil {
		t.Skip(err)
	}
	code, _, errs := play(t, nil, "--in", "vm", "--arch", "arm64", "short.scn")
	if code != 3 || !strings.Contains(errs, "make build-arm64") {
		t.Errorf("expected that its programs are missing, found exit code %d\n%s", code, errs)
	}
	must.Do(t, build("arm64", filepath.Join(dir, "arm64")))
	code, out, errs := play(t, nil, "--in", "vm", "--arch", "arm64", "--twice", "short.scn")
	if code != 0 || !strings.HasPrefix(out, "held  short  ") || !strings.Contains(errs, "played twice, and all is the same: ") {
		t.Errorf("expected that it holds and repeats, found exit code %d\n%s%s", code, out, errs)
	}
	k := must.Get(vm.Open("", runtime.GOARCH))(t)
	code, _, errs = play(t, nil, "--in", "vm="+k.String(), "--arch", "arm64", "short.scn")
	if code != 2 || !strings.Contains(errs, "is for amd64, and the machine for arm64") {
		t.Errorf("expected that the kernel is refused, found exit code %d\n%s", code, errs)
	}
}

// TestTypes: somebody at a terminal types, sees what he types, and leaves; the machine's time stands meanwhile.
func TestTypes(t *testing.T) {
	dir := binaries(t)
	work := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(work, "short.scn"), []byte(short), 0o644))
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("needs a pseudo-terminal: ", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip("needs a pseudo-terminal: ", err)
	}
	master := os.NewFile(uintptr(fd), "master")
	defer master.Close()
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs a pseudo-terminal: ", err)
	}
	c := exec.Command(filepath.Join(dir, "enilab"), "run", "--on", "netns", "--in", "vm", "--pause-at", "1s", "short.scn")
	c.Dir, c.Stdin, c.Stdout, c.Stderr = work, slave, slave, slave
	must.Do(t, c.Start())
	_ = slave.Close()
	seen := bufio.NewReader(master)
	var text strings.Builder
	until := func(what string) {
		t.Helper()
		for !strings.HasSuffix(text.String(), what) {
			b, err := seen.ReadByte()
			if err != nil {
				_ = c.Process.Kill()
				t.Fatalf("expected %q, found the end after\n%s", what, text.String())
			}
			text.WriteByte(b)
		}
	}
	for _, typed := range []string{"echo $((6*7))x\r", "sleep 5; cat /proc/uptime | wc -l\r", "exit\r"} {
		until("# ")
		must.Get(master.WriteString(typed))(t)
		if strings.HasPrefix(typed, "echo") {
			until("42x")
		}
	}
	until("is not judged to its end\r\n")
	if err := c.Wait(); err != nil {
		t.Errorf("expected exit code 0, found %v\n%s", err, text.String())
	}
}
