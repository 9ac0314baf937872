package slack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/bot/clocktest"
	"footnote/bot/generate"
)

// asked asks and waits for the one answer: the connection works.
func (p *program) works() {
	p.t.Helper()
	p.answer(p.s.Mention("U0ADA", "C0GENERAL", qHandbook))
}

// Whatever happens to sockets, the next question is answered.
func TestSocketsAreReplaced(t *testing.T) {
	t.Parallel()
	cases := map[string]func(s *slacktest.Server){
		"S-17 refresh_requested":      func(s *slacktest.Server) { s.Disconnect("refresh_requested") },
		"S-17 warning":                func(s *slacktest.Server) { s.Disconnect("warning") },
		"S-17 a reason of the future": func(s *slacktest.Server) { s.Disconnect("tea_break") },
		"S-18 cut without a word":     func(s *slacktest.Server) { s.CloseSockets() },
		"S-16 never greeted":          func(s *slacktest.Server) { s.OnDial(slacktest.DialDrop, 1); s.CloseSockets() },
		"refused once":                func(s *slacktest.Server) { s.OnDial(slacktest.DialRefuse, 1); s.CloseSockets() },
		"B-49 apps.connections.open is limited": func(s *slacktest.Server) {
			s.AddFault(slacktest.Fault{Route: "apps.connections.open", Calls: slacktest.First(1), Status: 429, RetryAfter: "1"})
			s.CloseSockets()
		},
		"apps.connections.open fails once": func(s *slacktest.Server) {
			s.AddFault(slacktest.Fault{Route: "apps.connections.open", Calls: slacktest.First(1), Status: 500})
			s.CloseSockets()
		},
		"S-24 B-11 cut during acknowledgements": func(s *slacktest.Server) { s.KillOnAck(1); s.Mention("U0BOB", "C0HELP", qLeaflet) },
		"S-21 B-12 silence":                     func(s *slacktest.Server) { s.Silence() },
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t, slacktest.WithPingEvery(50*time.Millisecond))
			p := start(t, s, newStore(t, handbook, leaflet), with(func(c *slack.Config) { c.Silence = 400 * time.Millisecond }))
			f(s)
			opens := len(s.Requests("apps.connections.open"))
			s.Eventually("another socket", func() bool { return len(s.Requests("apps.connections.open")) > opens || opens > 1 })
			s.Eventually("it to be open", func() bool { return s.Sockets() >= 1 })
			p.works()
			p.quiet()
		})
	}
}

func TestCase_D11(t *testing.T) {
	t.Parallel()
	t.Run("B-08 B-29 silence, then refusals", func(t *testing.T) {
		s := fresh(t, slacktest.WithPingEvery(30*time.Millisecond))
		p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Silence = 300 * time.Millisecond }))
		s.OnDial(slacktest.DialRefuse, 3)
		s.Silence()
		s.Eventually("a socket after silence and refusals", func() bool { return len(s.Requests("socket")) >= 5 && s.Sockets() >= 1 })
		p.works()
		p.quiet()
		seen := map[string]bool{}
		for _, r := range s.Requests("apps.connections.open") {
			seen[r.Header.Get("Authorization")] = true
		}
		if len(seen) != 1 {
			t.Errorf("tokens %v", seen)
		}
	})
}

// S-15: an address is used once; the fake counts a second use as a violation,
// which every test checks. S-19: an event between sockets is not lost.
func TestS19S15B01AnEventBetweenSocketsIsAnswered(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	s.OnDial(slacktest.DialRefuse, 2)
	s.CloseSockets()
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	p.answer(q)
	p.done()
	for _, f := range s.Frames() {
		if f.Type == "events_api" && f.Retry == 0 {
			t.Error("the event was not marked as a retry: the test tests nothing")
		}
	}
}

// LS-01: a server that accepts and hangs up is not stormed.
func TestLS01B29NoStormOfOpens(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := prepare(t, s, newStore(t))
	s.OnDial(slacktest.DialDrop, -1)
	p.run()
	opens := s.WaitRequests("apps.connections.open", 5)
	if gap := opens[4].At.Sub(opens[2].At); gap < 900*time.Millisecond {
		t.Errorf("three opens within %s", gap)
	}
}

