package slacktest_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"footnote/adapters/slack/slacktest"
)

// bot is a small app on the real library: it acknowledges everything and
// answers mentions and direct messages in their thread.
type bot struct {
	api    *slack.Client
	socket *socketmode.Client
	mu     sync.Mutex
	done   map[string]bool
}

func startBot(t *testing.T, s *slacktest.Server, opts ...socketmode.Option) *bot {
	t.Helper()
	a := s.App()
	api := slack.New(a.BotToken, slack.OptionAPIURL(s.APIURL()), slack.OptionAppLevelToken(a.AppToken))
	b := &bot{api: api, socket: socketmode.New(api, opts...), done: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.socket.RunContext(ctx) })
	wg.Go(func() {
		for {
			select {
			case e := <-b.socket.Events:
				b.handle(ctx, e)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return b
}

func (b *bot) handle(ctx context.Context, e socketmode.Event) {
	switch {
	case e.Request != nil && e.Request.EnvelopeID != "":
		ackCtx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = b.socket.AckCtx(ackCtx, e.Request.EnvelopeID, nil)
	case e.Type == socketmode.EventTypeErrorBadMessage:
		var env struct {
			ID string `json:"envelope_id"`
		}
		bad, _ := e.Data.(*socketmode.ErrorBadMessage)
		if json.Unmarshal(bad.Message, &env) == nil && env.ID != "" {
			_ = b.socket.AckCtx(ctx, env.ID, nil)
		}
	}
	ev, ok := e.Data.(slackevents.EventsAPIEvent)
	if !ok {
		return
	}
	switch in := ev.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		b.answer(in.Channel, in.TimeStamp, in.ThreadTimeStamp, in.BotID)
	case *slackevents.MessageEvent:
		if in.SubType == "" && in.ChannelType == "im" {
			b.answer(in.Channel, in.TimeStamp, in.ThreadTimeStamp, in.BotID)
		}
	}
}

func (b *bot) answer(channel, ts, thread, botID string) {
	b.mu.Lock()
	seen := b.done[channel+ts]
	b.done[channel+ts] = true
	b.mu.Unlock()
	if seen || botID != "" {
		return
	}
	if thread == "" {
		thread = ts
	}
	_, _, _ = b.api.PostMessage(channel, slack.MsgOptionTS(thread), slack.MsgOptionText("an answer", true),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(), slack.MsgOptionBlocks(buttons()))
}

func buttons() slack.Block {
	return slack.NewActionBlock("feedback", slack.NewButtonBlockElement("helpful", "id", slack.NewTextBlockObject("plain_text", "Helpful", false, false)))
}

// frames counts what went over the wire under the type.
func frames(s *slacktest.Server, kind string) int {
	n := 0
	for _, f := range s.Frames() {
		if f.Type == kind {
			n++
		}
	}
	return n
}

func clean(t *testing.T, s *slacktest.Server) {
	t.Helper()
	if diff := cmp.Diff([]string(nil), s.CheckInvariants()); diff != "" {
		t.Errorf("invariants (-want +got):\n%s", diff)
	}
}

func TestRealClientAnswersInThread(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*slacktest.Server) slacktest.Message{
		"mention in a channel": func(s *slacktest.Server) slacktest.Message { return s.Mention("U0ADA", "C0GENERAL", "how long?") },
		"direct message":       func(s *slacktest.Server) slacktest.Message { return s.DM("U0ADA", "how long?") },
		"three copies, new ids": func(s *slacktest.Server) slacktest.Message {
			return s.Mention("U0ADA", "C0GENERAL", "how?", slacktest.Delivery{Copies: 1, NewIDs: 1})
		},
		"only a retry": func(s *slacktest.Server) slacktest.Message {
			return s.Mention("U0ADA", "C0GENERAL", "how?", slacktest.Delivery{RetryNum: 1})
		},
		"message event before the mention": func(s *slacktest.Server) slacktest.Message {
			return s.Mention("U0ADA", "C0GENERAL", "how?", slacktest.Delivery{Both: true, MessageFirst: true})
		},
	}
	for name, ask := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, slacktest.DemoWorld())
			startBot(t, s)
			s.WaitSockets(1)
			q := ask(s)
			got := s.WaitMessage(q.Channel, func(m slacktest.Message) bool { return m.BotID == "B0BOT" })
			if got.ThreadTS != q.TS {
				t.Errorf("answer has thread_ts %q, want %q", got.ThreadTS, q.TS)
			}
			s.WaitSettled()
			clean(t, s)
		})
	}
}

func TestEveryFixtureReachesTheRealClientAndIsAcknowledged(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	startBot(t, s)
	s.WaitSockets(1)
	names := slacktest.Fixtures()
	if len(names) < 80 {
		t.Fatalf("only %d fixtures", len(names))
	}
	for _, n := range names {
		s.Deliver("", s.Fixture(n))
	}
	s.Deliver("a_type_of_the_future", json.RawMessage(`{"x":1}`))
	s.WaitSettled()
	if s.Lost() != 0 {
		t.Errorf("%d fixtures were never acknowledged", s.Lost())
	}
	if acks := s.Acks(); len(acks) != len(names)+1 {
		t.Errorf("%d acknowledgements for %d fixtures", len(acks), len(names)+1)
	}
}

