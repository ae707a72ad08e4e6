package swarm

import "strings"

// Cause is a violation's text without names, numbers, addresses and times: two violations with the same invariant and the same cause
// are one finding. What is left are the words, which say how it broke.
//
//	node-1 freed eni-0ae6170280656bcc0 with 3 live pods on it, as web-9vxf52hqbl: expected none
//	node-# freed # with # live pod on it, as #: expected none
func Cause(text string) string {
	var b strings.Builder
	word := 0
	flush := func(end int) {
		b.WriteString(nameless(text[word:end]))
	}
	for i := 0; i < len(text); i++ {
		if !inWord(text[i]) {
			flush(i)
			b.WriteByte(text[i])
			word = i + 1
		}
	}
	flush(len(text))
	return strings.Join(strings.Fields(singular(b.String())), " ")
}

// inWord are the bytes of names, numbers, addresses, durations and attachments (network/sandbox/interface).
func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '/' || c == '_' || c >= 0x80
}

// nameless keeps a word that is one, and what stands before a node's number.
func nameless(word string) string {
	bare := strings.TrimRight(word, ".")
	dots := word[len(bare):]
	switch {
	case bare == "", bare == "node-": // the latter of a cause: its number is taken out already
		return word
	case strings.HasPrefix(bare, "node-"):
		return "node-#" + dots
	case strings.HasPrefix(bare, "sg-"):
		return "#" + dots
	case strings.ContainsAny(bare, "0123456789") && !known[bare], suffixed(bare):
		return "#" + dots
	}
	return word
}

// known are words of the trade that hold a digit.
var known = map[string]bool{"EC2": true, "ec2": true, "IPv4": true, "IPv6": true}

// suffixed says whether a word ends as the names of a deployment's pods do: Kubernetes leaves the vowels out, so that it is no word.
func suffixed(word string) bool {
	at := strings.LastIndexByte(word, '-')
	last := word[at+1:]
	return at > 0 && len(last) >= 5 && strings.Trim(last, "bcdfghjklmnpqrstvwxz") == ""
}

// singular makes "1 DELs" of some "3 DELs" and "1 address": the number says nothing, so its plural may not.
func singular(text string) string {
	for _, many := range [...][2]string{{"addresses", "address"}, {"ENIs", "ENI"}, {"DELs", "DEL"}, {"pods", "pod"}, {"live pods", "live pod"}, {"EC2 intents", "EC2 intent"},
		{"cooling addresses", "cooling address"}, {"namespaces", "namespace"}} {
		text = strings.ReplaceAll(text, "# "+many[0], "# "+many[1])
	}
	return text
}
