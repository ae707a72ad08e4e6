package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestUnknownSettingIsTold: a variable that looks like a setting and is none stops nothing, and is told where somebody looks: by an Event on the
// node, made again where the API server does not take it, and in the daemon's status.
func TestUnknownSettingIsTold(t *testing.T) {
	r := newRig(t, 3)
	var mu sync.Mutex
	var told []string
	r.c.Unread = []string{"WARM_IP_TARGT: it is no setting; did you mean WARM_IP_TARGET?"}
	r.c.Tell = func(_ context.Context, reason, message string) error {
		mu.Lock()
		defer mu.Unlock()
		if told = append(told, reason+" "+message); len(told) == 1 {
			return errors.New("the API server is away")
		}
		return nil
	}
	r.start().serves()
	if s := r.status(); !s.Ready || !slices.Contains(s.Reasons, r.c.Unread[0]) {
		t.Errorf("expected a node that is ready, and a word on the setting, found %+v", s)
	}
	r.eventually("the first Event was refused", func() bool { return strings.Contains(r.log.String(), "no Event could be made about the node") })
	mu.Lock()
	defer mu.Unlock()
	if want := "UnknownSetting " + r.c.Unread[0]; told[0] != want {
		t.Errorf("expected %q, found %q", want, told)
	}
}

// TestImpairedNodeIsTold: a daemon whose settings cannot be says so on the node.
func TestImpairedNodeIsTold(t *testing.T) {
	r := newRig(t, 3)
	r.c.Problems = []string{"A: this cannot be", "B: nor can that"}
	told := make(chan string, 1)
	r.c.Tell = func(_ context.Context, reason, message string) error { told <- reason + " " + message; return nil }
	r.start()
	if got := <-told; got != "InvalidSettings this node takes no pods: A: this cannot be; B: nor can that" {
		t.Errorf("found %q", got)
	}
}
