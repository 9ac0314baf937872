package slacktest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"footnote/adapters/slack/slacktest"
)

// hook is an app that is reached by HTTP; answer decides what it says.
type hook struct {
	mu      sync.Mutex
	got     []*http.Request
	bodies  []string
	answer  func(n int, w http.ResponseWriter)
	secrets []error // what the real verifier said of each signature
}

func startHook(t *testing.T, s *slacktest.Server, answer func(int, http.ResponseWriter)) *hook {
	t.Helper()
	h := &hook{answer: answer}
	secret := s.App().SigningSecret
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		v, err := slack.NewSecretsVerifier(r.Header, secret)
		if err == nil {
			_, _ = v.Write(b)
			err = v.Ensure()
		}
		h.secrets = append(h.secrets, err)
		h.got, h.bodies = append(h.got, r), append(h.bodies, string(b))
		n := len(h.got)
		h.mu.Unlock()
		if h.answer != nil {
			h.answer(n, w)
		}
	}))
	t.Cleanup(srv.Close)
	s.UseHTTP(&slacktest.Webhook{Events: srv.URL + "/e", Interactions: srv.URL + "/i", Commands: srv.URL + "/c"})
	return h
}

func (h *hook) list() ([]*http.Request, []string, []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got, h.bodies, h.secrets
}

func TestHTTPDeliveriesAreSignedAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	h := startHook(t, s, func(n int, w http.ResponseWriter) {
		if n == 2 {
			_, _ = w.Write([]byte("looking"))
		}
	})
	s.Mention("U0ADA", "C0GENERAL", "x")
	s.WaitSettled()
	s.Slash("U0ADA", "C0GENERAL", "/ask", "how long?").Wait()
	s.WaitEphemeral("U0ADA", func(m slacktest.Message) bool { return m.Text == "looking" })
	call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "x",
		"blocks": `[{"type":"actions","block_id":"b","elements":[{"type":"button","action_id":"go","value":"v","text":{"type":"plain_text","text":"Go"}}]}]`})
	s.Click("U0ADA", s.FromBot("C0GENERAL")[0], "go").Wait()
	reqs, bodies, sigs := h.list()
	for i, err := range sigs {
		if err != nil {
			t.Errorf("signature of request %d: %v", i, err)
		}
	}
	var paths []string
	for _, r := range reqs {
		paths = append(paths, r.URL.Path)
	}
	if diff := cmp.Diff([]string{"/e", "/c", "/i"}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	form, err := url.ParseQuery(bodies[1])
	if err != nil || form.Get("command") != "/ask" || form.Get("text") != "how long?" {
		t.Errorf("command body %q, %v", bodies[1], err)
	}
	clean(t, s)
}

func TestHTTPRetries(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer func(n int, w http.ResponseWriter)
		want   []string // retry marks, in order
	}{
		"503 once": {func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.WriteHeader(503)
			}
		}, []string{"", "1 http_error"}},
		"503 always": {func(_ int, w http.ResponseWriter) { w.WriteHeader(503) }, []string{"", "1 http_error", "2 http_error", "3 http_error"}},
		"no retry wanted": {func(_ int, w http.ResponseWriter) {
			w.Header().Set("X-Slack-No-Retry", "1")
			w.WriteHeader(500)
		}, []string{""}},
		"redirects for ever": {func(n int, w http.ResponseWriter) {
			w.Header().Set("Location", "/again")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := manual(t)
			h := startHook(t, s, c.answer)
			s.Mention("U0ADA", "C0GENERAL", "x")
			// The first retry comes at once, the others after one and five minutes.
			for i, wait := range []time.Duration{time.Minute, 5 * time.Minute} {
				s.Eventually("a refusal", func() bool { return frames(s, "refused") == i+2 || s.Unsettled() == 0 })
				clock.Advance(wait)
			}
			s.WaitSettled()
			var got []string
			reqs, _, _ := h.list()
			for _, r := range reqs {
				got = append(got, strings.TrimSpace(r.Header.Get("X-Slack-Retry-Num")+" "+r.Header.Get("X-Slack-Retry-Reason")))
			}
			if c.want != nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("retries (-want +got):\n%s", diff)
				}
			} else if len(got) < 3 {
				t.Errorf("%d requests, want two redirects followed", len(got))
			}
		})
	}
}

func TestAnswersThatTakeTooLongAreRetriedMeanwhile(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	hold, arrived := make(chan struct{}), make(chan struct{})
	defer close(hold)
	h := startHook(t, s, func(n int, _ http.ResponseWriter) {
		if n == 1 {
			close(arrived)
			<-hold
		}
	})
	s.Mention("U0ADA", "C0GENERAL", "x")
	<-arrived
	clock.Advance(3 * time.Second)
	s.WaitSettled()
	reqs, _, _ := h.list()
	if len(reqs) != 2 || reqs[1].Header.Get("X-Slack-Retry-Reason") != "http_timeout" {
		t.Errorf("%d requests, the second marked %q", len(reqs), reqs[len(reqs)-1].Header.Get("X-Slack-Retry-Reason"))
	}
}

func TestRequestsThatAreNotSlacks(t *testing.T) {
	t.Parallel()
	s, clock := manual(t)
	h := startHook(t, s, nil)
	good := s.EncodeHTTP(s.Fixture("event_app_mention"))
	bad := map[string]func(*slacktest.Post){
		"wrong secret":  func(p *slacktest.Post) { p.Secret = "other" },
		"old timestamp": func(p *slacktest.Post) { p.At = clock.Now().Add(-6 * time.Minute) },
		"no signature":  func(p *slacktest.Post) { p.Change = func(h http.Header) { h.Del("X-Slack-Signature") } },
		"odd timestamp": func(p *slacktest.Post) {
			p.Change = func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "soon") }
		},
	}
	for name, spoil := range bad {
		p := good
		spoil(&p)
		if _, err := s.Send(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		_, _, sigs := h.list()
		if sigs[len(sigs)-1] == nil {
			t.Errorf("%s passes the real verifier", name)
		}
	}
}

func TestURLVerificationSSLCheckAndSlowBody(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	h := startHook(t, s, nil)
	if _, err := s.URLVerification(context.Background(), "abc"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SSLCheck(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, bodies, sigs := h.list()
	if !strings.Contains(bodies[0], `"challenge":"abc"`) || !strings.Contains(bodies[1], "ssl_check=1") || sigs[0] != nil {
		t.Errorf("bodies %q, signatures %v", bodies, sigs)
	}
	reqs, _, _ := h.list()
	conn, _, err := s.SlowBody("http://" + reqs[0].Host + "/e")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
}
