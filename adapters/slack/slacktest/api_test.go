package slacktest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/slack/slacktest"
	"footnote/bot/clocktest"
)

type args map[string]string

type result struct {
	Status  int
	Header  http.Header
	Body    map[string]any
	Raw     string
	Failure error
}

func (r result) code() string {
	if r.Body["ok"] == true {
		return "ok"
	}
	return fmt.Sprint(r.Body["error"])
}

func call(s *slacktest.Server, route string, a args) result {
	form := url.Values{}
	if _, ok := a["token"]; !ok {
		form.Set("token", s.App().BotToken)
	}
	for k, v := range a {
		form.Set(k, v)
	}
	req, err := http.NewRequest(http.MethodPost, s.APIURL()+route, strings.NewReader(form.Encode()))
	if err != nil {
		return result{Failure: err}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return do(req)
}

func do(req *http.Request) result {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return result{Failure: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	r := result{Status: resp.StatusCode, Header: resp.Header, Raw: string(b), Failure: err}
	if json.Unmarshal(b, &r.Body) != nil {
		r.Failure = errors.Join(err, errors.New("not JSON"))
	}
	return r
}

func world() slacktest.World {
	w := slacktest.DemoWorld()
	w.Add(slacktest.User{Name: "eve", TeamID: "T0AWAY"})
	w.Add(slacktest.User{Name: "gone", Deleted: true})
	w.Add(slacktest.User{Name: "hidden", Hidden: true})
	w.Add(slacktest.User{Name: "other", Bot: true, BotID: "B0OTHER", AppID: "A0OTHER"})
	w.Others = []slacktest.Team{{ID: "T0AWAY", Name: "Away", Domain: "away"}}
	w.AddChannel(slacktest.Channel{Name: "notin", Kind: slacktest.Public, Members: []string{"U0ADA"}})
	w.AddChannel(slacktest.Channel{Name: "secret", Kind: slacktest.Private, Members: []string{"U0ADA"}})
	w.AddChannel(slacktest.Channel{Name: "old", Members: []string{"U0BOT", "U0ADA"}, Archived: true})
	w.AddChannel(slacktest.Channel{Name: "locked", Members: []string{"U0BOT", "U0ADA"}, Restrict: "restricted_action_read_only_channel"})
	w.AddChannel(slacktest.Channel{Name: "shared", Members: []string{"U0BOT", "U0ADA", "U0EVE"}, ExtShared: true, Connected: []string{"T0AWAY"}})
	return w
}

func section(text string) string {
	b, _ := json.Marshal([]any{map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}}})
	return string(b)
}

