package calls

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A life's name names its namespace and its files, and each has a sentence for people.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Lives() {
		if seen[l.Name] || strings.Contains(l.Name, ".") || len(validation.IsDNS1123Label("life-"+l.Name)) > 0 {
			t.Errorf("%q is no good name, or a second one", l.Name)
		}
		seen[l.Name] = true
		if !regexp.MustCompile(`^[a-zA-Z].* .*[^.]$`).MatchString(l.Says) || l.run == nil {
			t.Errorf("%s says %q and does %v", l.Name, l.Says, l.run != nil)
		}
	}
}

func TestWait(t *testing.T) {
	b := &Bench{}
	asked := 0
	err := b.wait(t.Context(), time.Minute, "the third answer", func(context.Context) (bool, error) {
		asked++
		return asked == 3, errors.New("not yet")
	})
	if err != nil || asked != 3 {
		t.Errorf("%v after %d answers", err, asked)
	}
	err = b.wait(t.Context(), time.Millisecond, "what never comes", func(context.Context) (bool, error) { return false, errors.New("no pod") })
	if err == nil || !strings.Contains(err.Error(), "waited 1ms for what never comes") || !strings.Contains(err.Error(), "no pod") {
		t.Errorf("%v, expected what it waited for and the last answer", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("somebody pressed ctrl-C"))
	err = b.wait(ctx, time.Minute, "x", func(context.Context) (bool, error) { return false, nil })
	if err == nil || !strings.Contains(err.Error(), "ctrl-C") {
		t.Errorf("%v, expected why", err)
	}
}
