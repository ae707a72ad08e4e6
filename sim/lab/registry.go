package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Entry is a laboratory that runs on this machine: what `enilab lab` knows of it.
type Entry struct {
	PID    int            `json:"pid"` // of the process that holds it
	Begun  uint64         `json:"begun"`
	Nodes  map[string]int `json:"nodes"`  // PID of each node's helper
	Router string         `json:"router"` // path of the VPC router's network namespace
	path   string
}

// registry is where laboratories say that they are there. It is the only thing that one which was killed leaves behind: a small file.
func registry() string { return filepath.Join(os.TempDir(), "enilab-labs") }

// register says that this laboratory is there.
func (w *World) register() error {
	begun, err := begunAt(os.Getpid())
	if err != nil {
		return err
	}
	e := Entry{PID: os.Getpid(), Begun: begun, Nodes: map[string]int{}, Router: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.fabric.Namespace().Fd())}
	for _, n := range w.nodes[1:] {
		if !n.gone {
			e.Nodes[n.name()] = n.box.PID()
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.Mkdir(registry(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := trusted(registry()); err != nil {
		return err
	}
	f, err := os.CreateTemp(registry(), ".lab-*")
	if err != nil {
		return err
	}
	w.entry = f.Name()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	whole := filepath.Join(registry(), strings.TrimPrefix(filepath.Base(w.entry), ".")+".json") // half an entry would be a dead laboratory's
	if err := os.Rename(w.entry, whole); err != nil {
		return err
	}
	w.entry = whole
	return nil
}

// trusted says whether nobody else can have written what is there: an entry names processes that Clean kills and `enilab lab exec` enters,
// and the temporary folder is everybody's.
func trusted(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if kind := info.Mode().Type(); !ok || kind&^fs.ModeDir != 0 || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("laboratories are noted in %s, and somebody else can write to it or made it (%s): look at it, and remove it", path, info.Mode())
	}
	return nil
}

// unregister takes it back, and the folder with the last one.
func (w *World) unregister() {
	if w.entry != "" {
		_ = os.Remove(w.entry)
		_ = os.Remove(registry()) // if it is empty
		w.entry = ""
	}
}

// begunAt is when a process started, in clock ticks since boot (proc(5), stat field 22): with it a PID names one process for ever.
func begunAt(pid int) (uint64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold anything but this
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields)+2)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// Alive says whether the laboratory still runs.
func (e *Entry) Alive() bool {
	begun, err := begunAt(e.PID)
	return err == nil && begun == e.Begun
}

// Labs are the laboratories that say they are there, the newest last. Some may be dead. What somebody else may have written is an error.
func Labs() ([]Entry, error) {
	if err := trusted(registry()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(registry(), "lab-*.json"))
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, path := range files {
		e := Entry{path: path}
		if err := trusted(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || json.Unmarshal(data, &e) != nil {
			e = Entry{path: path} // half written: dead
		}
		e.path = path
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return int(int64(a.Begun) - int64(b.Begun)) })
	return out, nil
}

// cleanLimit is how long a laboratory may take to end.
const cleanLimit = 20 * time.Second

// Clean ends every laboratory of this machine and removes what dead ones left. It returns how many ended, and how many had been dead.
func Clean() (ended, dead int, err error) {
	labs, err := Labs()
	if err != nil {
		return 0, 0, err
	}
	for i := range labs {
		e := &labs[i]
		if !e.Alive() || e.PID == os.Getpid() {
			dead++
		} else if e := e.end(); e != nil {
			err = errors.Join(err, e)
			continue
		} else {
			ended++
		}
		_ = os.Remove(e.path)
	}
	_ = os.Remove(registry())
	return ended, dead, err
}

// end asks a laboratory to end, and kills it if it does not.
func (e *Entry) end() error {
	_ = syscall.Kill(e.PID, syscall.SIGTERM)
	for deadline, killed := time.Now().Add(cleanLimit), false; e.Alive(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("laboratory of process %d has not ended %v after SIGTERM and SIGKILL", e.PID, cleanLimit)
		}
		if !killed && time.Until(deadline) < cleanLimit/2 {
			killed = syscall.Kill(e.PID, syscall.SIGKILL) == nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}
