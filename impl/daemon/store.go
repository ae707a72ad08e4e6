package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/enilab/enilab/impl/ipam"
)

// file is a Store: one file, which is written whole. It keeps the rows, because a Save says what changes and a file is all of them.
type file struct {
	path    string
	kind    ipam.Store
	version int
	wall    int64 // at boot, for upstream's timestamps

	mu    sync.Mutex // a wrapper of this store may call concurrently
	rows  map[ipam.Key]ipam.Row
	lines lineCache
}

// Read reads the file. One that cannot be read is set aside, so that the next Commit writes a good one and a person can look.
func (f *file) Read() ([]ipam.Row, int, error) {
	f.rows, f.lines = map[ipam.Key]ipam.Row{}, lineCache{}
	rows, written, err := f.read()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w; %s", f.path, err, setAside(f.path))
	}
	for _, r := range rows {
		f.rows[r.Key()] = r
	}
	return rows, written, nil
}

func (f *file) read() (rows []ipam.Row, written int, err error) {
	data, err := readBounded(f.path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if f.kind == ipam.LibStore {
		rows, err = ipam.DecodeLib(f.version, data)
	} else {
		rows, err = ipam.DecodeRun(f.version, f.wall, data)
	}
	return rows, writtenBy(data), err
}

// readBounded reads a regular file of at most so many bytes.
func readBounded(path string, most int) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("expected a file, found %s", st.Mode())
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("expected at most %d bytes, found more", most)
	}
	return data, err
}

// writtenBy is the record version in a file that was decoded; 0 is another CNI's.
func writtenBy(data []byte) int {
	var v struct {
		Record int
		Enilab struct{ Record int }
	}
	_ = json.Unmarshal(data, &v) // what does not fit is another's
	return max(v.Record, v.Enilab.Record)
}

// setAside renames what cannot be read to the first free NAME.bad-N, and says what became of it.
func setAside(path string) string {
	to := ""
	for i := 1; i <= maxBad; i++ {
		if to = path + ".bad-" + strconv.Itoa(i); !exists(to) {
			break
		}
	}
	if err := os.Rename(path, to); err != nil {
		return "it could not be set aside: " + err.Error()
	}
	return "it was set aside as " + filepath.Base(to)
}

// Commit writes the file with the saves in it. When that fails the store holds what it held before: on disk too, unless only the
// folder's fsync failed, and then until the next Commit.
func (f *file) Commit(saves []*ipam.Save) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	undo := f.merge(saves)
	data, err := f.encode()
	if err == nil {
		err = replace(f.path, data, recordMode)
	}
	if err != nil {
		undo()
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// merge applies the saves to the rows and returns what takes that back.
func (f *file) merge(saves []*ipam.Save) (undo func()) {
	before := map[ipam.Key]*ipam.Row{} // nil: there was none
	touch := func(k ipam.Key) {
		f.lines.changed(k)
		if _, known := before[k]; known {
			return
		}
		before[k] = nil
		if r, ok := f.rows[k]; ok {
			before[k] = &r
		}
	}
	for _, s := range saves {
		for _, r := range s.Put {
			touch(r.Key())
			f.rows[r.Key()] = r
		}
		for _, k := range s.Drop {
			touch(k)
			delete(f.rows, k)
		}
	}
	return func() {
		for k, r := range before {
			f.lines.changed(k)
			if delete(f.rows, k); r != nil {
				f.rows[k] = *r
			}
		}
	}
}

func (f *file) encode() ([]byte, error) {
	if f.kind == ipam.LibStore {
		rows := make([]ipam.Row, 0, len(f.rows))
		for _, r := range f.rows {
			rows = append(rows, r)
		}
		return ipam.EncodeLib(f.version, rows)
	}
	return f.lines.encode(f.version, f.wall, f.rows)
}

// replace makes the file hold data, or leaves it as it was: a new file, its fsync, a rename, the folder's fsync.
func replace(path string, data []byte, mode fs.FileMode) error {
	fresh := path + ".new" // one process has the lock, and writes once at a time
	err := write(fresh, data, mode)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh) // the next write truncates it anyway
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// recordMode is for records, which no other user has to read.
const recordMode = 0o600

func write(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask is
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
