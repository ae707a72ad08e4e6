package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/vpc"
)

// execLimit bounds a command in a pod.
const execLimit = 2 * time.Minute

// slowExec is worth a line of progress.
const slowExec = 5 * time.Second

// run runs a command in a pod and returns what it printed; it goes by the API server, kubelet and the runtime, not by the pod's network.
func (b *bed) run(ctx context.Context, p *corev1.Pod, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	begin := time.Now()
	defer func() {
		if took := time.Since(begin); took > slowExec {
			say(fmt.Sprintf("%s took %v for %q", p.Name, took.Round(time.Millisecond), command))
		}
	}()
	var out, errOut bytes.Buffer
	if err := b.stream(ctx, p, nil, &out, &errOut, command...); err != nil {
		return out.String(), fmt.Errorf("in pod %s on %s: %q: %w: %s", p.Name, p.Spec.NodeName, command, err, strings.TrimSpace(out.String()+errOut.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// mustRun is run that fails the spec.
func (b *bed) mustRun(ctx context.Context, p *corev1.Pod, command ...string) string {
	GinkgoHelper()
	out := got(b.run(ctx, p, command...))
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

// question is an argument of one of peer's clients, and the answer that there should be.
type question struct{ to, expected string }

// who is a question to an httpPort.
func who(to netip.AddrPort, name, peer string) question {
	return question{to.String(), name + " " + peer}
}

// expect lets a pod ask questions, all at once, and says which answers are others.
func (b *bed) expect(ctx context.Context, from *corev1.Pod, client string, list ...question) error {
	args := []string{peer, client}
	for _, q := range list {
		args = append(args, q.to)
	}
	found, err := b.answers(ctx, from, args...)
	if err != nil {
		return err
	}
	var errs []error
	for i, q := range list {
		if found[i] != q.expected {
			errs = append(errs, fmt.Errorf("%s on %s: %s %s: expected %q, found %q", from.Name, from.Spec.NodeName, client, q.to, q.expected, found[i]))
		}
	}
	return join(errs...)
}

// answers runs one of peer's clients in a pod.
func (b *bed) answers(ctx context.Context, from *corev1.Pod, command ...string) ([]string, error) {
	text, err := b.run(ctx, from, command...)
	if err != nil {
		return nil, err
	}
	lines, args := strings.Split(text, "\n"), command[2:]
	if len(lines) != len(args) {
		return nil, fmt.Errorf("%s: %d questions, %d answers: %s", from.Name, len(args), len(lines), text)
	}
	for i, arg := range args {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(lines[i], arg))
	}
	return lines, nil
}

// dialLimit bounds a connection from outside of pods, and what is said in it: some of TCP's retransmissions.
const dialLimit = 30 * time.Second

// origin opens connections: the VPC's witness, a node, this machine.
type origin struct {
	name string
	addr string // what a pod sees, if nobody translates it
	dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// witness is a machine of the VPC that is no node.
func (b *bed) witness() origin {
	return origin{"the VPC", b.Network().Witness().String(), b.Network().Dial}
}

// host is the network of a node.
func host(n *cluster.Node) origin {
	return origin{n.Name, n.Address.String(), func(ctx context.Context, to netip.AddrPort) (conn net.Conn, err error) {
		e := vpc.Do(n.Netns(), func() error {
			var d net.Dialer
			d.SetMultipathTCP(false)
			conn, err = d.DialContext(ctx, "tcp4", to.String())
			return nil
		})
		return conn, errors.Join(e, err)
	}}
}

// origins are the VPC and the networks of all nodes.
func (b *bed) origins() []origin {
	out := []origin{b.witness()}
	for _, n := range b.Nodes() {
		out = append(out, host(n))
	}
	return out
}

// ask asks an httpPort.
func (o origin) ask(ctx context.Context, to netip.AddrPort) (string, error) {
	c := &http.Client{Timeout: dialLimit, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return o.dial(ctx, to) }}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.String()+"/who", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", fmt.Errorf("from %s: %w", o.name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("from %s to %v: %w", o.name, to, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// expect asks, and says if the answer is another one.
func (o origin) expect(ctx context.Context, to netip.AddrPort, name, peer string) error {
	found, err := o.ask(ctx, to)
	if err == nil && found != name+" "+peer {
		err = fmt.Errorf("from %s to %v: expected that %s sees %s, found %q", o.name, to, name, peer, found)
	}
	return err
}

// echo sends a payload to an echoPort, which has to come back.
func (o origin) echo(ctx context.Context, to netip.AddrPort, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := o.dial(ctx, to)
	if err != nil {
		return fmt.Errorf("from %s to %v: %w", o.name, to, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	go func() {
		_, _ = conn.Write(payload)
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
	}()
	back, err := io.ReadAll(conn)
	if err == nil && !bytes.Equal(back, payload) {
		err = errors.New("others came back")
	}
	if err != nil {
		return fmt.Errorf("from %s to %v: of %d bytes %d came back: %w", o.name, to, len(payload), len(back), err)
	}
	return nil
}
