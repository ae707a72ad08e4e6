package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/cmd/enilab/cli"
	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/runner"
)

// world is sim/kind as the command line asks for it.
type world struct{}

func (world) Available(ctx context.Context) error { return cluster.Available(ctx) }

func (world) Possible(ctx context.Context, name string, say func(string)) error {
	return (&cluster.Config{Name: name, Log: say}).Possible(ctx)
}

func (world) Lacks(err error) bool {
	_, lacks := errors.AsType[*cluster.Lacking](err)
	return lacks
}

func (world) Remove(ctx context.Context, name string) (was bool, err error) {
	return cluster.Remove(ctx, name)
}

func (world) RemoveAll(ctx context.Context, name string) (was bool, err error) {
	return cluster.RemoveAll(ctx, name)
}

func (world) Place(ctx context.Context, name string, mutants bool, log func(at time.Duration, text string), leave func() bool) (*runner.Place, error) {
	parts, err := parts()
	if err != nil {
		return nil, err
	}
	return kind.Place(kind.Config{Context: ctx, Name: name, Parts: parts, Log: log, Leave: leave, Mutants: mutants}), nil
}

func (world) Cluster(w runner.World) (name, kubeconfig string) {
	c := w.(*kind.World).Cluster()
	return c.Name(), c.Kubeconfig()
}

func (world) Hold(ctx context.Context, o *cli.Cluster, log string, say, ready func(string)) (err error) {
	parts, err := parts()
	if err != nil {
		return err
	}
	hold, err := cluster.NewHold(o.Name, log)
	if err != nil {
		return &cluster.Lacking{Text: err.Error()}
	}
	defer func() {
		if e := hold.End(); err == nil && e != nil {
			err = &cluster.Lacking{Text: e.Error()}
		}
	}()
	c, err := cluster.Up(ctx, cluster.Config{Name: o.Name, NodeImage: o.Image, File: o.File, Workers: o.Nodes, Zones: o.Zones, Proxy: o.Proxy, Type: o.Type,
		Kubeconfig: hold.Kubeconfig, Log: say})
	if err != nil {
		return err
	}
	if err := install(ctx, c, parts, say); err != nil {
		if e := c.Close(); e != nil {
			err = fmt.Errorf("%w; and it cannot be removed: %w", err, e)
		}
		return err
	}
	ready(c.Kubeconfig())
	<-ctx.Done()
	say("removing the cluster")
	if err := c.Close(); err != nil {
		return &cluster.Lacking{Text: err.Error()}
	}
	return nil
}

// install puts the CNI onto a cluster.
func install(ctx context.Context, c *cluster.Cluster, parts cluster.Parts, say func(string)) error {
	say("building the CNI's image")
	archive, image, err := parts.Image(ctx, false)
	if err != nil {
		return err
	}
	say("loading it")
	if err := c.LoadImage(ctx, archive); err != nil {
		return err
	}
	say("installing the CNI")
	return c.Install(ctx, deploy.Options{Image: image})
}

// parts are what a cluster's nodes run: built from the source that this binary, or the working directory, is in.
func parts() (cluster.Parts, error) {
	here, err := os.Getwd()
	if err != nil {
		return cluster.Parts{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return cluster.Parts{}, err
	}
	dir, err := cluster.Source(here, filepath.Dir(self))
	if err != nil {
		return cluster.Parts{}, err
	}
	return cluster.PartsIn(dir), nil
}
