package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/registry"
)

// Hold is a process's word that it holds a cluster, or is about to: another process finds it by that, and what it leaves behind when it is
// killed.
type Hold struct {
	registry.Process
	Name       string `json:"name"`          // of the cluster
	Kubeconfig string `json:"kubeconfig"`    // in a folder of its own
	Log        string `json:"log,omitempty"` // of the process
	path       string
}

// clusters is where holds are noted.
var clusters = registry.Folder{Name: "enilab-clusters", Prefix: "cluster", Noun: "clusters"}

// kubeconfigDir is how the folder of a kubeconfig begins.
const kubeconfigDir = "enilab-kubeconfig-"

// NewHold notes that this process holds a cluster. Its kubeconfig belongs where the Hold says, and goes with it; so does the log, if there is
// one.
func NewHold(cluster, log string) (*Hold, error) {
	self, err := registry.Self()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", kubeconfigDir)
	if err != nil {
		return nil, err
	}
	h := &Hold{Process: self, Name: cluster, Kubeconfig: filepath.Join(dir, "kubeconfig"), Log: log}
	data, err := json.Marshal(h)
	if err == nil {
		h.path, err = clusters.Note(data)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return h, nil
}

// End takes it back, with what belongs to it.
func (h *Hold) End() error {
	var errs []error
	if dir := filepath.Dir(h.Kubeconfig); strings.HasPrefix(filepath.Base(dir), kubeconfigDir) {
		errs = append(errs, os.RemoveAll(dir))
	}
	if h.Log != "" {
		errs = append(errs, ignoreMissing(os.Remove(h.Log)))
	}
	clusters.Forget(h.path)
	return errors.Join(errs...)
}

// Holds are those of all processes of this machine. Some may be dead. What somebody else may have written is an error.
func Holds() ([]Hold, error) {
	files, err := clusters.Files()
	var out []Hold
	for _, f := range files {
		h := Hold{}
		if json.Unmarshal(f.Data, &h) != nil {
			h = Hold{}
		}
		h.path = f.Path
		out = append(out, h)
	}
	return out, err
}

// processLimit is how long a process may take to remove its cluster.
const processLimit = closeLimit + 30*time.Second

// Remove ends the processes that hold a cluster of that name, and removes it, and what is left of those that are dead. It is false when there
// was nothing.
func Remove(ctx context.Context, name string) (bool, error) {
	if err := Available(ctx); err != nil {
		return false, err
	}
	list, err := Holds()
	if err != nil {
		return false, err
	}
	was := false
	for i := range list {
		h := &list[i]
		if h.Name != name {
			continue
		}
		was = true
		if stays := h.Process.End(processLimit); stays != nil {
			err = errors.Join(err, stays)
			continue
		}
		err = errors.Join(err, h.End())
	}
	left, down := Down(ctx, name)
	return was || left, errors.Join(err, down)
}

// lookPeriod is when RemoveAll looks again.
const lookPeriod = 2 * time.Second

// RemoveAll is Remove for a cluster whose process may have ended while Docker was still making containers for it: it looks until it has found
// nothing.
func RemoveAll(ctx context.Context, name string) (was bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	for {
		found, err := Remove(ctx, name)
		if err == nil && !found {
			return was, nil
		}
		was = was || found
		select {
		case <-ctx.Done():
			return was, errors.Join(err, ctx.Err())
		case <-time.After(lookPeriod):
		}
	}
}
