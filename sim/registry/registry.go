// Package registry is where the processes that hold a laboratory say that they are there, so that another process can list and end them.
//
// It is a folder in the temporary folder, with a small file for each. A process that was killed leaves its file behind; a PID with the
// instant at which the process began names one process for ever, so no other is ever taken for it.
package registry

import (
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

// Process is one process, for ever.
type Process struct {
	PID   int    `json:"pid"`
	Begun uint64 `json:"begun"` // in clock ticks since boot
}

// Self is this process.
func Self() (Process, error) {
	begun, err := begunAt(os.Getpid())
	return Process{os.Getpid(), begun}, err
}

// begunAt is when a process started (proc(5), stat field 22).
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

// Alive says whether the process still runs.
func (p *Process) Alive() bool {
	begun, err := begunAt(p.PID)
	return err == nil && begun == p.Begun
}

// End asks a process to end, and kills it when half of the limit has passed. One that is dead is fine.
func (p *Process) End(limit time.Duration) error {
	if !p.Alive() {
		return nil // its PID may be another process's
	}
	_ = syscall.Kill(p.PID, syscall.SIGTERM)
	for deadline, killed := time.Now().Add(limit), false; p.Alive(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d has not ended %v after SIGTERM and SIGKILL", p.PID, limit)
		}
		if !killed && time.Until(deadline) < limit/2 {
			killed = syscall.Kill(p.PID, syscall.SIGKILL) == nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// Folder is where laboratories of one kind are noted.
type Folder struct {
	Name   string // below the temporary folder
	Prefix string // of the files
	Noun   string // what is noted there, for errors: "laboratories"
}

// Path is where it is.
func (f Folder) Path() string { return filepath.Join(os.TempDir(), f.Name) }

// Note writes an entry and gives its path, for Forget. An entry is there as a whole or not at all: half of one would be a dead laboratory's.
func (f Folder) Note(entry []byte) (path string, err error) {
	if err := os.Mkdir(f.Path(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := f.trusted(f.Path()); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(f.Path(), "."+f.Prefix+"-*")
	if err != nil {
		return "", err
	}
	_, err = part.Write(entry)
	if err = errors.Join(err, part.Close()); err == nil {
		path = filepath.Join(f.Path(), strings.TrimPrefix(filepath.Base(part.Name()), ".")+".json")
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(part.Name()))
	}
	return path, nil
}

// Forget takes an entry back, and the folder with the last one.
func (f Folder) Forget(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
	_ = os.Remove(f.Path()) // if it is empty
}

// trusted says whether no other user can have written what is there: an entry names processes that are killed and
// entered, and the temporary folder is everybody's.
func (f Folder) trusted(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if kind := info.Mode().Type(); !ok || kind&^fs.ModeDir != 0 || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s are noted in %s, and somebody else can write to it or made it (%s): look at it, and remove it", f.Noun, path, info.Mode())
	}
	return nil
}

// File is an entry.
type File struct {
	Path string
	Data []byte
}

// Files are all entries, by path. What another user may have written is an error.
func (f Folder) Files() ([]File, error) {
	if err := f.trusted(f.Path()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(f.Path(), f.Prefix+"-*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var out []File
	for _, path := range paths {
		if err := f.trusted(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			data = nil // as good as half written: dead
		}
		out = append(out, File{path, data})
	}
	return out, nil
}
