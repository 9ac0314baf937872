package discord

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
	"footnote/bot/clocktest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

func TestAskIsDeferredThenAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	i := r.ask(r.town.cy, r.town.open, "what about all?")
	if kind := i.Wait(); kind != respondDeferred {
		t.Errorf("first response %d", kind)
	}
	m := i.WaitAnswer()
	if m.EphemeralTo != "" || !strings.Contains(m.Content, "docall") || !strings.Contains(m.Content, "[1]") {
		t.Errorf("answer %+v", m)
	}
	t.Run("D-33, P-43 previews are off", func(t *testing.T) {
		if m.Flags&dt.FlagSuppressEmbeds == 0 {
			t.Error("previews are not suppressed")
		}
	})
	t.Run("D-27 the message is known from the edit", func(t *testing.T) {
		if n := len(r.Requests(dt.RouteGetResponse)); n != 0 {
			t.Errorf("%d calls to read it", n)
		}
	})
	s := r.Click(r.town.bob, m, button(t, m, "s1")).WaitAnswer()
	if s.EphemeralTo != r.town.bob || !strings.Contains(string(s.Embeds), "the passage of docall") {
		t.Errorf("source %+v", s)
	}
	r.clean()
}

// Who gets what where: the visibility and the documents of every place.
func TestP01AudienceLimitsTheAnswer(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	tests := []struct {
		name, user, channel, doc string
		private                  bool
		answered, ephemeral      bool
	}{
		{"P-01 everybody's document aloud", x.cy, x.open, "all", false, true, false},
		{"P-01 staff document aloud where everybody reads", x.bob, x.open, "staff", false, false, false},
		{"P-01 staff document in private", x.bob, x.open, "staff", true, true, true},
		{"P-01 staff document in private for somebody else", x.cy, x.open, "staff", true, false, true},
		{"P-20 staff document in the staff channel", x.bob, x.closed, "staff", false, true, false},
		{"P-21 staff document in a thread of the staff channel", x.bob, x.hidden, "staff", false, true, false},
		{"P-21 staff document in a thread where everybody reads", x.bob, x.thread, "staff", false, false, false},
		{"P-30 bob's document in the staff channel, where only he happens to read", x.bob, x.closed, "bob", false, false, false},
		{"P-01 bob's document in private", x.bob, x.closed, "bob", true, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := r.Command(tt.user, tt.channel, "ask", map[string]any{"question": "what about " + tt.doc, "private": tt.private}).WaitAnswer()
			if answered := strings.Contains(m.Content, "doc"+tt.doc); answered != tt.answered || (m.EphemeralTo == tt.user) != tt.ephemeral {
				t.Errorf("answered %v, to %q: %s", answered, m.EphemeralTo, m.Content)
			}
			if !tt.answered && !strings.Contains(m.Content, "direct message") {
				t.Errorf("the refusal offers no direct message: %s", m.Content)
			}
		})
	}
	r.clean()
}

func TestD53DirectMessages(t *testing.T) {
	t.Parallel()
	x := newTown()
	eve := x.world.AddUser(dt.User{Name: "eve"})
	r := newRig(t, x, setting{})
	for user, want := range map[string]bool{x.bob: true, x.cy: false, eve: false} {
		m := r.ask(user, r.DMChannel(user), "what about staff").WaitAnswer()
		if got := strings.Contains(m.Content, "docstaff"); got != want {
			t.Errorf("%s: %s", user, m.Content)
		}
	}
	if m := r.ask(eve, r.DMChannel(eve), "what about all").WaitAnswer(); strings.Contains(m.Content, "docall") {
		t.Errorf("somebody who is no member got %s", m.Content)
	}
	r.clean()
}

