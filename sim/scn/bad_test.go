package scn

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestBadLines gives Parse one bad line, the second of its file. want is "column: message (hint)".
func TestBadLines(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`clutser nodes=1`, `1: unknown statement "clutser" (did you mean "cluster"?)`},
		{`frobnicate`, `1: unknown statement "frobnicate" (known: cluster, config, start, vary, always, at, maybe, finally, never, against, reaches, compare)`},
		{`"always" "x"`, `1: unknown statement "always" (a line's first word stands without quotes)`},
		{`--story--`, `1: unknown statement "--story--" (a section begins with a line such as "-- story --")`},
		{`[sim] [netns] at 0s node-1 restart`, `7: unknown statement "[netns]" (one guard for a line, such as [sim,netns])`},
		{`[sim at 0s node-1 restart`, `1: unclosed guard (such as [sim], [sim,netns] or [!kind])`},
		{`[] at 0s node-1 restart`, `2: empty world in the guard (such as [sim], [sim,netns] or [!kind])`},
		{`[sim,] at 0s node-1 restart`, `6: empty world in the guard (such as [sim], [sim,netns] or [!kind])`},
		{`[!] at 0s node-1 restart`, `3: empty world in the guard (such as [sim], [sim,netns] or [!kind])`},
		{`[sym] at 0s node-1 restart`, `2: unknown world "sym" (did you mean "sim"?)`},
		{`[sim,!netns] at 0s node-1 restart`, `6: a second "!" in the guard: one, at its start, is for all its worlds (such as [sim], [sim,netns] or [!kind])`},
		{`[sim, sim] at 0s node-1 restart`, `7: world "sim" stands twice in the guard (delete one)`},
		{`[!sim,netns,kind] at 0s node-1 restart`, `16: the guard [!sim,netns,kind] allows no world (delete the line or allow a world)`},
		{`[sim]`, `6: expected a statement after the guard (such as: [sim] at 0s node-1 restart)`},
		{`[sim]  # only a comment`, `6: expected a statement after the guard (such as: [sim] at 0s node-1 restart)`},
		{`cluster nodes=2`, `1: the cluster is given twice (the first is on line 1)`},
		{`config`, `7: expected KEY=VALUE, found the end of the line (such as: config WARM_ENI_TARGET=1)`},
		{`config WARM_ENI_TARGET`, `8: expected KEY=VALUE, found "WARM_ENI_TARGET" (such as: config WARM_ENI_TARGET=1)`},
		{`config =1`, `8: no key before "=" in "=1" (a value that holds "=" needs quotes)`},
		{`config "a=1"`, `8: expected KEY=VALUE, found "a=1" in quotes (such as: config WARM_ENI_TARGET=1)`},
		{`config A=1 B=2 A=3`, `16: key "A" stands twice in the line (delete one)`},
		{`config A$B=1`, `8: bad key "A$B" (a key holds letters, digits and _ - . / : only; put a value that holds "=" in quotes)`},
		{`maybe node-1 kill`, `7: expected "at", found "node-1" (such as: maybe at 20m node-1 kill)`},
		{`maybe at 1m expect node-1 serving`, `7: maybe is for actions, and this line expects something (delete maybe: an expectation is judged or it is none)`},
		{`never settles`, `14: expected in quotes why it cannot, found the end of the line (such as: never settles "the subnet stays full")`},
		{`never settles " "`, `15: an empty reason (such as: never settles "the subnet stays full")`},
		{`start`, `6: expected "pods", found the end of the line (such as: start pods web 17 on node-1)`},
		{`start pod web 17 on node-1`, `7: expected "pods", found "pod" (such as: start pods web 17 on node-1)`},
		{`start pods`, `11: expected a name for the pods, found the end of the line (such as: start pods web 17 on node-1)`},
		{`start pods web`, `15: expected how many pods, found the end of the line (such as: start pods web 17 on node-1)`},
		{`start pods web many on node-1`, `16: expected a number of pods, found "many" (such as: start pods web 17 on node-1)`},
		{`start pods web 0 on node-1`, `16: a number of pods must be at least 1 (such as: start pods web 17 on node-1)`},
		{`start pods web 017 on node-1`, `16: expected a number of pods, found "017" (such as: start pods web 17 on node-1)`},
		{`start pods web -1 on node-1`, `16: expected a number of pods, found "-1" (such as: start pods web 17 on node-1)`},
		{`start pods web 99999999999999999999 on node-1`, `16: 99999999999999999999 is more than 1000000 (write a smaller number)`},
		{`start pods web 17`, `18: expected "on", found the end of the line (such as: start pods web 17 on node-1)`},
		{`start pods web 17 at node-1`, `19: expected "on", found "at" (such as: start pods web 17 on node-1)`},
		{`start pods web 17 on pod db`, `22: pods start on a node or on node-* (such as: start pods web 17 on node-1)`},
		{`start pods web 17 on node-0`, `22: a node's number must be at least 1 (such as: start pods web 17 on node-1)`},
		{`start pods web 17 on node-1 node-2`, `29: unexpected "node-2" after a complete statement (such as: start pods web 17 on node-1)`},
		{`start pods we$b 17 on node-1`, `12: expected a name for the pods, found "we$b" (a $name stands for a value only)`},
		{`vary`, `5: expected KEY=VALUE, found the end of the line (such as: vary wrong=absent,empty)`},
		{`vary wrong`, `6: expected KEY=VALUE, found "wrong" (such as: vary wrong=absent,empty)`},
		{`vary wrong=`, `12: an empty value for wrong (commas without blanks separate values, such as: vary wrong=absent,empty)`},
		{`vary wrong=a,,b`, `14: an empty value for wrong (commas without blanks separate values, such as: vary wrong=absent,empty)`},
		{`vary wrong=a,b,a`, `16: value "a" stands twice (delete one)`},
		{`vary wrong=a, b`, `14: an empty value for wrong (commas without blanks separate values, such as: vary wrong=absent,empty)`},
		{`vary wrong=$other`, `12: a value of wrong holds a "$" (list the values themselves)`},
		{`vary 1st=a`, `6: bad variable "1st" (a variable's name holds letters, digits and _ only, and begins with no digit)`},
		{`vary some.thing=a`, `6: bad variable "some.thing" (a variable's name holds letters, digits and _ only, and begins with no digit)`},
		{`[sim] vary wrong=a,b`, `1: a vary line takes no guard (delete the guard; guard the lines that use $wrong)`},
		{`always`, `7: expected an invariant in quotes, found the end of the line (such as: always "every live pod is reachable")`},
		{`always every live pod`, `8: expected an invariant in quotes, found "every" (such as: always "every live pod is reachable")`},
		{`always ""`, `8: an empty invariant (such as: always "every live pod is reachable")`},
		{`always "a" "b"`, `12: unexpected "b" after a complete statement (such as: always "every live pod is reachable")`},
		{`always "a`, `8: unclosed quote (write a closing ")`},
		{`always "a"b`, `11: text right behind a closing quote (write a blank after the quote, or \" for a quote inside)`},
		{`always "a\nb"`, `10: a backslash that escapes nothing (inside quotes write \\ for a backslash and \" for a quote)`},
		{`always "a\`, `10: a backslash that escapes nothing (inside quotes write \\ for a backslash and \" for a quote)`},
		{`at`, `3: expected a duration, found the end of the line (such as: at 20m node-1 restart)`},
		{`at soon node-1 restart`, `4: "soon" is not a duration (such as 30s, 20m or 1h30m)`},
		{`at -5s node-1 restart`, `4: "-5s" is negative (such as 30s, 20m or 1h30m)`},
		{`at 5 node-1 restart`, `4: "5" is not a duration (such as 30s, 20m or 1h30m)`},
		{`at 400d node-1 restart`, `4: "400d" is longer than 8760h (such as 30s, 20m or 1h30m)`},
		{`at 9000h node-1 restart`, `4: "9000h" is longer than 8760h (such as 30s, 20m or 1h30m)`},
		{`at 99999999999999999999d node-1 restart`, `4: "99999999999999999999d" is longer than 8760h (such as 30s, 20m or 1h30m)`},
		{`at $when node-1 restart`, `4: "$when" is not a duration (a $name stands for a value only)`},
		{`at "5s" node-1 restart`, `4: expected a duration, found "5s" in quotes (such as: at 20m node-1 restart)`},
		{`at 0s`, `6: expected an action or a check, found the end of the line (such as: at 20m node-1 restart)`},
		{`at 0s every`, `12: expected a duration, found the end of the line (such as: at 0s every 5s until 10m node-1 restart)`},
		{`at 0s every 5s node-1 restart`, `16: expected "until", found "node-1" (such as: at 0s every 5s until 10m node-1 restart)`},
		{`at 0s every 0s until 5m node-1 restart`, `7: "every" needs a duration above zero (such as 30s, 20m or 1h30m)`},
		{`at 10m every 5s until 5m node-1 restart`, `23: until 5m is before at 10m ("until" is an instant, not a length)`},
		{`at 0s every 1ns until 5m node-1 restart`, `7: the line would happen more than 100000 times (write a longer "every" or an earlier "until")`},
		{`at 0s every 1s until 100000s kube x`, `7: the line would happen more than 100000 times (write a longer "every" or an earlier "until")`},
		{`at 0s evry 5s until 5m node-1 restart`, `7: unknown subject "evry" (did you mean "every"?)`},
		{`at 0s node-1`, `13: expected a verb, found the end of the line (such as: at 20m node-1 restart)`},
		{`at 0s node-1 cri=right`, `14: expected a verb, found "cri=right" (such as: at 20m node-1 restart)`},
		{`at 0s node-1 socket cri=a cri=b`, `27: key "cri" stands twice in the line (delete one)`},
		{`at 0s node-1 socket ==`, `21: no key before "=" in "==" (a value that holds "=" needs quotes)`},
		{`at 0s node-1 socket c<i=a`, `21: bad key "c<i" (a key holds letters, digits and _ - . / : only; put a value that holds "=" in quotes)`},
		{`at 0s nod-1 restart`, `7: unknown subject "nod-1" (did you mean "node-1"?)`},
		{`at 0s node1 restart`, `7: unknown subject "node1" (did you mean "node-1"?)`},
		{`at 0s node-one restart`, `7: expected a node's number, found "one" (such as: at 20m node-1 restart)`},
		{`at 0s nobody restart`, `7: unknown subject "nobody" (known: node-1, node-*, pod, ec2, imds, kube, expect, within, every)`},
		{`at 0s EC2 throttle`, `7: unknown subject "EC2" (did you mean "ec2"?)`},
		{`at 0s pod`, `10: expected a pod's name, found the end of the line (such as: at 20m node-1 restart)`},
		{`at 0s pod "web 1" delete`, `11: expected a pod's name, found "web 1" in quotes (such as: at 20m node-1 restart)`},
		{`at 0s node-1 expect addresses.assigned == 17`, `14: "expect" stands before the subject (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expect`, `13: expected node-1, node-*, pod NAME, ec2, imds or kube, found the end of the line (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expct ec2 calls == 0`, `7: unknown subject "expct" (did you mean "expect"?)`},
		{`at 0s expect within 5s ec2 calls == 0`, `14: unknown subject "within" (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s within expect ec2 calls == 0`, `14: "expect" is not a duration (such as 30s, 20m or 1h30m)`},
		{`at 0s within 5s ec2 calls == 0`, `17: expected "expect", found "ec2" (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expect ec2`, `17: expected a metric, found the end of the line (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expect ec2 calls==0`, `18: expected a metric, found "calls==0" (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expect ec2 calls = 0`, `24: unknown operator "=" (equal is "==")`},
		{`at 0s expect ec2 calls ==0`, `24: unknown operator "==0" (write a blank after "==")`},
		{`at 0s expect ec2 calls =< 0`, `24: unknown operator "=<" (one of == != < <= > >=)`},
		{`at 0s expect ec2 calls equals 0`, `24: unknown operator "equals" (one of == != < <= > >=)`},
		{`at 0s expect ec2 calls ==`, `26: expected a value after "==", found the end of the line (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`at 0s expect ec2 calls == 0 1`, `29: unexpected "1" after a complete statement (such as: at 20m within 90s expect node-1 addresses.assigned == 17)`},
		{`finally`, `8: expected "converges", found the end of the line (such as: finally converges within 2m)`},
		{`finally converges`, `18: expected "within", found the end of the line (such as: finally converges within 2m)`},
		{`finally converges within`, `25: expected a duration, found the end of the line (such as: finally converges within 2m)`},
		{`finally converges within 2x`, `26: "2x" is not a duration (such as 30s, 20m or 1h30m)`},
		{`finally converges within 2m or so`, `29: unexpected "or" after a complete statement (such as: finally converges within 2m)`},
		{`against`, `8: expected a mutant's name, found the end of the line (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`against m`, `10: expected "breaks", found the end of the line (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`against m brakes "x"`, `11: expected "breaks", found "brakes" (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`against m breaks x`, `18: expected an invariant in quotes, found "x" (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`against m breaks "x" by`, `24: expected a duration, found the end of the line (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`against m breaks "x" in 20m`, `22: unexpected "in" after a complete statement (such as: against MUTANT breaks "every live pod is reachable" by 20m)`},
		{`reaches`, `8: expected a coverage point, found the end of the line (such as: reaches runtime-list-refused)`},
		{`reaches "a mark"`, `9: expected a coverage point, found "a mark" in quotes (such as: reaches runtime-list-refused)`},
		{`reaches a b`, `11: unexpected "b" after a complete statement (such as: reaches runtime-list-refused)`},
		{`compare`, `8: expected "counts", found the end of the line (such as: compare counts "eni")`},
		{`compare count "x"`, `9: expected "counts", found "count" (such as: compare counts "eni")`},
		{`compare counts`, `15: expected what to count, found the end of the line (such as: compare counts "eni")`},
		{`at 0s node-1 restart # close`, `22: a comment right behind a word (write two blanks or a tab before it, or put a value in quotes)`},
		{`at 0s node-1 re"start"`, `16: a quote in the middle of a word (quotes go around a whole value: "a b" or key="a b")`},
		{`at 0s node-1 socket cri=a"b"`, `26: a quote in the middle of a word (quotes go around a whole value: "a b" or key="a b")`},
		{`at 0s node-1 socket cri="a`, `25: unclosed quote (write a closing ")`},
		{"at 0s node-1 sock\u200bet", `18: invisible character U+200B (delete it)`},
		{`always “every live pod”`, `8: typographic quote “ (write a plain ")`},
		{`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaäöüaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`, `1: unknown statement "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaä…" (known: cluster, config, start, vary, always, at, maybe, finally, never, against, reaches, compare)`},
		{`start pods web $n on node-1`, `16: expected a number of pods, found "$n" (a $name stands for a value only)`},
		{`start pods web 17 "on" node-1`, `19: expected "on", found "on" in quotes (such as: start pods web 17 on node-1)`},
		{`at 0s node-$n restart`, `7: expected a node's number, found "$n" (a $name stands for a value only)`},
	} {
		_, err := Parse("f", []byte("cluster nodes=1\n"+tt.line+"\n"))
		if err == nil {
			t.Errorf("%q: no error", tt.line)
		} else if got := strings.TrimPrefix(err.Error(), "f:2:"); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

// TestBadFiles is about what is wrong with a file as a whole.
func TestBadFiles(t *testing.T) {
	const c = "cluster nodes=1\n"
	const hint = " (write a line such as: cluster nodes=1 type=c5.xlarge)"
	for name, tt := range map[string]struct{ text, want string }{
		"empty":             {"", "f:1:1: the file is empty" + hint},
		"comments only":     {"# a\n\n", "f:1:1: the file has no statement" + hint},
		"story only":        {"-- story --\nx\n", "f:1:1: the file has no statement" + hint},
		"no cluster":        {"config A=1\n", "f:1:1: no cluster line" + hint},
		"NUL":               {"cluster a\x00b\n", "f:1:10: not a scenario: binary data at byte 9"},
		"NUL in the story":  {c + "-- story --\nab\x00\n", "f:3:3: not a scenario: binary data at byte 30"},
		"not UTF-8":         {c + "# \xff\n", "f:2:3: not a scenario: binary data at byte 18"},
		"truncated UTF-8":   {c + "# \xe2\x82", "f:2:3: not a scenario: binary data at byte 18"},
		"BOM":               {"\ufeff" + c, "f:1:1: a byte order mark (save the file as UTF-8 without it)"},
		"blank of a chat":   {c + "at\u00a00s node-1 restart\n", "f:2:3: U+00A0 looks like a blank and is none (write a plain blank)"},
		"CR":                {c + "at 0s\rnode-1 restart\n", "f:2:6: a carriage return inside a line (lines end in LF or CR LF)"},
		"control in quotes": {c + "always \"a\x1bb\"\n", "f:2:10: invisible character U+001B (delete it)"},
		"long line":         {c + "# " + strings.Repeat("x", maxLine) + "\n", "f:2:4097: the line has 4098 bytes, the limit is 4096"},
		"many lines":        {c + strings.Repeat("\n", maxLines), "f:10001:1: more than 10000 lines (split the scenario)"},
		"huge":              {strings.Repeat("cluster a=1\n", 10<<20/12), "f: the file has 10485756 bytes (the limit is 1048576 bytes; is this a scenario?)"},
		"two finally":       {c + "finally converges within 1m\nfinally converges within 2m\n", "f:3:1: finally is given twice (the first is on line 2)"},
		"two cluster":       {"[!netns] cluster a=1\n[sim] cluster a=1\n", "f:2:1: the cluster is given twice (the first is on line 1)"},
		"setting twice":     {c + "config A=1\nconfig B=1 A=2\n", "f:3:12: config A is given twice (the first is on line 2)"},
		"variable twice":    {c + "vary x=1\nvary x=2\n", "f:3:1: vary x is given twice (the first is on line 2)"},
		"two stories":       {c + "-- story --\n-- a --\n-- story --\n", `f:4:1: a second section "story" (the first is on line 2)`},
		"variants":          {c + "vary a=" + list(64) + "\nvary b=" + list(5) + "\nvary c=" + list(9), "f:3:1: more than 256 variants (delete values, or split the scenario)"},
		"one variant more":  {c + "vary a=" + list(43) + "\nvary b=1,2,3\nvary c=1,2", "f:4:1: more than 256 variants (delete values, or split the scenario)"},
		"several":           {"foo\nconfig A=1\nconfig A=2\nbar\n", "f:1:1: unknown statement \"foo\" (known: cluster, config, start, vary, always, at, maybe, finally, never, against, reaches, compare)\nf:3:8: config A is given twice (the first is on line 2)\nf:4:1: unknown statement \"bar\" (did you mean \"vary\"?)"},
	} {
		_, err := Parse("f", []byte(tt.text))
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if got := err.Error(); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// list is n different values.
func list(n int) string {
	var vs []string
	for i := range n {
		vs = append(vs, strings.Repeat("x", i+1))
	}
	return strings.Join(vs, ",")
}

func TestErrorList(t *testing.T) {
	_, err := Parse("f", append([]byte("cluster a=1\n"), bytes.Repeat([]byte("reaches\n"), 12)...))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || lines[10] != "and 2 more" {
		t.Errorf("12 errors print as %q", lines)
	}
	var e *Error
	if !errors.As(err, &e) || e.Pos != (Pos{"f", 2, 8}) {
		t.Errorf("the first error is %+v", e)
	}
	if got := Errorf(Pos{}, "", "n = %d", 3).Error(); got != "n = 3" {
		t.Errorf("an error without a place prints as %q", got)
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"cluster", "config", "at", "every live pod is reachable", "by"}
	for word, want := range map[string]string{
		"cluster": "cluster", "Clutser": "cluster", "confg": "config", "AT": "at", "att": "at",
		"every pod is reachable": "every live pod is reachable",
		"":                       "", "qq": "", "xt": "at", "zzzzzz": "", "clu": "", strings.Repeat("a", 5000): "",
	} {
		if got := Suggest(word, known); got != want {
			t.Errorf("Suggest(%.40q) = %q, want %q", word, got, want)
		}
	}
	if got := Suggest("x", nil); got != "" {
		t.Errorf("Suggest without known words = %q", got)
	}
}
