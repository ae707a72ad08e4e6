package scn

import "strings"

// markerName returns the name in a "-- name --" line (given without its line end), or "".
func markerName(line string) string {
	rest, ok := strings.CutPrefix(line, "-- ")
	if !ok {
		return ""
	}
	name, ok := strings.CutSuffix(rest, " --")
	if !ok {
		return ""
	}
	return strings.TrimSpace(name)
}

// nextLine cuts the first line off s.
func nextLine(s string) (line string, end lineEnd, rest string) {
	line, rest, found := strings.Cut(s, "\n")
	if !found {
		return line, endNone, ""
	}
	if l, ok := strings.CutSuffix(line, "\r"); ok {
		return l, endCRLF, rest
	}
	return line, endLF, rest
}

// splitArchive parts the script from the sections after it. No byte is lost: the script and each
// section's header and data, one after the other, are the text.
func splitArchive(file, text string) (script string, sections []Section) {
	rest, at, number := text, 0, 0
	for rest != "" {
		line, end, after := nextLine(rest)
		if end == endNone {
			// The last line of a file may be "-- story --\r" without its newline.
			line = strings.TrimSuffix(line, "\r")
		}
		number++
		next := len(text) - len(after)
		if name := markerName(line); name != "" {
			start := len(text) - len(rest)
			if len(sections) == 0 {
				script = text[:start]
			} else {
				sections[len(sections)-1].Data = text[at:start]
			}
			pos := Pos{File: file, Line: number, Col: 1}
			sections = append(sections, Section{Pos: pos, Name: name, header: text[start:next]})
			at = next
		}
		rest = after
	}
	if len(sections) == 0 {
		return text, nil
	}
	sections[len(sections)-1].Data = text[at:]
	return script, sections
}
