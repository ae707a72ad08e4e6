package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

// Ports of a pod.
const (
	echoPort = 7
	httpPort = 8080
)

// unreadyFile is there while /ready shall fail.
const unreadyFile = "/tmp/unready"

// serve serves until it is told to end; a pod's open connections end with it.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	web, err := net.Listen("tcp4", fmt.Sprint(":", httpPort))
	if err != nil {
		return err
	}
	loop, err := net.Listen("tcp4", fmt.Sprint(":", echoPort))
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- http.Serve(web, handler(name, unreadyFile)) }()
	go func() { failed <- serveEcho(loop) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// handler tells who it is and whom it sees at /who, and whether a file is absent at /ready.
func handler(name, unready string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /who", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, name, host)
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(unready); !errors.Is(err, os.ErrNotExist) {
			http.Error(w, "unready", http.StatusServiceUnavailable)
		}
	})
	return mux
}

func serveEcho(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}
