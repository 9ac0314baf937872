package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"time"

	"footnote/adapters/slack"
	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/bot/clocktest"
	"footnote/bot/desk"
	"footnote/bot/generate"
	"footnote/bot/ledger"
)

func TestSourceOpensInItsSurroundings(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	a := p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
	s.Click("U0CYD", a, "source_1") // anybody there, with their own right
	v := s.WaitView("U0CYD", slacktest.Any[slacktest.View])
	text := string(v.Blocks)
	for _, want := range []string{"rich_text_quote", "Employees get thirty vacation days each year.", "The canteen opens at noon.", "The handbook", "2026-02-03"} {
		if !strings.Contains(text, want) {
			t.Errorf("the view lacks %q: %s", want, text)
		}
	}
	p.done()
}

// Absent, forbidden, deleted and never there look the same.
func TestCase_P10(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	cases := map[string]func(p *program, a msg) string{
		"forbidden": func(p *program, a msg) string { p.s.Click("U0DAN", a, "source_1"); return "U0DAN" },
		"deleted": func(p *program, a msg) string {
			p.index.remove("handbook")
			p.s.Click("U0ADA", a, "source_1")
			return "U0ADA"
		},
		"narrowed": func(p *program, a msg) string {
			d := handbook
			d.access = []string{"group:nobody"}
			p.index.publish(d)
			p.s.Click("U0ADA", a, "source_1")
			return "U0ADA"
		},
		"never there": func(p *program, a msg) string {
			press(p.s, "U0ADA", a, "source_1", "AN-ID-THAT-WAS-NEVER-GIVEN")
			return "U0ADA"
		},
		"no such number": func(p *program, a msg) string {
			press(p.s, "U0ADA", a, "source_9", value(a, "source_1"))
			return "U0ADA"
		},
		"from outside": func(p *program, a msg) string { p.s.Click("U0EVE", a, "source_1"); return "U0EVE" },
	}
	for name, do := range cases {
		s := slacktest.New(t, matrixWorld())
		// A channel that a guest and an outsider joined after the answer.
		p := start(t, s, newStore(t, handbook))
		a := p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
		p.quiet()
		s.ChangeSilently(func(_ map[string]*slacktest.User, _ map[string]*slacktest.Group, ch map[string]*slacktest.Channel) {
			ch["C0GENERAL"].Members = append(ch["C0GENERAL"].Members, "U0DAN", "U0EVE")
		})
		who := do(p, a)
		v := s.WaitView(who, slacktest.Any[slacktest.View])
		seen[name] = v.Title + string(v.Blocks)
		p.quiet()
		p.halt()
	}
	for name, text := range seen {
		if text != seen["forbidden"] || !strings.Contains(text, "not available to you here") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// press sends a press of a button that is not there.
func press(s *slacktest.Server, user string, m msg, id, value string) {
	b, _ := json.Marshal(map[string]any{
		"type": "block_actions", "team": map[string]any{"id": "T0HOME"}, "user": map[string]any{"id": user, "team_id": "T0HOME"},
		"channel": map[string]any{"id": m.Channel}, "container": map[string]any{"message_ts": m.TS, "thread_ts": m.ThreadTS},
		"trigger_id": trigger(s, user, m), "actions": []any{map[string]any{"action_id": id, "value": value, "action_ts": "1.2", "type": "button"}},
	})
	s.Deliver("interactive", b)
}

// trigger is a fresh trigger of the user, by way of a harmless press.
func trigger(s *slacktest.Server, user string, m msg) string {
	return s.Click(user, m, "human").Trigger
}

func value(m msg, id string) string {
	var list []map[string]any
	_ = json.Unmarshal(m.Blocks, &list)
	for _, b := range list {
		elements, _ := b["elements"].([]any)
		for _, e := range elements {
			if o, _ := e.(map[string]any); o["action_id"] == id {
				v, _ := o["value"].(string)
				return v
			}
		}
	}
	return ""
}

func TestCase_C17(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, handbook))
	a := p.answer(s.DM("U0ADA", qHandbook))
	p.index.remove("handbook")
	s.Click("U0ADA", a, "source_1")
	if v := s.WaitView("U0ADA", slacktest.Any[slacktest.View]); !strings.Contains(string(v.Blocks), "not available") {
		t.Errorf("opened %s", v.Blocks)
	}
	p.done()
}

