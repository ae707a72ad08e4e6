package calls

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// TestMain makes this program a shim, or a plugin, by the folder that it was run from.
func TestMain(m *testing.M) {
	switch self := self(); filepath.Base(filepath.Dir(self)) {
	case RecorderFolder, "faults":
		Main()
	case "plugins":
		os.Exit(plugin(self))
	}
	os.Exit(m.Run())
}

// plugin says what it got, and does what CNI_ARGS say.
func plugin(self string) int {
	if os.WriteFile(self+".ran", nil, 0o600) != nil {
		return 2
	}
	stdin, _ := io.ReadAll(os.Stdin)
	fmt.Fprint(os.Stderr, "a word of warning\n")
	switch args := os.Getenv("CNI_ARGS"); {
	case strings.Contains(args, "fail"):
		fmt.Print(`{"cniVersion":"1.1.0","code":11,"msg":"no address"}`)
		return 1
	case strings.Contains(args, "die"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case strings.Contains(args, "hang"):
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
		time.Sleep(time.Hour)
	}
	fmt.Printf("%s %s %s", os.Getenv("CNI_COMMAND"), os.Getenv("OTHER"), stdin)
	return 0
}

// bench is a folder with a shim and a plugin.
func bench(t *testing.T) (root string, command func(ctx context.Context, args string) *exec.Cmd) {
	t.Helper()
	root = t.TempDir()
	self := must.Get(os.Executable())(t)
	for _, dir := range []string{RecorderFolder, "plugins"} {
		must.Do(t, os.Mkdir(filepath.Join(root, dir), 0o755))
		must.Do(t, os.Symlink(self, filepath.Join(root, dir, "aws-cni")))
	}
	return root, func(ctx context.Context, args string) *exec.Cmd {
		c := exec.CommandContext(ctx, filepath.Join(root, RecorderFolder, "aws-cni"))
		c.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_NETNS=/proc/self/ns/net",
			"CNI_PATH="+filepath.Join(root, RecorderFolder)+":"+filepath.Join(root, "plugins"),
			"CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_UID=u1;X="+args, "OTHER=env")
		c.Stdin = strings.NewReader(`{"cniVersion":"1.1.0","prevResult":{}}`)
		return c
	}
}

func recorded(t *testing.T, root string) []Call {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(root, RecorderFolder, RecordingFile)))(t)
	defer f.Close()
	return must.Get(Read(f))(t)
}

func TestPassesThroughAndRecords(t *testing.T) {
	root, command := bench(t)
	for _, c := range []struct {
		args, stdout string
		exit         int
	}{
		{"well", `ADD env {"cniVersion":"1.1.0","prevResult":{}}`, 0},
		{"fail", `{"cniVersion":"1.1.0","code":11,"msg":"no address"}`, 1},
		{"die", "", 128 + int(syscall.SIGKILL)},
	} {
		cmd := command(t.Context(), c.args)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != c.exit || stdout.String() != c.stdout || stderr.String() != "a word of warning\n" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", c.args, got, &stdout, &stderr)
		}
	}
	runs := recorded(t, root)
	if len(runs) != 3 {
		t.Fatalf("%d runs, expected 3", len(runs))
	}
	for i, want := range []string{"ok", "error 11", "killed"} {
		r := runs[i]
		if got := Text(runs[i : i+1]); !strings.Contains(got, "ADD eth0 "+netnsHere()+" prev 1.1.0: "+want+"\n") {
			t.Errorf("run %d: %s, expected %s", i, got, want)
		}
		if r.Plugin != "aws-cni" || r.Namespace != "default" || r.Pod != "web-0" || r.UID != "u1" || r.ContainerID != "c1" || r.Began.IsZero() {
			t.Errorf("run %d: %+v", i, r)
		}
	}
	if runs[1].Text != "no address" {
		t.Errorf("the error's text is %q", runs[1].Text)
	}
}

// netnsHere is what /proc/self/ns/net is: a namespace on Linux, and nothing elsewhere.
func netnsHere() string {
	if runtime.GOOS == "linux" {
		return "netns"
	}
	return "gone"
}

// A runtime's deadline is a SIGKILL: the plugin dies with the recorder, and the recording shows a call without an answer.
func TestKilledWithTheRecorder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs PR_SET_PDEATHSIG")
	}
	root, command := bench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(ctx, "hang")
	stderr := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	pid := 0
	for s := bufio.NewScanner(stderr); pid == 0 && s.Scan(); {
		if p, ok := strings.CutPrefix(s.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(p)
		}
	}
	if pid == 0 {
		t.Fatal("the plugin did not start")
	}
	cancel()
	_ = cmd.Wait()
	for end := time.Now().Add(20 * time.Second); alive(pid); {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("the plugin, process %d, lives 20 s after the recorder was killed", pid)
		}
		time.Sleep(time.Millisecond)
	}
	if runs := recorded(t, root); len(runs) != 1 || !runs[0].Killed() {
		t.Errorf("%+v, expected one call without an answer", runs)
	}
}

// alive: a process that is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// SIGTERM is the plugin's own affair.
func TestSignalsAreForwarded(t *testing.T) {
	root, command := bench(t)
	cmd := command(t.Context(), "hang")
	stderr := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	s := bufio.NewScanner(stderr)
	for s.Scan() && !strings.HasPrefix(s.Text(), "pid ") {
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %v", got, cmd.ProcessState)
	}
	raw, err := os.ReadFile(filepath.Join(root, RecorderFolder, RecordingFile))
	if err != nil || !strings.Contains(string(raw), `"signal":"terminated"`) {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestNothingBehind(t *testing.T) {
	root, command := bench(t)
	must.Do(t, os.Remove(filepath.Join(root, "plugins", "aws-cni")))
	out, err := command(t.Context(), "").Output()
	if err == nil || !strings.Contains(string(out), `"code":999`) || !strings.Contains(string(out), "no aws-cni behind this one") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "not found") || strings.Contains(string(out), "no such file") {
		t.Errorf("go-cni would take this for a DEL's success: %s", out)
	}
	if runs := recorded(t, root); len(runs) != 1 || !runs[0].Failed {
		t.Errorf("%+v", runs)
	}
}

// Where nothing can be written the plugin runs all the same.
func TestUnwritable(t *testing.T) {
	root, command := bench(t)
	must.Do(t, os.Mkdir(filepath.Join(root, RecorderFolder, RecordingFile), 0o755))
	out, err := command(t.Context(), "well").Output()
	if err != nil || !strings.HasPrefix(string(out), "ADD env") {
		t.Errorf("%v: %s", err, out)
	}
}
