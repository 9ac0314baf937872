package slack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/clocktest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

type msg = slacktest.Message

func fresh(t testing.TB, o ...slacktest.Option) *slacktest.Server {
	t.Helper()
	return slacktest.New(t, slacktest.DemoWorld(), o...)
}

func TestMentionIsAnsweredInItsThread(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	text := shown(p.answer(q))
	for _, want := range []string{"Employees get thirty vacation days each year.", "[1]", "Sources", "The handbook > Part", "2026-02-03", "Helpful", "Not helpful", "Ask a human"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q: %s", want, text)
		}
	}
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// Whatever the transport repeats, reorders or loses: one answer.
func TestOneAnswerHoweverDelivered(t *testing.T) {
	t.Parallel()
	cases := map[string]slacktest.Delivery{
		"S-24 once": {},
		"S-26 B-03 copies with the same envelope": {Copies: 3},
		"S-26 B-02 copies with new event ids":     {NewIDs: 3},
		"S-28 B-04 copies late":                   {NewIDs: 2, CopyDelay: 40 * time.Millisecond},
		"S-30 B-05 mention, then message":         {Both: true, PairGap: 20 * time.Millisecond},
		"S-30 B-06 message, then mention":         {Both: true, MessageFirst: true, PairGap: 20 * time.Millisecond},
		"C-05 S-30 both at once, twice":           {Both: true, NewIDs: 1},
		"S-36 B-23 only the message event":        {Both: true, NoMention: true},
		"S-37 B-24 the edit added the mention":    {Edited: true},
	}
	for name, d := range cases {
		for _, mode := range []slack.Mode{slack.Socket, slack.HTTP} {
			t.Run(fmt.Sprintf("%s by %s", name, mode), func(t *testing.T) { deliveredOnce(t, mode, d) })
		}
	}
}

// B-01: the copy that is marked as a retry may be the only one.
func TestCase_D2(t *testing.T) {
	for _, mode := range []slack.Mode{slack.Socket, slack.HTTP} {
		t.Run(fmt.Sprintf("S-10 B-01 by %s", mode), func(t *testing.T) { deliveredOnce(t, mode, slacktest.Delivery{RetryNum: 1}) })
	}
}

// Both orders of the two events, at any distance.
func TestCase_D4(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), withDesk(func(o *desk.Options) { o.PerAsker, o.PerRoom = 100, 100 }))
	r := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		s.Mention("U0ADA", "C0GENERAL", qHandbook, slacktest.Delivery{Both: true, MessageFirst: r.IntN(2) == 0, PairGap: time.Duration(r.IntN(30)) * time.Millisecond})
	}
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 50 {
		t.Errorf("%d answers to 50 questions", n)
	}
}

func deliveredOnce(t *testing.T, mode slack.Mode, d slacktest.Delivery) {
	t.Helper()
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), over(mode))
	p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook, d))
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("%d answers", n)
	}
}

func TestCase_D5(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	root := s.Say("U0BOB", "C0GENERAL", "a thread")
	for range 2 {
		p.answer(s.ReplyInThread("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> "+qHandbook))
	}
	// The same timestamp in two channels is two messages.
	for _, ch := range []string{"C0GENERAL", "C0HELP"} {
		s.Emit(map[string]any{"type": "app_mention", "user": "U0BOB", "text": "<@U0BOT> " + qHandbook, "ts": fmt.Sprintf("%d.000700", time.Now().Unix()), "channel": ch})
	}
	p.quiet()
	s.Eventually("all answers", func() bool { return len(s.Requests("chat.postMessage")) >= 4 })
	if n := answers(s.Thread("C0GENERAL", root.TS)); n != 2 {
		t.Errorf("%d answers in the thread", n)
	}
}

