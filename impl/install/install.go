// Package install puts the CNI plugins of the image into the node's folder.
//
// They are programs that others start, at any moment and many at once: a runtime, for every pod. So a program is never written to where it is
// found (a write to one that runs fails with ETXTBSY, and one that is half written does not start), but beside it, with fsync, and renamed; a
// reader finds the old one or the new one. All of them are written before the first is renamed, so that a full disk changes nothing. One that is
// there already is left alone, and what an interrupted installer left behind is removed by the next.
package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds.
const (
	maxPlugins = 64                     // a folder with more is not the image's
	lockBound  = 30 * time.Second       // for another installer, which needs less than a second
	lockPause  = 100 * time.Millisecond // between looks whether it has ended
)

// mode is everybody's right to start a plugin, as other CNIs install theirs.
const mode = 0o755

// prefix of a file that is no plugin yet. No runtime looks for a name with a dot in front.
const prefix = ".enilab-install-"

// Missing is a folder that is not there: something has to be mounted.
type Missing struct {
	Folder string
	Err    error
}

func (m *Missing) Error() string { return m.Folder + ": " + m.Err.Error() }

// Unwrap is what the kernel said of the folder.
func (m *Missing) Unwrap() error { return m.Err }

// Plugins makes every file of a folder a program in another, under the same name and with mode 0755. It returns the names of those that
// were not there, or were others. An error is *Missing where a folder is; nothing is changed then, nor when the disk is full.
func Plugins(from, to string) (changed []string, err error) {
	names, err := files(from)
	if err != nil {
		return nil, err
	}
	dir, err := hold(to)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // and with it the lock
	if err := sweep(to); err != nil {
		return nil, err
	}
	staged := map[string]string{}
	defer func() {
		for _, fresh := range staged { // not renamed
			_ = os.Remove(fresh) // or the next installer does
		}
	}()
	for _, name := range names {
		if same(filepath.Join(from, name), filepath.Join(to, name)) {
			continue
		}
		if staged[name], err = stage(filepath.Join(from, name), to); err != nil {
			return nil, fmt.Errorf("install %s in %s: %w", name, to, err)
		}
		changed = append(changed, name)
	}
	for i, name := range changed {
		if err := os.Rename(staged[name], filepath.Join(to, name)); err != nil {
			return changed[:i], fmt.Errorf("install %s in %s: %w", name, to, err)
		}
		delete(staged, name)
	}
	if err := dir.Sync(); err != nil {
		return changed, fmt.Errorf("install in %s: %w", to, err)
	}
	return changed, nil
}

// files are the names of the plugins in a folder, sorted.
func files(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, &Missing{dir, err}
	}
	for _, e := range list {
		st, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("plugin in the image: %w", err)
		}
		if st.Mode().IsRegular() && !strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 || len(names) > maxPlugins {
		return nil, fmt.Errorf("%s: expected 1 to %d plugins, found %d files", dir, maxPlugins, len(names))
	}
	return names, nil
}

// hold opens the folder, for this installer alone (flock(2): it ends with the process).
func hold(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, &Missing{dir, err}
	}
	if st, err := f.Stat(); err == nil && !st.IsDir() {
		f.Close()
		return nil, &Missing{dir, syscall.ENOTDIR}
	}
	for end := time.Now().Add(lockBound); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		case time.Now().After(end):
			f.Close()
			return nil, fmt.Errorf("lock %s: another installer has it since %v", dir, lockBound)
		}
	}
}

// sweep removes what an interrupted installer left. The caller holds the folder, so that no installer is at work.
func sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for the leftovers of an installer: %w", err)
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the leftover of an installer: %w", err)
		}
	}
	return nil
}

// stage writes a copy into the folder, durable and executable, under a name that is never executed.
func stage(from, dir string) (fresh string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(mode)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(out.Name()) // or the next installer does
		return "", err
	}
	return out.Name(), nil
}