func many(n, size int) string {
	var parts []string
	for range n {
		parts = append(parts, strings.Trim(section(strings.Repeat("a", size)), "[]"))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func TestCallsThatSlackRefuses(t *testing.T) {
	t.Parallel()
	post := func(channel, text string) args { return args{"channel": channel, "text": text} }
	cases := map[string]struct {
		route string
		args  args
		want  string
	}{
		"fine":                      {"chat.postMessage", post("C0GENERAL", "x"), "ok"},
		"unknown route":             {"chat.postMassage", post("C0GENERAL", "x"), "unknown_method"},
		"no token":                  {"chat.postMessage", args{"token": ""}, "not_authed"},
		"wrong token":               {"chat.postMessage", args{"token": "xoxb-other"}, "invalid_auth"},
		"app token for the Web API": {"auth.test", args{"token": "xapp-1-A0APP-test"}, "not_allowed_token_type"},
		"app token in the form":     {"apps.connections.open", args{"token": "xapp-1-A0APP-test"}, "not_authed"},
		"unknown channel":           {"chat.postMessage", post("C0NONE", "x"), "channel_not_found"},
		"public, not a member":      {"chat.postMessage", post("C0NOTIN", "x"), "not_in_channel"},
		"private, not a member":     {"chat.postMessage", post("C0SECRET", "x"), "channel_not_found"},
		"archived":                  {"chat.postMessage", post("C0OLD", "x"), "is_archived"},
		"read only":                 {"chat.postMessage", post("C0LOCKED", "x"), "restricted_action_read_only_channel"},
		"nothing to say":            {"chat.postMessage", post("C0GENERAL", ""), "no_text"},
		"long text is cut":          {"chat.postMessage", post("C0GENERAL", strings.Repeat("a", 40001)), "ok"},
		"blocks are not JSON":       {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": "["}, "invalid_blocks_format"},
		"section of 3001":           {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": section(strings.Repeat("a", 3001))}, "invalid_blocks"},
		"section of 1501 emoji":     {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": section(strings.Repeat("😀", 1501))}, "invalid_blocks"},
		"51 blocks":                 {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": many(51, 1)}, "invalid_blocks"},
		"13,200 in all":             {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": many(6, 2200)}, "ok"},
		"13,206 in all":             {"chat.postMessage", args{"channel": "C0GENERAL", "blocks": many(6, 2201)}, "msg_blocks_too_long"},
		"markdown and text":         {"chat.postMessage", args{"channel": "C0GENERAL", "text": "x", "markdown_text": "y"}, "markdown_text_conflict"},
		"markdown of 12,001":        {"chat.postMessage", args{"channel": "C0GENERAL", "markdown_text": strings.Repeat("a", 12001)}, "msg_too_long"},
		"metadata without a type":   {"chat.postMessage", args{"channel": "C0GENERAL", "text": "x", "metadata": `{"event_payload":{}}`}, "invalid_metadata_format"},

		"ephemeral to an absent member": {"chat.postEphemeral", args{"channel": "C0SECURITY", "user": "U0CYD", "text": "x"}, "user_not_in_channel"},
		"ephemeral to a deleted user":   {"chat.postEphemeral", args{"channel": "C0GENERAL", "user": "U0GONE", "text": "x"}, "user_not_in_channel"},
		"update of nothing":             {"chat.update", args{"channel": "C0GENERAL", "ts": "1.000000", "text": "x"}, "message_not_found"},
		"delete of nothing":             {"chat.delete", args{"channel": "C0GENERAL", "ts": "1.000000"}, "message_not_found"},
		"permalink of nothing":          {"chat.getPermalink", args{"channel": "C0GENERAL", "message_ts": "1.0"}, "message_not_found"},
		"stream without a thread":       {"chat.startStream", args{"channel": "C0GENERAL"}, "invalid_thread_ts"},
		"status without a thread":       {"assistant.threads.setStatus", args{"channel_id": "C0GENERAL", "status": "x"}, "invalid_thread_ts"},
		"reaction with a bad name":      {"reactions.add", args{"channel": "C0GENERAL", "name": ":eyes:", "timestamp": "1.0"}, "invalid_name"},

		"unknown user":         {"users.info", args{"user": "U0NONE"}, "user_not_found"},
		"hidden user":          {"users.info", args{"user": "U0HIDDEN"}, "user_not_visible"},
		"unknown address":      {"users.lookupByEmail", args{"email": "none@example.com"}, "users_not_found"},
		"address in capitals":  {"users.lookupByEmail", args{"email": "ADA@example.com"}, "ok"},
		"info on hidden":       {"conversations.info", args{"channel": "C0SECRET"}, "channel_not_found"},
		"info without joining": {"conversations.info", args{"channel": "C0NOTIN"}, "ok"},
		"history scope":        {"conversations.history", args{"channel": "C0GENERAL"}, "missing_scope"},
		"bad limit":            {"conversations.members", args{"channel": "C0GENERAL", "limit": "1000"}, "invalid_limit"},
		"bad cursor":           {"conversations.members", args{"channel": "C0GENERAL", "cursor": "???"}, "invalid_cursor"},
		"DM to a bot":          {"conversations.open", args{"users": "U0OTHER"}, "cannot_dm_bot"},
		"DM to the departed":   {"conversations.open", args{"users": "U0GONE"}, "user_disabled"},
		"group DM scope":       {"conversations.open", args{"users": "U0ADA,U0BOB"}, "missing_scope"},
		"unknown bot":          {"bots.info", args{"bot": "B0NONE"}, "bot_not_found"},
		"known bot":            {"bots.info", args{"bot": "B0OTHER"}, "ok"},
		"own team":             {"team.info", args{}, "ok"},
		"bad trigger":          {"views.open", args{"trigger_id": "x", "view": `{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[]}`}, "invalid_trigger_id"},
		"view without a title": {"views.open", args{"trigger_id": "x", "view": `{"type":"modal","blocks":[]}`}, "invalid_arguments"},
		"home of nobody":       {"views.publish", args{"user_id": "U0NONE", "view": `{"type":"home","blocks":[]}`}, "user_not_found"},
		"home":                 {"views.publish", args{"user_id": "U0ADA", "view": `{"type":"home","blocks":[]}`}, "ok"},
		"wrong client":         {"oauth.v2.access", args{"client_id": "x"}, "invalid_client_id"},
		"wrong refresh token": {"oauth.v2.access", args{
			"client_id": "1.2", "client_secret": "client-secret", "grant_type": "refresh_token", "refresh_token": "x",
		}, "invalid_refresh_token"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, world())
			if got := call(s, c.route, c.args).code(); got != c.want {
				t.Errorf("%s gives %q, want %q", c.route, got, c.want)
			}
			if reqs := s.Requests(c.route); len(reqs) != 1 {
				t.Errorf("%d requests recorded, want 1", len(reqs))
			}
		})
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	s.SetScopes("channels:read", "users:read")
	r := call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "x"})
	want := map[string]any{"ok": false, "error": "missing_scope", "needed": "chat:write", "provided": "channels:read,users:read"}
	if diff := cmp.Diff(want, r.Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got := r.Header.Get("X-OAuth-Scopes"); got != "channels:read,users:read" {
		t.Errorf("X-OAuth-Scopes is %q", got)
	}
	if got := call(s, "conversations.info", args{"channel": "C0SECURITY"}).Body["needed"]; got != "groups:read" {
		t.Errorf("private channel needs %v, want groups:read", got)
	}
	profile, _ := call(s, "users.info", args{"user": "U0ADA"}).Body["user"].(map[string]any)["profile"].(map[string]any)
	if _, ok := profile["email"]; ok {
		t.Error("email shown without users:read.email")
	}
}

func TestJSONBodies(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	send := func(body, header string) string {
		req, _ := http.NewRequest(http.MethodPost, s.APIURL()+"chat.postMessage", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		req.Header.Set("Authorization", header)
		return do(req).code()
	}
	good := "Bearer " + s.App().BotToken
	for _, c := range []struct{ name, body, header, want string }{
		{"token in the header", `{"channel":"C0GENERAL","text":"x","blocks":[{"type":"divider"}]}`, good, "ok"},
		{"token in the body", `{"channel":"C0GENERAL","text":"x","token":"xoxb-test-bot"}`, "", "not_authed"},
		{"broken", `{"channel":`, good, "invalid_json"},
	} {
		if got := send(c.body, c.header); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	req, _ := http.NewRequest(http.MethodGet, s.APIURL()+"chat.postMessage", nil)
	if r := do(req); r.Status != http.StatusMethodNotAllowed {
		t.Errorf("GET gives %d, want 405", r.Status)
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	parent := s.Say("U0ADA", "C0GENERAL", "hello")
	post := func(thread string) (string, map[string]any) {
		r := call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "x", "thread_ts": thread})
		m, _ := r.Body["message"].(map[string]any)
		return r.code(), m
	}
	_, first := post(parent.TS)
	if first["thread_ts"] != parent.TS {
		t.Errorf("reply has thread_ts %v", first["thread_ts"])
	}
	if code, _ := post(first["ts"].(string)); code != "cannot_reply_to_message" {
		t.Errorf("reply to a reply: %s", code)
	}
	s.Delete(parent)
	code, stray := post(parent.TS)
	if _, has := stray["thread_ts"]; code != "ok" || has {
		t.Errorf("reply to a deleted parent: %s %v, want ok without thread_ts", code, stray)
	}
	locked := s.Say("U0ADA", "C0GENERAL", "quiet")
	s.LockThread(locked)
	if code, _ := post(locked.TS); code != "restricted_action_thread_locked" {
		t.Errorf("locked thread: %s", code)
	}
}

func TestTimestampsIncreaseByChannel(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	a, b := s.Say("U0ADA", "C0GENERAL", "1"), s.Say("U0ADA", "C0GENERAL", "2")
	other := s.Say("U0ADA", "C0HELP", "3")
	if a.TS >= b.TS || other.TS != a.TS {
		t.Errorf("ts %s, %s and in another channel %s", a.TS, b.TS, other.TS)
	}
}

func TestStatusEndsWithAPostOrTwoMinutes(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	q := s.Say("U0ADA", "C0GENERAL", "hm")
	set := func() {
		if c := call(s, "assistant.threads.setStatus", args{"channel_id": "C0GENERAL", "thread_ts": q.TS, "status": "is looking"}).code(); c != "ok" {
			t.Fatalf("setStatus: %s", c)
		}
	}
	set()
	if s.Status("C0GENERAL", q.TS) != "is looking" || len(s.CheckInvariants()) != 1 {
		t.Errorf("status %q, invariants %v", s.Status("C0GENERAL", q.TS), s.CheckInvariants())
	}
	clock.Advance(2 * time.Minute)
	if got := s.Status("C0GENERAL", q.TS); got != "" {
		t.Errorf("status %q after two minutes", got)
	}
	set()
	call(s, "chat.postMessage", args{"channel": "C0GENERAL", "thread_ts": q.TS, "text": "x"})
	if got := s.Status("C0GENERAL", q.TS); got != "" {
		t.Errorf("status %q after a post", got)
	}
}

func TestEphemeralsAreNotStoredAndHideInQuietThreads(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	q := s.Say("U0ADA", "C0GENERAL", "hm")
	r := call(s, "chat.postEphemeral", args{"channel": "C0GENERAL", "user": "U0ADA", "text": "x", "thread_ts": q.TS})
	ts, _ := r.Body["message_ts"].(string)
	got := s.Ephemerals("U0ADA")
	if len(got) != 1 || got[0].Shown || s.VisibleTo("U0BOB", got[0]) || !s.VisibleTo("U0ADA", got[0]) {
		t.Errorf("ephemerals %+v", got)
	}
	if c := call(s, "chat.delete", args{"channel": "C0GENERAL", "ts": ts}).code(); c != "message_not_found" {
		t.Errorf("deleting an ephemeral message: %s", c)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	q := s.Say("U0ADA", "C0GENERAL", "hm")
	start := args{"channel": "C0GENERAL", "thread_ts": q.TS}
	for _, step := range []struct{ add, want string }{
		{"", "missing_recipient_user_id"}, {"recipient_user_id", "missing_recipient_team_id"}, {"recipient_team_id", "ok"},
	} {
		if step.add != "" {
			start[step.add] = "x"
		}
		if got := call(s, "chat.startStream", start).code(); got != step.want {
			t.Errorf("startStream: %s, want %s", got, step.want)
		}
	}
	m := s.FromBot("C0GENERAL")[0]
	at := args{"channel": "C0GENERAL", "ts": m.TS, "markdown_text": "a"}
	for _, step := range []struct{ route, want string }{
		{"chat.appendStream", "ok"}, {"chat.update", "streaming_state_conflict"}, {"chat.stopStream", "ok"},
		{"chat.appendStream", "message_not_in_streaming_state"},
	} {
		if got := call(s, step.route, at).code(); got != step.want {
			t.Errorf("%s: %s, want %s", step.route, got, step.want)
		}
	}
	if got := s.FromBot("C0GENERAL")[0].Text; got != "aa" {
		t.Errorf("streamed text %q", got)
	}
}

func TestPagesAreShortAndHaveCursors(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	var got []any
	cursor, pages := "", 0
	for {
		r := call(s, "conversations.members", args{"channel": "C0HELP", "limit": "3", "cursor": cursor})
		m, _ := r.Body["members"].([]any)
		got = append(got, m...)
		pages++
		cursor, _ = r.Body["response_metadata"].(map[string]any)["next_cursor"].(string)
		if cursor == "" {
			break
		}
		if len(m) >= 3 {
			t.Errorf("page %d is full; short pages are the trap", pages)
		}
	}
	if diff := cmp.Diff([]any{"U0BOT", "U0ADA", "U0BOB", "U0CYD", "U0DAN"}, got); diff != "" || pages < 2 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
}

func TestTokenRotation(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	old := s.App()
	refresh := args{"client_id": "1.2", "client_secret": "client-secret", "grant_type": "refresh_token", "refresh_token": old.RefreshToken}
	s.ExpireToken(old.BotToken)
	if got := call(s, "auth.test", args{"token": old.BotToken}).code(); got != "token_expired" {
		t.Errorf("expired token: %s", got)
	}
	fresh, _ := call(s, "oauth.v2.access", refresh).Body["access_token"].(string)
	if got := call(s, "auth.test", args{"token": fresh}).code(); got != "ok" {
		t.Errorf("fresh token: %s", got)
	}
	if got := call(s, "oauth.v2.access", refresh).code(); got != "invalid_refresh_token" {
		t.Errorf("second use of a refresh token: %s", got)
	}
	clean(t, s)
	clock.Advance(12 * time.Hour)
	for range 2 {
		if got := call(s, "auth.test", args{"token": fresh}).code(); got != "token_expired" {
			t.Errorf("after twelve hours: %s", got)
		}
	}
	if got := s.CheckInvariants(); len(got) != 1 || !strings.Contains(got[0], "dead") {
		t.Errorf("invariants after a second call with a dead token: %v", got)
	}
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock), slacktest.WithRateLimit("users.info", 2), slacktest.WithChannelLimit())
	for i, want := range []int{200, 200, 429} {
		if r := call(s, "users.info", args{"user": "U0ADA"}); r.Status != want {
			t.Errorf("call %d: status %d, want %d", i, r.Status, want)
		}
	}
	if got := call(s, "users.info", args{"user": "U0ADA"}).Header.Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q, want 60", got)
	}
	clock.Advance(time.Minute)
	if r := call(s, "users.info", args{"user": "U0ADA"}); r.Status != 200 {
		t.Errorf("after a minute: status %d", r.Status)
	}
	for i, c := range []struct {
		channel string
		want    int
	}{{"C0GENERAL", 200}, {"C0GENERAL", 200}, {"C0GENERAL", 200}, {"C0GENERAL", 429}, {"C0HELP", 200}} {
		if r := call(s, "chat.postMessage", args{"channel": c.channel, "text": "x"}); r.Status != c.want {
			t.Errorf("post %d in %s: status %d, want %d", i, c.channel, r.Status, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault   slacktest.Fault
		check   func(result) bool
		applied bool // the call took effect all the same
	}{
		"429 with a header":    {slacktest.Fault{Status: 429, RetryAfter: "7"}, func(r result) bool { return r.Status == 429 && r.Header.Get("Retry-After") == "7" }, false},
		"429 without a header": {slacktest.Fault{Status: 429}, func(r result) bool { return r.Status == 429 && r.Header.Get("Retry-After") == "" }, false},
		"200 but ratelimited":  {slacktest.Fault{Error: "ratelimited"}, func(r result) bool { return r.Status == 200 && r.code() == "ratelimited" }, false},
		"503":                  {slacktest.Fault{Status: 503}, func(r result) bool { return r.Status == 503 }, false},
		"HTML":                 {slacktest.Fault{Status: 502, Body: "<html>bad gateway"}, func(r result) bool { return r.Status == 502 && r.Failure != nil }, false},
		"reset before":         {slacktest.Fault{ResetBefore: true}, func(r result) bool { return r.Failure != nil }, false},
		"reset after":          {slacktest.Fault{ResetAfter: true}, func(r result) bool { return r.Failure != nil }, true},
		"500 after":            {slacktest.Fault{FailAfter: true}, func(r result) bool { return r.Status == 500 }, true},
		"no error code":        {slacktest.Fault{EmptyError: true}, func(r result) bool { _, has := r.Body["error"]; return r.Body["ok"] == false && !has }, false},
		"truncated":            {slacktest.Fault{Truncate: true}, func(r result) bool { return r.Status == 200 && r.Failure != nil && r.Raw[0] == '{' }, true},
		"malformed":            {slacktest.Fault{Malformed: true}, func(r result) bool { return r.Status == 200 && r.Failure != nil }, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, world())
			f := c.fault
			f.Route, f.Channel, f.Calls = "chat.postMessage", "C0GENERAL", slacktest.Nth(2)
			remove := s.AddFault(f)
			post := func(channel string) result { return call(s, "chat.postMessage", args{"channel": channel, "text": "x"}) }
			if got := post("C0HELP").code() + post("C0GENERAL").code(); got != "okok" {
				t.Fatalf("calls that the fault does not match: %s", got)
			}
			if r := post("C0GENERAL"); !c.check(r) {
				t.Errorf("faulty call: %+v", r)
			}
			want := 1
			if c.applied {
				want = 2
			}
			if got := len(s.Messages("C0GENERAL")); got != want {
				t.Errorf("%d messages, want %d", got, want)
			}
			remove()
			if got := post("C0GENERAL").code(); got != "ok" {
				t.Errorf("after the fault: %s", got)
			}
		})
	}
}

func TestLatencyFollowsTheClock(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	s.AddFault(slacktest.Fault{Route: "auth.test", Latency: 20 * time.Second})
	done := make(chan string, 1)
	go func() { done <- call(s, "auth.test", nil).code() }()
	clock.BlockUntil(1)
	if len(s.Requests("auth.test")) != 0 {
		t.Error("answered before the time")
	}
	clock.Advance(20 * time.Second)
	if got := <-done; got != "ok" {
		t.Errorf("late answer: %s", got)
	}
}

func TestChanceOfAFaultIsItsShare(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world(), slacktest.WithSeed(7))
	s.AddFault(slacktest.Fault{Route: "auth.test", Chance: 0.5, Status: 500})
	failed := 0
	for range 100 {
		if call(s, "auth.test", nil).Status == 500 {
			failed++
		}
	}
	if failed < 30 || failed > 70 {
		t.Errorf("%d of 100 calls failed, want about half", failed)
	}
}

func TestResponseURLs(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	s.UseHTTP(&slacktest.Webhook{})
	post := func(id, body string) result {
		req, _ := http.NewRequest(http.MethodPost, s.ResponseURL(id), strings.NewReader(body))
		return do(req)
	}
	a := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	for i := range 5 {
		if got := post(a.ID, `{"text":"x"}`).code(); got != "ok" {
			t.Errorf("use %d: %s", i, got)
		}
	}
	if r := post(a.ID, `{"text":"x"}`); r.code() != "used_url" || r.Status != 404 {
		t.Errorf("sixth use: %d %s", r.Status, r.code())
	}
	b := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	if got := post(b.ID, `{"blocks":[{"type":"nothing"}]}`).code(); got != "invalid_blocks" {
		t.Errorf("bad blocks: %s", got)
	}
	clock.Advance(31 * time.Minute)
	if got := post(b.ID, `{"text":"x"}`).code(); got != "expired_url" {
		t.Errorf("after half an hour: %s", got)
	}
	if got := len(s.ResponseURLPosts()); got != 8 {
		t.Errorf("%d posts recorded, want 8", got)
	}
	if got := strings.Join(s.CheckInvariants(), "\n"); !strings.Contains(got, "more than 5") || !strings.Contains(got, "after it expired") {
		t.Errorf("invariants do not tell of dead addresses:\n%s", got)
	}
}

func TestTriggersLastThreeSeconds(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, world(), slacktest.WithClock(clock))
	s.UseHTTP(&slacktest.Webhook{})
	view := `{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[]}`
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	clock.Advance(3100 * time.Millisecond)
	if got := call(s, "views.open", args{"trigger_id": i.Trigger, "view": view}).code(); got != "expired_trigger_id" {
		t.Errorf("late trigger: %s", got)
	}
}

func TestModalsStackUpdateAndSubmit(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	k := dial(t, s)
	view := func(title string) string {
		return `{"type":"modal","notify_on_close":true,"title":{"type":"plain_text","text":"` + title +
			`"},"submit":{"type":"plain_text","text":"Send"},"blocks":[{"type":"input","block_id":"why","label":{"type":"plain_text","text":"Why?"},
			"element":{"type":"plain_text_input","action_id":"text"}}]}`
	}
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	k.ack(k.next("slash_commands"), nil)
	if got := call(s, "views.open", args{"trigger_id": i.Trigger, "view": view("one")}).code(); got != "ok" {
		t.Fatalf("views.open: %s", got)
	}
	v := s.WaitView("U0ADA", slacktest.Any)
	if got := call(s, "views.update", args{"view_id": v.ID, "hash": "old", "view": view("two")}).code(); got != "hash_conflict" {
		t.Errorf("update with an old hash: %s", got)
	}
	if got := call(s, "views.update", args{"view_id": v.ID, "hash": v.Hash, "view": view("two")}).code(); got != "ok" {
		t.Errorf("update: %s", got)
	}
	sub := s.SubmitView("U0ADA", v, map[string]map[string]any{"why": {"text": "too long"}})
	e := k.next("interactive")
	if !strings.Contains(string(e.Payload), `"value":"too long"`) {
		t.Errorf("submission without its value: %s", e.Payload)
	}
	k.ack(e, json.RawMessage(`{"response_action":"errors","errors":{"why":"no"}}`))
	sub.Wait()
	if got := s.Views("U0ADA"); len(got) != 1 || got[0].Title != "two" {
		t.Errorf("after errors: %+v", got)
	}
	s.SubmitView("U0ADA", v, nil)
	k.ack(k.next("interactive"), nil)
	s.Eventually("the modal to close", func() bool { return len(s.Views("U0ADA")) == 0 })
	if diff := cmp.Diff([]string{"why: no"}, s.UserErrors("U0ADA")); diff != "" {
		t.Errorf("user errors (-want +got):\n%s", diff)
	}
	clean(t, s)
}
