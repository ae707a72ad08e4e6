package scn

import (
	"cmp"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

func parse(t testing.TB, text string) *File {
	t.Helper()
	f, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%.200q: %v", text, err)
	}
	return f
}

// TestGoodLines: each line, second of its file, means want, and prints canonically as canonical
// (if that is not the line itself).
func TestGoodLines(t *testing.T) {
	at := func(col int) Pos { return Pos{"f", 2, col} }
	node := func(col, n int) Subject { return Subject{Pos: at(col), Kind: Node, Node: n} }
	for _, tt := range []struct {
		line, canonical string
		want            Stmt
	}{
		{`config A=1 b/c.d=`, ``, &Config{[]KV{{at(8), "A", "1", at(10)}, {at(12), "b/c.d", "", at(18)}}}},
		{`config	A="a b"   B="x"`, `config A="a b" B=x`, &Config{[]KV{{at(8), "A", "a b", at(11)}, {at(18), "B", "x", at(21)}}}},
		{`config A=a=b C=#d`, ``, &Config{[]KV{{at(8), "A", "a=b", at(10)}, {at(14), "C", "#d", at(16)}}}},
		{`start pods web 17 on node-*`, ``, &Start{"web", 17, Subject{Pos: at(22), Kind: AllNodes}}},
		{`vary x=1,2`, ``, &Vary{"x", []string{"1", "2"}}},
		{`vary x="a b,c"`, ``, &Vary{"x", []string{"a b", "c"}}},
		{`always "every  \"pod\" \\"  # why`, ``, &Always{`every  "pod" \`, at(8)}},
		{`always "a  # b"`, ``, &Always{"a  # b", at(8)}},
		{`maybe at 1m node-2 kill`, ``, &At{Maybe: true, When: time.Minute, Action: &Action{Subject: node(13, 2), Verb: "kill", VerbPos: at(20)}}},
		{`never  settles "the subnet stays full"`, `never settles "the subnet stays full"`, &Never{"the subnet stays full", at(16)}},
		{`finally converges within 1d`, `finally converges within 24h`, &Finally{24 * time.Hour}},
		{`finally converges within 60m30s`, `finally converges within 1h0m30s`, &Finally{time.Hour + 30*time.Second}},
		{`against m-1 breaks "x y"`, ``, &Against{Mutant: "m-1", Invariant: "x y", MutantPos: at(9), InvariantPos: at(20)}},
		{`against m breaks "x" by 0`, `against m breaks "x" by 0s`, &Against{Mutant: "m", Invariant: "x", HasBy: true, MutantPos: at(9), InvariantPos: at(18)}},
		{`compare counts "�"`, ``, &Compare{"�"}},
		{`reaches a-mark`, ``, &Reaches{"a-mark", at(9)}},
		{`compare counts eni`, `compare counts "eni"`, &Compare{"eni"}},
		{`at 90s node-2 restart`, `at 1m30s node-2 restart`, &At{When: 90 * time.Second, Action: &Action{Subject: node(8, 2), Verb: "restart", VerbPos: at(15)}}},
		{`at 0s imds fail "a=b" "" "#" $x 5 k=v`, ``, &At{Action: &Action{
			Subject: Subject{Pos: at(7), Kind: IMDS}, Verb: "fail", VerbPos: at(12),
			Args: []Arg{{at(17), "", "a=b", at(18)}, {at(23), "", "", at(24)}, {at(26), "", "#", at(27)}, {at(30), "", "$x", at(30)}, {at(33), "", "5", at(33)}, {at(35), "k", "v", at(37)}}}}},
		{`at 1h every 20m until 2h pod ns/web-0 kill`, ``, &At{When: time.Hour, Every: 20 * time.Minute, Until: 2 * time.Hour, HasEvery: true,
			Action: &Action{Subject: Subject{Pos: at(26), Kind: Pod, Pod: "ns/web-0"}, Verb: "kill", VerbPos: at(39)}}},
		{`at 0s every 1s until 99999s kube x`, `at 0s every 1s until 27h46m39s kube x`, &At{Every: time.Second, Until: 99999 * time.Second, HasEvery: true,
			Action: &Action{Subject: Subject{Pos: at(29), Kind: Kube}, Verb: "x", VerbPos: at(34)}}},
		{`at 0s expect kube up`, ``, &At{Check: &Check{Subject: Subject{Pos: at(14), Kind: Kube}, Metric: "up", MetricPos: at(19)}}},
		{`at 0s within 5s expect ec2 a.b >= "1 2"`, ``, &At{Check: &Check{Within: 5 * time.Second, HasWithin: true,
			Subject: Subject{Pos: at(24), Kind: EC2}, Metric: "a.b", MetricPos: at(28), Op: ">=", Value: "1 2", ValuePos: at(36)}}},
		{`at 0s expect node-1 a == b=c`, `at 0s expect node-1 a == "b=c"`, &At{Check: &Check{
			Subject: node(14, 1), Metric: "a", MetricPos: at(21), Op: "==", Value: "b=c", ValuePos: at(26)}}},
		{`[sim,lab] reaches x`, `[sim,netns] reaches x`, &Reaches{"x", at(19)}},
		{`  [sim,  netns]reaches x	#  why `, `[sim,netns] reaches x  # why`, &Reaches{"x", at(24)}},
	} {
		f := parse(t, "cluster nodes=1\n"+tt.line+"\n")
		l := f.Lines[1]
		if !reflect.DeepEqual(l.Stmt, tt.want) {
			t.Errorf("%q:\n got %#v\nwant %#v", tt.line, l.Stmt, tt.want)
		}
		tt.canonical = cmp.Or(tt.canonical, tt.line)
		if l.String() != tt.line {
			t.Errorf("%q prints as %q", tt.line, l)
		}
		if l.Raw = ""; l.String() != tt.canonical {
			t.Errorf("%q prints canonically as %q, want %q", tt.line, l, tt.canonical)
		}
	}
}

func TestGuard(t *testing.T) {
	f := parse(t, "cluster a=1\n[sim,netns] reaches x\n  [!kind] reaches y\nreaches z  # w\n\n \t#c\n")
	for i, want := range []string{"sim netns kind", "sim netns", "sim netns", "sim netns kind"} {
		var got []string
		for _, w := range knownWorlds() {
			if f.Lines[i].Guard.Allows(w) {
				got = append(got, w)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is for %v, want %s", f.Lines[i].Raw, got, want)
		}
	}
	want := Line{Pos: Pos{"f", 3, 3}, Number: 3, Raw: "  [!kind] reaches y", Guard: &Guard{true, []string{"kind"}}, Stmt: &Reaches{"y", Pos{"f", 3, 19}}}
	if !reflect.DeepEqual(f.Lines[2], want) {
		t.Errorf("got %+v", f.Lines[2])
	}
	if f.Lines[3].Comment != "w" || f.Lines[4].Stmt != nil || f.Lines[5].Comment != "c" || f.Lines[5].Pos.Col != 3 {
		t.Errorf("comments: %+v", f.Lines[3:])
	}
	parse(t, "[sim] cluster a=1\n[!sim] cluster a=2\n[netns] config A=1\n[kind] config A=2\n")
}

func example(t testing.TB) (string, *File) {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/socket-mismatch.scn"))(t)
	return string(data), parse(t, string(data))
}

func TestExample(t *testing.T) {
	text, f := example(t)
	if f.String() != text {
		t.Errorf("prints as\n%s", f)
	}
	if got, want := f.Headline(), `A restarted daemon asked a runtime socket that serves nobody, took the silence for "no pods", and gave back a network interface in use.`; got != want {
		t.Errorf("headline %q", got)
	}
	if got, want := f.Source, "a field report on amazon-vpc-cni-k8s 1.5.3 with Docker nodes, 2019."; got != want {
		t.Errorf("source %q", got)
	}
	if !strings.HasSuffix(f.Comment, "in use. The pods on it went dark twenty minutes later.") {
		t.Errorf("comment %q", f.Comment)
	}
	if f.Story != "0s    node-1 starts\n0s    node-1 asks the runtime: refused\n" || !f.HasStory {
		t.Errorf("story %q", f.Story)
	}
	if len(f.Extra) != 1 || f.Extra[0].Name != "notes.txt" || f.Extra[0].Data != "Kept as it is.\n" || f.Extra[0].Pos.Line != 24 {
		t.Errorf("extra %+v", f.Extra)
	}
	if got := len(f.Statements()); got != 15 {
		t.Errorf("%d statements", got)
	}
}

// TestBytesAreKept: an untouched file prints its own bytes, whatever its line ends.
func TestBytesAreKept(t *testing.T) {
	text, _ := example(t)
	for _, s := range []string{
		strings.ReplaceAll(text, "\n", "\r\n"),
		"cluster a=1", "cluster a=1\r\n", "  cluster\ta=1  \n\n\n#\n",
		"cluster a=1\r\nreaches x\n-- story --", "cluster a=1\n-- story --\r",
		"cluster a=1\n-- a --\nx\n--  story  --\ny\r\nz\n-- b --\nno end",
	} {
		f := parse(t, s)
		if f.String() != s {
			t.Errorf("%q\nprints as\n%q", s, f)
		}
		if !reflect.DeepEqual(parse(t, f.String()), f) {
			t.Errorf("%q is not read back as it was", s)
		}
	}
	f := parse(t, strings.ReplaceAll(text, "\n", "\r\n"))
	if _, g := example(t); f.Story != g.Story {
		t.Errorf("CR LF shows in the story: %q", f.Story)
	}
}

func TestWithStory(t *testing.T) {
	for _, tt := range []struct{ text, story, want string }{
		{"cluster a=1", "x", "cluster a=1\n-- story --\nx\n"},
		{"cluster a=1\n-- a --\ny", "x\n", "cluster a=1\n-- a --\ny\n-- story --\nx\n"},
		{"cluster a=1\n-- story --\r\nold\r\n-- a --\ny", "x\n", "cluster a=1\n-- story --\r\nx\n-- a --\ny"},
		{"cluster a=1\n-- story --\r\nsame\r\n", "same\n", "cluster a=1\n-- story --\r\nsame\r\n"},
		{"cluster a=1\n", "x\r\r\ny", "cluster a=1\n-- story --\nx\ny\n"},
		{"cluster a=1\n", "", "cluster a=1\n-- story --\n"},
		{"cluster a=1\n", "-- a --\n-- story --", "cluster a=1\n-- story --\n -- a --\n -- story --\n"},
	} {
		f := parse(t, tt.text)
		g := f.WithStory(tt.story)
		if g.String() != tt.want {
			t.Errorf("%q with %q is %q", tt.text, tt.story, g)
		}
		if again := parse(t, g.String()); again.Story != g.Story {
			t.Errorf("story %q is read back as %q", g.Story, again.Story)
		}
		if f.String() != tt.text {
			t.Errorf("the first file is now %q", f)
		}
	}
}

func TestVariants(t *testing.T) {
	f := parse(t, "cluster a=1\nvary x=1,2\nvary b=u,v,w\n")
	var got []string
	for _, v := range f.Variants() {
		got = append(got, f.VariantName(v))
	}
	if s := strings.Join(got, "; "); s != "x=1 b=u; x=1 b=v; x=1 b=w; x=2 b=u; x=2 b=v; x=2 b=w" {
		t.Errorf("variants %s", s)
	}
	none := parse(t, "cluster a=1\n")
	if v := none.Variants(); len(v) != 1 || v[0] == nil || len(v[0]) != 0 || none.VariantName(v[0]) != "" {
		t.Errorf("variants without vary: %v", v)
	}
	if n := len(parse(t, "cluster a=1\nvary x="+list(64)+"\nvary y=1,2,3,4").Variants()); n != maxVariants {
		t.Errorf("%d variants, want %d", n, maxVariants)
	}
}

func TestExpand(t *testing.T) {
	text, f := example(t)
	g := must.Get(f.Expand(f.Variants()[1]))(t)
	want := strings.NewReplacer(
		"vary    wrong=absent,unimplemented,empty", "vary wrong=unimplemented",
		"at 0s   node-1 socket cri=$wrong             # these", "at 0s node-1 socket cri=unimplemented  # these",
	).Replace(text)
	if g.String() != want {
		t.Errorf("expanded:\n%s", g)
	}
	if f.String() != text {
		t.Error("Expand changed the file")
	}
	if got, want := g.Lines[11].Stmt.(*At).Action.Args[0].ValuePos, (Pos{"f", 12, 27}); got != want {
		t.Errorf("position %v, want %v", got, want)
	}
	again := parse(t, g.String())
	if vs := again.Variants(); len(vs) != 1 || again.VariantName(vs[0]) != "wrong=unimplemented" {
		t.Errorf("the expanded file has variants %v", vs)
	}
}

func TestExpandValues(t *testing.T) {
	f := parse(t, `cluster a=$x b="$x y$x" c=$1$$ d=$`+"\nat 0s expect ec2 m == $x.$yy\n")
	g := must.Get(f.Expand(map[string]string{"x": "1 2", "yy": "$x"}))(t)
	if got, want := g.String(), "cluster a=\"1 2\" b=\"1 2 y1 2\" c=$1$$ d=$\nat 0s expect ec2 m == \"1 2.$x\"\n"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestExpandErrors(t *testing.T) {
	f := parse(t, "cluster a=b$wron\nvary wrong=a,b\nat 0s expect ec2 m == \"x $foo\"\nat 1s node-1 socket $wrong$wrong $wrong\n")
	for _, tt := range []struct{ wrong, want string }{
		{"a", "f:1:12: unknown variable \"$wron\" (did you mean $wrong?)\nf:3:26: unknown variable \"$foo\" (write a line such as: vary foo=absent,empty)"},
		{"c", "f:1:12: unknown variable \"$wron\" (did you mean $wrong?)\nf:2:1: wrong has no value \"c\" (known: a, b)\nf:3:26: unknown variable \"$foo\" (write a line such as: vary foo=absent,empty)"},
	} {
		_, err := f.Expand(map[string]string{"wrong": tt.wrong})
		if err == nil || err.Error() != tt.want {
			t.Errorf("wrong=%s:\n got %v\nwant %s", tt.wrong, err, tt.want)
		}
	}
	const fits = maxLine - len("cluster a=")
	long := map[string]string{"x": strings.Repeat("y", fits-1)}
	if g, err := parse(t, "cluster a=$x.\n").Expand(long); err != nil || parse(t, g.String()) == nil {
		t.Errorf("a line as long as the limit: %v", err)
	}
	if _, err := parse(t, "cluster a=$x..\n").Expand(long); err == nil {
		t.Error("a line longer than the limit")
	}
	big := parse(t, "cluster a="+strings.Repeat("$x", 100)+" b=$x\n")
	_, err := big.Expand(map[string]string{"x": strings.Repeat("y", 1000)})
	if want := "f:1:1: the expanded line has more than 4096 bytes"; err == nil || err.Error() != want {
		t.Errorf("big: %v", err)
	}
}

func TestWithout(t *testing.T) {
	text, f := example(t)
	lines := strings.SplitAfter(text, "\n")
	g := f
	for _, n := range []int{18, 5, 14} { // in any order: numbers stay
		g = g.Without(n)
		lines[n-1] = ""
	}
	if g.String() != strings.Join(lines, "") {
		t.Errorf("prints as\n%s", g)
	}
	for _, n := range []int{1, 8, 0, -1, 1000, 5} { // comments, blank lines, nothing
		if g.Without(n).String() != g.String() {
			t.Errorf("Without(%d) changed something", n)
		}
	}
	if f.String() != text {
		t.Error("Without changed the file")
	}
	last := parse(t, "cluster a=1\r\nreaches x\nreaches y").Without(2)
	if last.String() != "cluster a=1\r\nreaches y" {
		t.Errorf("got %q", last)
	}
}

// TestClone changes everything reachable in a clone.
func TestClone(t *testing.T) {
	text, f := example(t)
	g := f.Clone()
	if !reflect.DeepEqual(f, g) {
		t.Error("the clone differs")
	}
	for _, l := range g.Lines {
		switch s := l.Stmt.(type) {
		case *Cluster:
			s.Args[0].Value = "x"
		case *Config:
			s.Args[0].Value = "x"
		case *Start:
			s.Count++
		case *Vary:
			s.Values[0] = "x"
		case *Always:
			s.Invariant = "x"
		case *At:
			s.When++
			if s.Action != nil && s.Action.Args != nil {
				s.Action.Args[0].Value = "x"
			}
			if s.Check != nil {
				s.Check.Value = "x"
			}
		case *Finally:
			s.Within++
		case *Against:
			s.Mutant = "x"
		case *Reaches:
			s.Point = "x"
		}
		if l.Guard != nil {
			l.Guard.Worlds[0] = "netns"
		}
	}
	g.Extra[0].Data = "x"
	if f.String() != text {
		t.Errorf("the clone shares something with\n%s", f)
	}
}

// TestBuild is how a program writes a scenario: it fills in statements and parses its print.
func TestBuild(t *testing.T) {
	f := &File{
		Name: "built.scn",
		Lines: []Line{
			{Comment: "Written by a program.\nIn one line."},
			{Stmt: &Cluster{[]KV{{Key: "nodes", Value: "2"}}}},
			{},
			{Stmt: &At{When: time.Minute, Action: &Action{Subject: Subject{Kind: Node, Node: 2}, Verb: "tag", Args: []Arg{{Value: "a=b"}, {Key: "k", Value: `"q" \`}, {Value: ""}}}}, Comment: "why"},
		},
		Extra: []Section{{Name: "a", Data: "x"}, {Name: "b"}},
	}
	want := "# Written by a program. In one line.\ncluster nodes=2\n\nat 1m node-2 tag \"a=b\" k=\"\\\"q\\\" \\\\\" \"\"  # why\n-- a --\nx\n-- b --\n"
	if f.String() != want {
		t.Errorf("got\n%s", f)
	}
	g := parse(t, f.String())
	if g.String() != want || g.Lines[3].Stmt.(*At).Action.Args[1].Value != `"q" \` {
		t.Errorf("read back as\n%s", g)
	}
	// A changed statement prints as it is now, an unchanged one as it was.
	g = parse(t, "cluster  a=1\nreaches  x\n")
	g.Lines[1].Stmt.(*Reaches).Point = "y"
	if g.String() != "cluster  a=1\nreaches y\n" {
		t.Errorf("got %q", g)
	}
}

func BenchmarkParse(b *testing.B) {
	text, _ := example(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse("f", []byte(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkString(b *testing.B) {
	text, f := example(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(f.String()) != len(text) {
			b.Fatal("other bytes")
		}
	}
}
