package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	// maxConversations bounds what one pod answers at a time; more wait in the kernel's queue.
	maxConversations = 64
	// farewell is how long a peer may take to close its side.
	farewell = 2 * time.Second
	// acceptPause is between two tries to accept what could not be accepted.
	acceptPause = 10 * time.Millisecond
)

// responder answers on TCP ports ResponderPort and EchoPort of a pod's namespace. Its sockets keep the namespace alive, so none of them outlives it: all
// are closed without lingering, since the kernel would keep a connection whose peer is out of reach, and the namespace, for minutes.
type responder struct {
	listeners []net.Listener
	places    chan struct{}
	work      sync.WaitGroup // what accepts, and each conversation

	mu     sync.Mutex
	closed bool
	conns  map[*net.TCPConn]bool
}

// respond listens in the calling thread's network namespace. Accepted connections are in the listener's, whatever thread accepts.
func respond() (*responder, error) {
	return listen(map[int]func(*net.TCPConn){ResponderPort: tell, EchoPort: echo})
}

// Echo listens on TCP port EchoPort of the calling thread's network namespace and sends back what it is sent, until it is closed.
func Echo() (io.Closer, error) { return listen(map[int]func(*net.TCPConn){EchoPort: echo}) }

// Close ends all connections.
func (r *responder) Close() error {
	r.close()
	return nil
}

func listen(ports map[int]func(*net.TCPConn)) (*responder, error) {
	r := &responder{places: make(chan struct{}, maxConversations), conns: map[*net.TCPConn]bool{}}
	for port, answer := range ports {
		l, err := net.Listen("tcp4", ":"+strconv.Itoa(port))
		if err != nil {
			r.close()
			return nil, err
		}
		r.listeners = append(r.listeners, l)
		r.work.Go(func() { r.accept(l, answer) })
	}
	return r, nil
}

func (r *responder) accept(l net.Listener, answer func(*net.TCPConn)) {
	for {
		r.places <- struct{}{}
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no descriptor left: the pod is not dead for it
			time.Sleep(acceptPause)
			<-r.places
			continue
		}
		r.work.Go(func() { r.converse(c.(*net.TCPConn), answer) })
	}
}

func (r *responder) converse(c *net.TCPConn, answer func(*net.TCPConn)) {
	defer func() { <-r.places }()
	if !r.keep(c) {
		return
	}
	defer r.drop(c)
	answer(c)
}

// echo sends back what comes, until the peer has had enough or the pod ends. It hides from io.Copy that both ends are sockets: between those
// it would splice, with a pipe for each connection, which is for more than the single bytes of flows.
func echo(c *net.TCPConn) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{c}, make([]byte, echoBuffer))
}

// echoBuffer is how many bytes an echo takes at once.
const echoBuffer = 512

// tell says who the peer is.
func tell(c *net.TCPConn) {
	_ = c.SetDeadline(time.Now().Add(farewell))
	if peer, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		_, _ = io.WriteString(c, peer.Addr().String())
	}
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
}

func (r *responder) keep(c *net.TCPConn) bool {
	_ = c.SetLinger(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.conns[c] = true
	return true
}

func (r *responder) drop(c *net.TCPConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	_ = c.Close()
}

// close ends all connections, also one that was accepted a moment ago: no socket is left when it returns.
func (r *responder) close() {
	r.mu.Lock()
	r.closed = true
	for _, l := range r.listeners {
		_ = l.Close()
	}
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// ask is the other side.
func (h *helper) ask(a askArgs) (answer, error) {
	var out answer
	ctx, cancel := context.WithTimeout(context.Background(), a.Timeout)
	defer cancel()
	began := time.Now()
	err := h.within(a.From, func() error {
		d := net.Dialer{KeepAlive: -1}
		c, err := d.DialContext(ctx, "tcp4", a.To.String()) // one address: the socket is made by this very goroutine
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.SetDeadline(began.Add(a.Timeout))
		text, err := io.ReadAll(io.LimitReader(c, 1<<10))
		out.Text = string(text)
		return err
	})
	out.Took = time.Since(began)
	if err != nil {
		return out, fmt.Errorf("ask %v: %w", a.To, err)
	}
	return out, nil
}