// LS-02: pings alone keep a socket.
func TestLS02B28PingsKeepASocket(t *testing.T) {
	t.Parallel()
	s := fresh(t, slacktest.WithPingEvery(50*time.Millisecond))
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Silence = time.Second }))
	until := time.Now().Add(2200 * time.Millisecond)
	s.Eventually("time to pass", func() bool { return time.Now().After(until) || nudge(s) })
	p.works()
	if n := len(s.Requests("apps.connections.open")); n != 1 {
		t.Errorf("%d sockets were opened", n)
	}
}

// LS-03, LS-05, S-17, S-23: what is permanent ends Run with its name.
func TestLS05S23PermanentFailuresEndWithTheirName(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_auth", "account_inactive", "token_revoked", "not_authed", "missing_scope", "not_allowed_token_type", "token_expired", "forbidden_team", "link_disabled"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			p := prepare(t, s, newStore(t))
			s.FailOpen(code)
			p.run()
			select {
			case err := <-p.ran:
				if err == nil || !strings.Contains(err.Error(), code) || len(err.Error()) < len(code)+30 {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(40 * time.Second):
				t.Fatal("goes on")
			}
			if n := len(s.Requests("apps.connections.open")); n != 1 {
				t.Errorf("tried %d times", n)
			}
			if h := p.adapter.Health(); h.Fatal == "" {
				t.Error("health does not say so")
			}
		})
	}
}

func TestLS03B10LinkDisabledEnds(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t))
	s.Disconnect("link_disabled")
	select {
	case err := <-p.ran:
		if err == nil || !strings.Contains(err.Error(), "Socket Mode is switched off") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("goes on")
	}
}

// LS-04: what cannot be read is acknowledged, and a mention among it answered.
func TestLS04UnreadableEnvelopesAreAcknowledged(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := fresh(t, slacktest.WithClock(clock))
	p := start(t, s, newStore(t, handbook))
	s.Deliver("", s.Fixture("event_an_event_of_the_future"))
	s.Deliver("events_of_the_future", json.RawMessage(`{"x":1}`))
	s.Deliver("interactive", json.RawMessage(`{"type":7,"user":"none","actions":"none"}`))
	s.Deliver("slash_commands", json.RawMessage(`{"command":7}`))
	s.Deliver("", s.Fixture("event_app_mention_mismatch")) // a mention with fields of the wrong type
	s.SendFrame(json.RawMessage(`{"type":"hello","num_connections":"many"}`))
	s.SendFrame(json.RawMessage(`["not","an","object"]`))
	s.WaitMessage("C0GENERAL", func(m msg) bool { return m.BotID == "B0BOT" || nudge(s) })
	p.quiet()
	for _, v := range s.CheckInvariants() {
		if strings.Contains(v, "acknowledged") {
			t.Error(v)
		}
	}
	if s.Sockets() != 1 {
		t.Error("the socket was lost")
	}
}

// LS-06: ok:false without a code is a failure, and the question is not lost.
func TestLS06FailureWithoutACode(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.AddFault(slacktest.Fault{Route: "chat.postMessage", Calls: slacktest.First(1), EmptyError: true})
	historyScopes(s)
	p := start(t, s, newStore(t, handbook))
	p.works()
	p.quiet()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// historyScopes lets the bot look for its own messages.
func historyScopes(s *slacktest.Server) *slacktest.Server {
	s.SetScopes(append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)...)
	return s
}

// LS-07: acknowledgements go to the socket that the envelope came from or
// nowhere, and a lost socket blocks nothing. The fake counts wrong ones.
func TestLS07AcknowledgementsOfALostSocketBlockNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	for range 30 {
		s.Touch(s.Say("U0ADA", "C0HELP", "x"))
		s.Emit(map[string]any{"type": "member_joined_channel", "user": "U0ADA", "channel": "C0GENERAL"})
	}
	s.CloseSockets()
	p.works()
	p.done()
}

// LS-08: nothing is logged that people write, and no reconnects are asked for
// debugging.
func TestLS08NoDebugging(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	p.works()
	p.done() // looks for canaries in the logs
	for _, r := range s.Requests("socket") {
		if r.Args["debug_reconnects"] != "" {
			t.Error("a debugging connection was asked for")
		}
	}
}