// Changes of a message that change no words are no questions, and nor are
// edits unless they are switched on.
func TestCase_D6(t *testing.T) {
	t.Parallel()
	t.Run("B-26 changes that change no words", func(t *testing.T) {
		s := fresh(t)
		p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Edits = true }))
		q := s.DM("U0ADA", qHandbook)
		a := p.answer(q)
		for range 10 {
			s.Touch(q)
			s.Touch(a)
		}
		p.done()
		if n := answers(s.Everything(q.Channel)); n != 1 {
			t.Errorf("%d answers", n)
		}
		s.Edit(q, qLeaflet)
		p.quiet()
		s.Eventually("a second answer", func() bool { return answers(s.Everything(q.Channel)) == 2 })
	})
}

func TestS38B25EditsAreOffByDefault(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	q := s.DM("U0ADA", qHandbook)
	p.answer(q)
	s.Edit(q, qLeaflet)
	p.done()
	if n := answers(s.Everything(q.Channel)); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// What is no question of a person gets no word.
func TestNoQuestions(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"S-33 own answer that names the bot": "event_app_mention_own", "S-33 another bot": "event_app_mention_from_bot",
		"S-33 B-20 bot without subtype": "event_message_bot_no_subtype", "S-33 bot_message": "event_message_bot_message",
		"S-33 Slackbot": "event_message_slackbot", "S-33 nobody": "event_message_no_user", "S-33 hidden": "event_message_hidden",
		"S-35 join": "event_message_channel_join", "S-35 huddle": "event_message_huddle_thread", "S-35 reminder": "event_message_reminder_add",
		"S-35 a subtype of the future": "event_message_a_subtype_of_the_future", "S-38 unfurl": "event_message_changed_unfurl",
		"S-38 reply count": "event_message_changed_reply_count", "B-27 own edit": "event_message_changed_own",
		"S-52 another installation": "event_app_mention_other_installation", "S-13 deliveries cut short": "other_app_rate_limited",
		"S-104 assistant thread": "event_assistant_thread_started", "S-104 its context": "event_assistant_thread_context_changed",
		"S-83 stopped": "event_agent_session_stopped", "LS-04 an event of the future": "event_an_event_of_the_future",
		"LS-04 an unknown interaction": "other_unknown_interaction", "S-42 plain post": "event_message_channels",
		"B-07 group members": "event_subteam_members_changed",
	}
	for name, fixture := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t, slacktest.WithClock(clocktest.NewManualClock(time.Time{})))
			p := start(t, s, newStore(t, handbook))
			s.Deliver("", s.Fixture(fixture))
			p.quiet()
			for _, ch := range []string{"C0GENERAL", "C0HELP", s.DMChannel("U0ADA")} {
				if got := s.FromBot(ch); len(got) > 0 {
					t.Errorf("said in %s: %s", ch, got[0].Text)
				}
			}
			if got := s.Ephemerals("U0ADA"); len(got) > 0 {
				t.Errorf("said privately: %s", got[0].Text)
			}
			if diff := cmp.Diff([]string(nil), s.CheckInvariants()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCase_D7(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Edits = true }))
	s.Emit(map[string]any{
		"type": "message", "subtype": "message_changed", "channel": "C0GENERAL", "channel_type": "channel", "ts": "1772442160.000100",
		"message":          map[string]any{"type": "message", "bot_id": "B0OTHER", "user": "U0OTHER", "text": "<@U0BOT> vacation?", "ts": "1772442100.000100", "edited": map[string]any{"user": "U0OTHER"}},
		"previous_message": map[string]any{"text": "<@U0BOT> vacation?"},
	})
	p.done()
	if got := s.FromBot("C0GENERAL"); len(got) > 0 {
		t.Errorf("said %s", got[0].Text)
	}
}

