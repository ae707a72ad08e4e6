package calls

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// lineLimit bounds a line of a recording: a network configuration with a prevResult has a few kilobytes.
const lineLimit = 4 << 20

// Read reads a recording, in the order in which calls began. A run whose end is not there is one that was killed; so read it when
// everything is quiet.
func Read(r io.Reader) ([]Call, error) {
	var runs []Call
	at := map[string]int{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, lineLimit)
	for no := 1; s.Scan(); no++ {
		var l Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("recording, line %d: %w", no, err)
		}
		i, began := at[l.Run]
		switch {
		case l.Run == "":
			return nil, fmt.Errorf("recording, line %d: it names no run", no)
		case l.End && !began:
			return nil, fmt.Errorf("recording, line %d: run %s ends, and did not begin", no, l.Run)
		case l.End:
			end(&runs[i], &l)
		case began:
			return nil, fmt.Errorf("recording, line %d: run %s begins twice", no, l.Run)
		default:
			at[l.Run] = len(runs)
			runs = append(runs, begin(&l))
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return sorted(runs), nil
}

func begin(l *Line) Call {
	r := Call{
		Plugin: filepath.Base(l.Plugin), Verb: l.Env["CNI_COMMAND"], ContainerID: l.Env["CNI_CONTAINERID"], IfName: l.Env["CNI_IFNAME"],
		Began: time.Unix(0, l.At),
	}
	switch {
	case l.Netns != 0:
		r.Netns = Mounted
	case l.Env["CNI_NETNS"] != "":
		r.Netns = Gone
	}
	r.Namespace, r.Pod, r.UID = podOf(l.Env["CNI_ARGS"])
	var conf struct {
		CNIVersion string
		PrevResult json.RawMessage
	}
	if json.Unmarshal([]byte(l.Stdin), &conf) == nil { // what a runtime calls with is recorded also when it is no JSON
		r.Version, r.Prev = conf.CNIVersion, len(conf.PrevResult) > 0
	}
	return r
}

// end is the outcome. The plugin's own death by a signal is no answer either, though the recorder lived to tell.
func end(r *Call, l *Line) {
	if l.Signal != "" {
		return
	}
	r.Ended = time.Unix(0, l.At)
	if l.Exit == 0 && l.Error == "" {
		return
	}
	r.Failed, r.Code, r.Text = true, 999, l.Error
	var e struct {
		Code *int
		Msg  string
	}
	if json.Unmarshal([]byte(l.Stdout), &e) == nil && e.Msg != "" {
		r.Text = e.Msg
		if e.Code != nil {
			r.Code = *e.Code
		}
	}
}