// A document that changed opens as it was, and says so.
func TestSourceOfAnOlderRevision(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, handbook))
	a := p.answer(s.DM("U0ADA", qHandbook))
	d := handbook
	d.text = "Employees get forty vacation days each year."
	p.index.publish(d)
	s.Click("U0ADA", a, "source_1")
	v := s.WaitView("U0ADA", slacktest.Any[slacktest.View])
	if text := string(v.Blocks); !strings.Contains(text, "thirty") || !strings.Contains(text, "newer revision") {
		t.Errorf("opened %s", text)
	}
	p.done()
}

// Whoever may read by search may read by pressing: one rule.
func TestCase_C16(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	for text, word := range map[string]string{qHandbook: "vacation", qPlan: "Friday", qDiary: "mascarpone", qLeaflet: "greenhouse", qMinutes: "Lisbon"} {
		a := p.answer(s.DM("U0ADA", text))
		s.Click("U0ADA", a, "source_1")
		s.WaitView("U0ADA", func(v slacktest.View) bool { return strings.Contains(string(v.Blocks), word) })
	}
	p.done()
}

func TestS101Feedback(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, handbook))
	a := p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
	p.quiet()
	p.again() // works on answers that are older than the process
	s.Click("U0ADA", a, "helpful")
	s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(m.Text, "noted") })
	s.Click("U0BOB", a, "not_helpful")
	why := s.WaitEphemeral("U0BOB", slacktest.HasButtons)
	s.Click("U0BOB", why, "reason_outdated")
	s.WaitEphemeral("U0BOB", func(m msg) bool { return strings.Contains(m.Text, "noted") })
	s.Click("U0ADA", a, "not_helpful") // the last word counts
	s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	p.quiet()
	list, err := p.ledger.Feedback(context.Background(), value(a, "helpful"))
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	got := map[string]string{}
	for _, f := range list {
		got[f.User] = fmt.Sprint(f.Helpful, f.Reason)
	}
	if got["slack|T0HOME|U0ADA"] != "false" || got["slack|T0HOME|U0BOB"] != "falseoutdated" {
		t.Errorf("%v", got)
	}
	press(s, "U0ADA", a, "helpful", "AN-ID-THAT-WAS-NEVER-GIVEN")
	p.done()
	for _, e := range s.Ephemerals("U0CYD") {
		t.Errorf("told another person %s", e.Text)
	}
}

func TestS32ADoubleClickCountsOnce(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, handbook), with(func(c *slack.Config) { c.HumanChannel = "C0HELP" }))
	a := p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
	for range 3 {
		s.Click("U0ADA", a, "human", slacktest.Delivery{Copies: 2})
	}
	s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(m.Text, "human") })
	p.quiet()
	s.Eventually("the channel to be told", func() bool { return len(s.FromBot("C0HELP")) > 0 })
	p.quiet()
	if got := s.FromBot("C0HELP"); len(got) != 1 || strings.Contains(got[0].Text, "U0ADA") {
		t.Errorf("said %+v", got)
	}
	if list, err := p.ledger.HelpRequests(context.Background()); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

func TestS97B51B53Ask(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", qDiary)
	if ack := string(i.Wait()); !strings.Contains(ack, "Only you") || !strings.Contains(ack, "ephemeral") {
		t.Errorf("acknowledged %s", ack)
	}
	m := s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	if !strings.Contains(shown(m), "mascarpone") || strings.Contains(shown(m), "Ask in a direct message") {
		t.Errorf("answered %s", shown(m))
	}
	s.Click("U0ADA", m, "source_1")
	s.WaitView("U0ADA", func(v slacktest.View) bool { return strings.Contains(string(v.Blocks), "mascarpone") })
	p.done()
	if list := s.Ephemerals("U0ADA"); len(list) != 1 || !strings.Contains(shown(list[0]), "Only you see this answer") {
		t.Errorf("%d private messages, the first: %s", len(list), shown(list[0]))
	}
	if got := s.FromBot("C0GENERAL"); len(got) > 0 {
		t.Errorf("said in the channel: %s", got[0].Text)
	}
	if got := s.UserErrors("U0ADA"); len(got) > 0 {
		t.Errorf("Slack says %v", got)
	}
}

