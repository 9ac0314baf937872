package slack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/clocktest"
)

func overHTTP(t *testing.T, docs ...doc) (*slacktest.Server, *program) {
	t.Helper()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, docs...), over(slack.HTTP))
	return s, p
}

// mention is the body of a mention, as it is signed.
func mention(s *slacktest.Server) slacktest.Post {
	return s.EncodeEvents(map[string]any{
		"type": "event_callback", "event_id": "Ev1", "team_id": "T0HOME",
		"authorizations": []any{map[string]any{"team_id": "T0HOME", "is_bot": true}},
		"event":          map[string]any{"type": "app_mention", "user": "U0ADA", "channel": "C0GENERAL", "text": "<@U0BOT> " + qHandbook, "ts": "1.1"},
	})
}

func send(t *testing.T, s *slacktest.Server, p slacktest.Post) slacktest.Answer {
	t.Helper()
	a, err := s.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// S-04, S-05, D19: what Slack did not sign just now is refused without a word.
func TestCase_D19(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	cases := map[string]func(*slacktest.Post){
		"another secret":      func(p *slacktest.Post) { p.Secret = "guess" },
		"six minutes ago":     func(p *slacktest.Post) { p.At = time.Now().Add(-6 * time.Minute) },
		"in six minutes":      func(p *slacktest.Post) { p.At = time.Now().Add(6 * time.Minute) },
		"no signature":        header("X-Slack-Signature", ""),
		"no time":             header("X-Slack-Request-Timestamp", ""),
		"time is no number":   header("X-Slack-Request-Timestamp", "now"),
		"time that overflows": header("X-Slack-Request-Timestamp", "9223372036854775807"),
		"time below all":      header("X-Slack-Request-Timestamp", "-9223372036854775808"),
		"time beyond int64":   header("X-Slack-Request-Timestamp", "99999999999999999999"),
		"another version": func(p *slacktest.Post) {
			p.Change = func(h http.Header) { h.Set("X-Slack-Signature", "v1"+h.Get("X-Slack-Signature")[2:]) }
		},
		"without version": func(p *slacktest.Post) {
			p.Change = func(h http.Header) { h.Set("X-Slack-Signature", h.Get("X-Slack-Signature")[3:]) }
		},
		"half a signature": func(p *slacktest.Post) {
			p.Change = func(h http.Header) { h.Set("X-Slack-Signature", h.Get("X-Slack-Signature")[:30]) }
		},
		"signature of nothing": header("X-Slack-Signature", "v0="),
		"no hex":               header("X-Slack-Signature", "v0=zz"),
	}
	for name, change := range cases {
		t.Run("S-04 S-05 "+name, func(t *testing.T) {
			for _, path := range []string{"/slack/events", "/slack/interactions", "/slack/commands"} {
				post := mention(s)
				post.URL = p.web.URL + path
				change(&post)
				if a := send(t, s, post); a.Status != http.StatusUnauthorized || a.Body != "" {
					t.Errorf("%s: %d %q", path, a.Status, a.Body)
				}
			}
		})
	}
	changed := mention(s)
	changed.Body = append([]byte(" "), changed.Body...) // signed as sent, so this is fine
	if a := send(t, s, changed); a.Status != http.StatusOK || a.Body != "" {
		t.Errorf("a signed delivery: %d %q", a.Status, a.Body)
	}
	p.quiet()
}

func header(name, value string) func(*slacktest.Post) {
	return func(p *slacktest.Post) {
		p.Change = func(h http.Header) {
			h.Del(name)
			if value != "" {
				h.Set(name, value)
			}
		}
	}
}

// S-06: a replay inside the window is stopped by the claim.
func TestS06B19AReplayIsADuplicate(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	p.answer(q)
	for range 3 {
		s.Redeliver(q.Channel, q.TS, false)
	}
	p.done()
	if n := answers(s.Everything(q.Channel)); n != 1 {
		t.Errorf("%d answers", n)
	}
}

func TestS08URLVerification(t *testing.T) {
	t.Parallel()
	s, _ := overHTTP(t)
	a, err := s.URLVerification(t.Context(), "a challenge <&>")
	if err != nil || a.Status != 200 || a.Body != "a challenge <&>" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%+v %v", a, err)
	}
	post := s.EncodeEvents(map[string]any{"type": "url_verification", "challenge": "x"})
	post.Secret = "guess"
	if a := send(t, s, post); a.Status != 401 {
		t.Errorf("unsigned: %+v", a)
	}
}

