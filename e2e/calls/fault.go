package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// faultsFile holds a JSON list of Fault.
const faultsFile = "faults.json"

// poll is how often a stalled run looks whether it may go on.
const poll = 50 * time.Millisecond

// Fault is what happens to runs of a plugin. An empty string of the first three means every one. The first Fault of the list that
// fits a run happens to it.
type Fault struct {
	Plugin string `json:"plugin,omitempty"` // the plugin's name
	Verb   string `json:"verb,omitempty"`   // ADD, DEL, …
	Pod    string `json:"pod,omitempty"`    // NAMESPACE/NAME
	Times  int    `json:"times,omitempty"`  // how many runs; 0: every one

	After bool   `json:"after,omitempty"` // the real plugin runs first, and its answer is what is lost or late
	Stall string `json:"stall,omitempty"` // a Go duration; ended early when the file is taken away
	Error string `json:"error,omitempty"` // then the run fails with this text
	Code  uint   `json:"code,omitempty"`  // and this code
}

func (f *Fault) fits(plugin, verb, pod string) bool {
	return (f.Plugin == "" || f.Plugin == plugin) && (f.Verb == "" || f.Verb == verb) && (f.Pod == "" || f.Pod == pod)
}

// takeFault finds a run's fault in a file and counts it; pod is NAMESPACE/NAME. Runs at the same time take turns, by a lock on the
// file's folder. No file is no fault.
func takeFault(file, plugin, verb, pod string) (Fault, error) {
	lock, err := os.Open(filepath.Dir(file))
	if err != nil {
		return Fault{}, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return Fault{}, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Fault{}, nil
	}
	if err != nil {
		return Fault{}, err
	}
	var list []Fault
	if err := json.Unmarshal(raw, &list); err != nil {
		return Fault{}, fmt.Errorf("%s: expected a list of faults: %w", file, err)
	}
	i := slices.IndexFunc(list, func(f Fault) bool { return f.fits(plugin, verb, pod) })
	if i < 0 {
		return Fault{}, nil
	}
	f := list[i]
	if _, err := f.stall(); err != nil {
		return Fault{}, fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case f.Times <= 0:
		return f, nil
	case f.Times == 1:
		list = slices.Delete(list, i, i+1)
	default:
		list[i].Times--
	}
	return f, store(file, list)
}

// encodeFaults is what belongs into faultsFile, which is best replaced by a rename.
func encodeFaults(list []Fault) ([]byte, error) { return json.Marshal(list) }

// store replaces the file, so that nobody reads half of it.
func store(file string, list []Fault) error {
	raw, err := encodeFaults(list)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (f *Fault) stall() (time.Duration, error) {
	if f.Stall == "" {
		return 0, nil
	}
	return time.ParseDuration(f.Stall)
}

// Wait stalls, until its time is over or the file that the fault was taken from is taken away.
func (f *Fault) Wait(file string) {
	d, err := f.stall()
	if err != nil {
		return // takeFault has refused it
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(poll, time.Until(end))) {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// PodOf is NAMESPACE/NAME by CNI_ARGS; empty when they name no pod.
func PodOf(args string) string {
	namespace, name, _ := podOf(args)
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}

// podOf is what CNI_ARGS say of a pod.
func podOf(args string) (namespace, name, uid string) {
	for kv := range strings.SplitSeq(args, ";") {
		switch k, v, _ := strings.Cut(kv, "="); k {
		case "K8S_POD_NAMESPACE":
			namespace = v
		case "K8S_POD_NAME":
			name = v
		case "K8S_POD_UID":
			uid = v
		}
	}
	return namespace, name, uid
}