// LS-09: one text, and blocks that are never an empty list by accident.
func TestLS09S74P43OneTextAMessage(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	p.works()
	p.done()
	for _, r := range s.Requests("chat.postMessage") {
		if r.Args["text"] == "" || r.Args["blocks"] == "" || r.Args["blocks"] == "[]" || r.Args["unfurl_links"] != "false" || r.Args["unfurl_media"] != "false" || r.Args["link_names"] != "" {
			t.Errorf("%v", r.Args)
		}
	}
}

// LS-10: the app token travels in the header alone.
func TestLS10TokenInTheHeader(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	start(t, s, newStore(t))
	for _, r := range s.Requests("apps.connections.open") {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer xapp-") || r.Args["token"] != "" {
			t.Errorf("%v %v", r.Header, r.Args)
		}
	}
}

// LS-11, S-110: a token that expires is renewed once, and the answer posted.
func TestLS11S110TokenIsSwapped(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	renewals := make(chan string, 10)
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) {
		c.Renew = func(ctx context.Context) (string, error) {
			renewals <- "x"
			return renew(ctx, s)
		}
	}))
	p.works()
	p.quiet()
	s.ExpireToken(s.App().BotToken)
	p.answer(s.Mention("U0BOB", "C0GENERAL", qHandbook))
	p.quiet()
	if len(renewals) != 1 {
		t.Errorf("renewed %d times", len(renewals))
	}
}

// LS-12, C-08: a panic while answering is told, and the process lives.
func TestLS12C08PanicsAreCaught(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), drafting(func(ctx context.Context, r generate.Request) (generate.Draft, error) {
		if strings.Contains(r.Question, "employees") {
			panic("vacation tiramisu")
		}
		return verbatim(ctx, r)
	}))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	m := s.WaitMessage("C0GENERAL", func(m msg) bool { return m.BotID == "B0BOT" })
	if m.ThreadTS != q.TS || !strings.Contains(m.Text, "Reference") {
		t.Errorf("said %+v", m)
	}
	p.answer(s.Mention("U0BOB", "C0GENERAL", "When does the canteen open?"))
	p.done()
}

// LS-13, C-07: a stop in the middle leaves no sign and loses nothing.
func TestLS13AStopLosesNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	block, let := make(chan struct{}), make(chan struct{})
	p := start(t, s, newStore(t, handbook), drafting(gated(block, let)))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	<-block
	s.WaitSettled()
	p.options.Grace = time.Millisecond
	stopped := make(chan struct{})
	go func() { p.halt(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("does not stop")
	}
	if st := s.Status(q.Channel, q.TS); st != "" {
		t.Errorf("left the status %q", st)
	}
	close(let)
	p.s.WaitSockets(0)
	p.run()
	p.connected()
	p.answer(q)
	p.done()
	if n := answers(s.Everything(q.Channel)); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// LS-14 … LS-16 are of parts of the library that are not used: its event
// parser, its own fake and its downloads. The first is held here: a legacy
// verification token decides nothing.
func TestLS14TheVerificationTokenDecidesNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t, slacktest.WithClock(clocktest.NewManualClock(time.Time{})))
	p := start(t, s, newStore(t, handbook))
	var f map[string]any
	if err := json.Unmarshal(s.Fixture("event_app_mention"), &f); err != nil {
		t.Fatal(err)
	}
	f["token"] = "another"
	b, _ := json.Marshal(f)
	s.Deliver("", b)
	s.Eventually("the question to be taken", func() bool {
		list, err := p.ledger.Of(t.Context(), "slack|T0HOME|U0ADA", 1)
		return err == nil && len(list) == 1 || nudge(s)
	})
}

// hosts notes where requests go.
type hosts struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.seen[r.URL.Host] = true
	h.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// LS-15: the fake that the tests run against is not the library's, which
// greets nobody: it says hello and pings, so that one socket is enough.
func TestLS15B16TheFakeGreetsAndPings(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	p.works()
	p.quiet()
	if h := p.adapter.Health(); h.Connected.IsZero() || h.Reconnects != 0 || h.AckP99 == 0 {
		t.Errorf("%+v", h)
	}
	acks := 0
	for _, f := range s.Frames() { // hello is not acknowledged
		if f.Type == "ack" {
			acks++
			if !strings.Contains(string(f.Body), `"envelope_id":"0`) {
				t.Errorf("acknowledged %s", f.Body)
			}
		}
	}
	if acks != len(s.Acks()) || acks == 0 {
		t.Errorf("%d acknowledgements of %d deliveries", acks, len(s.Acks()))
	}
}

