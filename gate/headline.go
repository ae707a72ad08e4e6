package gate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Headline is what came of the gate in one line that a person can act upon: who does what, and why.
func (p *Page) Headline() string {
	o := p.Outcome()
	switch o.Word {
	case WordRed:
		if list := p.Verdict.ranked(Regression); len(list) > 0 {
			return p.Sentence(list[0])
		}
		for _, f := range p.Verdict.Figures {
			if f.Beyond && f.Reason == "" {
				return f.String()
			}
		}
	case WordInterrupted:
		return fmt.Sprintf("interrupted: %d of %d plays were played, and nothing broke in them that held before", p.known(), len(p.Results))
	case WordNotKnown:
		switch u := p.Verdict.Unknown; len(u) {
		case 0:
			return "nothing was played"
		case 1:
			return p.unsure(u[0])
		default:
			return fmt.Sprintf("%s (and %d more)", p.unsure(u[0]), len(u)-1)
		}
	}
	return fmt.Sprintf("nothing that %s holds breaks with %s, in %d plays", p.From, p.To, p.known())
}

// unsure is why something is not known. An old version that does not serve is named with its reason, like a new one.
func (p *Page) unsure(unknown string) string {
	_, why, useless := strings.Cut(unknown, heldNothing)
	if !useless {
		return Reason(unknown)
	}
	return version(p.From) + " does not serve even before the change, so nothing held: " + because(why, "its role")
}

// known is how many plays were played to their end.
func (p *Page) known() (n int) {
	for i := range p.Results {
		if p.Results[i].Unknown == "" {
			n++
		}
	}
	return n
}

// ranked are the findings of a kind, a reason before its consequence: a daemon that ended, or never served, before the pods that were out of reach for it.
// What was broken before a daemon ended is no consequence of that.
func (v *Verdict) ranked(kinds ...Kind) (out []*Finding) {
	for i := range v.Findings {
		if slices.Contains(kinds, v.Findings[i].Kind) {
			out = append(out, &v.Findings[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *Finding) int {
		return cmp.Or(slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind), v.depth(a)-v.depth(b))
	})
	return out
}

// Ranked are all findings, the gravest first.
func (v *Verdict) Ranked() []*Finding {
	return v.ranked(Regression, Accepted, Seldom, Unsure, Mended, Before)
}

// depth is 0 for what other things may have come of, and rises with what comes of them.
func (v *Verdict) depth(f *Finding) int {
	switch {
	case f.Check == EndsByItself && v.brokenBefore(f):
		return 3
	case f.Check == EndsByItself:
		return 0
	case f.Check == serves:
		return 1
	case strings.HasPrefix(f.Check, "line "):
		return 3
	case f.Check == Settles:
		return 4
	}
	return 2
}

// brokenBefore says whether an invariant had regressed in a finding's play before it came.
func (v *Verdict) brokenBefore(f *Finding) bool {
	return slices.ContainsFunc(v.Findings, func(o Finding) bool {
		return o.Kind == Regression && o.Scenario == f.Scenario && o.Seed == f.Seed && o.At < f.At && !strings.HasPrefix(o.Check, "line ") &&
			len(o.Plays) > 0 && len(f.Plays) > 0 && o.Plays[0] == f.Plays[0]
	})
}

// Sentence says what a finding is: which version does what, in which play, and why.
func (p *Page) Sentence(f *Finding) string {
	s := p.who(f)
	switch f.Check {
	case EndsByItself:
		s += " ends by itself"
	case serves:
		s += " never serves"
	default:
		s += fmt.Sprintf(" breaks %q", f.Check)
	}
	if reason := because(f.Text, "the role of "+version(p.From)); reason != "" {
		s += ": " + reason
	}
	return s
}

// who is the version that a finding is about, and what was done to get there.
func (p *Page) who(f *Finding) string {
	has := func(p Play) bool { return slices.Contains(f.Plays, p) }
	from, to := version(p.From), version(p.To)
	switch {
	case has(New):
		return to
	case has(Upgrade):
		return to + " after an upgrade from " + from
	case has(UpgradeImage):
		return to + " with the manifest of " + from
	case has(Rollback):
		return from + " after a rollback from " + to
	case has(RollbackImage):
		return from + " with the manifest of " + to
	}
	return from
}

// version is that of NAME VERSION.
func version(system string) string { return system[strings.LastIndexByte(system, ' ')+1:] }

var (
	deniedWords  = regexp.MustCompile(`UnauthorizedOperation|AccessDenied|[Nn]ot authorized|is not allowed by`)
	tokenless    = regexp.MustCompile(`\(metadata refuses \S+ without a token\)`)
	deniedAction = regexp.MustCompile(`\b(?:ec2:)?((?:Describe|Create|Delete|Attach|Detach|Assign|Unassign|Modify)[A-Z][A-Za-z]+)\b`)
)

// because is the reason that a text gives: the action of EC2 that a role does not allow, where one was refused, or what metadata did not tell.
func because(text, role string) string {
	if a := refused(text); a != "" {
		return "EC2 refuses " + a + ", which " + role + " does not allow"
	}
	if m := tokenless.FindString(text); m != "" && !strings.Contains(text, "panic: ") { // a panic is the daemon's own word
		return strings.Trim(m, "()")
	}
	return Reason(text)
}

// refused is the action of EC2 that a text says was denied.
func refused(text string) string {
	at := deniedWords.FindStringIndex(text)
	if at == nil {
		return ""
	}
	nearest, distance := "", len(text)
	for _, m := range deniedAction.FindAllStringSubmatchIndex(text, -1) {
		d := max(at[0]-m[1], m[0]-at[1], 0)
		if d < distance {
			nearest, distance = text[m[2]:m[3]], d
		}
	}
	return nearest
}

// mostReason is how long a reason of a headline is at most: two lines of a phone.
const mostReason = 220

// Reason is what a text says, for a headline: of a daemon's log line in JSON its message and error, of a panic its first line, and of many lines the first.
func Reason(text string) string {
	if said, ok := logged(text); ok {
		text = said
	} else if at := strings.Index(text, "panic: "); at >= 0 {
		text = text[at:]
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > mostReason {
		line = string(r[:mostReason-1]) + "…"
	}
	return line
}

// logged is the message of the last line of a log in JSON that is an error, or of the last one.
func logged(text string) (said string, ok bool) {
	graver := false
	for rest := text; ; {
		at := strings.IndexByte(rest, '{')
		if at < 0 {
			return said, ok
		}
		rest = rest[at:]
		var line struct{ Level, Msg, Message, Error, Err string }
		d := json.NewDecoder(strings.NewReader(rest))
		if d.Decode(&line) != nil {
			rest = rest[1:]
			continue
		}
		rest = rest[d.InputOffset():]
		words := slices.DeleteFunc([]string{cmp.Or(line.Msg, line.Message), cmp.Or(line.Error, line.Err)}, func(s string) bool { return s == "" })
		grave := slices.Contains([]string{"error", "fatal", "panic", "dpanic"}, strings.ToLower(line.Level))
		if len(words) > 0 && (grave || !graver) {
			said, ok, graver = strings.Join(words, ": "), true, grave
		}
	}
}
