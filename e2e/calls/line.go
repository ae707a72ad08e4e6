package calls

import (
	"encoding/json"
	"os"
)

// RecordingFile is what a recorder writes, in its own folder, and RecorderFolder is how that folder's name ends.
const (
	RecordingFile  = "recording.jsonl"
	RecorderFolder = "recorder"
)

// Line is one line of a recording. A run of a plugin has two: one before the plugin is started and one after it has ended,
// so that a run that was killed is a first line without a second.
type Line struct {
	Run string `json:"run"` // names the run: the shim's process ID and when it began
	End bool   `json:"end,omitempty"`
	At  int64  `json:"at"` // wall clock, nanoseconds

	// Of the first line.
	Plugin string            `json:"plugin,omitempty"` // the real one's path
	Env    map[string]string `json:"env,omitempty"`    // CNI_*
	Stdin  string            `json:"stdin,omitempty"`
	Netns  uint64            `json:"netns,omitempty"` // inode of the namespace at CNI_NETNS; 0: nothing is there

	// Of the second.
	Exit   int    `json:"exit,omitempty"`
	Signal string `json:"signal,omitempty"` // that ended the plugin
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	Error  string `json:"error,omitempty"` // the plugin could not be run
}

// Append adds a line to a recording. Many runs write to one file at once: a line is a single write to a file that was opened for
// appending, which Linux does not mix with another (inode lock, POSIX 2.9.7).
func (l *Line) Append(path string) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(raw, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