func TestS14OddRequests(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t)
	if a, err := s.SSLCheck(t.Context()); err != nil || a.Status != 200 || a.Body != "" {
		t.Errorf("ssl_check: %+v %v", a, err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead} {
		if a := send(t, s, slacktest.Post{URL: p.web.URL + "/slack/events", Method: method}); a.Status != 405 {
			t.Errorf("%s: %d", method, a.Status)
		}
	}
	big := slacktest.Post{URL: p.web.URL + "/slack/events", ContentType: "application/json", Body: make([]byte, 2<<20)}
	if a, err := s.Send(t.Context(), big); err == nil && a.Status != 413 {
		t.Errorf("2 MiB: %d", a.Status)
	}
	if a := send(t, s, slacktest.Post{URL: p.web.URL + "/slack/events", ContentType: "application/json", Body: []byte("no JSON")}); a.Status != 400 || a.Header.Get("X-Slack-No-Retry") != "1" {
		t.Errorf("no JSON: %+v", a)
	}
	for _, body := range []string{"%zz", "payload=", "payload={", "payload=null"} {
		if a := send(t, s, slacktest.Post{URL: p.web.URL + "/slack/interactions", ContentType: "application/x-www-form-urlencoded", Body: []byte(body)}); a.Status != 200 && a.Status != 400 {
			t.Errorf("%q: %d", body, a.Status)
		}
	}
}

// S-07: what is in the address does not count.
func TestS07OnlyTheBodyIsRead(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	f := url.Values{"command": {"/ask"}, "text": {qHandbook}, "user_id": {"U0ADA"}, "team_id": {"T0HOME"}, "channel_id": {"C0GENERAL"}, "trigger_id": {"t"}}
	if a := send(t, s, slacktest.Post{URL: p.web.URL + "/slack/commands?" + f.Encode(), ContentType: "application/x-www-form-urlencoded"}); a.Status != 200 || a.Body != "" {
		t.Errorf("%+v", a)
	}
	if list, err := p.ledger.Of(t.Context(), "slack|T0HOME|U0ADA", 1); err != nil || len(list) != 0 {
		t.Errorf("taken: %v %v", list, err)
	}
}

// S-09, S-24: answered at once while the model works.
func TestS09B18AcknowledgedBeforeTheWork(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	block, let := make(chan struct{}, 10), make(chan struct{})
	p := start(t, s, newStore(t, handbook), over(slack.HTTP), drafting(gated(block, let)))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	<-block
	s.WaitSettled() // while the generator waits
	close(let)
	p.answer(q)
	p.done()
}

// S-11: 503 without X-Slack-No-Retry where the claim cannot be kept.
func TestS11ARetryIsAskedForWhereNothingWasKept(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	_ = p.ledger.Close()
	if a := send(t, s, mention(s)); a.Status != 503 || a.Header.Get("X-Slack-No-Retry") != "" {
		t.Errorf("%+v", a)
	}
}

func TestS10ARetryThatIsTheOnlyCopyIsAnswered(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook, slacktest.Delivery{RetryNum: 3}))
	p.done()
}

// All that people do works by HTTP as well.
func TestHTTPModeAsksPressesAndCommands(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, all...)
	a := p.answer(s.DM("U0ADA", qDiary))
	s.Click("U0ADA", a, "source_1")
	s.WaitView("U0ADA", slacktest.Any[slacktest.View])
	s.Slash("U0ADA", "C0GENERAL", "/ask", qPlan)
	s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	s.Shortcut("U0ADA", s.Say("U0BOB", "C0HELP", qLeaflet), slack.ShortcutID)
	s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(shown(m), "greenhouse") })
	p.done()
}

func TestSocketModeTakesNothingByHTTP(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := prepare(t, s, newStore(t))
	p.run()
	if h := p.adapter.Handlers(); len(h) != 0 {
		t.Errorf("%d handlers", len(h))
	}
}

// A body that never ends holds up nobody else.
func TestS14ASlowBodyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s, p := overHTTP(t, handbook)
	conn, _, err := s.SlowBody(p.web.URL + "/slack/events")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
	p.quiet()
}

// FuzzDeliveries: no signed body ends the process or is left without an answer.
func FuzzDeliveries(f *testing.F) {
	s := slacktest.New(nil, matrixWorld(), slacktest.WithClock(clocktest.NewManualClock(time.Time{})))
	f.Cleanup(s.Close)
	for _, name := range slacktest.Fixtures() {
		if !strings.Contains(name, "uninstalled") && !strings.Contains(name, "revoked") {
			f.Add([]byte(s.Fixture(name)))
		}
	}
	p := prepare(f, s, newStore(f, handbook), over(slack.HTTP))
	p.run()
	p.connected()
	f.Fuzz(func(t *testing.T, body []byte) {
		if strings.Contains(string(body), "revoked") || strings.Contains(string(body), "uninstalled") {
			return
		}
		for _, path := range []string{"/slack/events", "/slack/interactions", "/slack/commands"} {
			b := body
			if path == "/slack/interactions" {
				b = []byte("payload=" + url.QueryEscape(string(body)))
			}
			a, err := s.Send(context.Background(), slacktest.Post{URL: p.web.URL + path, ContentType: "application/json", Body: b})
			if err != nil || a.Status >= 500 {
				t.Fatalf("%s: %d %v", path, a.Status, err)
			}
			if a.Body != "" && path == "/slack/commands" && !json.Valid([]byte(a.Body)) {
				t.Fatalf("%q", a.Body)
			}
		}
	})
}
