package calls

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// record stands in front of a plugin and writes down what a runtime calls it with and what it answers: Line twice for a run. It changes
// nothing: stdin, environment, stdout, stderr and exit code pass through, and killing it kills the plugin. Every plugin that is recorded in
// one folder is in one recording.
func record(self string) (exit int) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fail(nil, 5, fmt.Sprintf("recorder: read the network configuration: %v", err)) // 5: I/O failure
	}
	file := filepath.Join(filepath.Dir(self), RecordingFile)
	began := time.Now()
	run := fmt.Sprintf("%d-%d", os.Getpid(), began.UnixNano())
	plugin, ok := next(self, os.Getenv("CNI_PATH"))
	put(file, &Line{
		Run: run, At: began.UnixNano(), Plugin: plugin, Env: environment(), Stdin: string(stdin),
		Netns: netnsAt(os.Getenv("CNI_NETNS")),
	})
	end := Line{Run: run, End: true}
	var o outcome
	if ok {
		o, err = execute(plugin, stdin)
	} else {
		err = fmt.Errorf("no %s behind this one in CNI_PATH=%s; install the plugin, or take the recorder away", filepath.Base(self), os.Getenv("CNI_PATH"))
	}
	if err != nil {
		end.Error = err.Error()
	}
	end.At, end.Exit, end.Signal, end.Stdout, end.Stderr = time.Now().UnixNano(), o.Exit, o.Signal, string(o.Stdout), string(o.Stderr)
	put(file, &end)
	if err != nil {
		return fail(stdin, 999, "recorder: "+err.Error())
	}
	_, _ = os.Stdout.Write(o.Stdout) // whoever wanted it has gone
	return o.Exit
}

// put writes a line. A plugin runs also where nothing can be recorded.
func put(file string, l *Line) {
	if err := l.Append(file); err != nil {
		fmt.Fprintf(os.Stderr, "recorder: %v\n", err)
	}
}

// environment is what the runtime tells a plugin.
func environment() map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "CNI_") {
			env[k] = v
		}
	}
	return env
}