func TestD55PendingAndTimedOut(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.ChangeMember(x.guild, x.dan, func(m *dt.Member) { m.Pending = true; m.Roles = []string{x.staff} })
	for _, doc := range []string{"all", "staff"} {
		m := r.Command(x.dan, x.open, "ask", map[string]any{"question": "what about " + doc, "private": true}, dt.Delivery{Force: true}).WaitAnswer()
		if strings.Contains(m.Content, "doc"+doc) {
			t.Errorf("a pending member got %s", m.Content)
		}
	}
	r.TimeOut(x.guild, x.cy, time.Now().Add(time.Hour))
	i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all"}, dt.Delivery{Force: true})
	if m := i.WaitAnswer(); !strings.Contains(m.Content, "timed out") || m.EphemeralTo != x.cy {
		t.Errorf("a timed-out member got %+v", m)
	}
	r.idle()
}

func TestD54UnknownGuildAndUserInstall(t *testing.T) {
	t.Parallel()
	x := newTown()
	other := x.world.AddGuild(dt.Guild{Name: "other", Owner: x.cy, NoBot: true})
	x.world.AddMember(other, x.cy)
	there := x.world.AddChannel(dt.Channel{GuildID: other, Name: "there", Type: dt.Text})
	r := newRig(t, x, setting{})
	m := r.ask(x.cy, there, "what about all").WaitAnswer()
	if m.EphemeralTo != x.cy || strings.Contains(m.Content, "docall") {
		t.Errorf("a server that is not served got %+v", m)
	}
	t.Run("D-24 an app of the user alone gets one refusal and no follow-up", func(t *testing.T) {
		in := r.Command(x.bob, x.open, "ask", map[string]any{"question": "what about all"}, dt.Delivery{Force: true, With: map[string]any{"authorizing_integration_owners": map[string]string{"1": x.bob}}})
		if m := in.WaitAnswer(); m.EphemeralTo != x.bob || strings.Contains(m.Content, "docall") {
			t.Errorf("got %+v", m)
		}
		r.idle()
		if n := len(r.Requests(dt.RouteFollowup)); n != 0 {
			t.Errorf("%d follow-ups", n)
		}
	})
	r.idle()
}

func TestD54SecondGuildTakesEveryoneAway(t *testing.T) {
	t.Parallel()
	x := newTown()
	other := x.world.AddGuild(dt.Guild{Name: "other", Owner: x.cy})
	x.world.AddMember(other, x.cy)
	there := x.world.AddChannel(dt.Channel{GuildID: other, Name: "there", Type: dt.Text})
	r := newRig(t, x, setting{})
	if m := r.ask(x.cy, there, "what about all").WaitAnswer(); strings.Contains(m.Content, "docall") {
		t.Errorf("the members of another server read everyone's documents: %s", m.Content)
	}
	configured := newRig(t, x, setting{config: func(c *Config) { c.Guilds = []string{x.guild} }})
	if m := configured.ask(x.cy, there, "what about all").WaitAnswer(); !strings.Contains(m.Content, "not set up") {
		t.Errorf("a server that is not configured: %s", m.Content)
	}
	if m := configured.ask(x.cy, x.open, "what about all").WaitAnswer(); !strings.Contains(m.Content, "docall") {
		t.Errorf("the server that is configured: %s", m.Content)
	}
	r.idle()
	configured.clean()
}

func TestD21VisibilityIsDecidedAtTheDeferral(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Channels = map[string]string{x.news: PrivateAlways, x.open: Off} }})
	t.Run("P-03 a channel of private answers", func(t *testing.T) {
		for _, private := range []bool{false, true} { // nobody may force a public answer
			if m := r.Command(x.cy, x.news, "ask", map[string]any{"question": "what about all", "private": private}).WaitAnswer(); m.EphemeralTo != x.cy {
				t.Errorf("private %v: answered aloud: %+v", private, m)
			}
		}
	})
	t.Run("B-80 a thread of a channel that is off", func(t *testing.T) {
		if m := r.ask(x.cy, x.thread, "what about all").WaitAnswer(); m.EphemeralTo != x.cy || !strings.Contains(m.Content, "do not answer in this channel") {
			t.Errorf("%+v", m)
		}
	})
	// What is known is too old: private.
	r.idle()
	_ = r.stop()
	var ahead atomic.Int64
	late := newRig(t, x, setting{now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, config: func(c *Config) { c.pace.tick = time.Hour }})
	ahead.Store(int64(10 * time.Minute))
	t.Run("P-04 what is known of the channel is too old", func(t *testing.T) {
		if m := late.ask(x.cy, x.open, "what about all").WaitAnswer(); m.EphemeralTo != x.cy || !strings.Contains(m.Content, "docall") {
			t.Errorf("%+v", m)
		}
	})
	late.clean()
}

