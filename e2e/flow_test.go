package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// Times of a flow.
const (
	flowPeriod   = 250 * time.Millisecond // between lines
	flowPatience = 20 * time.Second       // for a line's echo: some of TCP's retransmissions
)

// flow is one TCP connection to a pod's echoPort, used all the time. It never reconnects: when it is lost, it is lost.
type flow struct {
	name  string
	close func()
	done  chan struct{}

	mu      sync.Mutex
	lines   int
	longest time.Duration // that an echo took
	err     error
}

// openFlow connects to a pod from outside of its node, as another machine of the VPC.
func (b *bed) openFlow(ctx context.Context, p *corev1.Pod) *flow {
	GinkgoHelper()
	return dialFlow(ctx, b.witness(), p)
}

// openNodeFlow connects a node to a pod.
func (b *bed) openNodeFlow(ctx context.Context, from *cluster.Node, p *corev1.Pod) *flow {
	GinkgoHelper()
	return dialFlow(ctx, host(from), p)
}

func dialFlow(ctx context.Context, from origin, p *corev1.Pod) *flow {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := from.dial(ctx, netip.AddrPortFrom(addressOf(p), echoPort))
	check(err, "open a flow from ", from.name, " to pod ", p.Name)
	return follow(from.name+" -> "+p.Name, conn, func() { _ = conn.Close() })
}

// openPodFlow connects a pod to another one.
func (b *bed) openPodFlow(ctx context.Context, from, to *corev1.Pod) *flow {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	in, w := io.Pipe()
	r, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := b.stream(ctx, from, in, out, io.Discard, peer, "pipe", netip.AddrPortFrom(addressOf(to), echoPort).String())
		_ = out.CloseWithError(errors.Join(errors.New("peer ended"), err))
		_ = in.CloseWithError(errors.New("peer ended"))
	}()
	return follow(from.Name+" -> "+to.Name, pipes{r, w}, func() {
		_ = w.Close() // and so peer ends
		select {
		case <-ended:
		case <-time.After(flowPatience):
		}
		_ = r.Close()
		cancel()
		<-ended
	})
}

type pipes struct {
	io.Reader
	io.Writer
}

// follow keeps a flow busy until the end of the spec or container that opened it.
func follow(name string, rw io.ReadWriter, closer func()) *flow {
	f := &flow{name: name, done: make(chan struct{})}
	stop := make(chan struct{})
	f.close = sync.OnceFunc(func() { close(stop); closer(); <-f.done })
	DeferCleanup(f.close)
	go f.run(rw, stop)
	return f
}

func (f *flow) run(rw io.ReadWriter, stop chan struct{}) {
	defer close(f.done)
	echoes := make(chan string)
	go func() {
		defer close(echoes)
		for s := bufio.NewScanner(rw); s.Scan(); {
			select {
			case echoes <- s.Text():
			case <-f.done:
			}
		}
	}()
	for i := 0; ; i++ {
		line := fmt.Sprintf("%s %d", f.name, i)
		begin := time.Now()
		if _, err := fmt.Fprintln(rw, line); err != nil {
			f.end(stop, fmt.Errorf("line %d: %w", i, err))
			return
		}
		select {
		case echo, ok := <-echoes:
			if !ok || echo != line {
				f.end(stop, fmt.Errorf("line %d: expected its echo, found %q, open %t", i, echo, ok))
				return
			}
			f.echoed(time.Since(begin))
		case <-time.After(flowPatience):
			f.end(stop, fmt.Errorf("line %d: no echo within %v", i, flowPatience))
			return
		case <-stop:
			return
		}
		select {
		case <-time.After(flowPeriod):
		case <-stop:
			return
		}
	}
}

func (f *flow) echoed(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines++
	f.longest = max(f.longest, took)
}

// end notes what ended the flow, unless it was closed.
func (f *flow) end(stop chan struct{}, err error) {
	select {
	case <-stop:
		return
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// lost is why the flow is no more; nil: it goes on.
func (f *flow) lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return fmt.Errorf("flow %s was lost: %w", f.name, f.err)
	}
	return nil
}

// passed is how many lines came back so far.
func (f *flow) passed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines
}

// slowest is the longest that an echo took so far.
func (f *flow) slowest() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.longest
}

// mustGoOn fails the spec unless every flow has another line come back from now on.
func mustGoOn(ctx context.Context, flows []*flow) {
	GinkgoHelper()
	before := map[*flow]int{}
	for _, f := range flows {
		before[f] = f.passed()
	}
	for _, f := range flows {
		await(ctx, flowPatience+time.Minute, "flow "+f.name+" to go on", func(context.Context) (string, error) {
			if err := f.lost(); err != nil {
				Fail(err.Error())
			}
			if f.passed() > before[f]+1 {
				return "", nil
			}
			return fmt.Sprintf("%d lines have passed", f.passed()), nil
		})
	}
}
