package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// inode of the calling thread's network namespace, or of the file's.
func inode(t testing.TB, ns *os.File) uint64 {
	t.Helper()
	var s unix.Stat_t
	if ns == nil {
		must.Do(t, unix.Stat("/proc/thread-self/ns/net", &s))
		return s.Ino
	}
	must.Do(t, control(ns, func(fd int) error { return unix.Fstat(fd, &s) }))
	return s.Ino
}

func TestDo(t *testing.T) {
	needRoot(t)
	ns := must.Get(NewNamespace())(t)
	other := must.Get(NewNamespace())(t)
	defer func() { _, _ = ns.Close(), other.Close() }()
	host, in, sentinel := inode(t, nil), inode(t, ns), errors.New("f's")
	if in == host {
		t.Fatal("the new namespace is the host's")
	}
	if err := Do(ns, func() error {
		if got := inode(t, nil); got != in {
			t.Errorf("Do runs in %d, expected %d", got, in)
		}
		return errors.Join(sentinel, Do(other, func() error {
			if got := inode(t, nil); got == in || got == host {
				t.Errorf("Do in Do runs in %d", got)
			}
			return nil
		}))
	}); !errors.Is(err, sentinel) {
		t.Errorf("error %v, expected f's", err)
	}
	func() {
		defer func() {
			if r := recover(); r != "f's" {
				t.Errorf("recovered %v, expected f's panic", r)
			}
		}()
		_ = Do(ns, func() error { panic("f's") })
	}()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_ = Do(ns, func() error { runtime.Goexit(); return nil })
		t.Error("Goexit in f did not end the caller")
	}()
	<-ended
	// A thread whose way home is barred must not be used again.
	threads := make(chan int, 1)
	must.Do(t, Do(ns, func() error {
		threads <- unix.Gettid()
		return unix.Setns(int(other.Fd()), unix.CLONE_NEWNET) // and it comes home from anywhere
	}))
	<-threads
	for range 200 {
		if got := inode(t, nil); got != host {
			t.Fatalf("a thread was left in %d", got)
		}
		done := make(chan bool)
		go func() { close(done) }()
		<-done
	}
	if err := Do(nil, func() error { return nil }); err == nil {
		t.Error("Do in a nil file succeeded")
	}
	pipe, _, err := os.Pipe()
	must.Do(t, err)
	if err := Do(pipe, func() error { t.Error("f ran"); return nil }); err == nil {
		t.Error("Do in a pipe succeeded")
	}
	_ = pipe.Close()
}

func descriptors(t testing.TB) int {
	t.Helper()
	all := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(all)
}

// life is everything that a VPC does, once.
func life(t testing.TB, f *Network, node *os.File) {
	must.Do(t, f.Plug(node, "eth0", macA, 9001))
	must.Do(t, f.Assign(macA, ip("10.0.1.10")))
	f.Ping([]netip.Addr{f.Witness()}, patience)
	c := must.Get(f.Dial(t.Context(), f.InternetAddr()))(t)
	if got, err := io.ReadAll(c); err != nil || string(got) != f.Witness().String() {
		t.Errorf("the internet says %q, %v; expected %v", got, err, f.Witness())
	}
	packets := must.Get(f.Capture(t.Context(), macA))(t)
	must.Do(t, f.Close()) // with a capture, a connection, a cable
	for range packets {
	}
}

func TestNothingGrows(t *testing.T) {
	needRoot(t)
	lives := func(n int) { // five at a time: they mostly wait for the kernel
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				node := must.Get(NewNamespace())(t)
				for range n / 5 {
					f := must.Get(New(config()))(t)
					life(t, f, node)
				}
				must.Do(t, node.Close())
			})
		}
		all.Wait()
	}
	lives(5) // what the runtime opens once is open
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	lives(100)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := descriptors(t); now > files {
		t.Errorf("%d descriptors are open after 100 lives, %d before", now, files)
	}
}

func TestClosed(t *testing.T) {
	f := newNetwork(t)
	node := newInstance(t, f)
	node.eth(0, macA, sn1, "10.0.1.10")
	must.Do(t, f.Close())
	if node.index("eth0") != 0 {
		t.Error("eth0 is still there after Close")
	}
	_, dial := f.Dial(context.Background(), f.InternetAddr())
	_, capture := f.Capture(context.Background(), "any")
	for i, err := range []error{f.Plug(node.ns, "eth0", macA, 9001), f.Unplug(macA), f.Assign(macA, ip("10.0.1.10")), f.Unassign(ip("10.0.1.10")), dial, capture} {
		if err == nil {
			t.Errorf("operation %d succeeded on a closed VPC", i)
		}
	}
	if f.Ping([]netip.Addr{ip("10.0.1.10")}, patience)[0] {
		t.Error("a closed VPC answers")
	}
}

func TestCloseTwice(t *testing.T) {
	f := newNetwork(t)
	must.Do(t, f.Close())
	must.Do(t, f.Close())
}

// TestTogether: networks side by side with the same addresses, each used by many.
func TestTogether(t *testing.T) {
	needRoot(t)
	var all sync.WaitGroup
	for range 3 {
		f := newNetwork(t)
		for n := range 4 {
			node := newInstance(t, f)
			all.Go(func() {
				for round := range 3 {
					mac, a := fmt.Sprintf("02:00:00:00:01:%02x", n), fmt.Sprintf("10.0.1.%d", 100+n)
					node.eth(0, mac, sn1, a)
					if !f.Ping([]netip.Addr{ip(a)}, patience)[0] {
						t.Errorf("round %d: %s is silent", round, a)
					}
					if err := errors.Join(f.Unplug(mac), f.Unassign(ip(a))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestCloseInterrupts: a Ping of silent addresses ends with the VPC.
func TestCloseInterrupts(t *testing.T) {
	f := newNetwork(t)
	packets := must.Get(f.Capture(t.Context(), "any"))(t)
	done := make(chan bool)
	go func() {
		defer close(done)
		f.Ping([]netip.Addr{f.Witness(), ip("10.0.1.10")}, 1000*patience)
	}()
	<-packets // it has begun
	must.Do(t, f.Close())
	<-done
}

// victim makes a VPC, plugs a cable into the namespace of file 3, says so and waits to be killed.
const victim = "FABRIC_TEST_VICTIM"

func init() {
	if os.Getenv(victim) == "" {
		return
	}
	f, err := New(config())
	if err == nil {
		err = f.Plug(os.NewFile(3, "node"), "eth0", macA, 9001)
	}
	fmt.Println("ready", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func TestKilled(t *testing.T) {
	needRoot(t)
	node := newInstance(t, nil)
	c := exec.Command("/proc/self/exe")
	c.Env, c.ExtraFiles = append(os.Environ(), victim+"=1"), []*os.File{node.ns}
	must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	line := make([]byte, 100)
	n, _ := out.Read(line)
	if got := strings.TrimSpace(string(line[:n])); got != "ready <nil>" || node.index("eth0") == 0 {
		t.Errorf("the victim said %q, eth0 has index %d", got, node.index("eth0"))
	}
	must.Do(t, c.Process.Kill())
	_ = c.Wait()
	eventually(t, "the cable of a killed VPC goes", func() bool { return node.index("eth0") == 0 })
}