func TestD21AudienceLostAfterThePublicDeferral(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.wait = func(context.Context, bot.Message) {
		// The channel is gone from what is known while the question is worked on.
		if !r.adapter.book.Has("1") {
			r.adapter.book.Forget()
		}
	}
	t.Run("B-62, B-63, B-64 a public response cannot become private", func(t *testing.T) {
		m := r.ask(x.bob, x.open, "what about all and staff").WaitAnswer()
		if strings.Contains(m.Content, "doc") || !strings.Contains(m.Content, "privately") {
			t.Errorf("the public response says %q", m.Content)
		}
		private := r.WaitEphemeral(x.bob, func(m dt.Message) bool { return strings.Contains(m.Content, "docstaff") })
		if private.EphemeralTo != x.bob {
			t.Errorf("the private part %+v", private)
		}
	})
	r.clean()
}

func TestP31RightsChangeBetweenQuestionAndAnswer(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	var once atomic.Bool
	r.shelf.wait = func(context.Context, bot.Message) {
		if !once.Swap(true) {
			// Everybody may see the staff channel now.
			r.heard(func() { r.SetOverwrite(x.closed, dt.Overwrite{ID: x.guild, Allow: dt.ViewChannel}) })
		}
	}
	m := r.ask(x.bob, x.closed, "what about staff").WaitAnswer()
	if strings.Contains(m.Content, "docstaff") {
		t.Errorf("a channel that was opened meanwhile got %s", m.Content)
	}
	r.clean()
}

func TestP40RefusalsLookTheSame(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	nothing := r.ask(x.bob, x.open, "what about nobody").WaitAnswer()
	hidden := r.ask(x.bob, x.open, "what about staff").WaitAnswer()
	t.Run("C-12 the words", func(t *testing.T) {
		if nothing.Content != hidden.Content || nothing.Flags != hidden.Flags {
			t.Errorf("absent %q, forbidden %q", nothing.Content, hidden.Content)
		}
	})
	t.Run("P-02 an answer offers what a refusal offers: to ask in private", func(t *testing.T) {
		aloud := r.ask(x.bob, x.open, "what about all and staff").WaitAnswer()
		if strings.Contains(aloud.Content, "docstaff") {
			t.Errorf("aloud: %s", aloud.Content)
		}
		for _, m := range []dt.Message{nothing, hidden, aloud, r.ask(x.cy, x.open, "what about all").WaitAnswer()} {
			button(t, m, "private")
		}
		if m := r.Click(x.bob, aloud, button(t, aloud, "private")).WaitAnswer(); m.EphemeralTo != x.bob || !strings.Contains(m.Content, "docstaff") {
			t.Errorf("the rest: %+v", m)
		}
	})
	r.clean()
}

func TestD15DuplicatesAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	i := r.ask(x.cy, x.open, "what about all", dt.Delivery{Copies: 3})
	i.WaitAnswer()
	r.idle()
	if n := len(r.Requests(dt.RouteCallback)); n != 1 {
		t.Errorf("%d first responses", n)
	}
	r.clean()
}

// D-61: two processes with one token, each with its own session.
func TestD61TwoSessionsOneLedger(t *testing.T) {
	t.Parallel()
	t.Run("C-05 one claim for all processes", twoSessions)
}

