package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// payloadSize in bytes is many packets, whatever the MTU.
const payloadSize = 200_000

// client opens a connection for each question.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}

func ask(to string) (string, error) {
	resp, err := client.Get("http://" + to + "/who")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(text), err
}

func get(url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	return resp.Status, resp.Body.Close()
}

// dial opens a TCP connection that lives as long as a question may.
func dial(to string) (*net.TCPConn, error) {
	c, err := net.DialTimeout("tcp4", to, patience)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), c.SetDeadline(time.Now().Add(patience))
}

func echo(to string) (string, error) {
	c, err := dial(to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	payload := make([]byte, payloadSize)
	_, _ = rand.Read(payload)
	go func() {
		_, _ = c.Write(payload)
		_ = c.CloseWrite()
	}()
	back, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(back, payload) {
		err = fmt.Errorf("of %d bytes %d came back, or others", len(payload), len(back))
	}
	return "ok", err
}

func read(from string) (string, error) {
	c, err := dial(from)
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	return string(text), err
}

func lookup(arg string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name, server, other := strings.Cut(arg, "@")
	r := &net.Resolver{PreferGo: true}
	if other {
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, net.JoinHostPort(server, "53"))
		}
	}
	list, err := r.LookupHost(ctx, name)
	return strings.Join(list, " "), err
}

// pipe ends when the other side does; the input's end is told to it.
func pipe(to string, in io.Reader, out io.Writer) error {
	c, err := net.DialTimeout("tcp4", to, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(c, in)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(out, c)
	return err
}
