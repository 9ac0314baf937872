package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
)

// echo answers with the body that it gets.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "read", http.StatusTeapot)
		return
	}
	_, _ = w.Write(b)
})

// The API decides about methods and bodies itself, and its paths are not
// tidied: an id that climbs must be refused, not led elsewhere.
func TestAPIGetsWhatWasSent(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintln(w, r.Method, r.URL.EscapedPath(), n, err)
	})
	s := New(Options{API: api})
	for _, c := range []struct{ method, target, body, want string }{
		{"PUT", "/v1/documents/a/../b", strings.Repeat("x", MaxBody+1), "PUT /v1/documents/a/../b 1048577 <nil>\n"},
		{"DELETE", "/v1/documents/a%2F%2e%2e//b", "", "DELETE /v1/documents/a%2F%2e%2e//b 0 <nil>\n"},
		{"GET", "/v1", "", "not found\n"},
		{"PUT", "/healthz", "x", "method not allowed\n"},
	} {
		if got := read(t, serve(s, c.method, c.target, c.body)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.target, got, c.want)
		}
	}
	if got := read(t, serve(New(Options{}), "GET", "/v1/documents", "")); got != "not found\n" {
		t.Errorf("without an API: %q", got)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := New(Options{Mounts: Mounts{SlackEvents: echo, DiscordInteractions: echo}, Metrics: NewMetrics(Gathered{}), Starting: []string{"/slack/interactions", "/slack/events"}})
	for _, c := range []struct {
		name, method, target, body string
		status                     int
		want                       string
	}{
		{"alive", "GET", "/healthz", "", 200, "ok\n"},
		{"ready with nothing to check", "GET", "/readyz", "", 200, ""},
		{"events", "POST", "/slack/events", `{"a": 1}`, 200, `{"a": 1}`},
		{"empty body", "POST", "/slack/events", "", 200, ""},
		{"interactions", "POST", "/discord/interactions", "x", 200, "x"},
		{"greatest body", "POST", "/slack/events", strings.Repeat("x", MaxBody), 200, strings.Repeat("x", MaxBody)},
		{"S-14: body too large", "POST", "/slack/events", strings.Repeat("x", MaxBody+1), 413, "Request Entity Too Large\n"},
		{"S-14: GET on events", "GET", "/slack/events", "", 405, "method not allowed\n"},
		{"PUT on events", "PUT", "/slack/events", "x", 405, "method not allowed\n"},
		{"POST on health", "POST", "/healthz", "x", 405, "method not allowed\n"},
		{"HEAD on health", "HEAD", "/healthz", "", 200, "ok\n"},
		{"not set up", "POST", "/slack/commands", "x", 404, "not found\n"},
		{"to be served later on", "POST", "/slack/interactions", "x", 503, "starting: try again\n"},
		{"GET on what is later on", "GET", "/slack/interactions", "", 405, "method not allowed\n"},
		{"no viewer", "GET", "/source/a/1", "", 404, "not found\n"},
		{"unknown", "GET", "/", "", 404, "not found\n"},
		{"below a mount", "POST", "/slack/events/x", "", 404, "not found\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := serve(s, c.method, c.target, c.body)
			if got := read(t, r); r.StatusCode != c.status || got != c.want {
				t.Errorf("%d, %.80q, want %d, %.80q", r.StatusCode, got, c.status, c.want)
			}
			if allow := r.Header.Get("Allow"); (allow != "") != (c.status == 405) {
				t.Errorf("Allow is %q", allow)
			}
			if after := r.Header.Get("Retry-After"); (after != "") != (c.status == 503) {
				t.Errorf("Retry-After is %q", after)
			}
		})
	}
}

