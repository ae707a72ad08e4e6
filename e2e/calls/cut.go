package calls

import (
	"bytes"
	"encoding/json"
	"time"
)

// Cut takes out of a recording what began at since or later and is for pods of a namespace, or for no pod. What is no line of a
// recording stays, so that Read says what is wrong with it.
func Cut(recording []byte, namespace string, since time.Time) []byte {
	var out []byte
	wanted := map[string]bool{}
	for line := range bytes.Lines(recording) {
		var l Line
		if json.Unmarshal(line, &l) == nil {
			if !l.End {
				r := begin(&l)
				wanted[l.Run] = (r.Namespace == namespace || r.Pod == "") && !r.Began.Before(since)
			}
			if !wanted[l.Run] {
				continue
			}
		}
		out = append(out, line...)
	}
	return out
}
