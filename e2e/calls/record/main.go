// Command record makes the golden recordings of e2e/calls: what kubelet and containerd call a CNI plugin with. It makes a cluster of
// one node with the simplest plugins there are (ptp with host-local addresses, behind a conflist like enilab's), lives the lives on
// it, and writes for each NAME.jsonl, the recording, and NAME.golden, its text. What is there of the same name is replaced. The cluster is
// gone afterwards.
//
//	KIND_NODE_IMAGE=... go run ./e2e/calls/record                       # all, into e2e/calls/testdata
//	go run ./e2e/calls/record -lives '^pod$|restart' -out /tmp/x -keep  # some; the cluster stays
//	go run ./e2e/calls/record -lives runtime-restart -times 6           # what is different another time is NAME.2.jsonl and so on
//
// It needs Docker and Go. git diff then tells what another kubelet or containerd does differently.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/enilab/enilab/e2e/calls"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "e2e/calls/testdata", "folder of the recordings")
	flag.StringVar(&o.name, "name", "enilab-trace", "name of the cluster; one that is there is used")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster")
	flag.IntVar(&o.times, "times", 1, "how often each is lived")
	pattern := flag.String("lives", "", "only those whose name matches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.lives, err = regexp.Compile(*pattern); err == nil {
		err = o.record(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

type options struct {
	out, name string
	keep      bool
	times     int
	lives     *regexp.Regexp
}

func (o *options) record(ctx context.Context) (err error) {
	if i, err := os.Stat(o.out); err != nil || !i.IsDir() {
		return fmt.Errorf("-out %s: expected a folder", o.out)
	}
	dir, err := os.MkdirTemp("", "enilab-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shim, err := calls.Compile(ctx, calls.Shim)
	if err != nil {
		return err
	}
	c := &cluster{name: o.name, dir: dir}
	if !o.keep {
		defer func() {
			if e := c.remove(); err == nil {
				err = e
			}
		}()
	}
	if err := c.up(ctx); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	api := func(ctx context.Context, verb, uri, contentType string, body []byte) ([]byte, error) {
		return client.CoreV1().RESTClient().Verb(verb).RequestURI(uri).SetHeader("Content-Type", contentType).Body(body).DoRaw(ctx)
	}
	b := &calls.Bench{API: api, Node: c.node(), Plugin: "ptp", Log: func(s string) { fmt.Println("   ", s) }}
	if err := b.Install(ctx, shim); err != nil {
		return err
	}
	for _, l := range calls.Lives() {
		if !o.lives.MatchString(l.Name) {
			continue
		}
		v, err := o.fresh(l)
		if err != nil {
			return err
		}
		for range max(o.times, 1) {
			if err := v.one(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// variants are the recordings of a life that differ.
type variants struct {
	calls.Life
	out   string
	texts []string
}

// fresh forgets what was recorded of a life before.
func (o *options) fresh(l calls.Life) (*variants, error) {
	for _, pattern := range []string{l.Name + ".golden", l.Name + ".jsonl", l.Name + ".[0-9].golden", l.Name + ".[0-9].jsonl"} {
		old, err := filepath.Glob(filepath.Join(o.out, pattern))
		if err != nil {
			return nil, err
		}
		for _, f := range old {
			if err := os.Remove(f); err != nil {
				return nil, err
			}
		}
	}
	return &variants{Life: l, out: o.out}, nil
}

// one lives a life, and writes its files unless they would say what others say.
func (v *variants) one(ctx context.Context, b *calls.Bench) error {
	began := time.Now()
	fmt.Printf("%s: %s\n", v.Name, v.Says)
	raw, err := calls.Record(ctx, b, v.Life)
	if err != nil {
		return err
	}
	runs, err := calls.Read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	text := calls.Text(runs)
	fmt.Printf("%s%s%s: %v\n\n", text, calls.Polls(runs), v.Name, time.Since(began).Round(time.Second))
	if slices.Contains(v.texts, text) {
		return nil
	}
	v.texts = append(v.texts, text)
	base := filepath.Join(v.out, v.Name)
	if n := len(v.texts); n > 1 {
		base += fmt.Sprintf(".%d", n)
	}
	if err := os.WriteFile(base+".jsonl", raw, 0o644); err != nil {
		return err
	}
	return os.WriteFile(base+".golden", []byte(text), 0o644)
}