// Each way in which people ask is answered in the right thread.
func TestWaysToAsk(t *testing.T) {
	t.Parallel()
	cases := map[string]func(s *slacktest.Server) msg{
		"S-44 B-30 in a thread": func(s *slacktest.Server) msg {
			return s.ReplyInThread("U0ADA", "C0GENERAL", s.Say("U0BOB", "C0GENERAL", "hm").TS, "<@U0BOT> "+qHandbook)
		},
		"S-30 direct message":                    func(s *slacktest.Server) msg { return s.DM("U0ADA", qHandbook) },
		"S-30 direct message that names the bot": func(s *slacktest.Server) msg { return s.DM("U0ADA", "<@U0BOT> "+qHandbook) },
		"S-48 B-48 direct message in a thread": func(s *slacktest.Server) msg {
			return s.DMReply("U0ADA", s.DM("U0ADA", "<@U0BOT> "+qLeaflet).TS, qHandbook)
		},
		"S-35 B-22 with a file": func(s *slacktest.Server) msg { return s.FileShare("U0ADA", s.DMChannel("U0ADA"), qHandbook) },
		"S-35 /me": func(s *slacktest.Server) msg {
			return s.SaysWith("me_message", "U0ADA", s.DMChannel("U0ADA"), "", qHandbook)
		},
		"private channel": func(s *slacktest.Server) msg { return s.Mention("U0ADA", "C0SECURITY", qHandbook) },
		"S-40 with a label and entities": func(s *slacktest.Server) msg {
			return s.Mention("U0ADA", "C0GENERAL", "<@U0BOT|footnote> &lt;How many&gt; vacation days do employees get each year?")
		},
		"S-90 the same question of another person": func(s *slacktest.Server) msg {
			s.Mention("U0BOB", "C0GENERAL", qHandbook)
			return s.Mention("U0ADA", "C0GENERAL", qHandbook)
		},
	}
	for name, ask := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			p := start(t, s, newStore(t, handbook, leaflet))
			q := ask(s)
			s.WaitMessage(q.Channel, func(m msg) bool {
				root := q.ThreadTS
				if root == "" {
					root = q.TS
				}
				return m.BotID == "B0BOT" && m.ThreadTS == root && strings.Contains(shown(m), "thirty vacation days")
			})
			p.done()
		})
	}
}

func TestCase_D8(t *testing.T) {
	t.Parallel()
	t.Run("S-45 B-47 shown in the channel as well", func(t *testing.T) {
		s := fresh(t)
		p := start(t, s, newStore(t, handbook))
		root := s.Say("U0BOB", "C0GENERAL", "hm")
		p.answer(s.Broadcast("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> "+qHandbook))
		p.done()
		if got := s.FromBot("C0GENERAL"); len(got) != 1 || got[0].ThreadTS != root.TS || got[0].Broadcast {
			t.Errorf("said %+v", got)
		}
	})
}

func TestCase_D9(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	root := s.Say("U0BOB", "C0GENERAL", "hm")
	p.answer(s.ReplyInThread("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> "+qHandbook))
	p.done()
	for _, m := range s.FromBot("C0GENERAL") {
		if m.ThreadTS != root.TS {
			t.Errorf("said outside the thread: %s", m.Text)
		}
	}
}

// A replay an hour later, after a restart, is answered by nothing.
func TestCase_D10(t *testing.T) {
	t.Parallel()
	t.Run("S-12 S-28 copies up to a day later, after restarts", func(t *testing.T) {
		clock := clocktest.NewManualClock(time.Time{})
		s := fresh(t, slacktest.WithClock(clock))
		p := start(t, s, newStore(t, handbook))
		q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
		p.answer(q)
		p.quiet()
		for _, wait := range []time.Duration{30 * time.Minute, time.Hour, 22 * time.Hour} {
			clock.Advance(wait)
			p.again()
			for _, newID := range []bool{false, true} {
				s.Redeliver(q.Channel, q.TS, newID)
			}
			p.quiet()
		}
		if n := answers(s.Everything(q.Channel)); n != 1 {
			t.Errorf("%d answers", n)
		}
		if got := s.Ephemerals("U0ADA"); len(got) > 0 {
			t.Errorf("said %s", got[0].Text)
		}
	})
}

