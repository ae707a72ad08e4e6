package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/e2e/calls"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// bench is a worker with recorders in front of both plugins.
type bench struct {
	c     *cluster.Cluster
	node  *cluster.Node
	pods  int
	round int
}

// Where the recorders are, and the network configuration that hides ours while it is there: a runtime takes the first.
const (
	shims     = "/opt/enilab-bench/" + calls.RecorderFolder
	realDir   = "/opt/cni/bin"
	recording = shims + "/" + calls.RecordingFile
	ptpConf   = "/etc/cni/net.d/00-ptp.conflist"
)

const ptpConflist = `{"cniVersion":"0.4.0","cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"ptp","plugins":[
  {"type":"ptp","mtu":9001,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}`

func newBench(ctx context.Context, c *cluster.Cluster, pods int) (*bench, error) {
	b := &bench{c: c, node: c.Workers()[0], pods: pods}
	// ptp and host-local are built from the module: a node image's own may be older than CNI 1.1.
	const plugins = "github.com/containernetworking/plugins/plugins/"
	for program, paths := range map[string][]string{
		plugins + "main/ptp": {realDir + "/ptp"}, plugins + "ipam/host-local": {realDir + "/host-local"}, calls.Shim: {shims + "/ptp", shims + "/aws-cni"},
	} {
		binary, err := calls.Compile(ctx, program)
		if err != nil {
			return nil, err
		}
		for _, to := range paths {
			if err := b.put(to, binary, 0o755); err != nil {
				return nil, err
			}
		}
	}
	config, err := os.OpenFile(b.path("/etc/containerd/config.toml"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(config, "\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\n  bin_dirs = [%q, %q]\n", shims, realDir)
	if err = errors.Join(err, config.Close()); err != nil {
		return nil, err
	}
	if _, err := b.node.Exec(ctx, "systemctl", "restart", "containerd"); err != nil {
		return nil, err
	}
	return b, b.filled(ctx)
}

// path is where the host sees a path of the node.
func (b *bench) path(p string) string { return b.node.Root() + p }

// put replaces a file in the node.
func (b *bench) put(path string, raw []byte, mode os.FileMode) error {
	path = b.path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", raw, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// filled waits until the node has its pool, so that no pod waits for EC2.
func (b *bench) filled(ctx context.Context) error {
	return wait(ctx, "the pool to be filled", func() (bool, error) {
		n := 0
		b.c.Cloud(func(_ time.Duration, m *ec2.Cloud) {
			for _, id := range m.AttachedENIs(b.node.Instance) {
				e, _ := m.ENI(id)
				n += len(e.Secondaries)
			}
		})
		return n >= 2*b.pods+10, nil
	})
}

func (b *bench) withOurs(ctx context.Context, r *result) error { return b.start(ctx, "aws-cni", r) }

func (b *bench) withPTP(ctx context.Context, r *result) error {
	if err := b.put(ptpConf, []byte(ptpConflist), 0o644); err != nil {
		return err
	}
	err := b.start(ctx, "ptp", r)
	return errors.Join(err, os.Remove(b.path(ptpConf)))
}

// start starts the pods at once, and removes them when all run.
func (b *bench) start(ctx context.Context, plugin string, r *result) error {
	b.round++
	if err := os.WriteFile(b.path(recording), nil, 0o600); err != nil {
		return err
	}
	since := time.Now()
	var all sync.WaitGroup
	errs := make([]error, b.pods)
	for i := range b.pods {
		all.Go(func() {
			_, errs[i] = b.c.Client().CoreV1().Pods("default").Create(ctx, b.pod(fmt.Sprintf("%s-%d-%d", plugin, b.round, i)), metav1.CreateOptions{})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	selector := metav1.ListOptions{LabelSelector: fmt.Sprintf("round=r%d", b.round)}
	err := wait(ctx, fmt.Sprintf("%d pods with %s to run", b.pods, plugin), func() (bool, error) {
		list, err := b.c.Client().CoreV1().Pods("default").List(ctx, selector)
		if err != nil {
			return false, err
		}
		running := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == b.pods, nil
	})
	if err != nil {
		return err
	}
	if err := b.read(ctx, plugin, since, r); err != nil {
		return err
	}
	zero := int64(0)
	if err := b.c.Client().CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, selector); err != nil {
		return err
	}
	return wait(ctx, "the sandboxes to be gone", func() (bool, error) {
		text, err := b.node.Exec(ctx, "sh", "-c", "ls /run/netns | wc -l") // a forced deletion goes on in kubelet
		return text == fmt.Sprint(b.others(ctx)), err
	})
}

// others are the namespaces of pods that are not the benchmark's.
func (b *bench) others(ctx context.Context) int {
	list, err := b.c.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + b.node.Name})
	if err != nil {
		return -1
	}
	n := 0
	for i := range list.Items {
		if !list.Items[i].Spec.HostNetwork {
			n++
		}
	}
	return n
}

func (b *bench) pod(name string) *corev1.Pod {
	zero := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"round": fmt.Sprintf("r%d", b.round)}},
		Spec: corev1.PodSpec{NodeName: b.node.Name, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{
			Name: "c", Image: "docker.io/library/busybox:1.35", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "infinity"}}}},
	}
}

// asked is containerd's line about a sandbox that kubelet wants.
var asked = regexp.MustCompile(`time="([^"]+)".*RunPodSandbox for &PodSandboxMetadata\{Name:([^,]+),`)

// read takes the round's times from containerd's log and the recording.
func (b *bench) read(ctx context.Context, plugin string, since time.Time, r *result) error {
	log, err := b.node.Exec(ctx, "journalctl", "--unit", "containerd", "--output", "cat", "--since", since.UTC().Add(-time.Second).Format("2006-01-02 15:04:05"))
	if err != nil {
		return err
	}
	begun := map[string]time.Time{}
	for _, m := range asked.FindAllStringSubmatch(log, -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			return fmt.Errorf("containerd's log: %w", err)
		}
		if _, again := begun[m[2]]; !again {
			begun[m[2]] = at
		}
	}
	raw, err := os.ReadFile(b.path(recording))
	if err != nil {
		return err
	}
	runs := map[string]calls.Line{}
	var first, last time.Time
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var l calls.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		if !l.End {
			runs[l.Run] = l
			continue
		}
		begin, ok := runs[l.Run]
		_, pod, _ := strings.Cut(calls.PodOf(begin.Env["CNI_ARGS"]), "/")
		if !ok || begin.Env["CNI_COMMAND"] != "ADD" || !strings.HasPrefix(pod, fmt.Sprintf("%s-%d-", plugin, b.round)) {
			continue
		}
		if l.Exit != 0 {
			return fmt.Errorf("an ADD of %s failed: %s", pod, l.Stdout)
		}
		from, ok := begun[pod]
		if !ok {
			return fmt.Errorf("containerd's log does not say when it was asked for %s", pod)
		}
		end := time.Unix(0, l.At)
		r.sandbox = append(r.sandbox, end.Sub(from))
		r.plugin = append(r.plugin, end.Sub(time.Unix(0, begin.At)))
		if first.IsZero() || from.Before(first) {
			first = from
		}
		if end.After(last) {
			last = end
		}
		n++
	}
	if n != b.pods {
		return fmt.Errorf("the recording has %d of %d ADDs of %s", n, b.pods, plugin)
	}
	r.all = append(r.all, last.Sub(first))
	return lines.Err()
}

// limit bounds each thing that is waited for.
const limit = 5 * time.Minute

func wait(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited for %s: %w", what, ctx.Err()), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
