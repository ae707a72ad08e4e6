package kind

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/enilab/enilab/sim/registry"
)

// Entry is a cluster that a process of this machine holds.
type Entry struct {
	registry.Process
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	Log        string `json:"log,omitempty"` // of the process; goes with the cluster
	path       string
}

// clusters is where processes say which cluster they hold.
var clusters = registry.Folder{Name: "enilab-clusters", Prefix: "cluster", Noun: "clusters"}

// Note says that this process holds the cluster until forget is called, so that another one can find it. log is the process's, "" is none.
func (c *Cluster) Note(log string) (forget func(), err error) {
	self, err := registry.Self()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(Entry{Process: self, Name: c.Name(), Kubeconfig: c.Kubeconfig(), Log: log})
	if err != nil {
		return nil, err
	}
	path, err := clusters.Note(data)
	if err != nil {
		return nil, err
	}
	return func() { clusters.Forget(path) }, nil
}

// Held are the clusters that processes of this machine say they hold. Some may be dead. What somebody else may have written is an error.
func Held() ([]Entry, error) {
	files, err := clusters.Files()
	var out []Entry
	for _, f := range files {
		e := Entry{}
		if json.Unmarshal(f.Data, &e) != nil {
			e = Entry{}
		}
		e.path = f.Path
		out = append(out, e)
	}
	return out, err
}

// processLimit is how long a process may take to remove its cluster.
const processLimit = closeLimit + 30*time.Second

// Remove ends the processes that hold a cluster of that name, and removes it. It is false when there was nothing.
func Remove(ctx context.Context, name string) (bool, error) {
	list, err := Held()
	if err != nil {
		return false, err
	}
	was := false
	for i := range list {
		e := &list[i]
		if e.Name != name {
			continue
		}
		if e.Alive() {
			was = true
			if ended := e.End(processLimit); ended != nil {
				err = errors.Join(err, ended)
				continue
			}
		}
		if e.Log != "" {
			err = errors.Join(err, ignoreMissing(os.Remove(e.Log)))
		}
		clusters.Forget(e.path)
	}
	left, down := Down(ctx, name)
	return was || left, errors.Join(err, down)
}
