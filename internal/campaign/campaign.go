// Package campaign carries out commands of enilab that take minutes each, several at once, and keeps what each of them wrote in a folder. A campaign
// that was interrupted goes on where it ended, and a result is taken again as long as nothing that it rests on has changed: enilab with its daemon
// and plugin, the versions' files, the arguments.
//
//	c, err := campaign.Open(folder, "bin/enilab")
//	stamp, err := c.Stamp(args, versions...)
//	results := c.Run(ctx, jobs, 2, tell)          in the order of jobs
//
// It does not read what a command wrote; its caller does.
package campaign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Campaign is a folder of results, and the program that they come from.
type Campaign struct {
	// Keep takes results that rest on something else, too; None plays nothing.
	Keep, None bool
	// Build is what enilab says that it is.
	Build string

	folder, program string
	base            []byte            // a digest of the program and what is beside it
	digests         map[string][]byte // of folders
}

// Job is one command.
type Job struct {
	Name    string // of its files in the folder of results
	Args    []string
	Stamp   string             // what its result rests on: a result with another one is not taken
	Missing string             // why it cannot be carried out; empty: it can
	Limit   time.Duration      // how long it may take on this computer
	Done    func(*Result) bool // whether nothing is left to do; nil: always
}

// Result is what came of a job.
type Result struct {
	Why            string // there is none
	Stdout, Stderr []byte
	Exit           int
	Build          string // of enilab
	Stamp          string
	Took           time.Duration // of this computer's time
}

// record is what is kept beside a job's output.
type record struct {
	Stamp string        `json:"stamp"`
	Build string        `json:"build"`
	Exit  int           `json:"exit"`
	Took  time.Duration `json:"took"`
}

// NotYet is why there is no result where nothing is to be played.
const NotYet = "not played yet"

// Open takes a folder, which is made, and the program. Beside it are ipamd and aws-cni, which go into a machine.
func Open(folder, program string) (*Campaign, error) {
	c := &Campaign{folder: folder, program: program, digests: map[string][]byte{}}
	h := sha256.New()
	for _, name := range []string{filepath.Base(program), "ipamd", "aws-cni"} {
		path := filepath.Join(filepath.Dir(program), name)
		if err := addFile(h, path); err != nil {
			return nil, fmt.Errorf("%w (make build makes enilab, ipamd and aws-cni side by side)", err)
		}
	}
	c.base = h.Sum(nil)
	var err error
	if c.Build, err = buildOf(program); err != nil {
		return nil, err
	}
	return c, os.MkdirAll(folder, 0o755)
}

