package netns

import (
	"runtime/debug"
	"strings"
	"testing"
)

// TestAnotherBuildIsNamed: an ipamd of another commit than the laboratory's decides otherwise, and no CNI is to blame.
func TestAnotherBuildIsNamed(t *testing.T) {
	of := func(commit, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}}
	}
	for _, c := range []struct {
		theirs, own *debug.BuildInfo
		want        string
	}{
		{of("aaa", "false"), of("bbb", "false"), "bin/ipamd is of commit aaa and this program of bbb: make build"},
		{of("aaa", "true"), of("aaa", "false"), "is of commit aaa with changes and this program of aaa:"},
		{of("aaa", "false"), of("aaa", "false"), ""},
		{of("aaa", "false"), &debug.BuildInfo{}, ""},
		{of("aaa", "false"), nil, ""},
	} {
		got := unlike("bin/ipamd", c.theirs, c.own)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("said %q, want %q", got, c.want)
		}
	}
}