func twoSessions(t *testing.T) {
	x := newTown()
	a := newRig(t, x, setting{})
	b := newRig(t, x, setting{server: a.Server, ledger: a.ledger, shelf: a.shelf, cold: true})
	a.WaitSessions(2)
	b.ready()
	for range 10 {
		a.ask(x.cy, x.open, "what about all").WaitAnswer()
	}
	a.idle()
	if a.shelf.asked != 10 {
		t.Errorf("10 questions were worked on %d times", a.shelf.asked)
	}
	_ = b.stop()
	a.clean()
}

func TestD23TokenDiesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		private bool
	}{{"public: into the channel", false}, {"private: a direct message", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newTown()
			clock := clocktest.NewManualClock(time.Now())
			r := newRig(t, x, setting{now: clock.Now, options: []dt.Option{dt.WithClock(clock)}})
			r.SetRules(dt.Rules{Explicit: true, CanRead: x.canRead, Claimed: func(string) bool { return true }, Lost: true})
			var once atomic.Bool
			r.shelf.wait = func(context.Context, bot.Message) {
				if !once.Swap(true) {
					clock.Advance(16 * time.Minute)
					r.adapter.book.Confirm() // the connection is alive
				}
			}
			i := r.Command(x.bob, x.thread, "ask", map[string]any{"question": "what about all", "private": tt.private})
			where := x.thread
			if tt.private {
				where = r.DMChannel(x.bob)
			}
			m := r.WaitMessage(where, func(m dt.Message) bool { return strings.Contains(m.Content, "docall") })
			if m.Nonce == "" || m.Channel != where || !strings.Contains(m.Content, "> what about all") {
				t.Errorf("message %+v", m)
			}
			if n := len(r.Requests(dt.RouteEditResponse)); n != 0 {
				t.Errorf("%d calls with a dead token", n)
			}
			_ = i
			r.idle()
		})
	}
}

// A token may die before its time by our clock.
func TestD23TokenDiesEarly(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.SetRules(dt.Rules{Explicit: true, CanRead: x.canRead, Lost: true, DeadTokenCalls: 1})
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Status: 401, Code: codeInvalidToken})
	r.ask(x.cy, x.open, "what about all")
	r.WaitMessage(x.open, func(m dt.Message) bool { return strings.Contains(m.Content, "docall") })
	r.idle()
	if n := len(r.Requests(dt.RouteEditResponse)); n != 1 {
		t.Errorf("%d edits with a dead token", n)
	}
}

func TestD25SomebodyElseResponded(t *testing.T) {
	t.Parallel()
	x := newTown()
	for _, tt := range []struct {
		name   string
		fault  dt.Fault
		reason string
	}{
		{"acknowledged already", dt.Fault{Route: dt.RouteCallback, Status: 400, Code: codeAcknowledged}, "elsewhere"},
		{"too late", dt.Fault{Route: dt.RouteCallback, Status: 404, Code: codeUnknownInteraction}, "too_late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, x, setting{})
			r.AddFault(tt.fault)
			i := r.ask(x.cy, x.open, "what about all")
			r.WaitRequests(dt.RouteCallback, 1)
			r.idle()
			d, err := r.ledger.Delivery(context.Background(), "discord|"+r.App().ID+"|"+i.ID)
			if err != nil || d.Reason != tt.reason {
				t.Errorf("delivery %+v, %v", d, err)
			}
			if n := len(r.Requests(dt.RouteCallback)) + len(r.Requests(dt.RouteEditResponse)) + len(r.Requests(dt.RouteMessage)); n != 1 {
				t.Errorf("%d calls instead of one", n)
			}
		})
	}
}

func TestD49AmbiguousCallbackIsSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	r.AddFault(dt.Fault{Route: dt.RouteCallback, Calls: dt.Nth(1), ResetAfter: true})
	if m := r.ask(r.town.cy, r.town.open, "what about all").WaitAnswer(); !strings.Contains(m.Content, "docall") {
		t.Errorf("answer %+v", m)
	}
	r.clean()
}

