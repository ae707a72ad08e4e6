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
	"github.com/enilab/enilab/sim/runner"
)

// world is sim/kind as the command line asks for it.
type world struct{}

func (world) Available(ctx context.Context) error { return kind.Available(ctx) }

func (world) Possible(ctx context.Context, name string, say func(string)) error {
	return kind.Possible(ctx, name, say)
}

func (world) Lacks(err error) bool {
	_, lacks := errors.AsType[*kind.Lacking](err)
	return lacks
}

func (world) Remove(ctx context.Context, name string) (was bool, err error) {
	return kind.Remove(ctx, name)
}

func (world) RemoveAll(ctx context.Context, name string) (was bool, err error) {
	return kind.RemoveAll(ctx, name)
}

func (world) Place(ctx context.Context, name string, mutants bool, log func(at time.Duration, text string), leave func() bool) (*runner.Place, error) {
	parts, err := parts()
	if err != nil {
		return nil, err
	}
	return kind.Place(kind.WorldConfig{Context: ctx, Name: name, Parts: parts, Log: log, Leave: leave, Mutants: mutants}), nil
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
	hold, err := kind.NewHold(o.Name, log)
	if err != nil {
		return &kind.Lacking{Text: err.Error()}
	}
	defer func() {
		if e := hold.End(); err == nil && e != nil {
			err = &kind.Lacking{Text: e.Error()}
		}
	}()
	c, err := kind.Up(ctx, kind.Config{Name: o.Name, NodeImage: o.Image, File: o.File, Workers: o.Nodes, Zones: o.Zones, Proxy: o.Proxy, Type: o.Type,
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
		return &kind.Lacking{Text: err.Error()}
	}
	return nil
}

// install puts the CNI onto a cluster.
func install(ctx context.Context, c *kind.Cluster, parts kind.Parts, say func(string)) error {
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
func parts() (kind.Parts, error) {
	here, err := os.Getwd()
	if err != nil {
		return kind.Parts{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return kind.Parts{}, err
	}
	dir, err := kind.Source(here, filepath.Dir(self))
	if err != nil {
		return kind.Parts{}, err
	}
	return kind.PartsIn(dir), nil
}
