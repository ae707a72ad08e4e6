package netns

import (
	"net/http"
	"net/http/httptest"
	"testing"

	imdsserver "github.com/enilab/enilab/fakes/imds/server"
)

// TestDaemonWithoutTokenIsToldOf: what metadata refused is said beside what the daemon said, and a token that is not good is another mistake.
func TestDaemonWithoutTokenIsToldOf(t *testing.T) {
	for _, c := range []struct {
		name, token string
		status      int
		want        string
	}{
		{"no token, and one is required", "", http.StatusUnauthorized, "sed: no (metadata refuses /latest/meta-data/local-ipv4 without a token)"},
		{"a token that is not good", "old", http.StatusUnauthorized, "sed: no"},
		{"none is required", "", http.StatusOK, "sed: no"},
	} {
		var seen tokenless
		r := httptest.NewRequest("GET", "/latest/meta-data/local-ipv4", nil)
		if c.token != "" {
			r.Header.Set(imdsserver.TokenHeader, c.token)
		}
		seen.watch(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) })).ServeHTTP(httptest.NewRecorder(), r)
		if got := seen.and("sed: no"); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
		if seen.begin(); seen.and("sed: no") != "sed: no" {
			t.Errorf("%s: the next daemon is told of it, too", c.name)
		}
	}
}