// LS-16: files are not fetched, so no token goes where a file lies.
func TestLS16B54NothingIsFetchedFromElsewhere(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	h := &hosts{seen: map[string]bool{}}
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.HTTP = &http.Client{Transport: h} }))
	q := s.FileShare("U0ADA", s.DMChannel("U0ADA"), qHandbook)
	if text := shown(p.answer(q)); !strings.Contains(text, "not the files") {
		t.Errorf("answered %s", text)
	}
	s.Slash("U0ADA", "C0GENERAL", "/ask", qHandbook)
	s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	p.done()
	u, _ := url.Parse(s.APIURL())
	if len(h.seen) != 1 || !h.seen[u.Host] {
		t.Errorf("asked %v", h.seen)
	}
}

// LS-17: the library breaks something every month. A change of its version
// must come with a look at its changes, then this line.
func TestLS17TheLibraryIsPinned(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil || !strings.Contains(string(b), "github.com/slack-go/slack v0.36.0") {
		t.Errorf("go.mod has another slack-go: read its CHANGELOG, then change this test; %v", err)
	}
}

// What ends one method does not end the bot.
func TestARefusedMethodEndsNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, r := range []string{"assistant.threads.setStatus", "reactions.add", "views.publish"} {
		s.AddFault(slacktest.Fault{Route: r, Error: "not_allowed_token_type"})
	}
	p := start(t, s, newStore(t, handbook))
	s.OpenHome("U0ADA")
	p.works()
	p.quiet()
	if h := p.adapter.Health(); h.Fatal != "" {
		t.Error(h.Fatal)
	}
}

// LS-18, B-12: an outage is outlasted, and tried again long before five minutes.
func TestLS18AnOutageIsOutlasted(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	remove := s.AddFault(slacktest.Fault{Route: "apps.connections.open", ResetBefore: true})
	s.CloseSockets()
	s.WaitRequests("apps.connections.open", 3)
	remove()
	p.s.WaitSockets(1)
	p.works()
}

func TestS16AnotherAppsTokenIsFatal(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.HelloAppID("A0OTHER")
	p := prepare(t, s, newStore(t), with(func(c *slack.Config) { c.AppID = "A0APP" }))
	p.run()
	select {
	case err := <-p.ran:
		if err == nil || !strings.Contains(err.Error(), "A0OTHER") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("goes on")
	}
}

func TestS16B15SharedAppIsWarnedOf(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.ForeignSockets(1)
	p := start(t, s, newStore(t))
	s.Eventually("a warning", func() bool { return strings.Contains(p.logs.String(), "another process") || nudge(s) })
}

func TestS17B09TooManySocketsIsWaitedOut(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.ForeignSockets(10)
	p := prepare(t, s, newStore(t))
	p.run()
	s.WaitRequests("socket", 1)
	until := time.Now().Add(300 * time.Millisecond)
	s.Eventually("time to pass", func() bool { return time.Now().After(until) || nudge(s) })
	if n := len(s.Requests("apps.connections.open")); n != 1 {
		t.Errorf("%d opens at once", n)
	}
}

// S-20: two sockets, each payload on one of them, copies on both.
func TestS20B13B14TwoSocketsOfOneApp(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	s.Disconnect("warning") // another one is opened beside the old
	s.WaitSockets(2)
	for range 6 {
		s.Mention("U0CYD", "C0GENERAL", qHandbook, slacktest.Delivery{NewIDs: 2})
		p.quiet()
	}
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 6 {
		t.Errorf("%d answers", n)
	}
}

// S-22, S-09: while the generator hangs, deliveries are acknowledged.
func TestS22B17AcknowledgedWhileTheModelWorks(t *testing.T) {
	t.Parallel()
	s := fresh(t, slacktest.WithPingEvery(20*time.Millisecond))
	block, let := make(chan struct{}, 100), make(chan struct{})
	p := start(t, s, newStore(t, handbook), drafting(gated(block, let)), with(func(c *slack.Config) { c.Silence = 5 * time.Second }))
	for _, u := range []string{"U0ADA", "U0BOB", "U0CYD"} {
		for range 3 {
			s.Mention(u, "C0GENERAL", qHandbook)
		}
	}
	s.WaitSettled() // all are acknowledged while the generator waits
	if s.Sockets() != 1 || len(s.Requests("apps.connections.open")) != 1 {
		t.Error("the socket was lost")
	}
	close(let)
	p.done()
}

