package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Bounds on watching.
const (
	mostNode     = 4 << 20          // bytes of a Node object, or of one event of its watch
	watchSeconds = 300              // the API server ends a watch after it, so that a connection which died silently is noticed
	watchSlack   = 30 * time.Second // … and we do, when the server does not
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// NodeFacts are what the Node object says that a CNI must know.
type NodeFacts struct {
	Cordoned bool // spec.unschedulable
	MaxPods  int  // status.capacity.pods; 0: it does not say
}

// node is a v1.Node, of which nothing else is decoded.
type node struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Capacity struct {
			Pods json.RawMessage `json:"pods"` // a quantity: "110", or 110
		} `json:"capacity"`
	} `json:"status"`
}

func (n *node) facts() (NodeFacts, error) {
	f := NodeFacts{Cordoned: n.Spec.Unschedulable}
	text := string(n.Status.Capacity.Pods)
	if text == "" || text == "null" {
		return f, nil
	}
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	var err error
	if f.MaxPods, err = parsePods(text); err != nil {
		return NodeFacts{}, fmt.Errorf("node %s: status.capacity.pods: %w", n.Metadata.Name, err)
	}
	return f, nil
}

// parsePods reads a quantity as API servers write numbers of pods: in canonical form, which has a suffix from 1000 on ("1k", "2500m"
// cannot be).
func parsePods(text string) (int, error) {
	times := 1
	if n := len(text); n > 1 && text[n-1] == 'k' {
		text, times = text[:n-1], 1000
	}
	n, err := strconv.ParseUint(text, 10, 20)
	if err != nil {
		return 0, fmt.Errorf("%q: expected a number of pods", text)
	}
	return int(n) * times, nil
}

// Node reads this node's facts once.
func (r *Reader) Node(ctx context.Context) (NodeFacts, error) {
	f, _, err := r.node(ctx)
	return f, err
}

func (r *Reader) node(ctx context.Context) (NodeFacts, string, error) {
	n, err := r.object(ctx)
	if err != nil {
		return NodeFacts{}, "", err
	}
	f, err := n.facts()
	return f, n.Metadata.ResourceVersion, err
}

// object reads the Node object.
func (r *Reader) object(ctx context.Context) (n node, err error) {
	path := "/api/v1/nodes/" + url.PathEscape(r.cfg.Node)
	if err := r.get(ctx, path, nil, mostNode, &n); err != nil {
		return node{}, err
	}
	if n.Kind != "Node" || n.Metadata.Name != r.cfg.Node {
		return node{}, fmt.Errorf("GET %s: expected the Node %s, the answer is the %s %q", path, r.cfg.Node, n.Kind, n.Metadata.Name)
	}
	return n, nil
}

// Watch reports this node's facts when it first reads them and whenever they changed, until the context ends, whose error it returns.
// It reads them anew when the API server forgot where the watch was (410 Gone), and after any failure, with growing pauses up to half
// a minute; Config.Log has each failure. A Node that was deleted keeps its last facts.
func (r *Reader) Watch(ctx context.Context, report func(NodeFacts)) error {
	w := watch{r: r, report: report}
	pause := firstPause
	for {
		began := time.Now()
		err := w.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			pause = firstPause
			continue
		}
		if r.cfg.Log != nil {
			r.cfg.Log.Warn("watch of the Node failed", "node", r.cfg.Node, "error", err.Error())
		}
		if time.Since(began) > longestPause {
			pause = firstPause // it had worked for long
		}
		if err := wait(ctx, pause/2+rand.N(pause/2)); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// watch is where a watch is.
type watch struct {
	r       *Reader
	report  func(NodeFacts)
	told    bool
	last    NodeFacts
	version string // to go on from; empty: read first
}

func (w *watch) tell(f NodeFacts) {
	if !w.told || f != w.last {
		w.told, w.last = true, f
		w.report(f)
	}
}

// errEnded: a watch that ended before anything came is a failure, or a server that ends all at once would be asked in a loop.
var errEnded = errors.New("the watch ended without an event")

// run reads the node unless a version is known, then follows one watch to its end. nil means: go on at once.
func (w *watch) run(ctx context.Context) error {
	if w.version == "" {
		f, version, err := w.r.node(ctx)
		if err != nil {
			return err
		}
		w.tell(f)
		w.version = version
	}
	err := w.follow(ctx)
	if expired(err) {
		w.version = ""
	}
	return err
}

func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchSeconds*time.Second+watchSlack)
	defer cancel()
	const path = "/api/v1/nodes"
	q, err := w.r.request(ctx, http.MethodGet, path, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "fieldSelector": {"metadata.name=" + w.r.cfg.Node},
		"resourceVersion": {w.version}, "timeoutSeconds": {strconv.Itoa(watchSeconds)},
	}, nil)
	if err != nil {
		return err
	}
	began := time.Now()
	p, err := w.r.http.Do(q)
	if err != nil {
		return err
	}
	defer p.Body.Close()
	if p.StatusCode != http.StatusOK {
		return refusal(path+"?watch", p)
	}
	events, err := w.events(&perEvent{r: p.Body})
	if err != nil {
		return err
	}
	if events == 0 && time.Since(began) < time.Second {
		return errEnded
	}
	return nil
}
