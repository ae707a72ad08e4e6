package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

func (*helper) install(files []Copy) error { return install(files) }

func install(files []Copy) error {
	var errs []error
	for _, c := range files {
		if err := c.put(); err != nil {
			errs = append(errs, fmt.Errorf("install %s as %s: %w", c.From, c.To, err))
		}
	}
	return errors.Join(errs...)
}

// put writes the file. One with a pause is a script that executes it.
func (c *Copy) put() error {
	if c.Pause == 0 {
		return c.putFile()
	}
	behind := *c
	behind.To += ".program"
	if err := behind.putFile(); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" && exit 0\ncode=$?\nsleep %g\nexit $code\n", behind.To, c.Pause.Seconds())
	if err := os.WriteFile(c.To, []byte(script), 0o600); err != nil {
		return err
	}
	return os.Chmod(c.To, fs.FileMode(c.Mode))
}

// putFile writes beside the file and then takes its name: a program that runs cannot be written to.
func (c *Copy) putFile() error {
	from, err := os.Open(c.From)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(path.Dir(c.To), 0o755); err != nil {
		return err
	}
	const suffix = ".enilab-new"
	to, err := os.OpenFile(c.To+suffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Chmod(fs.FileMode(c.Mode)), to.Close()); err != nil {
		return err
	}
	return os.Rename(c.To+suffix, c.To)
}

func (*helper) remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (*helper) link(a linkArgs) error {
	if at, err := os.Stat(a.Path); err == nil {
		if there, err := os.Stat(a.Target); err == nil && os.SameFile(at, there) {
			return nil
		}
	}
	if err := os.MkdirAll(path.Dir(a.Path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(a.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(a.Target, a.Path)
}