// buildOf is the version that a program says, or the commit of the working folder where it was built without one.
func buildOf(program string) (string, error) {
	out, err := exec.Command(program, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", program, err)
	}
	if f := strings.Fields(strings.ReplaceAll(string(out), ",", " ")); len(f) > 1 && strings.HasPrefix(f[1], "v") {
		return f[1], nil
	}
	out, err = exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "", fmt.Errorf("which commit %s is of: git describe: %w", program, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Stamp is a digest of what a result rests on: the program, its arguments, and the files that are named, of folders all that is in them. What is not
// there is part of it.
func (c *Campaign) Stamp(args []string, files ...string) (string, error) {
	h := sha256.New()
	h.Write(c.base)
	fmt.Fprintf(h, "%q\n", args)
	for _, f := range files {
		d, known := c.digests[f]
		if !known {
			var err error
			if d, err = digest(f); err != nil {
				return "", err
			}
			c.digests[f] = d
		}
		h.Write(d)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// digest is of a file, or of all files below a folder.
func digest(path string) ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case p == path && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir():
			return err
		}
		rel, err := filepath.Rel(path, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q\n", rel)
		return addFile(h, p)
	})
	return h.Sum(nil), err
}

func addFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Run carries out jobs, as many at once as it is told, in their order, and tells each as it ends. One that cannot be says why, and the others go on.
func (c *Campaign) Run(ctx context.Context, jobs []Job, workers int, tell func(i int, r *Result)) []*Result {
	out := make([]*Result, len(jobs))
	next := make(chan int)
	var wait sync.WaitGroup
	var mu sync.Mutex // one tells at a time
	for range workers {
		wait.Go(func() {
			for i := range next {
				r := c.one(ctx, &jobs[i])
				mu.Lock()
				out[i] = r
				tell(i, r)
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wait.Wait()
	return out
}

// one carries out a job, or takes what came of it before.
func (c *Campaign) one(ctx context.Context, j *Job) *Result {
	before, err := c.read(j)
	switch {
	case err == nil && (c.None || c.Keep && j.done(before) || before.Stamp == j.Stamp && j.done(before)):
		return before
	case c.None:
		return &Result{Why: NotYet}
	case err == nil && before.Stamp == j.Stamp && (j.Missing != "" || ctx.Err() != nil): // it is not done, and says so
		return before
	case j.Missing != "":
		return &Result{Why: j.Missing}
	case ctx.Err() != nil:
		return &Result{Why: NotYet}
	}
	return c.play(ctx, j)
}

func (j *Job) done(r *Result) bool { return j.Done == nil || j.Done(r) }

func (c *Campaign) play(ctx context.Context, j *Job) *Result {
	ctx, cancel := context.WithTimeout(ctx, j.Limit)
	defer cancel()
	var out, diag bytes.Buffer
	p := exec.CommandContext(ctx, c.program, j.Args...)
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), "ENILAB_VERBOSE=1"), &out, &diag
	p.Cancel, p.WaitDelay = func() error { return p.Process.Signal(os.Interrupt) }, time.Minute
	began := time.Now()
	err := p.Run()
	r := &Result{Stdout: out.Bytes(), Stderr: diag.Bytes(), Build: c.Build, Stamp: j.Stamp, Took: time.Since(began).Round(time.Second)}
	if p.ProcessState != nil {
		r.Exit = p.ProcessState.ExitCode()
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Result{Why: "it was not over in " + j.Limit.String()}
	case ctx.Err() != nil:
		return &Result{Why: NotYet}
	case out.Len() == 0:
		return &Result{Why: fmt.Sprintf("%v: %s", err, lastWord(diag.String()))}
	}
	if err := c.write(j, r); err != nil {
		return &Result{Why: "its result cannot be kept: " + err.Error()}
	}
	return r
}

// lastWord is the line with which enilab says why it gives up, whose explanation may follow it, or else the last line.
func lastWord(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for _, line := range slices.Backward(lines) {
		if why, ok := strings.CutPrefix(line, "enilab: "); ok {
			return why
		}
	}
	return lines[len(lines)-1]
}

// The files of a result. The record comes last: without it there is no result.
const (
	outFile    = ".json"
	errFile    = ".err"
	recordFile = ".record"
)

func (c *Campaign) read(j *Job) (*Result, error) {
	base := filepath.Join(c.folder, j.Name)
	data, err := os.ReadFile(base + recordFile)
	if err != nil {
		return nil, err
	}
	var k record
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", base+recordFile, err)
	}
	r := &Result{Exit: k.Exit, Build: k.Build, Stamp: k.Stamp, Took: k.Took}
	if r.Stdout, err = os.ReadFile(base + outFile); err != nil {
		return nil, err
	}
	r.Stderr, err = os.ReadFile(base + errFile)
	return r, err
}

func (c *Campaign) write(j *Job, r *Result) error {
	base := filepath.Join(c.folder, j.Name)
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	if err := os.Remove(base + recordFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := json.Marshal(record{r.Stamp, r.Build, r.Exit, r.Took})
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{outFile, r.Stdout}, {errFile, r.Stderr}, {recordFile, data}} {
		if err := os.WriteFile(base+f.name, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