func TestD26DismissedStops(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.SetRules(dt.Rules{Explicit: true, Lost: true, DeadTokenCalls: 1})
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Status: 404, Code: codeUnknownMessage})
	i := r.ask(x.cy, x.open, "what about all")
	r.WaitRequests(dt.RouteEditResponse, 1)
	r.idle()
	d, _ := r.ledger.Delivery(context.Background(), "discord|"+r.App().ID+"|"+i.ID)
	if d.Reason != "dismissed" || len(r.Requests(dt.RouteMessage)) != 0 {
		t.Errorf("ended as %s, %d messages", d.Reason, len(r.Requests(dt.RouteMessage)))
	}
}

func TestD14UnknownInteractions(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.Inject(x.cy, x.open, 9, map[string]any{}) // no response is valid; nothing may break
	for name, tt := range map[string]struct {
		kind int
		data map[string]any
	}{
		"unknown command":            {2, map[string]any{"name": "dance", "type": 1}},
		"unknown button":             {3, map[string]any{"custom_id": "x", "component_type": 2}},
		"forged button":              {3, map[string]any{"custom_id": "fn:guess:s1", "component_type": 2}},
		"modal":                      {5, map[string]any{"custom_id": "fn:x:y"}},
		"option of another type":     {2, map[string]any{"name": "ask", "type": 1, "options": []any{map[string]any{"name": "question", "type": 3, "value": 7}}}},
		"subcommand that is not one": {2, map[string]any{"name": "footnote", "type": 1, "options": []any{map[string]any{"name": "x", "type": 1}}}},
		"options of another shape":   {2, map[string]any{"name": "ask", "type": 1, "options": "none"}},
	} {
		i := r.Inject(x.cy, x.open, tt.kind, tt.data)
		if m := i.WaitAnswer(); m.EphemeralTo != x.cy || m.Content == "" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	t.Run("D-30 nothing opens a modal", func(t *testing.T) {
		for _, c := range r.Requests(dt.RouteCallback) {
			if kind := string(c.Field("type")); kind == "9" {
				t.Errorf("%s", c.Body)
			}
		}
	})
	r.clean()
}

func TestD51MissingFields(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for _, field := range []string{"context", "locale", "guild_locale", "app_permissions", "authorizing_integration_owners", "channel", "entitlements"} {
		m := r.ask(x.cy, x.open, "what about all", dt.Delivery{Without: []string{field}}).WaitAnswer()
		if !strings.Contains(m.Content, "docall") {
			t.Errorf("without %s: %s", field, m.Content)
		}
	}
	i := r.ask(x.cy, x.open, "what about all", dt.Delivery{Without: []string{"member"}})
	t.Run("B-66 without a member", func(t *testing.T) {
		if m := i.WaitAnswer(); strings.Contains(m.Content, "docall") {
			t.Error(m.Content)
		}
	})
	r.idle()
}

func TestD29AutocompleteSuggestsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	i := r.Inject(r.town.cy, r.town.open, typeAutocomplete, map[string]any{"name": "ask", "type": 1})
	if kind := i.Wait(); kind != respondChoices || string(i.Choices()) != "[]" {
		t.Errorf("kind %d, choices %s", kind, i.Choices())
	}
	r.clean()
}

func TestC08PanicsAreToldAndSurvived(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	t.Run("B-81 the response is edited, not made again", func(t *testing.T) {
		if m := r.ask(x.cy, x.open, "panic please").WaitAnswer(); !strings.Contains(m.Content, "Reference") {
			t.Errorf("after a panic: %s", m.Content)
		}
		if n := len(r.Requests(dt.RouteCallback)); n != 1 {
			t.Errorf("%d first responses", n)
		}
	})
	if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); !strings.Contains(m.Content, "docall") {
		t.Errorf("afterwards: %s", m.Content)
	}
	r.clean()
}

