package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/runner"
)

// recordingsBegin is how a recording is known among the files of a folder.
const recordingsBegin = `{"enilab":"recording/`

// otherwise is the first decision of a recording that this build takes otherwise. Inputs after it come from a history that this build did not have.
type otherwise struct {
	file     string
	line     int
	at       time.Duration
	in       ipam.Input
	now      []string // effects, a line each
	then     []string
	recorded bool // then is known
}

// kind names what differs, without the numbers: the kinds of effects that only one of both wanted.
func (o *otherwise) kind() string {
	in := strings.TrimPrefix(fmt.Sprintf("%T", o.in), "ipam.")
	if o.in == nil {
		in = "tick"
	}
	if !o.recorded {
		return in + ": now " + listedKinds(kinds(o.now))
	}
	now, then := kinds(o.now), kinds(o.then)
	gone, come := without(then, now), without(now, then)
	switch {
	case len(gone)+len(come) == 0:
		return in + ": the same kinds of effects with other contents"
	case len(come) == 0:
		return in + ": no more " + strings.Join(gone, ", ")
	case len(gone) == 0:
		return in + ": new " + strings.Join(come, ", ")
	}
	return in + ": " + strings.Join(come, ", ") + " instead of " + strings.Join(gone, ", ")
}

func listedKinds(kinds []string) string {
	if len(kinds) == 0 {
		return "nothing"
	}
	return strings.Join(kinds, ", ")
}

// kinds are the effects' first words up to what tells one from another: "Call AttachNetworkInterface", "Note draining".
func kinds(effects []string) []string {
	out := make([]string, 0, len(effects))
	for _, e := range effects {
		var words []string
		for _, w := range strings.Fields(e) {
			if len(words) < 2 && !strings.ContainsAny(w, "#0123456789") {
				words = append(words, strings.Trim(w, ":,"))
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	slices.Sort(out)
	return out
}

// without are those of a that b does not have, each as often as it is missing.
func without(a, b []string) (out []string) {
	b = slices.Clone(b)
	for _, x := range a {
		if i := slices.Index(b, x); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// gateRecordings steps all recordings of a folder with this build, and says which decisions differ. With the enilab of the version that recorded it also says
// what that one wanted.
func (l *cli) gateRecordings(c *cobra.Command, f *gateFlags, names []string) error {
	folder, then := f.recordings, f.then
	if len(names) > 0 {
		return usage("gate --recordings plays no scenario, found %s", strings.Join(names, " "))
	}
	var beside []string
	c.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "recordings" && flag.Name != "then" {
			beside = append(beside, "--"+flag.Name)
		}
	})
	if len(beside) > 0 {
		return usage("gate --recordings takes --then and nothing else, found %s", strings.Join(beside, " "))
	}
	if folder == "" {
		return usage("gate --then is for --recordings FOLDER")
	}
	files, err := recordingsIn(folder)
	if err != nil {
		return usage("--recordings %s: %v", folder, err)
	}
	if len(files) == 0 {
		return usage("--recordings %s: no file in it is a recording (a daemon's begins with %s)", folder, recordingsBegin)
	}
	if then != "" {
		if _, err := exec.LookPath(then); err != nil {
			return usage("--then %s: %v (the enilab of the version that recorded)", then, err)
		}
	}
	same, inputs := 0, 0
	var different []*otherwise
	var unread []string
	for _, file := range files {
		o, n, err := l.stepped(file)
		inputs += n
		switch {
		case err != nil:
			unread = append(unread, fmt.Sprintf("%s: %v", file, err))
		case o == nil:
			same++
		default:
			if then != "" {
				o.then, o.recorded = effectsAt(l.context(), then, file, o.line)
			}
			different = append(different, o)
		}
	}
	l.tellRecordings(len(files), same, inputs, different, unread)
	switch {
	case len(different) > 0:
		return &exit{runner.ExitViolated, ""}
	case len(unread) > 0:
		return usage("%s cannot be stepped with this build", runner.Count(len(unread), "recording"))
	}
	return nil
}

func (l *cli) tellRecordings(all, same, inputs int, different []*otherwise, unread []string) {
	fmt.Fprintf(l.out, "%s, %s: %d stepped to their end with the same decisions, %d decide otherwise, %d cannot be stepped\n",
		runner.Count(all, "recording"), runner.Count(inputs, "input"), same, len(different), len(unread))
	byKind := map[string][]*otherwise{}
	for _, o := range different {
		byKind[o.kind()] = append(byKind[o.kind()], o)
	}
	for _, k := range slices.SortedFunc(maps.Keys(byKind), func(a, b string) int {
		return cmp.Or(len(byKind[b])-len(byKind[a]), strings.Compare(a, b))
	}) {
		first := byKind[k][0]
		fmt.Fprintf(l.out, "%s  (%s)\n", k, runner.Count(len(byKind[k]), "recording"))
		fmt.Fprintf(l.out, "    %s line %d, t=%v: %s\n", first.file, first.line, first.at, describeInput(first.in))
		if first.recorded {
			tellEffects(l.out, "then", first.then)
		}
		tellEffects(l.out, "now", first.now)
		for _, o := range byKind[k][1:] {
			fmt.Fprintf(l.out, "    also %s line %d\n", o.file, o.line)
		}
	}
	for _, u := range unread {
		fmt.Fprintln(l.out, u)
	}
}

func tellEffects(w io.Writer, when string, effects []string) {
	if len(effects) == 0 {
		fmt.Fprintf(w, "        %-4s  nothing\n", when)
	}
	for _, e := range effects {
		fmt.Fprintf(w, "        %-4s  %s\n", when, e)
	}
}

// stepped is the first difference of a recording, and how many inputs were good before it.
func (l *cli) stepped(file string) (*otherwise, int, error) {
	data, err := l.recording(file)
	if err != nil {
		return nil, 0, err
	}
	good, err := ipam.Replay(data, policyNamed, nil)
	d, differs := errors.AsType[*ipam.Difference](err)
	if !differs {
		return nil, good.Lines, err
	}
	o := &otherwise{file: file, line: good.Lines + 2, at: d.At, in: d.In}
	for _, e := range d.Effects {
		o.now = append(o.now, describeEffect(e))
	}
	return o, good.Lines, nil
}

// effectsAt are the effects that another build has for a line of a recording, as its replay prints them; false if it does not get there.
func effectsAt(ctx context.Context, enilab, file string, line int) ([]string, bool) {
	out, err := exec.CommandContext(ctx, enilab, "replay", file).Output()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return nil, false
	}
	var effects []string
	at := 1
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, recordingBounds().size)
	for s.Scan() {
		text := s.Text()
		if !strings.HasPrefix(text, " ") {
			at++
		} else if at == line {
			effects = append(effects, strings.TrimSpace(text))
		}
	}
	return effects, at >= line
}

// recordingsIn are the recordings of a folder and those below it.
func recordingsIn(folder string) (files []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		start := make([]byte, len(recordingsBegin))
		if _, err := io.ReadFull(f, start); err == nil && string(start) == recordingsBegin {
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
