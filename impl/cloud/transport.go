package cloud

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"time"
)

// Bounds on answers. The largest that is right is a page of DescribeNetworkInterfaces: pageSize ENIs, 50 addresses each, some 300
// bytes per address.
const (
	mostAnswer   = 8 << 20
	mostMetadata = 256 << 10
)

// clients are two HTTP clients, one that asks the link itself and one that may use a proxy. HTTP/1.1 on purpose: whether a request
// left is known there, and one connection carries one request.
func clients(bundle string, timeout time.Duration) (direct, outer *http.Client, err error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: timeout,
		DisableCompression:  true,
	}
	direct = &http.Client{Transport: t, Timeout: timeout, CheckRedirect: refuseRedirect}
	t = t.Clone()
	t.Proxy = http.ProxyFromEnvironment
	if t.TLSClientConfig, err = trust(bundle); err != nil {
		return nil, nil, err
	}
	outer = &http.Client{Transport: t, Timeout: timeout, CheckRedirect: refuseRedirect}
	return direct, outer, nil
}

// refuseRedirect: a redirect would be a second request, and none of these services redirects.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func trust(bundle string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if bundle == "" {
		return c, nil
	}
	pem, err := os.ReadFile(bundle)
	if err != nil {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %s has no PEM certificate", bundle)
	}
	return c, nil
}

// readAnswer reads a body whole, or not at all when it is larger than the bound.
func readAnswer(r *http.Response, most int64) ([]byte, error) {
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("the answer is cut off after %d bytes: %w", len(body), err)
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("the answer is larger than %d bytes", most)
	}
	return body, nil
}

// bounded is a client whose answers have a bound.
type bounded struct {
	client *http.Client
	most   int64
}

// Do sends a request and reads its answer.
func (b *bounded) Do(q *http.Request) (*http.Response, error) {
	r, err := b.client.Do(q)
	if err != nil {
		return nil, err
	}
	body, err := readAnswer(r, b.most)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.Method, q.URL, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// exchange is what became of the one HTTP request of a Call. It tells a request that never left from an answer that never came,
// which the SDK's errors do not.
type exchange struct {
	action    string
	connected atomic.Bool // bytes may have left
	status    int         // 0: no answer began
	err       error       // of the transport, or of an answer that is not whole
}

type exchangeKey struct{}

func withExchange(ctx context.Context, action string) (context.Context, *exchange) {
	x := &exchange{action: action}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// recorder is a client for EC2 that fills the context's exchange.
type recorder struct{ client *http.Client }

// Do sends a request once and reads its answer.
func (d *recorder) Do(q *http.Request) (*http.Response, error) {
	x, ok := q.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("cloud: a request to EC2 without its exchange") // a mistake of this package: it would be unclassified
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.connected.Store(true) }}
	r, err := d.client.Do(q.WithContext(httptrace.WithClientTrace(q.Context(), trace)))
	if err != nil {
		x.err = err
		return nil, err
	}
	x.status = r.StatusCode
	body, err := readAnswer(r, mostAnswer)
	if err == nil && r.StatusCode == http.StatusOK && !whole(body, x.action) {
		err = errors.New("the answer is not a whole " + x.action + "Response")
	}
	if err != nil {
		x.err = err
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, nil
}

// whole says whether a body is from begin to end EC2's answer to that action. The SDK's decoder takes a list that is cut off between
// two members for a short list, and any text without the members it knows for an empty answer.
func whole(body []byte, action string) bool {
	name := action + "Response"
	return bytes.Contains(body[:min(len(body), 512)], []byte("<"+name)) && bytes.HasSuffix(bytes.TrimRight(body, " \t\r\n"), []byte("</"+name+">"))
}

// unsent says that no byte of a request without an answer left. A connection that turned out to be dead before anything was written is dialled anew by
// the transport, so an error of dialling is the last word even when there had been a connection.
func (x *exchange) unsent() bool {
	var op *net.OpError
	return !x.connected.Load() || errors.As(x.err, &op) && op.Op == "dial"
}
