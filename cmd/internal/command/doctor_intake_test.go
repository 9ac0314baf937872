package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"footnote/cmd/internal/config"
)

func TestCheckPush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, listen string
		tokens       int
		state, what  string
	}{
		{"no token", "0.0.0.0:80", 0, good, "no token"},
		{"nowhere", "", 1, failure, "web.listen"},
		{"this machine", "127.0.0.1:8080", 2, good, "2 token(s)"},
		{"this machine by name", "localhost:8080", 1, good, "localhost"},
		{"this machine, IPv6", "[::1]:8080", 1, good, "::1"},
		{"all interfaces", ":8080", 1, warning, "http"},
		{"an address", "10.0.0.7:8080", 1, warning, "10.0.0.7"},
		{"a name", "docs.example.org:8080", 1, warning, "docs.example.org"},
	} {
		var cfg config.Config
		cfg.Web.Listen = c.listen
		if f := checkPush(cfg, c.tokens); f.State != c.state || !strings.Contains(f.What, c.what) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestCheckTika(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/version" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	for at, want := range map[string]string{s.URL: good, s.URL + "/": good, s.URL + "/other": failure, "http://127.0.0.1:1": failure} {
		if f := checkTika(t.Context(), at); f.State != want {
			t.Errorf("%s: %+v", at, f)
		}
	}
}
