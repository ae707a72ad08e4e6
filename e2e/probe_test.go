package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// execLimit bounds a command in a pod.
const execLimit = 2 * time.Minute

// run runs a shell script in a pod and returns what it printed; it goes by the API server, kubelet and the runtime, not by the pod's network.
func (b *bed) run(ctx context.Context, p *corev1.Pod, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	var out, errOut bytes.Buffer
	if err := b.stream(ctx, p, nil, &out, &errOut, "sh", "-c", script); err != nil {
		return out.String(), fmt.Errorf("in pod %s on %s: %s: %w: %s", p.Name, p.Spec.NodeName, script, err, strings.TrimSpace(out.String()+errOut.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// mustRun is run that fails the spec.
func (b *bed) mustRun(ctx context.Context, p *corev1.Pod, script string) string {
	GinkgoHelper()
	out, err := b.run(ctx, p, script)
	check(err)
	return out
}

// stream runs a command in a pod's first container until it ends.
func (b *bed) stream(ctx context.Context, p *corev1.Pod, in io.Reader, out, errOut io.Writer, command ...string) error {
	r := b.Client().CoreV1().RESTClient().Get().Resource("pods").Namespace(p.Namespace).Name(p.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: p.Spec.Containers[0].Name, Command: command,
			Stdin: in != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	e, err := remotecommand.NewWebSocketExecutor(b.REST(), http.MethodGet, r.URL().String())
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errOut})
}

func addresses(list ...netip.Addr) []netip.Addr { return list }
