package conform

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// chosen are the names of the rows that are asked: all, unless somebody who has built a mutant wants to see one.
func chosen() []string {
	if s := os.Getenv("ENILAB_CONFORM_ROWS"); s != "" {
		return strings.Split(s, ",")
	}
	return nil
}

// TestEC2: our own server passes every row, as the documents describe EC2: with lag, latencies and throttling.
func TestEC2(t *testing.T) {
	w := newWorld(t, published)
	c := w.ec2(t)
	c.Rows = chosen()
	r, err := EC2(t.Context(), c)
	judge(t, named(EC2Rows(), c.Rows), r, err)
	w.clean(t)
}

// TestIMDS: and so does our metadata service.
func TestIMDS(t *testing.T) {
	c := newWorld(t, prompt).imds(t)
	c.Rows = chosen()
	r, err := IMDS(t.Context(), c)
	judge(t, named(IMDSRows(), c.Rows), r, err)
}

// clean: what rows have made is gone when they are through.
func (w *world) clean(t *testing.T) {
	t.Helper()
	for _, e := range w.cloud.AllENIs() {
		for _, tag := range e.Tags {
			if tag.Key == tagKey {
				t.Errorf("%s of %s is still there", e.ID, tag.Value)
			}
		}
	}
}

// TestGone: rows that nobody was there to answer do not differ, and are not waited for.
func TestGone(t *testing.T) {
	w := newWorld(t, prompt)
	c := w.ec2(t)
	c.HTTP = &http.Client{Transport: leaving{left: new(int), after: 40}}
	r, err := EC2(t.Context(), c)
	if !errors.Is(err, errUnreachable) || r == nil {
		t.Fatalf("%v; expected %q and a report", err, errUnreachable)
	}
	if n := r.Count(Differs); n > 0 || r.Count(Same) == 0 {
		t.Errorf("%d rows differ, %d do not: expected none and some", n, r.Count(Same))
	}
}

// leaving refuses connections after a number of requests.
type leaving struct {
	left  *int
	after int
}

func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	if *l.left++; *l.left > l.after {
		return nil, syscall.ECONNREFUSED
	}
	return http.DefaultTransport.RoundTrip(r)
}
