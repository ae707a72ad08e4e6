package ipc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	suffix  = ".json"
	writing = ".tmp"      // ".<name>.json<random>.tmp": not yet an intent
	leaving = ".removing" // ".<name>.json.removing": an intent whose Remove is under way
)

// abandoned is the age at which a file that was never finished has no writer any more: the plugin lives for seconds.
const abandoned = 10 * time.Minute

// WriteIntent makes the intent durable. The folder is made when it is not there.
func WriteIntent(dir string, in Intent) error {
	raw, err := encode(in)
	if err != nil {
		return fmt.Errorf("DEL intent of %s: %w", in.Attachment, err)
	}
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("DEL intent of %s: make the folder: %w", in.Attachment, err)
	}
	if err := replace(dir, name(in.Attachment), raw); err != nil {
		return fmt.Errorf("DEL intent of %s: %w", in.Attachment, err)
	}
	return nil
}

// makeDir makes the folder, and its entry in the folder above durable.
func makeDir(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// replace writes a file that is there whole or not at all.
func replace(dir, name string, raw []byte) error {
	f, err := os.CreateTemp(dir, "."+name+"*"+writing)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(dir)
}

// sync makes a folder's entries durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// IntentFile is an intent in its file.
type IntentFile struct {
	Intent
	Name string // of the file in its folder
	info os.FileInfo
}

// Unreadable is a file that should be an intent and is not. It stays where it is, for a person.
type Unreadable struct {
	Name string
	Err  error
}

// ReadIntents returns the folder's intents, sorted by file name, and what could not be read. A folder that is not there has
// none. The error is about the folder as a whole. What writers that died have left is removed.
func ReadIntents(dir string) ([]IntentFile, []Unreadable, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("DEL intents: %w", err)
	}
	var entries []IntentFile
	var bad []Unreadable
	for _, d := range list {
		switch n := d.Name(); {
		case strings.HasPrefix(n, ".") && strings.HasSuffix(n, writing):
			sweep(dir, d)
		case strings.HasPrefix(n, ".") && !strings.HasSuffix(n, leaving), !strings.HasPrefix(n, ".") && !strings.HasSuffix(n, suffix):
			// not ours
		default:
			e, err := readEntry(dir, n)
			if err == nil {
				entries = append(entries, e)
			} else if !errors.Is(err, fs.ErrNotExist) { // removed since
				bad = append(bad, Unreadable{n, err})
			}
		}
	}
	return entries, bad, nil
}

// sweep removes an unfinished file whose writer is dead.
func sweep(dir string, d fs.DirEntry) {
	if st, err := d.Info(); err == nil && time.Since(st.ModTime()) > abandoned {
		os.Remove(filepath.Join(dir, d.Name()))
	}
}

func readEntry(dir, name string) (IntentFile, error) {
	path := filepath.Join(dir, name)
	if st, err := os.Lstat(path); err != nil {
		return IntentFile{}, err
	} else if !st.Mode().IsRegular() {
		return IntentFile{}, fmt.Errorf("expected a file, found %s", st.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return IntentFile{}, err
	}
	defer f.Close()
	e := IntentFile{Name: name}
	if e.info, err = f.Stat(); err != nil {
		return IntentFile{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+2))
	if err != nil {
		return IntentFile{}, err
	}
	if len(raw) > maxFile+1 {
		return IntentFile{}, fmt.Errorf("expected at most %d bytes, found more", maxFile)
	}
	if e.Intent, err = decode(raw); err != nil {
		return IntentFile{}, err
	}
	return e, nil
}

// RemoveIntent takes away exactly the file that Read saw. A DEL of the same attachment may have written another one since: it
// stays, for its caller was told that it will be done. An entry that is gone already is fine.
func RemoveIntent(dir string, e IntentFile) error {
	path, aside := filepath.Join(dir, e.Name), filepath.Join(dir, e.Name)
	if !strings.HasSuffix(e.Name, leaving) { // an earlier Remove did not end
		aside = filepath.Join(dir, "."+e.Name+leaving)
		if err := os.Rename(path, aside); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return fmt.Errorf("remove DEL intent of %s: %w", e.Attachment, err)
		}
		if st, err := os.Lstat(aside); err != nil || !os.SameFile(st, e.info) {
			if err := os.Link(aside, path); err != nil && !errors.Is(err, fs.ErrExist) { // still newer: that one stays
				return fmt.Errorf("remove DEL intent of %s: put a newer one back: %w", e.Attachment, err)
			}
		}
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove DEL intent of %s: %w", e.Attachment, err)
	}
	return syncDir(dir)
}
