package netns

import (
	"strings"
	"testing"
)

// TestAnotherBuildIsNamed: an ipamd of another commit than the laboratory's decides otherwise, and no CNI is to blame.
func TestAnotherBuildIsNamed(t *testing.T) {
	for _, c := range []struct{ theirs, own, want string }{
		{"v0.0.0-1-aaa", "v0.0.0-2-bbb", "bin/ipamd is v0.0.0-1-aaa and this program v0.0.0-2-bbb: make build"},
		{"v0.0.0-1-aaa+dirty", "v0.0.0-1-aaa", "is v0.0.0-1-aaa+dirty and"},
		{"v0.0.0-1-aaa", "v0.0.0-1-aaa", ""},
		{"v0.0.0-1-aaa", "(devel)", ""},
		{"(devel)", "v0.0.0-1-aaa", ""},
		{"v0.0.0-1-aaa", "", ""},
	} {
		got := unlike("bin/ipamd", c.theirs, c.own)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("said %q, want %q", got, c.want)
		}
	}
}
