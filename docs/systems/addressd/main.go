// Command addressd is the daemon of the example in docs/systems.md: it hands out the addresses of one range, and remembers in a file who has
// which.
//
//	addressd 10.0.0.32/28 /run/handout.sock /var/lib/handout.json
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
)

// book is who has which address: container's identifier and interface to address.
type book struct {
	mu     sync.Mutex
	within netip.Prefix
	file   string
	held   map[string]netip.Addr
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "addressd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("expected RANGE SOCKET FILE, found %d arguments", len(args))
	}
	within, err := netip.ParsePrefix(args[0])
	if err != nil {
		return err
	}
	b := &book{within: within.Masked(), file: args[2], held: map[string]netip.Addr{}}
	if data, err := os.ReadFile(b.file); err == nil {
		if err := json.Unmarshal(data, &b.held); err != nil {
			return fmt.Errorf("%s: %w", b.file, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(args[1]); err != nil && !errors.Is(err, fs.ErrNotExist) { // the socket of who served before
		return err
	}
	l, err := net.Listen("unix", args[1])
	if err != nil {
		return err
	}
	http.HandleFunc("POST /{container}", b.take)
	http.HandleFunc("DELETE /{container}", b.give)
	return http.Serve(l, nil)
}

// take answers with the container's address, in its range: the same one when it is asked again.
func (b *book) take(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	who := r.PathValue("container")
	addr, ok := b.held[who]
	if !ok {
		if addr, ok = b.free(); !ok {
			http.Error(w, fmt.Sprintf("no address of %v is free", b.within), http.StatusConflict)
			return
		}
		b.held[who] = addr
		if err := b.save(); err != nil {
			delete(b.held, who)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	fmt.Fprint(w, netip.PrefixFrom(addr, b.within.Bits()))
}

// give takes an address back; one that is free is no mistake.
func (b *book) give(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, r.PathValue("container"))
	if err := b.save(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// free is an address that no pod has. The first one is the gateway's.
func (b *book) free() (netip.Addr, bool) {
	taken := map[netip.Addr]bool{}
	for _, a := range b.held {
		taken[a] = true
	}
	for a := b.within.Addr().Next().Next(); b.within.Contains(a); a = a.Next() {
		if !taken[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// save writes the book anew, whole or not at all.
func (b *book) save() error {
	data, err := json.Marshal(b.held)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(b.file+".new", b.file)
}
