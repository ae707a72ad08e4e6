package calls

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sandbox are the calls of one container ID.
type sandbox struct {
	name string // sandbox-1, in order of its pod name
	pod  string // pod-1: which of the pods of that name
	runs []Call
}

// Text tells the calls for pods: see the package. Calls that are for no pod (STATUS, GC) are not in it.
func Text(runs []Call) string {
	var b strings.Builder
	var order []string
	pods := map[string][]Call{}
	for _, r := range sorted(runs) {
		if r.Pod == "" {
			continue
		}
		if _, known := pods[r.Pod]; !known {
			order = append(order, r.Pod)
		}
		pods[r.Pod] = append(pods[r.Pod], r)
	}
	slices.Sort(order)
	for _, name := range order {
		fmt.Fprintf(&b, "pod %s\n", name)
		boxes := sandboxes(pods[name])
		for i, s := range boxes {
			s.tell(&b, boxes[:i])
		}
	}
	return b.String()
}

func sorted(runs []Call) []Call {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Call) int { return a.Began.Compare(b.Began) })
	return runs
}

// sandboxes are those of one pod name, in order of their first call.
func sandboxes(runs []Call) (list []*sandbox) {
	byID, byUID := map[string]*sandbox{}, map[string]string{}
	for _, r := range runs {
		if byUID[r.UID] == "" {
			byUID[r.UID] = fmt.Sprintf("pod-%d", len(byUID)+1)
		}
		s := byID[r.ContainerID]
		if s == nil {
			s = &sandbox{name: fmt.Sprintf("sandbox-%d", len(byID)+1), pod: byUID[r.UID]}
			byID[r.ContainerID] = s
			list = append(list, s)
		}
		s.runs = append(s.runs, r)
	}
	return list
}

func (s *sandbox) tell(b *strings.Builder, earlier []*sandbox) {
	fmt.Fprintf(b, "  %s of %s", s.name, s.pod)
	for _, e := range earlier {
		if st := e.state(s.runs[0].Began); st != "down" {
			fmt.Fprintf(b, ", %s still %s", e.name, st)
		}
	}
	b.WriteByte('\n')
	for i := range s.runs {
		r := &s.runs[i]
		fmt.Fprintf(b, "    %s\n", r.line(s.overlaps(i)))
	}
}

// overlaps says whether a call of the sandbox began while the one before it was under way. One that was killed ended nobody knows
// when.
func (s *sandbox) overlaps(i int) bool {
	return i > 0 && !s.runs[i-1].Killed() && s.runs[i-1].Ended.After(s.runs[i].Began)
}

// state of a sandbox's network at an instant, by its calls so far.
func (s *sandbox) state(at time.Time) string {
	state := "without a call"
	for _, r := range s.runs {
		if !r.Began.Before(at) {
			break
		}
		ended := !r.Killed() && !r.Ended.After(at)
		switch {
		case r.Verb == "DEL" && ended && !r.Failed:
			return "down"
		case r.Verb == "DEL" && ended:
			state = "up, its DEL failed"
		case r.Verb == "DEL" && r.Killed():
			state = "up, its DEL killed"
		case r.Verb == "DEL":
			state = "up, its DEL under way"
		case r.Verb != "ADD":
		case ended && !r.Failed:
			state = "up"
		case ended:
			state = "up, its ADD failed"
		case r.Killed():
			state = "up, its ADD killed"
		default:
			state = "up, its ADD under way"
		}
	}
	return state
}

func (r *Call) line(overlaps bool) string {
	w := []string{r.Verb, r.IfName, r.Netns.String()}
	if r.Prev {
		w = append(w, "prev")
	}
	if r.Version != "" {
		w = append(w, r.Version)
	}
	if overlaps {
		w = append(w, "(beside the one before)")
	}
	return strings.Join(w, " ") + ": " + r.outcome()
}

func (r *Call) outcome() string {
	switch {
	case r.Killed():
		return "killed"
	case r.Failed:
		return fmt.Sprintf("error %d", r.Code)
	}
	return "ok"
}
