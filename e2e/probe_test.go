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

	"github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/lab/fabric"
)

// execLimit bounds a command in a pod.
const execLimit = 2 * time.Minute

// slowExec is worth a line of progress.
const slowExec = 5 * time.Second

// run runs a shell script in a pod and returns what it printed; it goes by the API server, kubelet and the runtime, not by the pod's network.
func (b *bed) run(ctx context.Context, p *corev1.Pod, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	begin := time.Now()
	defer func() {
		if took := time.Since(begin); took > slowExec {
			say(fmt.Sprintf("%s took %v for: %s", p.Name, took.Round(time.Millisecond), script))
		}
	}()
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

// answer is what httpPort tells: who it is, and who has asked.
type answer struct{ server, peer string }

func (a answer) String() string { return a.server + " sees " + a.peer }

func parseAnswer(line string) answer {
	server, peer, _ := strings.Cut(strings.TrimSpace(line), " ")
	return answer{server, peer}
}

// ask lets a pod ask httpPorts, in one command; one that is not answered has an empty answer.
func (b *bed) ask(ctx context.Context, from *corev1.Pod, to ...netip.AddrPort) ([]answer, error) {
	var script strings.Builder
	for _, t := range to {
		fmt.Fprintf(&script, "echo $(ask %s %d)\n", t.Addr(), t.Port())
	}
	text, err := b.run(ctx, from, script.String())
	lines := strings.Split(text, "\n")
	out := make([]answer, len(to))
	for i := range min(len(lines), len(out)) {
		out[i] = parseAnswer(lines[i])
	}
	return out, err
}

// expectAnswers lets a pod ask, and says which answers are others than expected.
func (b *bed) expectAnswers(ctx context.Context, from *corev1.Pod, to []netip.AddrPort, expected []answer) error {
	found, err := b.ask(ctx, from, to...)
	errs := []error{err}
	for i := range found {
		if found[i] != expected[i] {
			errs = append(errs, fmt.Errorf("%s asks %v: expected %q, found %q", from.Name, to[i], expected[i], found[i]))
		}
	}
	return errors.Join(errs...)
}

// dialLimit bounds a connection from outside of pods, and what is said in it.
const dialLimit = time.Minute

// origin opens connections: the VPC's witness, a node, this machine.
type origin struct {
	name string
	addr string // what a pod sees, if nobody translates it
	dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// witness is a machine of the VPC that is no node.
func (b *bed) witness() origin {
	return origin{"the VPC", b.Fabric().Witness().String(), b.Fabric().Dial}
}

// host is the network of a node.
func host(n *kind.Node) origin {
	return origin{n.Name, n.Address.String(), func(ctx context.Context, to netip.AddrPort) (conn net.Conn, err error) {
		e := fabric.Do(n.Netns(), func() error {
			var d net.Dialer
			d.SetMultipathTCP(false)
			conn, err = d.DialContext(ctx, "tcp4", to.String())
			return nil
		})
		return conn, errors.Join(e, err)
	}}
}

// ask asks an httpPort.
func (o origin) ask(ctx context.Context, to netip.AddrPort) (answer, error) {
	raw, err := o.say(ctx, to, []byte("GET /cgi-bin/who HTTP/1.0\r\n\r\n"))
	if err != nil {
		return answer{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return parseAnswer(lines[len(lines)-1]), nil
}

// expect asks, and says if the answer is another one.
func (o origin) expect(ctx context.Context, to netip.AddrPort, expected answer) error {
	found, err := o.ask(ctx, to)
	if err == nil && found != expected {
		err = fmt.Errorf("%s asks %v: expected %q, found %q", o.name, to, expected, found)
	}
	return err
}

// echo sends a payload to an echoPort, which has to come back.
func (o origin) echo(ctx context.Context, to netip.AddrPort, payload []byte) error {
	back, err := o.say(ctx, to, payload)
	if err == nil && !bytes.Equal(back, payload) {
		err = fmt.Errorf("from %s to %v: of %d bytes %d came back, or others", o.name, to, len(payload), len(back))
	}
	return err
}

// say sends something and returns all that is answered.
func (o origin) say(ctx context.Context, to netip.AddrPort, what []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := o.dial(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("from %s to %v: %w", o.name, to, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	go func() {
		_, _ = conn.Write(what)
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
	}()
	out, err := io.ReadAll(conn)
	if err != nil {
		return out, fmt.Errorf("from %s to %v: %w", o.name, to, err)
	}
	return out, nil
}
