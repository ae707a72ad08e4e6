package scn

import (
	"slices"
	"strings"
)

// A Guard limits a line to some worlds: [sim] [sim,netns], or with Not to all others: [!netns].
type Guard struct {
	Not    bool
	Worlds []string
}

// Allows says whether the line is for the named world. A nil guard allows all.
func (g *Guard) Allows(world string) bool {
	return g == nil || slices.Contains(g.Worlds, world) != g.Not
}

// String prints the guard as it is written.
func (g *Guard) String() string {
	if g == nil {
		return ""
	}
	not := ""
	if g.Not {
		not = "!"
	}
	return "[" + not + strings.Join(g.Worlds, ",") + "]"
}

// knownWorlds are the words a guard may hold.
func knownWorlds() []string { return []string{"sim", "netns", "kind"} }

// overlap says whether some world reads both lines.
func overlap(a, b *Guard) bool {
	return slices.ContainsFunc(knownWorlds(), func(w string) bool { return a.Allows(w) && b.Allows(w) })
}

// earlierNetns is what world netns was called before: scenarios that people wrote then say it.
const earlierNetns = "lab"

const guardHint = "such as [sim], [sim,netns] or [!kind]"

// guard reads a guard that opens at offset i of the line, and returns the offset after it.
func (c *cursor) guard(i int) (*Guard, int) {
	n := strings.IndexByte(c.raw[i:], ']')
	if n < 0 {
		c.failAt(i+1, guardHint, "unclosed guard")
		return nil, i
	}
	g, end := &Guard{}, i+n
	i++
	if c.raw[i] == '!' {
		g.Not = true
		i++
	}
	for {
		n := strings.IndexByte(c.raw[i:end], ',')
		if n < 0 {
			n = end - i
		}
		c.world(g, i, c.raw[i:i+n])
		i += n + 1
		if i > end {
			break
		}
	}
	if !overlap(g, nil) {
		c.failAt(end, "delete the line or allow a world", "the guard %s allows no world", clip(g.String()))
	}
	return g, end + 1
}

// world adds one word of a guard, which stands at offset i of the line.
func (c *cursor) world(g *Guard, i int, text string) {
	i += len(text) - len(strings.TrimLeft(text, " \t"))
	w := strings.Trim(text, " \t")
	if w == earlierNetns {
		w = "netns"
	}
	switch {
	case w == "":
		c.failAt(i+1, guardHint, "empty world in the guard")
	case strings.HasPrefix(w, "!"):
		c.failAt(i+1, guardHint, "a second \"!\" in the guard: one, at its start, is for all its worlds")
	case !slices.Contains(knownWorlds(), w):
		c.failAt(i+1, didYouMean(w, knownWorlds()), "unknown world %s", quoteFound(w))
	case slices.Contains(g.Worlds, w):
		c.failAt(i+1, "delete one", "world %q stands twice in the guard", w)
	default:
		g.Worlds = append(g.Worlds, w)
	}
}
