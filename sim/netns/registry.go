package netns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/enilab/enilab/sim/registry"
)

// Entry is a laboratory that runs on this machine: what `enilab netns` knows of it.
type Entry struct {
	registry.Process                // that holds it
	Nodes            map[string]int `json:"nodes"`  // PID of each node's helper
	Router           string         `json:"router"` // path of the VPC router's network namespace
	path             string
}

// labs is where laboratories say that they are there. It is the only thing that one which was killed leaves behind: a small file.
var labs = registry.Folder{Name: "enilab-labs", Prefix: "netns", Noun: "laboratories"}

// register says that a laboratory of this process is there: its file.
func register(nodes map[string]int, router string) (path string, err error) {
	self, err := registry.Self()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(Entry{Process: self, Nodes: nodes, Router: router})
	if err != nil {
		return "", err
	}
	return labs.Note(data)
}

// Abandon takes back what this process has noted, for a caller that ends it without closing its laboratories.
func Abandon() {
	list, _ := Labs() // what cannot be read is no trace of this process
	for i := range list {
		if list[i].PID == os.Getpid() {
			labs.Forget(list[i].path)
		}
	}
}

// Labs are the laboratories that say they are there, the newest last. Some may be dead. What another user may have
// written is an error.
func Labs() ([]Entry, error) {
	files, err := labs.Files()
	var out []Entry
	for _, f := range files {
		e := Entry{path: f.Path}
		if json.Unmarshal(f.Data, &e) != nil {
			e = Entry{path: f.Path} // half written: dead
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return int(int64(a.Begun) - int64(b.Begun)) })
	return out, err
}

// cleanLimit is how long a laboratory may take to end.
const cleanLimit = 20 * time.Second

// Clean ends the laboratories of these processes, of none: the one that runs, and removes what dead ones left. Where several run, somebody else may
// need one: they have to be named, and nothing is ended before that. It returns how many ended, and how many had been dead.
func Clean(processes ...int) (ended, dead int, err error) {
	list, err := Labs()
	if err != nil {
		return 0, 0, err
	}
	var alive []int
	for i := range list {
		if e := &list[i]; e.Alive() && e.PID != os.Getpid() {
			alive = append(alive, e.PID)
		} else {
			labs.Forget(e.path)
			dead++
		}
	}
	if len(processes) == 0 {
		if len(alive) > 1 {
			return 0, dead, fmt.Errorf("%d laboratories run, those of the processes %v: say which of them to end", len(alive), alive)
		}
		processes = alive
	}
	for _, p := range processes {
		i := slices.IndexFunc(list, func(e Entry) bool { return e.PID == p && slices.Contains(alive, p) })
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("process %d has no laboratory that runs: the processes %v have", p, alive))
		} else if e := list[i].End(cleanLimit); e != nil {
			err = errors.Join(err, fmt.Errorf("laboratory: %w", e))
		} else {
			labs.Forget(list[i].path)
			ended++
		}
	}
	labs.Forget("")
	return ended, dead, err
}
