package vm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Played is all that came of one run, in memory.
type Played struct {
	*Result
	Stdout, Stderr []byte
	Files          map[string][]byte
}

// Play runs a job, keeps everything that comes of it, and passes text on as it comes. What is known is returned with an error too.
func (m *Machine) Play(ctx context.Context, j *Job, stdout, stderr io.Writer) (*Played, error) {
	k := &keeper{}
	res, err := m.Run(ctx, j, k.sinks(stdout, stderr))
	return k.played(res), err
}

// keeper keeps everything that comes of a run.
type keeper struct {
	out, diag bytes.Buffer
	files     map[string][]byte
}

// sinks are for a new run, whose text is passed on as it comes.
func (k *keeper) sinks(stdout, stderr io.Writer) Sinks {
	*k = keeper{files: map[string][]byte{}}
	return Sinks{Stdout: io.MultiWriter(&k.out, stdout), Stderr: io.MultiWriter(&k.diag, stderr),
		File: func(name string) (io.WriteCloser, error) { return &kept{to: k.files, name: name}, nil }}
}

func (k *keeper) played(r *Result) *Played {
	return &Played{Result: r, Stdout: k.out.Bytes(), Stderr: k.diag.Bytes(), Files: k.files}
}

// kept is a file that is kept in memory.
type kept struct {
	bytes.Buffer
	to   map[string][]byte
	name string
}

func (k *kept) Close() error { k.to[k.name] = k.Bytes(); return nil }

// The names of what is no file of the machine's, in a comparison and in a folder of everything.
const (
	consoleName = "console.txt"
	stdoutName  = "standard output"
	stderrName  = "standard error"
)

// all is everything by its name.
func (p *Played) all() map[string][]byte {
	all := map[string][]byte{stdoutName: p.Stdout, stderrName: p.Stderr, consoleName: p.Console}
	maps.Copy(all, p.Files)
	return all
}

// Compared is how many bytes of how many files a comparison has seen.
func (p *Played) Compared() (files int, size int64) {
	for _, data := range p.all() {
		files++
		size += int64(len(data))
	}
	return files, size
}

// Difference says where each of the files of two runs that should be the same first differs; "" is nowhere.
func Difference(a, b *Played) string {
	x, y := a.all(), b.all()
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, both := x[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var found []string
	for _, name := range names {
		p, both := x[name]
		q, and := y[name]
		switch {
		case !both:
			found = append(found, fmt.Sprintf("%s: only the second run has it (%d bytes)", name, len(q)))
		case !and:
			found = append(found, fmt.Sprintf("%s: only the first run has it (%d bytes)", name, len(p)))
		case !bytes.Equal(p, q):
			found = append(found, name+differs(p, q))
		}
	}
	if a.Code != b.Code {
		found = append(found, fmt.Sprintf("exit code: %d in the first run, %d in the second", a.Code, b.Code))
	}
	return strings.Join(found, "\n")
}

// differs is the place of the first difference, and both texts.
func differs(p, q []byte) string {
	at := 0
	for at < len(p) && at < len(q) && p[at] == q[at] {
		at++
	}
	if isText(p) && isText(q) {
		return fmt.Sprintf(", line %d (byte %d):\n  first   %s\n  second  %s", 1+bytes.Count(p[:at], []byte("\n")), at, lineAt(p, at), lineAt(q, at))
	}
	return fmt.Sprintf(", byte %d:\n  first   %s\n  second  %s", at, bytesAt(p, at), bytesAt(q, at))
}

// isText: there is no NUL in what people read.
func isText(b []byte) bool { return !bytes.Contains(b, []byte{0}) }

// shown bounds what of a line or of bytes is shown.
const shown = 200

func lineAt(b []byte, at int) string {
	if at >= len(b) {
		return "(it ends here)"
	}
	from := 1 + bytes.LastIndexByte(b[:at], '\n')
	line, _, _ := bytes.Cut(b[from:], []byte("\n"))
	if len(line) > shown {
		begin := max(0, at-from-shown/2)
		line = line[begin:min(len(line), begin+shown)]
	}
	return fmt.Sprintf("%q", strings.TrimRight(string(line), "\r"))
}

func bytesAt(b []byte, at int) string {
	if at >= len(b) {
		return "(it ends here)"
	}
	return fmt.Sprintf("% x", b[at:min(len(b), at+16)])
}