func TestS98AskWhereTheBotIsNot(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	w.AddChannel(slacktest.Channel{Name: "elsewhere", Kind: slacktest.Private, Members: []string{"U0ADA"}})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, all...))
	s.Slash("U0ADA", "C0ELSEWHERE", "/ask", qDiary)
	if m := s.WaitEphemeral("U0ADA", slacktest.HasButtons); !strings.Contains(shown(m), "mascarpone") {
		t.Errorf("answered %s", shown(m))
	}
	p.done()
}

func TestAskWithoutAQuestion(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t), drafting(nil))
	for _, text := range []string{"", "   ", "\u200b"} {
		if ack := string(s.Slash("U0ADA", "C0GENERAL", "/ask", text).Wait()); !strings.Contains(ack, "Write your question") {
			t.Errorf("acknowledged %s", ack)
		}
	}
	p.quiet()
}

// An answer that comes when the response_url is no longer good lands all the
// same, where only its asker sees it.
func TestCase_D21(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		where, said string
		room        bool // in the channel, to the asker alone
	}{
		"S-97 31 min later":                  {"C0GENERAL", qDiary, true},
		"S-98 31 min later, not a member":    {"C0ELSEWHERE", qDiary, false},
		"S-96 31 min later, in direct words": {"", qDiary, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := matrixWorld()
			w.AddChannel(slacktest.Channel{Name: "elsewhere", Kind: slacktest.Private, Members: []string{"U0ADA"}})
			clock := clocktest.NewManualClock(time.Time{})
			s := slacktest.New(t, w, slacktest.WithClock(clock))
			block, let := make(chan struct{}), make(chan struct{})
			p := start(t, s, newStore(t, all...), drafting(gated(block, let)))
			where := c.where
			if where == "" {
				where = s.DMChannel("U0ADA")
			}
			s.Slash("U0ADA", where, "/ask", c.said).Wait()
			<-block
			clock.Advance(31 * time.Minute)
			close(let)
			if c.room {
				s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(shown(m), "mascarpone") })
			} else {
				s.WaitMessage(s.DMChannel("U0ADA"), func(m msg) bool { return strings.Contains(shown(m), "mascarpone") })
			}
			p.done() // an expired address that is used is a violation
			if got := s.FromBot("C0GENERAL"); len(got) > 0 {
				t.Errorf("said in the channel: %s", shown(got[0]))
			}
			if n := len(s.Requests("response_url")); n != 0 {
				t.Errorf("%d posts to the expired address", n)
			}
		})
	}
}

// S-97: a response_url takes five posts; an answer that needs more of them goes
// on as ephemeral messages, in order, with its sources at the end.
func TestS97AResponseAddressThatIsUsedUp(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	s.AddFault(slacktest.Fault{Route: "response_url", Calls: func(n int) bool { return n > 1 }, Status: 404, Error: "used_url"})
	long := doc{"long", "Vacation days: " + strings.Repeat("employees get vacation days each year ", 1000), []string{"everyone"}}
	p := start(t, s, newStore(t, long))
	s.Slash("U0ADA", "C0GENERAL", "/ask", qHandbook)
	s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	p.done()
	list := s.Ephemerals("U0ADA")
	if len(list) != 3 || len(s.Requests("chat.postEphemeral")) != 2 {
		t.Fatalf("%d messages, %d beside the address", len(list), len(s.Requests("chat.postEphemeral")))
	}
	for i, m := range list {
		if strings.Contains(shown(m), "Sources") != (i == 2) || strings.Contains(shown(m), "Looking") {
			t.Errorf("part %d: %.80s", i, shown(m))
		}
	}
}

