package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
)

// still is a cloud whose time stands still.
type still struct {
	mu    sync.Mutex
	cloud *ec2.Cloud
	wrong bool // has a code of its own for what is not there
}

func (s *still) Do(_ context.Context, r *ec2.Request) (ec2.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.cloud.Serve(0, r)
	if s.wrong && p.Code != "" {
		p.Code = "NoSuchThing"
	}
	return p, nil
}

func serving(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestConform: the exit code says whether an endpoint behaves, the output how it does not, and the report holds every row.
func TestConform(t *testing.T) {
	in(t, nil)
	good := serving(t, ec2server.Handler(&still{cloud: ec2.New(ec2.Config{}, 1)}))
	wrong := serving(t, ec2server.Handler(&still{cloud: ec2.New(ec2.Config{}, 1), wrong: true}))
	other := serving(t, http.NotFoundHandler())
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"ec2 --list", 0, []string{"attach.index-in-use", "Error codes for", "(attaches)"}},
		{"imds --list", 0, []string{"token.too-long", "PUT /latest/api/token"}},
		{"ec2 --endpoint " + good + " --rows protocol.* --report same.json", 0, []string{"rows, 13 as they should be, 0 differ, 0 skipped"}},
		{"ec2 --endpoint " + wrong + " --rows protocol.error --rows protocol.get", 1, []string{"protocol.error", "NoSuchThing", "1 differ"}},
		{"ec2 --endpoint " + good + " --rows throttle.* --rows attach.kept", 3, []string{"13 skipped: it is marked slow: ask for it with --slow", "1 skipped: no instance runs"}},
		{"ec2 --endpoint " + other, 3, []string{"does not answer as EC2", "expected one XML element"}},
		{"ec2 --endpoint " + gone.URL, 3, []string{"does not answer", "refused"}},
		{"imds --endpoint " + gone.URL, 3, []string{"does not answer", "refused"}},
		{"imds --endpoint " + other + " --rows read.nothing", 1, []string{"1 differ"}},
		{"ec2", 2, []string{"--endpoint URL"}},
		{"ec2 --endpoint 127.0.0.1", 2, []string{"is no URL with a host"}},
		{"ec2 --endpoint " + good + " --rows atach.*", 2, []string{"no row is called atach.*", "--list"}},
		{"ec2 --endpoint " + good + " --rows [", 2, []string{"the pattern"}},
		{"ec2 --endpoint " + good + " --report .", 2, []string{"it is a folder"}},
		{"ecs", 2, []string{`did you mean "ec2"?`}},
	} {
		code, out, errs := enilab(t, append([]string{"conform"}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("conform %s: exit code %d, expected %d: %s%s", c.args, code, c.code, out, errs)
		}
		for _, s := range c.says {
			if !strings.Contains(strings.Join(strings.Fields(out+errs), " "), s) {
				t.Errorf("conform %s: expected %q, found:\n%s%s", c.args, s, out, errs)
			}
		}
	}
	var report struct {
		Same int
		Rows []struct{ Name, Outcome string }
	}
	data, err := os.ReadFile("same.json")
	if err != nil || json.Unmarshal(data, &report) != nil || report.Same != 13 || len(report.Rows) != 13 || report.Rows[0].Outcome != "same" {
		t.Errorf("report: %v: %s", err, data)
	}
}