// S-25: what the ledger did not take is not acknowledged, and comes again.
func TestCase_L6(t *testing.T) {
	t.Parallel()
	t.Run("S-25 nothing is acknowledged that is not kept", func(t *testing.T) {
		s := fresh(t)
		p := start(t, s, newStore(t, handbook))
		_ = p.ledger.Close()
		s.Mention("U0ADA", "C0GENERAL", qHandbook)
		ack := string(s.Slash("U0ADA", "C0GENERAL", "/ask", qHandbook).Wait())
		if !strings.Contains(ack, "try again") {
			t.Errorf("acknowledged %s", ack)
		}
		for _, f := range s.Frames() {
			if f.Type == "ack" && !strings.Contains(string(f.Body), "try again") {
				t.Errorf("acknowledged %s", f.Body)
			}
		}
	})
}

// Wrong tokens are named before any call is made.
func TestS03SwappedTokensAreNamed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*slack.Config)
		want   string
	}{
		"no bot token":              {func(c *slack.Config) { c.BotToken = "" }, "FOOTNOTE_SLACK_BOT_TOKEN is not set"},
		"app token as bot's":        {func(c *slack.Config) { c.BotToken = "xapp-1" }, "FOOTNOTE_SLACK_BOT_TOKEN holds an app token"},
		"S-111 user token as bot's": {func(c *slack.Config) { c.BotToken = "xoxp-1" }, "FOOTNOTE_SLACK_BOT_TOKEN holds a user token"},
		"no app token":              {func(c *slack.Config) { c.AppToken = "  " }, "FOOTNOTE_SLACK_APP_TOKEN is not set"},
		"bot token as app's":        {func(c *slack.Config) { c.AppToken = "xoxb-1" }, "FOOTNOTE_SLACK_APP_TOKEN holds a bot"},
		"S-05 no secret":            {func(c *slack.Config) { c.Mode, c.SigningSecret = slack.HTTP, "" }, "FOOTNOTE_SLACK_SIGNING_SECRET is not set"},
		"TestCase_D19 a blank":      {func(c *slack.Config) { c.Mode, c.SigningSecret = slack.HTTP, " \t" }, "FOOTNOTE_SLACK_SIGNING_SECRET is not set"},
		"S-02 both and no mode":     {func(c *slack.Config) { c.Mode = "" }, "are both set"},
		"S-02 an unknown mode":      {func(c *slack.Config) { c.Mode = "both" }, "must be socket or http"},
		"address without host":      {func(c *slack.Config) { c.APIURL = "slack" }, "slack.api_url"},
		"channel mode":              {func(c *slack.Config) { c.Channels = map[string]slack.Channel{"C1": {Answer: "loud"}} }, "slack.channels.C1.answer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := slack.Config{Mode: slack.Socket, BotToken: "xoxb-1", AppToken: "xapp-1", SigningSecret: "s"}
			c.change(&cfg)
			if _, err := slack.New(cfg, slack.Deps{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestS94MissingScopesAreNamed(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.SetScopes("chat:write", "app_mentions:read")
	p := prepare(t, s, newStore(t))
	p.run()
	select {
	case err := <-p.ran:
		if err == nil || !strings.Contains(err.Error(), "im:history") || !strings.Contains(err.Error(), "OAuth & Permissions") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("goes on")
	}
	problems := 0
	for _, f := range p.adapter.Check(t.Context()) {
		if f.Weight == bot.Problem && f.Do != "" {
			problems++
		}
	}
	if problems < 5 {
		t.Errorf("doctor finds %d problems", problems)
	}
}

func TestCheckFindsNothingWrong(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := prepare(t, s, newStore(t))
	p.run()
	for _, f := range p.adapter.Check(t.Context()) {
		if f.Weight != bot.Good {
			t.Errorf("%+v", f)
		}
	}
	s.KillToken(s.App().AppToken, "invalid_auth")
	found := p.adapter.Check(t.Context())
	if f := found[len(found)-2]; f.Weight != bot.Problem || !strings.Contains(f.Do, "token") {
		t.Errorf("%+v", f)
	}
}

// A token that could not be asked about is not called a bad one.
func TestCheckTellsAnOutageFromABadToken(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := prepare(t, s, newStore(t))
	p.run()
	s.AddFault(slacktest.Fault{Route: "auth.test", Status: 503})
	if found := p.adapter.Check(t.Context()); len(found) != 1 || strings.Contains(found[0].What, "take") || !strings.Contains(found[0].Do, "slack.api_url") {
		t.Errorf("an outage: %+v", found)
	}
	s = fresh(t)
	p = prepare(t, s, newStore(t))
	p.run()
	s.KillToken(s.App().BotToken, "invalid_auth")
	if found := p.adapter.Check(t.Context()); len(found) != 1 || !strings.Contains(found[0].What, "does not take FOOTNOTE_SLACK_BOT_TOKEN") {
		t.Errorf("a bad token: %+v", found)
	}
}

func TestSlackOutageAtTheStartIsOutlasted(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	s.AddFault(slacktest.Fault{Route: "auth.test", Calls: slacktest.First(6), Status: 503})
	p := start(t, s, newStore(t, handbook))
	p.works()
}

// C-10: health says what an operator asks for, and a connection that is dead is
// not called one.
func TestC10Health(t *testing.T) {
	t.Parallel()
	s := fresh(t, slacktest.WithPingEvery(30*time.Millisecond))
	s.AddFault(slacktest.Fault{Route: "chat.postMessage", Calls: slacktest.First(1), Status: 429, RetryAfter: "1"})
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Silence = 3 * time.Second }))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook, slacktest.Delivery{NewIDs: 2})
	p.answer(q)
	p.quiet()
	h, d := p.adapter.Health(), p.desk.Health()
	if h.Connected.IsZero() || h.Last.IsZero() || h.AckP99 <= 0 || h.Limited != 1 || h.Fatal != "" || h.Waiting != 0 {
		t.Errorf("%+v", h)
	}
	if in := d.Platforms[slack.Platform]; in.Duplicates != 2 || in.Received != 3 || in.Last.IsZero() {
		t.Errorf("%+v", in)
	}
	s.OnDial(slacktest.DialRefuse, -1)
	s.Silence()
	s.Eventually("the silence to be noticed", func() bool { return p.adapter.Health().Connected.IsZero() || nudge(s) })
}