func TestC07ShutdownLeavesNoIndicator(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{desk: func(o *desk.Options) { o.Grace = 10 * time.Millisecond }})
	started := make(chan struct{})
	r.shelf.wait = func(ctx context.Context, _ bot.Message) { close(started); <-ctx.Done() }
	i := r.ask(x.cy, x.open, "what about all")
	<-started
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if m, ok := i.Response(); !ok || m.Thinking || !strings.Contains(m.Content, "restarted") {
		t.Errorf("left behind: %+v", m)
	}
	// The next start answers it, in the same place.
	r.shelf.wait = nil
	next := newRig(t, x, setting{server: r.Server, ledger: r.ledger, shelf: r.shelf})
	next.Eventually("answered after the restart", func() bool { m, _ := i.Response(); return strings.Contains(m.Content, "docall") })
	next.clean()
}

func TestC11ShedQuestionsAreTold(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{desk: func(o *desk.Options) { o.PerAsker = 1 }})
	hold := make(chan struct{})
	r.shelf.wait = func(context.Context, bot.Message) { <-hold }
	first := r.ask(x.cy, x.open, "what about all")
	first.Wait()
	if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); m.EphemeralTo != x.cy || !strings.Contains(m.Content, "waiting") {
		t.Errorf("the shed question got %+v", m)
	}
	close(hold)
	first.WaitAnswer()
	r.idle()
}

// brokenClaims cannot store anything.
type brokenClaims struct{ *ledger.Ledger }

func (brokenClaims) Claim(context.Context, ledger.Delivery, time.Duration) (ledger.Delivery, bool, error) {
	return ledger.Delivery{}, false, errors.New("no space left on the device")
}

func TestCase_L6(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{desk: func(o *desk.Options) { o.Ledger = brokenClaims{o.Ledger.(*ledger.Ledger)} }})
	if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); m.EphemeralTo != x.cy || m.Content == "" || strings.Contains(m.Content, "docall") {
		t.Errorf("with a broken ledger: %+v", m)
	}
}

func TestCase_L7(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{desk: func(o *desk.Options) { o.PerAsker, o.PerRoom, o.Queue = 100, 100, 64 }})
	hold := make(chan struct{})
	r.shelf.wait = func(context.Context, bot.Message) { <-hold }
	var all []*dt.Interaction
	for range 65 {
		all = append(all, r.ask(x.cy, x.open, "what about all"))
	}
	for _, i := range all {
		i.Wait()
	}
	close(hold)
	told := 0
	for _, i := range all {
		if m := i.WaitAnswer(); strings.Contains(m.Content, "questions are waiting") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d of 65 were told that the queue is full", told)
	}
	r.idle()
}

func TestDirectoryFailsClosed(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	ctx := context.Background()
	d := r.adapter.Directory()
	bob, err := d.Identify(ctx, "discord:"+x.guild+":user/"+x.bob)
	if err != nil || !acl.NewGrant(bob, acl.AskerOnly()).Admits(acl.NewList(of(x.guild, "role/"+x.staff))) {
		t.Errorf("bob is %v, %v", bob.Principals(), err)
	}
	if age, ok := d.Age("discord:" + x.guild + ":user/" + x.bob); !ok || age > time.Minute {
		t.Errorf("age %v, %v", age, ok)
	}
	for _, account := range []string{"", "bob", "discord:9:user/" + x.bob, "discord:" + x.guild + ":user/x", "slack:1:user/2"} {
		if id, err := d.Identify(ctx, account); !errors.Is(err, acl.ErrUnknown) || len(id.Principals()) > 0 {
			t.Errorf("%q is %v, %v", account, id.Principals(), err)
		}
	}
	for _, room := range []string{"", "discord:" + x.guild + ":channel/9", "discord:9:channel/" + x.open} {
		if _, err := d.Audience(ctx, room); !errors.Is(err, acl.ErrUnknown) {
			t.Errorf("room %q: %v", room, err)
		}
	}
	r.AddFault(dt.Fault{Route: dt.RouteMember, Status: http.StatusForbidden, Code: 50001})
	if _, err := d.Identify(ctx, "discord:"+x.guild+":user/"+x.cy); !errors.Is(err, acl.ErrUnknown) {
		t.Errorf("P11: a failing look-up gave %v", err)
	}
}
