// Record makes the golden recordings of sim/kind/trace: what kubelet and containerd call a CNI plugin with. It makes a cluster of one
// node with the simplest plugins there are (ptp with host-local addresses, chained as enilab's are), lives sim/kind/lives on it, and
// writes for each NAME.jsonl, the recording, and NAME.golden, its text. The cluster is gone afterwards.
//
//	KIND_NODE_IMAGE=... go run ./sim/kind/record                       # all, into sim/kind/trace/testdata
//	go run ./sim/kind/record -lives '^pod$|restart' -out /tmp/x -keep  # some; the cluster stays
//
// It needs Docker and Go. Recordings that nobody wants to keep are for comparing: git diff tells what another kubelet or containerd
// does differently.
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
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/enilab/enilab/sim/kind/lives"
	"github.com/enilab/enilab/sim/kind/trace"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "sim/kind/trace/testdata", "folder of the recordings")
	flag.StringVar(&o.name, "name", "enilab-trace", "name of the cluster; one that is there is used")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster")
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
	if err := lives.Build(ctx, dir); err != nil {
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
	b := &lives.Bench{Client: client, Node: c.node(), Plugin: "ptp", Log: func(s string) { fmt.Println("   ", s) }}
	if err := b.Install(ctx, dir); err != nil {
		return err
	}
	for _, l := range lives.Lives() {
		if !o.lives.MatchString(l.Name) {
			continue
		}
		if err := o.one(ctx, b, l); err != nil {
			return err
		}
	}
	return nil
}

// one lives a life and writes its files.
func (o *options) one(ctx context.Context, b *lives.Bench, l lives.Life) error {
	began := time.Now()
	fmt.Printf("%s: %s\n", l.Name, l.Says)
	raw, err := lives.Record(ctx, b, l)
	if err != nil {
		return err
	}
	runs, err := trace.Read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	text := trace.Text(runs)
	fmt.Printf("%s%s%s: %v\n\n", text, trace.Polls(runs), l.Name, time.Since(began).Round(time.Second))
	if err := os.WriteFile(filepath.Join(o.out, l.Name+".jsonl"), raw, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, l.Name+".golden"), []byte(text), 0o644)
}
