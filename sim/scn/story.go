package scn

import "strings"

// storySection is the section that holds the golden story.
const storySection = "story"

func unixEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// WithStory returns the same file with another golden story. So that the story can be read back
// as it is, every line of it ends in "\n", and a line that looks like a section's marker a blank in
// front: compare with the result's Story, not with the argument.
func (f *File) WithStory(story string) *File {
	g := f.Clone()
	var b strings.Builder
	for line := range strings.Lines(story) {
		text := strings.TrimRight(line, "\r\n")
		if markerName(text) != "" {
			b.WriteByte(' ')
		}
		b.WriteString(text + "\n")
	}
	g.Story, g.HasStory = b.String(), true
	if !f.HasStory {
		g.storyAt = len(g.Extra)
	}
	return g
}

// leadingComment reads the comment block at the top of the script.
func leadingComment(lines []Line) (comment, source string) {
	var text, sources []string
	for _, l := range lines {
		if l.Stmt != nil || strings.TrimSpace(l.Raw) == "" {
			break
		}
		if s, ok := strings.CutPrefix(l.Comment, "Source:"); ok {
			sources = append(sources, strings.TrimSpace(s))
		} else {
			text = append(text, l.Comment)
		}
	}
	return strings.TrimSpace(strings.Join(text, "\n")), strings.Join(sources, "; ")
}

// Headline is the first sentence of the comment at the top, in one line: what happened.
func (f *File) Headline() string {
	text := strings.Join(strings.Fields(f.Comment), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		return text[:i+1]
	}
	return text
}
