package scn

import (
	"strconv"
	"strings"
)

// String prints the scenario. Unchanged lines and sections print their own bytes, all
// others their canonical form.
func (f *File) String() string {
	var b strings.Builder
	for _, l := range f.Lines {
		freshLine(&b)
		b.WriteString(l.String())
		switch l.end {
		case endLF:
			b.WriteByte('\n')
		case endCRLF:
			b.WriteString("\r\n")
		}
	}
	at := min(f.storyAt, len(f.Extra))
	for i, s := range f.Extra {
		if i == at {
			f.printStory(&b)
		}
		s.print(&b)
	}
	if at == len(f.Extra) {
		f.printStory(&b)
	}
	return b.String()
}

// freshLine ends the line before, if it has no end.
func freshLine(b *strings.Builder) {
	if s := b.String(); s != "" && s[len(s)-1] != '\n' {
		b.WriteByte('\n')
	}
}

func (f *File) printStory(b *strings.Builder) {
	if !f.HasStory {
		return
	}
	s := f.story
	s.Name = storySection
	if f.Story != unixEnds(s.Data) {
		s.Data = f.Story
	}
	s.print(b)
}

func (s Section) print(b *strings.Builder) {
	freshLine(b)
	header := s.header
	if line, _, _ := nextLine(header); markerName(strings.TrimSuffix(line, "\r")) != s.Name {
		header = "-- " + s.Name + " --\n"
	}
	b.WriteString(header)
	if s.Data != "" {
		freshLine(b)
		b.WriteString(s.Data)
	}
}

// String prints the line without its line end: its own text if that still says what the line
// says, else the canonical form.
func (l Line) String() string {
	s := l.canonical()
	if was, err := parseLine("", l.Number, l.Raw); err == nil && was.canonical() == s {
		return l.Raw
	}
	return s
}

func (l Line) canonical() string {
	comment := strings.TrimSpace(l.Comment)
	if strings.ContainsAny(comment, "\r\n") { // only a program can have put it there, or a stray CR
		comment = strings.NewReplacer("\n", " ", "\r", " ").Replace(comment)
	}
	if comment != "" {
		comment = "# " + comment
	}
	if l.Stmt == nil {
		return comment
	}
	var w writer
	w.word(l.Guard.String())
	w.stmt(l.Stmt)
	if comment != "" {
		w = append(w, "  "+comment...)
	}
	return string(w)
}

// A writer is a line being printed.
type writer []byte

// word adds s after a blank; an empty s adds nothing.
func (w *writer) word(s string) {
	if len(*w) > 0 && s != "" {
		*w = append(*w, ' ')
	}
	*w = append(*w, s...)
}

func (w *writer) words(ws ...string) {
	for _, s := range ws {
		w.word(s)
	}
}

func (w *writer) stmt(s Stmt) {
	switch s := s.(type) {
	case *Cluster:
		w.word("cluster")
		w.keyValues(s.Args)
	case *Config:
		w.word("config")
		w.keyValues(s.Args)
	case *Start:
		w.words("start", "pods", s.Name, strconv.Itoa(s.Count), "on", s.Target.String())
	case *Vary:
		w.words("vary", s.Key+"="+quoteValue(strings.Join(s.Values, ","), true))
	case *Always:
		w.words("always", quote(s.Invariant))
	case *At:
		w.at(s)
	case *Finally:
		w.words("finally", "converges", "within", formatDuration(s.Within))
	case *Never:
		w.words("never", "settles", quote(s.Reason))
	case *Against:
		w.words("against", s.Mutant, "breaks", quote(s.Invariant))
		if s.HasBy {
			w.words("by", formatDuration(s.By))
		}
	case *Reaches:
		w.words("reaches", s.Point)
	case *Compare:
		w.words("compare", "counts", quote(s.Counts))
	}
}

func (w *writer) keyValues(kvs []KV) {
	for _, kv := range kvs {
		w.word(kv.Key + "=" + quoteValue(kv.Value, true))
	}
}

func (w *writer) at(s *At) {
	if s.Maybe {
		w.word("maybe")
	}
	w.words("at", formatDuration(s.When))
	if s.HasEvery {
		w.words("every", formatDuration(s.Every), "until", formatDuration(s.Until))
	}
	if s.Action != nil {
		w.action(s.Action)
	}
	if s.Check != nil {
		w.check(s.Check)
	}
}

func (w *writer) action(a *Action) {
	w.words(a.Subject.String(), a.Verb)
	for _, arg := range a.Args {
		if arg.Key == "" {
			w.word(quoteValue(arg.Value, false))
		} else {
			w.word(arg.Key + "=" + quoteValue(arg.Value, true))
		}
	}
}

func (w *writer) check(k *Check) {
	if k.HasWithin {
		w.words("within", formatDuration(k.Within))
	}
	w.words("expect", k.Subject.String(), k.Metric)
	if k.Op != "" {
		w.words(k.Op, quoteValue(k.Value, false))
	}
}

// String prints the subject as it is written.
func (s Subject) String() string {
	switch s.Kind {
	case Node:
		return "node-" + strconv.Itoa(s.Node)
	case AllNodes:
		return "node-*"
	case Pod:
		return "pod " + s.Pod
	case EC2:
		return "ec2"
	case IMDS:
		return "imds"
	case Kube:
		return "kube"
	}
	return ""
}
