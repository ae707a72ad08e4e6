package kube

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ServiceAccount is the folder in which kubelet mounts a pod's token and the cluster's certificate.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// DefaultTimeout bounds one request, a watch excepted.
const DefaultTimeout = 10 * time.Second

// Config of a Reader.
type Config struct {
	Node     string        // MY_NODE_NAME
	Endpoint string        // CLUSTER_ENDPOINT, or a plain URL; empty: KUBERNETES_SERVICE_HOST and _PORT
	Account  string        // folder with token and ca.crt; empty: ServiceAccount; what is not there is not used for a plain http URL
	Timeout  time.Duration // 0: DefaultTimeout
	Log      *slog.Logger  // what went wrong with a watch; nil: nothing
}

// Reader reads from the API server, and reports to it what an operator should know of this node. Its methods may be
// called at once.
type Reader struct {
	cfg  Config
	base string
	http *http.Client
}

// New makes a Reader. It sends no request; it fails when it is not known where the API server is or whom to trust.
func New(c Config) (*Reader, error) {
	if c.Node == "" {
		return nil, errors.New("kube: no node name: set MY_NODE_NAME to spec.nodeName")
	}
	c.Account = cmp.Or(c.Account, ServiceAccount)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	base, err := endpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: c.Timeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    c.Timeout,
		ResponseHeaderTimeout:  c.Timeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    2,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if strings.HasPrefix(base, "https:") {
		if t.TLSClientConfig, err = trust(filepath.Join(c.Account, "ca.crt")); err != nil {
			return nil, err
		}
	}
	return &Reader{cfg: c, base: base, http: &http.Client{Transport: t, CheckRedirect: refuseRedirect}}, nil
}

// refuseRedirect: the token is for this server alone.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close gives back idle connections.
func (r *Reader) Close() { r.http.CloseIdleConnections() }

func endpoint(configured string) (string, error) {
	if configured == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return "", errors.New("kube: no API server: neither CLUSTER_ENDPOINT nor KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are set")
		}
		return "https://" + net.JoinHostPort(host, port), nil
	}
	if !strings.Contains(configured, "://") {
		configured = "https://" + configured
	}
	u, err := url.Parse(configured)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("kube: CLUSTER_ENDPOINT is %q: expected a URL such as https://ABC.gr7.eu-west-1.eks.amazonaws.com", configured)
	}
	return strings.TrimSuffix(configured, "/"), nil
}

func trust(file string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("kube: the cluster's certificate: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("kube: %s has no PEM certificate", file)
	}
	return c, nil
}

// request makes a request, with a body where it is no GET. The token is read anew each time: kubelet rotates it, within
// the hour.
func (r *Reader) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request,
	error) {
	u := r.base + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	q, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Accept", "application/json")
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	q.Header.Set("User-Agent", "enilab")
	token, err := os.ReadFile(filepath.Join(r.cfg.Account, "token"))
	switch {
	case err == nil:
		q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	case q.URL.Scheme == "https":
		return nil, fmt.Errorf("kube: the service account's token: %w", err)
	}
	return q, nil
}

// do makes a request within Config.Timeout and reads the answer, if it has that status.
func (r *Reader) do(ctx context.Context, method, path string, query url.Values, body io.Reader, status int,
	read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	q, err := r.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	p, err := r.http.Do(q)
	if err != nil {
		return err
	}
	defer p.Body.Close()
	if p.StatusCode != status {
		return refusal(path, p)
	}
	return read(p.Body)
}

// get asks for one object or page and decodes it.
func (r *Reader) get(ctx context.Context, path string, query url.Values, most int64, into any) error {
	return r.do(ctx, http.MethodGet, path, query, nil, http.StatusOK, func(answer io.Reader) error {
		body, err := io.ReadAll(io.LimitReader(answer, most+1))
		if err == nil && int64(len(body)) > most {
			err = fmt.Errorf("the answer is larger than %d bytes", most)
		}
		if err == nil {
			err = json.NewDecoder(bytes.NewReader(body)).Decode(into)
		}
		if err != nil {
			return fmt.Errorf("GET %s: %w", path, err)
		}
		return nil
	})
}

// Refused is an answer of the API server that is not the thing asked for.
type Refused struct {
	Method  string
	Path    string
	Status  int    // HTTP
	Message string // metav1.Status's, where there is one
}

func (e *Refused) Error() string {
	text := e.Method + " " + e.Path + ": HTTP " + strconv.Itoa(e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// refusal reads an error's metav1.Status.
func refusal(path string, p *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(p.Body, 64<<10))
	var s struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &s) // a proxy's page has no message, and the status says enough
	return &Refused{p.Request.Method, path, p.StatusCode, s.Message}
}

// expired says that a resource version or a continue token is too old (410 Gone).
func expired(err error) bool {
	var e *Refused
	return errors.As(err, &e) && e.Status == http.StatusGone
}