func TestS29AQuestionThatIsTooOldIsToldSo(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	s.Emit(map[string]any{"type": "app_mention", "user": "U0ADA", "text": "<@U0BOT> " + qHandbook, "ts": fmt.Sprintf("%d.000700", time.Now().Add(-2*time.Hour).Unix()), "channel": "C0GENERAL"})
	got := s.WaitEphemeral("U0ADA", slacktest.Any[msg])
	if !strings.Contains(got.Text, "too late") {
		t.Errorf("said %s", got.Text)
	}
	p.done()
	if n := answers(s.Everything("C0GENERAL")); n != 0 {
		t.Errorf("%d answers", n)
	}
}

func TestCase_D15(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.App.Events = append([]string{"message.channels", "message.groups", "message.mpim"}, slacktest.DefaultEvents...)
	w.App.Scopes = append([]string{"channels:history", "groups:history", "mpim:history"}, slacktest.DefaultScopes...)
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, handbook))
	root := s.Say("U0ADA", "C0GENERAL", qHandbook)
	s.ReplyInThread("U0BOB", "C0GENERAL", root.TS, qHandbook)
	s.Say("U0ADA", "C0SECURITY", qHandbook)
	s.GroupDM("U0ADA", []string{"U0BOB"}, qHandbook)
	p.quiet()
	for _, r := range s.Requests("chat.postMessage", "chat.postEphemeral") {
		t.Errorf("said %v", r.Args["text"])
	}
}

func TestS41AMentionAloneGetsHelp(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), drafting(nil))
	q := s.Mention("U0ADA", "C0GENERAL", "<@U0BOT>")
	m := s.WaitMessage("C0GENERAL", func(m msg) bool { return m.BotID == "B0BOT" })
	if m.ThreadTS != q.TS || !strings.Contains(shown(m), "/ask") || slacktest.HasButtons(m) {
		t.Errorf("said %+v", m)
	}
	p.done()
}

func TestS42FollowUpsWhenSwitchedOn(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.App.Events = append([]string{"message.channels"}, slacktest.DefaultEvents...)
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, handbook, leaflet), channel("C0GENERAL", slack.Channel{FollowUps: true}))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	p.answer(q)
	p.quiet()
	s.ReplyInThread("U0BOB", "C0GENERAL", q.TS, qLeaflet) // not the asker
	p.quiet()
	if n := answers(s.Thread("C0GENERAL", q.TS)); n != 1 {
		t.Fatalf("%d answers after another person's message", n)
	}
	s.ReplyInThread("U0ADA", "C0GENERAL", q.TS, qLeaflet)
	s.Eventually("a second answer", func() bool { return answers(s.Thread("C0GENERAL", q.TS)) == 2 })
	p.quiet()
}

// The thread is part of the question: "and on Fridays?" goes on from it.
func TestB48HistoryOfADirectThreadIsRead(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook, leaflet))
	q := s.DM("U0ADA", qHandbook)
	p.answer(q)
	s.WaitSettled()
	f := s.DMReply("U0ADA", q.TS, "and how many?")
	if text := shown(p.answer(f)); !strings.Contains(text, "thirty vacation days") {
		t.Errorf("answered %s", text)
	}
	p.done()
}

// S-46: nothing is left in the channel, though taking it away fails at first or
// Slack does not say where the answer landed.
func TestS46B31B33StraysAreTakenAwayWhateverFails(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]slacktest.Fault{
		"nothing fails":          nil,
		"taking away fails":      {{Route: "chat.delete", Calls: slacktest.First(2), Status: 503}},
		"taking away is limited": {{Route: "chat.delete", Calls: slacktest.First(1), Status: 429, RetryAfter: "1"}},
		"cut after the post":     {{Route: "chat.postMessage", Calls: slacktest.First(1), ResetAfter: true}},
		"half an answer":         {{Route: "chat.postMessage", Calls: slacktest.First(1), Truncate: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := historyScopes(fresh(t))
			for _, f := range faults {
				s.AddFault(f)
			}
			block, let := make(chan struct{}), make(chan struct{})
			p := start(t, s, newStore(t, handbook), drafting(gated(block, let)))
			root := s.Say("U0BOB", "C0GENERAL", "hm")
			s.ReplyInThread("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> "+qHandbook)
			<-block
			s.Delete(root)
			close(let)
			p.quiet()
			if got := s.FromBot("C0GENERAL"); len(got) > 0 {
				t.Errorf("left %s", got[0].Text)
			}
			if d := p.only(); d.Reason != "orphaned" {
				t.Errorf("ended as %s %s", d.State, d.Reason)
			}
		})
	}
}

