// Command tracked is what make lint asks about the files that git tracks: none is an executable, and none is large. A binary that is committed
// once is in every clone for ever.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds a file, in bytes. The largest source is a twentieth of it.
const maxFile = 1 << 20

func main() {
	found, err := findings(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, f := range found {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// findings are the files of a repository that should not be in it, each with the reason. Below a testdata anything may be.
func findings(root string) (found []string, err error) {
	c := exec.Command("git", "ls-files", "-z")
	c.Dir = root
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files that git tracks in %s: %v: %s", root, err, strings.TrimSpace(errs.String()))
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		why, err := refused(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if why != "" {
			found = append(found, name+": "+why+" (git rm --cached "+name+")")
		}
	}
	return found, nil
}

// refused says why a file may not be tracked; "" is that it may.
func refused(file string) (string, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", nil // removed since, a link, or a folder that is a repository itself
	}
	if err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err == nil && string(head) == "\x7fELF" {
		return fmt.Sprintf("it is an ELF file of %d bytes: what is built stays out of the repository", info.Size()), nil
	}
	if info.Size() > maxFile {
		return fmt.Sprintf("it has %d bytes, and a tracked file at most %d outside of testdata", info.Size(), maxFile), nil
	}
	return "", nil
}