// A body whose length is not announced is bounded as well, and one that ends
// early is no question.
func TestStreamedBodies(t *testing.T) {
	t.Parallel()
	s := New(Options{Mounts: Mounts{SlackEvents: echo}})
	for name, c := range map[string]struct {
		body   io.Reader
		status int
	}{
		"endless":      {endless{}, 413},
		"breaks off":   {io.MultiReader(strings.NewReader("x"), broken{}), 400},
		"long and bad": {io.MultiReader(io.LimitReader(endless{}, MaxBody+1), broken{}), 413},
	} {
		r, err := http.NewRequest(http.MethodPost, "/slack/events", c.body)
		must(t, err)
		w := newRecorder()
		s.ServeHTTP(w, r)
		if w.status != c.status {
			t.Errorf("%s: %d, want %d", name, w.status, c.status)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// blank is a ResponseWriter that keeps nothing.
type blank struct{ h http.Header }

func (b blank) Header() http.Header         { return b.h }
func (b blank) Write(p []byte) (int, error) { return len(p), nil }
func (b blank) WriteHeader(int)             {}

func newRecorder() *recorder { return &recorder{ResponseWriter: blank{http.Header{}}} }

func TestReadiness(t *testing.T) {
	t.Parallel()
	var logs buffer
	down := errors.New("no event for 90 s")
	s := New(Options{Log: logs.logger(), Ready: []Check{
		{Name: "index", Probe: func(context.Context) error { return nil }}, {Name: "slack", Probe: func(context.Context) error { return down }},
		{Name: "sources", Advisory: true, Probe: func(context.Context) error { return errors.New("canary") }},
	}})
	r := serve(s, "GET", "/readyz", "")
	if got := read(t, r); r.StatusCode != 503 || got != "index ok\nslack failing\nsources degraded\n" {
		t.Errorf("%d, %q", r.StatusCode, got)
	}
	if !strings.Contains(logs.String(), "no event for 90 s") || strings.Contains(logs.String(), "canary") {
		t.Errorf("the log does not say why, or what its prober says: %s", logs.String())
	}
	down = nil
	if r := serve(s, "GET", "/readyz", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
}

func TestPanicOfAHandler(t *testing.T) {
	t.Parallel()
	var logs buffer
	s := New(Options{Log: logs.logger(), Mounts: Mounts{
		SlackEvents:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on " + canary) }),
		SlackCommands: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "begun"); panic(canary) }),
	}})
	r := serve(s, "POST", "/slack/events", canary)
	body := read(t, r)
	ref := regexp.MustCompile(`Reference: ([A-Z0-9]{10})`).FindStringSubmatch(body)
	if r.StatusCode != 500 || ref == nil || strings.Count(logs.String(), ref[1]) != 1 {
		t.Errorf("%d, %q, log:\n%s", r.StatusCode, body, logs.String())
	}
	if r := serve(s, "POST", "/slack/commands", "x"); r.StatusCode != 200 || read(t, r) != "begun" {
		t.Errorf("%d", r.StatusCode)
	}
	if strings.Contains(logs.String()+body, canary) {
		t.Error("the text of a request is in the log or the answer")
	}
}

// A request under way is finished at a shutdown; new ones are refused.
func TestShutdownLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"within the grace": true, "beyond it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, finish := make(chan struct{}), make(chan struct{})
			s := New(Options{Grace: 50 * time.Millisecond, Mounts: Mounts{SlackEvents: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(began)
				select {
				case <-finish:
					_, _ = io.WriteString(w, "done")
				case <-r.Context().Done():
				}
			})}})
			if done {
				s.o.Grace = time.Minute
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ctx, l) }()
			type got struct {
				body string
				err  error
			}
			answer := make(chan got, 1)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			go func() {
				r, err := client.Post("http://"+l.Addr().String()+"/slack/events", "text/plain", strings.NewReader("x"))
				if err != nil {
					answer <- got{err: err}
					return
				}
				defer r.Body.Close()
				b, err := io.ReadAll(r.Body)
				answer <- got{string(b), err}
			}()
			<-began
			stop()
			if done {
				close(finish)
			}
			must(t, <-ended)
			a := <-answer
			if done != (a.err == nil && a.body == "done") {
				t.Errorf("%q, %v", a.body, a.err)
			}
			if _, err := client.Get("http://" + l.Addr().String() + "/healthz"); err == nil {
				t.Error("a closed server answers")
			}
		})
	}
}

func TestListeningThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	for _, at := range []string{l.Addr().String(), "nonsense", "127.0.0.1:99999999"} {
		if err := New(Options{Listen: at}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "web.listen") {
			t.Errorf("%s gives %v", at, err)
		}
	}
}

// canary is the text of a question. It must appear in no log and no metric.
const canary = "canary-how-long-is-the-notice-period"

// handler answers, refuses, fails and panics, with the text of the question
// in every error.
type handler struct{}

func (handler) Answer(ctx context.Context, t *desk.Task) (desk.Result, error) {
	switch t.Key {
	case "panics":
		panic(string(t.Payload))
	case "fails":
		return desk.Result{}, errors.New("boom")
	}
	return desk.Result{State: ledger.Answered}, t.Posting(ctx, nil)
}

func (handler) Interrupted(context.Context, ledger.Delivery, desk.Trouble) {}

// A question goes through the door, the desk and the ledger, and leaves its
// figures, not its text.
func TestMetricsAndLogsHoldNoText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var logs buffer
		led, err := ledger.Open(dir, ledger.Options{})
		must(t, err)
		d, err := desk.New(desk.Options{Ledger: led, PerAsker: 4, Workers: 1, Log: logs.logger()})
		must(t, err)
		d.Handle("slack", handler{})
		out := outbox.New(outbox.Options{})
		s := New(Options{Log: logs.logger(), Metrics: NewMetrics(Gathered{
			Desk: d.Health, Ledger: led.Counts, Outbox: map[string]func() outbox.Health{"slack": out.Health},
		}), Mounts: Mounts{SlackEvents: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			key := r.URL.Query().Get("key")
			v, err := d.Receive(r.Context(), ledger.Delivery{Key: key, Platform: "slack", Asker: "canary-asker", Room: "canary-room", Payload: b})
			if err != nil {
				http.Error(w, "again", http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, string(v))
		})}})
		for key, want := range map[string]string{"answers": "accepted", "panics": "accepted", "fails": "accepted"} {
			if got := read(t, serve(s, "POST", "/slack/events?key="+key, canary)); got != want {
				t.Errorf("%s: %s", key, got)
			}
		}
		serve(s, "POST", "/slack/events?key=answers", canary)
		serve(s, "POST", "/slack/events?key=waits", canary)
		serve(s, "POST", "/slack/events?key=shed", canary)
		serve(s, "GET", "/"+canary+"?q="+canary, "")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		synctest.Wait()
		metrics := read(t, serve(s, "GET", "/metrics", ""))
		stop()
		must(t, <-ended)
		must(t, led.Close())
		for _, want := range []string{
			`footnote_questions_waiting 0`, `footnote_questions_running 0`, `footnote_handler_panics_total 1`,
			`footnote_deliveries_received_total{platform="slack"} 6`,
			`footnote_deliveries_turned_away_total{platform="slack",why="duplicate"} 1`,
			`footnote_deliveries_turned_away_total{platform="slack",why="busy"} 1`,
			`footnote_deliveries_ack_p99_seconds{platform="slack"} 0`,
			`footnote_ledger_deliveries{state="answered"} 2`, `footnote_ledger_deliveries{state="failed"} 3`,
			`footnote_outbox_waiting{platform="slack"} 0`, `footnote_outbox_limited_total{platform="slack"} 0`,
			`footnote_http_requests_total{code="200",route="slack_events"} 6`,
			`footnote_http_requests_total{code="404",route="other"} 1`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("the metrics lack %s", want)
			}
		}
		if !strings.Contains(logs.String(), "boom") || !strings.Contains(logs.String(), "panicked") {
			t.Errorf("the log lacks the failures:\n%s", logs.String())
		}
		if strings.Contains(metrics, "canary") || strings.Contains(logs.String(), canary) {
			t.Errorf("text of a question, a person or a room is in the metrics or the log:\n%s\n%s", metrics, logs.String())
		}
		if t.Failed() {
			t.Log(metrics)
		}
	})
}

func TestMetricsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	s := New(Options{Metrics: NewMetrics(Gathered{
		Desk: func() desk.Health {
			return desk.Health{Waiting: 3, Running: 2, Oldest: 90 * time.Second, Resumed: 1, Platforms: map[string]desk.Inbound{
				"discord": {Received: 7, Stale: 2, Errors: 1, Last: time.Unix(1_700_000_000, 0), AckP99: 250 * time.Millisecond},
			}}
		},
		Ledger: func(context.Context) (map[ledger.State]int, error) {
			return map[ledger.State]int{ledger.Answered: 5}, nil
		},
		Outbox:    map[string]func() outbox.Health{"discord": func() outbox.Health { return outbox.Health{Waiting: 1, Limited: 2, Full: 3} }},
		Documents: func() map[catalog.State]int { return map[catalog.State]int{catalog.Published: 93, catalog.Failed: 7} },
		Levels: func() []follow.Level {
			return []follow.Level{{Kind: ingest.Removal, Count: 4, P50: time.Second, P95: 1500 * time.Millisecond}, {Kind: ingest.Renewal}}
		},
		Sources: func() []follow.Status {
			return []follow.Status{{Source: "a", Scanned: time.Unix(1_700_000_000, 0), Held: &ingest.Held{Missing: 8, Of: 9}}, {Source: "b", Error: "not mounted"}}
		},
	})})
	r := serve(s, "GET", "/metrics", "")
	if ct := r.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/plain; version=0.0.4") {
		t.Errorf("the content type is %q", ct)
	}
	var got []string
	for line := range strings.Lines(read(t, r)) {
		if strings.HasPrefix(line, "footnote_") && !strings.HasPrefix(line, "footnote_http") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`footnote_change_seconds{kind="removal",quantile="0.5"} 1`,
		`footnote_change_seconds{kind="removal",quantile="0.95"} 1.5`,
		`footnote_changes_total{kind="content"} 0`,
		`footnote_changes_total{kind="removal"} 4`,
		`footnote_deliveries_ack_p99_seconds{platform="discord"} 0.25`,
		`footnote_deliveries_last_timestamp_seconds{platform="discord"} 1.7e+09`,
		`footnote_deliveries_received_total{platform="discord"} 7`,
		`footnote_deliveries_turned_away_total{platform="discord",why="busy"} 0`,
		`footnote_deliveries_turned_away_total{platform="discord",why="duplicate"} 0`,
		`footnote_deliveries_turned_away_total{platform="discord",why="error"} 1`,
		`footnote_deliveries_turned_away_total{platform="discord",why="stale"} 2`,
		`footnote_documents{state="failed"} 7`,
		`footnote_documents{state="published"} 93`,
		`footnote_handler_panics_total 0`,
		`footnote_ledger_deliveries{state="answered"} 5`,
		`footnote_outbox_full_total{platform="discord"} 3`,
		`footnote_outbox_limited_total{platform="discord"} 2`,
		`footnote_outbox_waiting{platform="discord"} 1`,
		`footnote_questions_oldest_seconds 90`,
		`footnote_questions_resumed_total 1`,
		`footnote_questions_running 2`,
		`footnote_questions_waiting 3`,
		`footnote_source_failing{source="a"} 0`,
		`footnote_source_failing{source="b"} 1`,
		`footnote_source_held{source="a"} 8`,
		`footnote_source_held{source="b"} 0`,
		`footnote_source_scanned_timestamp_seconds{source="a"} 1.7e+09`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Checks that do not come to an end give an answer all the same, before whoever
// asks gives up.
func TestReady_Hangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s, begin := New(Options{Ready: []Check{{Name: "index", Probe: hangs}, {Name: "ledger", Probe: hangs}}}), time.Now()
		r := serve(s, "GET", "/readyz", "")
		if got := read(t, r); r.StatusCode != 503 || got != "index failing\nledger failing\n" || time.Since(begin) > 4*time.Second {
			t.Errorf("%d, %q after %v", r.StatusCode, got, time.Since(begin))
		}
	})
}