func TestRealClientSurvivesItsSocket(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*slacktest.Server){
		"refresh requested": func(s *slacktest.Server) { s.Disconnect("refresh_requested") },
		"cut":               func(s *slacktest.Server) { s.CloseSockets() },
		"half-open":         func(s *slacktest.Server) { s.Silence() },
		"refused twice":     func(s *slacktest.Server) { s.OnDial(slacktest.DialRefuse, 2); s.CloseSockets() },
		"dropped twice":     func(s *slacktest.Server) { s.OnDial(slacktest.DialDrop, 2); s.CloseSockets() },
		"no hello once": func(s *slacktest.Server) {
			s.OnDial(slacktest.DialNoHello, 1)
			s.CloseSockets()
			s.OnDial(slacktest.DialOK, 0)
		},
	}
	for name, hurt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, slacktest.DemoWorld(), slacktest.WithPingEvery(20*time.Millisecond))
			startBot(t, s, socketmode.OptionPingInterval(200*time.Millisecond))
			s.WaitSockets(1)
			hurt(s)
			s.Eventually("a second hello", func() bool { return frames(s, "hello") >= 2 })
			q := s.Mention("U0ADA", "C0GENERAL", "still there?")
			s.WaitMessage("C0GENERAL", func(m slacktest.Message) bool { return m.ThreadTS == q.TS })
			s.WaitSettled()
		})
	}
}

func TestEventWithoutASocketArrivesAsARetryAfterReconnect(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	q := s.Mention("U0ADA", "C0GENERAL", "anybody?")
	startBot(t, s)
	s.WaitMessage("C0GENERAL", func(m slacktest.Message) bool { return m.ThreadTS == q.TS })
	for _, f := range s.Frames() {
		if f.Type == "events_api" && f.Retry != 1 {
			t.Errorf("delivered with retry_attempt %d, want 1", f.Retry)
		}
	}
	clean(t, s)
}

func TestRealClientOpensModalsAndUsesResponseURLs(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	api := slack.New(s.App().BotToken, slack.OptionAPIURL(s.APIURL()))
	s.UseHTTP(&slacktest.Webhook{})
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", "how long?")
	view := slack.ModalViewRequest{
		Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", "Source", false, false),
		Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", "kept 90 days", false, true), nil, nil)}},
	}
	if _, err := api.OpenView(i.Trigger, view); err != nil {
		t.Fatalf("opening a modal: %v", err)
	}
	if v := s.WaitView("U0ADA", slacktest.Any); v.Title != "Source" {
		t.Errorf("modal has title %q", v.Title)
	}
	if _, err := api.OpenView(i.Trigger, view); err == nil || err.Error() != "exchanged_trigger_id" {
		t.Errorf("second use of a trigger: %v", err)
	}
	if _, _, err := api.PostMessage("C0GENERAL", slack.MsgOptionResponseURL(s.ResponseURL(i.ID), slack.ResponseTypeEphemeral),
		slack.MsgOptionText("only you", false)); err != nil {
		t.Fatalf("response_url: %v", err)
	}
	if m := s.WaitEphemeral("U0ADA", slacktest.Any); m.Text != "only you" || m.ResponseURL != i.ID {
		t.Errorf("ephemeral message %+v", m)
	}
	if got := s.Messages("C0GENERAL"); len(got) != 0 {
		t.Errorf("the channel holds %d messages, want none", len(got))
	}
}

func TestRealClientListsTheWorld(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	for i := range 30 {
		w.Add(slacktest.User{Name: "extra" + strings.Repeat("x", i)})
	}
	s := slacktest.New(t, w)
	api := slack.New(s.App().BotToken, slack.OptionAPIURL(s.APIURL()))
	users, err := api.GetUsers(slack.GetUsersOptionLimit(7))
	if err != nil || len(users) != 35 {
		t.Errorf("GetUsers: %d users, %v; want 35", len(users), err)
	}
	groups, err := api.GetUserGroups(slack.GetUserGroupsOptionIncludeUsers(true))
	if err != nil || len(groups) != 1 || !slices.Equal(groups[0].Users, []string{"U0ADA", "U0BOB"}) {
		t.Errorf("GetUserGroups: %+v, %v", groups, err)
	}
	c, err := api.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "C0SECURITY"})
	if err != nil || !c.IsPrivate || c.IsExtShared {
		t.Errorf("GetConversationInfo: %+v, %v", c, err)
	}
	who, err := api.AuthTest()
	if err != nil || who.UserID != "U0BOT" || !strings.Contains(who.Header.Get("X-Oauth-Scopes"), "chat:write") {
		t.Errorf("AuthTest: %+v, %v", who, err)
	}
	ch, _, _, err := api.OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0ADA"}})
	if err != nil || ch.ID != s.DMChannel("U0ADA") {
		t.Errorf("OpenConversation: %+v, %v", ch, err)
	}
}

func TestStormOfDuplicatesAndFaults(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld(), slacktest.WithSeed(3))
	s.SetScatter(func(r *rand.Rand, d slacktest.Delivery) slacktest.Delivery {
		d.Copies, d.NewIDs = r.IntN(2), r.IntN(2)
		d.Both, d.MessageFirst = r.IntN(2) == 0, r.IntN(2) == 0
		return d
	})
	startBot(t, s)
	startBot(t, s)
	s.WaitSockets(2)
	s.Distribute(func(int) int { return 0 }) // two processes without a shared ledger would both answer
	var asked sync.WaitGroup
	for _, u := range []string{"U0ADA", "U0BOB", "U0CYD"} {
		asked.Go(func() {
			for range 30 {
				s.Mention(u, "C0GENERAL", "how long?")
			}
		})
	}
	asked.Wait()
	s.WaitSettled()
	s.Eventually("90 answers", func() bool { return len(s.FromBot("C0GENERAL")) == 90 })
	for _, q := range s.Questions() {
		if n := len(s.Thread(q.Channel, q.TS)); n != 2 {
			t.Errorf("thread %s holds %d messages, want question and answer", q.TS, n)
		}
	}
	clean(t, s)
}
