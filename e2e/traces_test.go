package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// trace is one thing that a cluster had on this machine. Other people's containers and links come and go meanwhile, so it is not the whole
// machine that is compared before and after.
type trace struct{ Kind, Name string }

func (t trace) String() string { return t.Kind + " " + t.Name }

// traces are those of all clusters of a process, or of all processes.
type traces struct {
	Left []trace
	End  time.Duration // of the last cluster, on CLOCK_BOOTTIME
}

// tracesOf are a cluster's that is up.
func tracesOf(ctx context.Context, c *cluster.Cluster) ([]trace, error) {
	ids, err := docker(ctx, "container", "ps", "--all", "--quiet", "--no-trunc", "--filter", "network="+c.Name())
	if err != nil {
		return nil, err
	}
	out := []trace{{"file", c.Kubeconfig()}, {"file", filepath.Dir(c.Kubeconfig())}}
	for _, id := range ids {
		out = append(out, trace{"container", id})
		list, err := containerTraces(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	networks, err := docker(ctx, "network", "ls", "--quiet", "--no-trunc", "--filter", "name=^"+c.Name()+"$")
	if err != nil {
		return nil, err
	}
	if len(networks) != 1 {
		return nil, fmt.Errorf("%d networks are named %s: expected one", len(networks), c.Name())
	}
	bridge := "br-" + networks[0][:12]
	out = append(out, trace{"network", networks[0]}, trace{"link", bridge})
	ports, err := filepath.Glob("/sys/class/net/" + bridge + "/brif/*")
	if err != nil {
		return nil, err
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("no link is in %s, the bridge of the network %s", bridge, c.Name())
	}
	for _, p := range ports {
		out = append(out, trace{"link", filepath.Base(p)})
	}
	return out, nil
}

// containerTraces are a container's volumes and namespaces, and those of the pods in it.
func containerTraces(ctx context.Context, id string) ([]trace, error) {
	said, err := docker(ctx, "container", "inspect", "--format", `{{.State.Running}} {{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}`, id)
	if err != nil {
		return nil, err
	}
	var out []trace
	for _, v := range said[1:] {
		out = append(out, trace{"volume", v})
	}
	if said[0] != "true" { // a machine whose instance is terminated
		return out, nil
	}
	pids, err := docker(ctx, "container", "top", id, "-o", "pid")
	if err != nil || len(pids) < 2 {
		return out, err
	}
	host, err := namespacesOf("self")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, pid := range pids[1:] {
		list, err := namespacesOf(pid)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a process that has just ended
			return nil, err
		}
		for _, ns := range list {
			if !seen[ns] && !slices.Contains(host, ns) {
				seen[ns] = true
				out = append(out, trace{"namespace", ns})
			}
		}
	}
	return out, nil
}

// namespacesOf are what a process is in, as the kernel names them: net:[4026531840].
func namespacesOf(pid string) ([]string, error) {
	var out []string
	for _, kind := range []string{"net", "mnt", "pid", "ipc", "uts"} {
		ns, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
		if err != nil {
			return nil, err
		}
		out = append(out, ns)
	}
	return out, nil
}

// there are those of the traces that are still there.
func (all *traces) there(ctx context.Context) ([]string, error) {
	ids := map[string][]string{}
	for kind, args := range map[string][]string{
		"container": {"container", "ls", "--all", "--quiet", "--no-trunc"},
		"network":   {"network", "ls", "--quiet", "--no-trunc"},
		"volume":    {"volume", "ls", "--quiet"},
	} {
		var err error
		if ids[kind], err = docker(ctx, args...); err != nil {
			return nil, err
		}
	}
	namespaces, err := allNamespaces(ids["container"], all.End)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range all.Left {
		is := slices.Contains(ids[t.Kind], t.Name)
		switch t.Kind {
		case "namespace":
			is = namespaces[t.Name]
		case "link":
			is = exists("/sys/class/net/" + t.Name)
		case "file":
			is = exists(t.Name)
		}
		if is {
			out = append(out, t.String())
		}
	}
	return out, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// allNamespaces are those that a process is in or has open, this one too. The kernel gives a namespace's number to a later one: a process
// that was started after the clusters' end holds another one, and so does one in a container, for theirs are gone.
func allNamespaces(containers []string, end time.Duration) (map[string]bool, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, p := range processes {
		if begin, err := started(p); err != nil || begin > end || inContainer(p, containers) {
			continue
		}
		for _, pattern := range []string{"/ns/*", "/fd/*"} {
			list, err := filepath.Glob(p + pattern)
			if err != nil {
				return nil, err
			}
			for _, f := range list {
				if to, err := os.Readlink(f); err == nil {
					out[to] = true
				}
			}
		}
	}
	return out, nil
}

// ticksPerSecond is USER_HZ, which is the same wherever Linux runs today.
const ticksPerSecond = 100

// started is when a process was, since boot: proc_pid_stat(5).
func started(proc string) (time.Duration, error) {
	raw, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("%s/stat has %d fields after the name: expected 20 and more", proc, len(fields))
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	return time.Duration(ticks) * time.Second / ticksPerSecond, err
}

// inContainer says whether a process is in one of Docker's containers: their IDs are in the names of cgroups.
func inContainer(proc string, ids []string) bool {
	raw, err := os.ReadFile(proc + "/cgroup")
	return err == nil && slices.ContainsFunc(ids, func(id string) bool { return bytes.Contains(raw, []byte(id)) })
}

// leftLimit: the kernel ends namespaces in the background.
const leftLimit = time.Minute

// writeTraces hands on what this process's clusters had to the process that is the last.
func (s *site) writeTraces(SpecContext) {
	suite, _ := GinkgoConfiguration()
	check(write(filepath.Join(s.ends, fmt.Sprintf("%d.json", suite.ParallelProcess)), got(json.Marshal(s.traces))))
}

// nothingLeft proves that nothing of all processes' clusters is on this machine any more.
func (s *site) nothingLeft(ctx SpecContext) {
	var all traces
	for _, f := range got(filepath.Glob(filepath.Join(s.ends, "*.json"))) {
		var of traces
		check(json.Unmarshal(got(os.ReadFile(f)), &of))
		all.Left, all.End = append(all.Left, of.Left...), max(all.End, of.End)
	}
	say(fmt.Sprintf("%d containers, networks, volumes, links, namespaces and files must be gone", len(all.Left)))
	await(ctx, leftLimit, "everything of the clusters to be gone", func(ctx context.Context) (string, error) {
		there, err := all.there(ctx)
		if err != nil || len(there) == 0 {
			return "", err
		}
		return strings.Join(there, ", ") + " are left", nil
	})
}

// docker runs Docker's client and returns the words that it printed.
func docker(ctx context.Context, args ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("docker %s: %w", strings.Join(args[:2], " "), err)
	}
	return strings.Fields(string(out)), nil
}