// What goes wrong with a command takes the place of "Looking…" too.
func TestS97AFailureReplacesTheWaiting(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...), drafting(func(context.Context, generate.Request) (generate.Draft, error) { panic("x") }))
	s.Slash("U0ADA", "C0GENERAL", "/ask", qDiary)
	s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(m.Text, "Reference") })
	p.done()
	if list := s.Ephemerals("U0ADA"); len(list) != 1 {
		t.Errorf("%d messages: %s", len(list), list[0].Text)
	}
}

func TestFootnoteCommand(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, handbook))
	p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook))
	p.quiet()
	for text, want := range map[string]string{"": "/ask", "help": "/ask", "status": "connected", "why": "answered", "nonsense": "/ask"} {
		if ack := string(s.Slash("U0ADA", "C0GENERAL", "/footnote", text).Wait()); !strings.Contains(ack, want) || strings.Contains(ack, "vacation") {
			t.Errorf("%q: %s", text, ack)
		}
	}
	var said struct{ Type, Text string }
	for text, want := range map[string]string{"status": "connected", "Status  Leave & Pay.md ": "Leave & Pay.md"} {
		raw := s.Slash("U0CYD", "C0GENERAL", "/footnote", text).Wait()
		if err := json.Unmarshal(raw, &struct {
			Type *string `json:"response_type"`
			Text *string `json:"text"`
		}{&said.Type, &said.Text}); err != nil {
			t.Fatal(err)
		}
		if said.Type != "ephemeral" || !strings.Contains(html.UnescapeString(said.Text), want) || !strings.Contains(said.Text, "user/U0CYD") {
			t.Errorf("%q: %s", text, raw)
		}
	}
	if ack := string(s.Slash("U0CYD", "C0GENERAL", "/footnote", "why").Wait()); !strings.Contains(ack, "no question from you") {
		t.Errorf("another person's questions: %s", ack)
	}
	p.done()
}

func TestS100P44Shortcut(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, all...))
	m := s.Say("U0BOB", "C0GENERAL", qHandbook)
	s.Shortcut("U0ADA", m, slack.ShortcutID)
	a := s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	if !strings.Contains(shown(a), "thirty vacation days") || !strings.Contains(shown(a), "Post to thread") {
		t.Fatalf("answered %s", shown(a))
	}
	s.Click("U0ADA", a, "share", slacktest.Delivery{Copies: 1})
	posted := s.WaitMessage("C0GENERAL", slacktest.HasButtons)
	if posted.ThreadTS != m.TS || !strings.Contains(shown(posted), "thirty vacation days") || strings.Contains(shown(posted), "Post to thread") {
		t.Errorf("posted %s in %s", shown(posted), posted.ThreadTS)
	}
	p.quiet()
	if n := answers(s.Everything("C0GENERAL")); n != 1 {
		t.Errorf("posted %d times", n)
	}
}

// What not everybody there may read is not posted, and the reason is told to
// one person.
func TestCase_P14(t *testing.T) {
	t.Parallel()
	t.Run("P-33 S-102 a source that not everyone may read", func(t *testing.T) {
		s := slacktest.New(t, matrixWorld())
		p := start(t, s, newStore(t, all...))
		m := s.Say("U0BOB", "C0GENERAL", qPlan)
		s.Shortcut("U0ADA", m, slack.ShortcutID)
		a := s.WaitEphemeral("U0ADA", slacktest.HasButtons)
		if !strings.Contains(shown(a), "rotates each Friday") {
			t.Fatalf("answered %s", shown(a))
		}
		s.Click("U0ADA", a, "share")
		s.WaitEphemeral("U0ADA", func(m msg) bool { return strings.Contains(m.Text, "not everyone there") })
		p.quiet()
		if got := s.FromBot("C0GENERAL"); len(got) > 0 {
			t.Errorf("posted %s", shown(got[0]))
		}
		if diff := s.CheckInvariants(); slices.ContainsFunc(diff, func(l string) bool { return strings.Contains(l, "read") }) {
			t.Error(diff)
		}
	})
}

func TestS102OnlyTheAskerShares(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	m := s.Say("U0BOB", "C0GENERAL", qHandbook)
	s.Shortcut("U0ADA", m, slack.ShortcutID)
	a := s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	press(s, "U0BOB", m2(s, p), "share", value(a, "share"))
	p.quiet()
	if n := answers(s.Thread("C0GENERAL", m.TS)); n != 0 {
		t.Errorf("posted %d times", n)
	}
}

