package slack

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"footnote/adapters/slack/render"
)

// What an acknowledgement may not carry comes by response_url, unless an answer
// is on its way there.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer any
		want   bool
	}{
		"help":              {onlyYou("help"), true},
		"an answer follows": {aside{Text: "Looking", left: func() {}}, false},
		"nothing to say":    {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := make(chan string, 1)
			web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				said <- string(b)
			}))
			defer web.Close()
			a := &Adapter{c: Config{APIURL: web.URL + "/api/"}, log: slog.New(slog.DiscardHandler), now: time.Now}
			a.unsaid(t.Context(), []byte(`{"command":"/footnote","response_url":"`+web.URL+`/response/1"}`), c.answer)
			if got := len(said) == 1; got != c.want {
				t.Fatalf("said: %v", got)
			}
			if c.want {
				if b := <-said; !strings.Contains(b, `"text":"help"`) || !strings.Contains(b, `"response_type":"ephemeral"`) {
					t.Errorf("said %s", b)
				}
			}
		})
	}
}

// S-106: a response goes to Slack, or to the host of the Web API whatever its
// port.
func TestS106WhereResponsesGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api, address string
		want         bool
	}{
		{"", "https://hooks.slack.com/commands/1", true},
		{"", "http://hooks.slack.com/commands/1", false},
		{"", "https://hooks.slack.com.evil.example/1", false},
		{"", "https://hooks.slack.com:8443/1", false},
		{"", "http://127.0.0.1/1", false},
		{"http://127.0.0.1:8000/api/", "http://127.0.0.1:8000/response/1", true},
		{"http://127.0.0.1:8000/api/", "http://127.0.0.1:8001/response/1", true},
		{"http://localhost:8000/api/", "http://127.0.0.1:8000/response/1", true},
		{"http://[::1]:8000/api/", "http://LOCALHOST/response/1", true},
		{"http://127.0.0.1:8000/api/", "http://10.0.0.1:8000/response/1", false},
		{"http://slack.test/api/", "http://slack.test.evil.example/1", false},
		{"https://slack.test/api/", "http://slack.test/1", false},
		{"https://slack.test/api/", "://", false},
	} {
		if got := (&Adapter{c: Config{APIURL: c.api}}).trusted(c.address); got != c.want {
			t.Errorf("%s with the API at %q: %v", c.address, c.api, got)
		}
	}
}

// An answer never comes before the word that the bot is looking: it takes its
// place.
func TestAnswersWaitForTheAcknowledgement(t *testing.T) {
	t.Parallel()
	said := make(chan string, 2)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { said <- r.URL.Path }))
	defer web.Close()
	a := &Adapter{c: Config{APIURL: web.URL + "/api/"}, log: slog.New(slog.DiscardHandler), now: time.Now}
	left := a.asides.begin(web.URL + "/response/1")
	done := make(chan error, 2)
	answer := func(path string) {
		done <- a.respond(t.Context(), web.URL+path, render.Literal("an answer"), true)
	}
	go answer("/response/1")
	go answer("/response/2")
	if path := <-said; path != "/response/2" {
		t.Errorf("%s came before its acknowledgement", path)
	}
	left()
	left()
	if path := <-said; path != "/response/1" {
		t.Errorf("then came %s", path)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
