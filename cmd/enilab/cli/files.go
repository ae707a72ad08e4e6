package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// load reads and checks all files before any is run. The error is an scn.ErrorList with the mistakes of all of them.
func (l *cli) load(p *runner.Place, names []string) ([]*runner.Case, error) {
	var cases []*runner.Case
	var errs scn.ErrorList
	for _, name := range names {
		data, err := l.read(name)
		if err == nil {
			var c *runner.Case
			if c, err = runner.Load(p, name, data); err == nil {
				cases = append(cases, c)
				continue
			}
		}
		errs = append(errs, scn.Listed(name, err)...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return cases, nil
}

// read gives a file's bytes, or those of a scenario that comes with enilab where there is no such file; "-" is standard input. It never reads much
// more than a scenario may have.
func (l *cli) read(name string) ([]byte, error) {
	bad := func(hint, format string, args ...any) ([]byte, error) {
		return nil, scn.ErrorList{scn.Errorf(scn.Pos{File: name}, hint, format, args...)}
	}
	if name == "-" {
		return io.ReadAll(io.LimitReader(l.in, scn.MaxFile+1))
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if data, ok := builtin(name); ok {
			return data, nil
		}
		hint := besides(name)
		if near := scn.Suggest(strings.TrimSuffix(filepath.Base(name), ".scn"), builtinNames()); near != "" && !strings.HasPrefix(hint, suggestion) {
			hint = suggestion + near + ", which comes with enilab?"
		}
		return bad(hint, "there is no such file")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return bad("name the files in it, such as "+filepath.Join(name, "*.scn"), "it is a folder, not a scenario")
	case info.Size() > scn.MaxFile:
		return bad("is this a scenario?", "the file has %d bytes, and a scenario at most %d", info.Size(), scn.MaxFile)
	}
	return io.ReadAll(io.LimitReader(f, scn.MaxFile+1))
}

// suggestion is how the hint begins that names another word.
const suggestion = "did you mean "

// besides suggests another file of the folder.
func besides(name string) string {
	dir := filepath.Dir(name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "there is no folder " + dir + " either"
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if near := scn.Suggest(filepath.Base(name), names); near != "" {
		return suggestion + filepath.Join(dir, near) + "?"
	}
	return "nothing in " + dir + " has such a name"
}

// rewrite puts another text into a file: whole or not at all, and not if the file was changed since it was read.
func rewrite(name, was, text string) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != was {
		return errors.New("write the timeline of " + name + ": the file has changed since it was read; run it again")
	}
	return replace(path, info.Mode().Perm(), func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

// replace writes a file whole or not at all.
func replace(path string, perm os.FileMode, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".enilab-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // nothing is left of it when all went well
	err = write(tmp)
	if err = errors.Join(err, tmp.Chmod(perm), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