func TestS39ADeletedQuestionIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	block, let := make(chan struct{}), make(chan struct{})
	p := start(t, s, newStore(t, handbook), drafting(gated(block, let)))
	q := s.DM("U0ADA", qHandbook)
	<-block
	s.Delete(q)
	s.WaitSettled()
	close(let)
	p.quiet()
	if got := s.FromBot(q.Channel); len(got) > 0 {
		t.Errorf("said %s", got[0].Text)
	}
}

func TestS39AnAnswerGoesWithItsQuestionWhereThatIsSet(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.DeleteAnswers = true }))
	q := s.DM("U0ADA", qHandbook)
	p.answer(q)
	p.quiet()
	s.Delete(q)
	s.Eventually("the answer to go", func() bool { return len(s.FromBot(q.Channel)) == 0 })
}

func TestS34B21TwoBotsDoNotTalkForEver(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.Add(slacktest.User{ID: "U0ROBOT", Name: "robot", Bot: true, BotID: "B0ROBOT", AppID: "A0ROBOT"})
	w.Channels[0].Members = append(w.Channels[0].Members, "U0ROBOT")
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.Bots = []string{"B0ROBOT"} }))
	q := s.Mention("U0ROBOT", "C0GENERAL", qHandbook)
	p.answer(q)
	for range 3 {
		s.ReplyInThread("U0ROBOT", "C0GENERAL", q.TS, "<@U0BOT> "+qHandbook)
	}
	p.quiet()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("%d answers", n)
	}
}

func TestS53AnUninstalledAppStops(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	p := start(t, s, newStore(t, handbook))
	s.Uninstall()
	select {
	case err := <-p.ran:
		if err == nil || !strings.Contains(err.Error(), "removed") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Fatal("the adapter goes on")
	}
	if diff := cmp.Diff([]string(nil), s.CheckInvariants()); diff != "" {
		t.Error(diff)
	}
}

// only is the one delivery of the ledger.
func (p *program) only() ledger.Delivery {
	p.t.Helper()
	for _, u := range []string{"U0ADA", "U0BOB", "U0CYD", "U0DAN", "U0EVE"} {
		if list, err := p.ledger.Of(context.Background(), "slack|T0HOME|"+u, 1); err == nil && len(list) > 0 {
			return list[0]
		}
	}
	p.t.Fatal("the ledger is empty")
	return ledger.Delivery{}
}

// The same payload is the same question by both transports.
func TestC01S01BothTransportsReadAlike(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, mode slack.Mode) map[string]string {
		s := fresh(t, slacktest.WithClock(clocktest.NewManualClock(time.Time{})))
		p := start(t, s, newStore(t, handbook), over(mode), withDesk(func(o *desk.Options) { o.PerAsker = 200 }))
		for _, name := range slacktest.Fixtures() {
			if !strings.Contains(name, "uninstalled") && !strings.Contains(name, "revoked") {
				s.Deliver("", s.Fixture(name))
				s.WaitSettled() // some of them are copies of one another: the first counts
			}
		}
		p.quiet()
		out := map[string]string{}
		for _, u := range []string{"U0ADA", "U0BOB", "U0EXT"} {
			list, err := p.ledger.Of(t.Context(), "slack|T0HOME|"+u, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				out[d.Key] = fmt.Sprint(d.Asker, " ", d.Room, " ", d.Sent.Unix())
			}
		}
		return out
	}
	socket, web := read(t, slack.Socket), read(t, slack.HTTP)
	if diff := cmp.Diff(socket, web); diff != "" || len(socket) < 5 {
		t.Errorf("%d questions; socket - http +:\n%s", len(socket), diff)
	}
}