// S-99: an acknowledgement carries nothing where Slack accepts nothing.
func TestS99NoPayloadWhereNoneIsAccepted(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	for id, accepts := range map[string]string{"e-yes": "true", "e-no": "false"} {
		s.SendFrame(json.RawMessage(`{"type":"slash_commands","envelope_id":"` + id + `","accepts_response_payload":` + accepts +
			`,"payload":{"command":"/footnote","text":"help","user_id":"U0ADA","team_id":"T0HOME"}}`))
		s.Eventually("an acknowledgement", func() bool {
			return slices.ContainsFunc(s.Frames(), func(f slacktest.Frame) bool {
				return f.Type == "ack" && strings.Contains(string(f.Body), id) && strings.Contains(string(f.Body), "payload") == (accepts == "true")
			})
		})
	}
	p.quiet()
}

// What cannot be read is acknowledged and noted, without a word of what it said.
func TestLS04WhatCannotBeReadIsNoted(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t), over(slack.HTTP))
	for _, path := range []string{"/slack/interactions", "/slack/commands"} {
		body := "payload=" + url.QueryEscape(`["vacation"]`)
		a := send(t, s, slacktest.Post{URL: p.web.URL + path, ContentType: "application/x-www-form-urlencoded", Body: []byte(body)})
		if a.Status != http.StatusOK {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
	if logs := p.logs.String(); strings.Count(logs, "an interaction could not be read") != 1 {
		t.Errorf("logged %s", logs)
	}
	p.canary()
}

func TestS105ABotThatIsInvitedSaysNothing(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.AddChannel(slacktest.Channel{Name: "elsewhere", Members: []string{"U0ADA"}})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, handbook))
	s.Join("U0BOT", "C0ELSEWHERE")
	p.answer(s.Mention("U0ADA", "C0ELSEWHERE", qHandbook))
	p.done()
	if n := len(s.FromBot("C0ELSEWHERE")); n != 1 {
		t.Errorf("said %d things", n)
	}
}
