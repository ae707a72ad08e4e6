// Package scn is the language of scenarios: text in, plain data out, and back.
//
// A scenario is a small text file that a person on call can read. It says what the cluster is,
// what happens to it and when, and what must stay true. This package knows the language's form
// only. Which settings, verbs, metrics, invariants, mutants and marks exist is known by those who
// own them; they report what they find wrong with [Errorf] and [Suggest], at the positions kept
// here, so that every mistake in a scenario looks the same to its writer.
//
// # The file
//
// The file is a txtar archive: first the script, then sections that each begin with a line
// "-- name --". The section "story" is the golden story of the run; others are kept as they are.
//
//	# A rolling update gave the daemon a runtime socket that nobody listens on. It took silence
//	# for "no pods" and gave their network interface back.
//	# Source: where this was seen.
//	cluster nodes=1 type=c5.xlarge runtime=dockershim
//	config  WARM_ENI_TARGET=1
//	start   pods web 17 on node-1
//	vary    wrong=absent,empty
//
//	always  "no eni is freed with a live pod on it"
//	at 0s   node-1 socket cri=$wrong         # the node runs docker
//	at 0s   node-1 restart
//	at 20m  expect ec2 calls.DetachNetworkInterface == 0
//	[sim] at 0s every 10s until 20m expect node-1 addresses.assigned == 17
//	finally converges within 2m
//	against recover-from-runtime-only breaks "no eni is freed with a live pod on it" by 20m
//	-- story --
//	0s node-1 starts
//
// The comment at the top is for reports: its first sentence says what happened, and a line that
// begins with "# Source:" says where that is known from.
//
// # The script
//
// One line is one statement, and carries its own absolute time: lines may be moved and deleted.
//
//	line    = [guard] stmt [comment]      guard = "[" ["!"] world {"," world} "]"
//	stmt    = "cluster" kv {kv}           what the nodes are: once
//	        | "config" kv {kv}            settings of the CNI: each key once
//	        | "start" "pods" NAME INT "on" ("node-" INT | "node-*")
//	        | "vary" NAME "=" VALUE {"," VALUE}     one run for each value, as $NAME
//	        | "always" PHRASE             an invariant
//	        | "at" DUR ["every" DUR "until" DUR] (action | check)
//	        | "maybe" "at" DUR ["every" DUR "until" DUR] action     it may miss its target
//	        | "finally" "converges" "within" DUR    once
//	        | "never" "settles" STRING    once: why something is still under way at the end
//	        | "against" NAME "breaks" PHRASE ["by" DUR]
//	        | "reaches" NAME              a coverage point
//	        | "compare" "counts" VALUE
//	check   = ["within" DUR] "expect" subject NAME [op VALUE]
//	action  = subject NAME {VALUE | kv}
//	subject = "node-" INT | "node-*" | "pod" NAME | "ec2" | "imds" | "kube"
//	op      = "==" | "!=" | "<" | "<=" | ">" | ">="
//	kv      = NAME "=" [VALUE]
//	world   = "sim" | "netns" | "kind"
//
// Words are separated by blanks or tabs. Lines for the same instant happen in their order, and
// the product of several vary lines is taken in theirs; else the order of lines means nothing.
//
//   - An action that misses its target makes the run one that was not played, unless its line
//     begins with maybe.
//   - A STRING and a PHRASE stand in double quotes.
//   - A comment begins with "#" at a line's start, or behind two blanks or a tab. "#" behind one
//     blank is an error, since it is unclear which was meant.
//   - A VALUE may stand in double quotes. Inside, \" is a quote and \\ a backslash.
//     A value that holds a blank or a quote, and a word with "=" that is no kv, need quotes.
//   - A NAME is made of letters, digits and _ - . / and the colon. The name of a vary line is made
//     of letters, digits and _, and begins with no digit.
//   - An INT counts from 1. Nodes are node-1, node-2, …
//   - A DUR is a Go duration (90s, 1h30m, 250ms) or whole days (2d), never negative.
//   - $NAME stands for the value of a vary line, inside VALUEs only. A "$" before anything but a
//     letter or _ is itself.
//   - A guard limits its line to some worlds. What may stand once may stand once per world.
//   - A line is at most [maxLine] bytes, a file [MaxFile] bytes and [maxLines] lines of script.
//   - A script is UTF-8 text without invisible characters. Lines end in LF or CR LF.
//
// # Reading and writing
//
// [Parse] keeps everything, and [File.String] prints an unchanged file byte for byte: so
// updating a golden story, or deleting a line, leaves the rest as its author set it. A changed line
// prints canonically: one blank between words, shortest durations, quotes where they are needed,
// two blanks before the comment. A control character in a name or value has no written form.
//
// A File's statements are pointers to plain data; [File.Without], [File.Expand] and
// [File.WithStory] return files that share nothing with the first.
package scn