// m2 is any message of the app that others see.
func m2(s *slacktest.Server, p *program) msg {
	return p.answer(s.Mention("U0BOB", "C0GENERAL", qHandbook))
}

func TestS103HomeShowsHelpOnce(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t))
	for range 3 {
		s.OpenHome("U0ADA")
	}
	s.WaitRequests("views.publish", 1)
	p.quiet()
	if v, ok := s.Home("U0ADA"); !ok || !strings.Contains(string(v.Blocks), "/ask") {
		t.Errorf("home %s", v.Blocks)
	}
	if n := len(s.Requests("views.publish")); n != 1 {
		t.Errorf("published %d times", n)
	}
}

// A refusal offers both ways on, and the nearest documents that may be read.
func TestB52Refusal(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	q := s.Mention("U0ADA", "C0GENERAL", "Which vacation colour does the canteen prefer?")
	text := shown(p.answer(q))
	if strings.Contains(text, "Sources") || !strings.Contains(text, "Ask in a direct message") || !strings.Contains(text, "Ask a human") {
		t.Errorf("refused %s", text)
	}
	p.quiet()
	if d := p.only(); d.State != ledger.Refused || d.Reason != string(bot.NoMatch) && d.Reason != string(bot.NotAnswered) {
		t.Errorf("ended as %s, reason %q", d.State, d.Reason)
	}
	if gaps, err := p.ledger.Gaps(context.Background()); err != nil || len(gaps) != 1 {
		t.Errorf("%v %v", gaps, err)
	}
}

func TestS106AResponseAddressElsewhereIsNotUsed(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	b, _ := json.Marshal(map[string]any{
		"command": "/ask", "text": qDiary, "team_id": "T0HOME", "user_id": "U0ADA", "channel_id": "C0GENERAL", "trigger_id": "t.1",
		"response_url": "https://hooks.slack.com.evil.example/x",
	})
	s.Deliver("slash_commands", b)
	if m := s.WaitEphemeral("U0ADA", slacktest.HasButtons); !strings.Contains(shown(m), "mascarpone") {
		t.Errorf("answered %s", shown(m))
	}
	p.quiet()
}

// The numbers of an answer mean the same after a restart.
func TestCase_C8(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	a := p.answer(s.DM("U0ADA", qDiary))
	p.quiet()
	p.again()
	s.Click("U0ADA", a, "source_1")
	s.WaitView("U0ADA", func(v slacktest.View) bool { return strings.Contains(string(v.Blocks), "mascarpone") })
	p.done()
}

// Whatever way a person takes, they never see what they may not read; the
// oracle of every test looks at all that was shown.
func TestCase_P6(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...), withDesk(func(o *desk.Options) { o.PerAsker = 10 }))
	m := s.Say("U0BOB", "C0GENERAL", qPlan)
	for who, may := range map[string]bool{"U0BOB": true, "U0CYD": false} {
		for way, text := range map[string]func() string{
			"dm":       func() string { return shown(p.answer(s.DM(who, qPlan))) },
			"channel":  func() string { return shown(p.answer(s.Mention(who, "C0GENERAL", qPlan))) },
			"command":  func() string { return privately(s, who, func() { s.Slash(who, "C0GENERAL", "/ask", qPlan) }) },
			"shortcut": func() string { return privately(s, who, func() { s.Shortcut(who, m, slack.ShortcutID) }) },
		} {
			if got := strings.Contains(text(), "Friday"); got != (may && way != "channel") {
				t.Errorf("%s by %s: shown %t", who, way, got)
			}
		}
	}
	p.done()
}

// privately does something and returns the private answer that follows.
func privately(s *slacktest.Server, who string, do func()) string {
	before := len(s.Ephemerals(who))
	do()
	var got msg
	s.Eventually("a private answer", func() bool {
		list := s.Ephemerals(who)
		if len(list) > before && slacktest.HasButtons(list[len(list)-1]) {
			got = list[len(list)-1]
		}
		return got.TS != ""
	})
	return shown(got)
}
