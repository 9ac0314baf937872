package discordtest_test

import (
	"strings"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot/clocktest"
)

func askedIn(t *testing.T, opts ...dt.Option) (*town, *dt.Server, *clocktest.ManualClock) {
	t.Helper()
	x := newTown()
	s, clock := x.start(t, opts...)
	register(t, s, x.guild)
	return x, s, clock
}

func (x *town) ask(s *dt.Server) *dt.Interaction {
	return s.Command(x.bob, x.open, "ask", map[string]any{"question": "why?"})
}

func expect(t *testing.T, what string, r reply, status, code int) {
	t.Helper()
	if r.Status != status || r.Code != code {
		t.Errorf("%s: got %d code %d %s, want %d code %d", what, r.Status, r.Code, r.Body, status, code)
	}
}

func TestDeferralIsResolvedByEdit(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	r := callback(t, s, i, 5, obj{"flags": 64})
	expect(t, "deferral", r, 204, 0)
	if r.Body != "" {
		t.Errorf("the callback has a body: %s", r.Body)
	}
	expect(t, "second callback", callback(t, s, i, 4, msg("x")), 400, 40060)
	m, _ := i.Response()
	if !m.Thinking || m.EphemeralTo != x.bob {
		t.Errorf("deferral is %+v, want thinking for bob alone", m)
	}
	if bad := s.CheckInvariants(); len(bad) != 1 || !strings.Contains(bad[0], "thinking") {
		t.Errorf("invariants %v, want one about a deferral left thinking", bad)
	}
	expect(t, "edit", api(t, s, "PATCH", hook(s, i, original), msg("because")), 200, 0)
	if got := i.WaitAnswer(); got.Content != "because" || s.VisibleTo(x.ada, got) || !s.VisibleTo(x.bob, got) {
		t.Errorf("the answer is %+v; only bob may see it", got)
	}
	if e := s.Ephemerals(x.bob); len(e) != 1 {
		t.Errorf("bob has %d ephemeral messages, want 1", len(e))
	}
	if n := len(s.Messages(x.open)); n != 0 {
		t.Errorf("%d public messages, want none", n)
	}
	expect(t, "get by the channel", api(t, s, "GET", "/channels/"+x.open+"/messages/"+m.ID, nil), 404, 10008)
	expect(t, "get by the token", api(t, s, "GET", hook(s, i, original), nil), 200, 0)
	clean(t, s)
}

func TestFirstFollowupAfterDeferralEditsAndKeepsVisibility(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	callback(t, s, i, 5, nil)
	private := obj{"content": "secret", "flags": 64, "allowed_mentions": quiet}
	expect(t, "follow-up", api(t, s, "POST", hook(s, i, ""), private), 200, 0)
	if m, _ := i.Response(); m.Content != "secret" || m.EphemeralTo != "" || !s.VisibleTo(x.cy, m) {
		t.Errorf("got %+v, want the public deferral edited", m)
	}
	expect(t, "second follow-up", api(t, s, "POST", hook(s, i, ""), private), 200, 0)
	if e := s.Ephemerals(x.bob); len(e) != 1 {
		t.Errorf("%d ephemeral messages, want the second follow-up", len(e))
	}
	if n := len(s.Responses(i.ID)); n != 2 {
		t.Errorf("%d responses, want 2", n)
	}
}

func TestTokenTimes(t *testing.T) {
	t.Parallel()
	x, s, clock := askedIn(t)
	late, good := x.ask(s), x.ask(s)
	expect(t, "webhook before the callback", api(t, s, "PATCH", hook(s, late, original), msg("x")), 404, 10015)
	callback(t, s, good, 5, nil)
	clock.Advance(3100 * time.Millisecond)
	expect(t, "late callback", callback(t, s, late, 4, msg("x")), 404, 10062)
	if !late.Failed() || len(s.Failures(x.bob)) != 1 {
		t.Errorf("bob was told %v, want one failure", s.Failures(x.bob))
	}
	clock.Advance(14 * time.Minute)
	expect(t, "edit after 14 minutes", api(t, s, "PATCH", hook(s, good, original), msg("x")), 200, 0)
	clock.Advance(time.Minute)
	if bad := s.CheckInvariants(); len(bad) != 0 {
		t.Errorf("nothing was sent to the app, and yet %v", bad)
	}
	expect(t, "edit after 15 minutes", api(t, s, "PATCH", hook(s, good, original), msg("x")), 401, 50027)
	if bad := s.CheckInvariants(); len(bad) != 1 || !strings.Contains(bad[0], "dead token") {
		t.Errorf("invariants %v, want one about a dead token", bad)
	}
}

func TestCallbackKinds(t *testing.T) {
	t.Parallel()
	modal := obj{"title": "Why?", "custom_id": "m", "components": []obj{{"type": 1, "components": []obj{{"type": 4, "custom_id": "reason", "style": 1, "label": "Reason"}}}}}
	buttons := obj{"content": "x", "components": []obj{{"type": 1, "components": []obj{{"type": 2, "style": 1, "label": "x", "custom_id": "b"}}}}}
	cases := map[string]struct {
		click, typing bool
		kind          int
		data          any
		status, code  int
	}{
		"command, message":           {kind: 4, data: msg("x"), status: 204},
		"command, empty message":     {kind: 4, data: msg(""), status: 400, code: 50006},
		"command, long message":      {kind: 4, data: msg(strings.Repeat("x", 2001)), status: 400, code: 50035},
		"command, update":            {kind: 7, data: msg("x"), status: 400, code: 50035},
		"command, modal":             {kind: 9, data: modal, status: 204},
		"command, modal of nothing":  {kind: 9, data: obj{"title": "x", "custom_id": "m"}, status: 400, code: 50035},
		"command, pong":              {kind: 1, status: 400, code: 50035},
		"deferral with other flags":  {kind: 5, data: obj{"flags": 4}, status: 400, code: 50035},
		"click, quiet deferral":      {click: true, kind: 6, status: 204},
		"click, update":              {click: true, kind: 7, data: msg("y"), status: 204},
		"click, private message":     {click: true, kind: 4, data: obj{"content": "y", "flags": 64, "allowed_mentions": quiet}, status: 204},
		"typing, choices":            {typing: true, kind: 8, data: obj{"choices": []obj{{"name": "a", "value": "a"}}}, status: 204},
		"typing, deferral":           {typing: true, kind: 5, status: 400, code: 50035},
		"typing, no list of choices": {typing: true, kind: 8, data: obj{}, status: 400, code: 50035},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, s, _ := askedIn(t)
			i := x.ask(s)
			switch {
			case c.click:
				expect(t, "message with a button", callback(t, s, i, 4, buttons), 204, 0)
				m, _ := i.Response()
				i = s.Click(x.cy, m, "b")
			case c.typing:
				i = s.Autocomplete(x.bob, x.open, "ask", "question", map[string]any{"question": "wh"})
			}
			expect(t, name, callback(t, s, i, c.kind, c.data), c.status, c.code)
		})
	}
}

func TestCallbackWithResponse(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	r := api(t, s, "POST", "/interactions/"+i.ID+"/"+i.Token+"/callback?with_response=true", obj{"type": 4, "data": msg("x")})
	m, _ := i.Response()
	if r.Status != 200 || r.at("interaction", "response_message_id") != m.ID {
		t.Errorf("got %d %s, want the id of message %s", r.Status, r.Body, m.ID)
	}
}

func TestModalRoundTrip(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	callback(t, s, i, 9, obj{"title": "Why?", "custom_id": "m", "components": []obj{{"type": 1, "components": []obj{{"type": 4, "custom_id": "reason", "style": 1, "label": "Reason"}}}}})
	sub := s.Modal(x.bob, i, map[string]string{"reason": "wrong"})
	if p := string(sub.Payload()); !strings.Contains(p, `"value":"wrong"`) || !strings.Contains(p, `"type":5`) {
		t.Errorf("payload %s", p)
	}
	expect(t, "answer", callback(t, s, sub, 4, obj{"content": "thanks", "flags": 64, "allowed_mentions": quiet}), 204, 0)
	clean(t, s)
}

func TestDismissedAndDeletedResponses(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	callback(t, s, i, 5, obj{"flags": 64})
	m, _ := i.Response()
	s.Delete(m)
	expect(t, "edit of a dismissed message", api(t, s, "PATCH", hook(s, i, original), msg("x")), 404, 10008)
	clean(t, s)
	expect(t, "second edit", api(t, s, "PATCH", hook(s, i, original), msg("x")), 404, 10008)
	if bad := s.CheckInvariants(); len(bad) != 1 || !strings.Contains(bad[0], "gone") {
		t.Errorf("invariants %v, want one about a message that is gone", bad)
	}
}

func TestUserInstall(t *testing.T) {
	t.Parallel()
	x := newTown()
	away := x.world.AddGuild(dt.Guild{Name: "elsewhere", Owner: x.ada, NoBot: true, NoCommands: true})
	x.world.AddMember(away, x.cy)
	hall := x.world.AddChannel(dt.Channel{GuildID: away, Name: "hall", Type: dt.Text})
	for i := range x.world.Users {
		x.world.Users[i].Installed = x.world.Users[i].ID == x.cy
	}
	s, _ := x.start(t)
	api(t, s, "PUT", "/applications/"+s.App().ID+"/commands", []obj{{"name": "ask", "description": "x", "integration_types": []int{0, 1}, "contexts": []int{0, 1, 2}}})
	i := s.Command(x.cy, hall, "ask", nil, dt.Delivery{UserInstall: true})
	p := string(i.Payload())
	if !strings.Contains(p, `"authorizing_integration_owners":{"1":"`+x.cy+`"}`) {
		t.Errorf("owners in %s, want the user alone", p)
	}
	callback(t, s, i, 4, msg("x"))
	for range 5 {
		expect(t, "follow-up", api(t, s, "POST", hook(s, i, ""), msg("x")), 200, 0)
	}
	expect(t, "sixth follow-up", api(t, s, "POST", hook(s, i, ""), msg("x")), 400, 40094)
}

func TestPayloadsByPlace(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	api(t, s, "PUT", "/applications/"+s.App().ID+"/commands", []obj{{"name": "help", "description": "x"}})
	inGuild := string(x.ask(s).Payload())
	for _, want := range []string{`"guild_id":"` + x.guild, `"member":{`, `"context":0`, `"roles":["` + x.staff, `"app_permissions":"`} {
		if !strings.Contains(inGuild, want) {
			t.Errorf("guild payload lacks %s: %s", want, inGuild)
		}
	}
	direct := string(s.Command(x.cy, s.DMChannel(x.cy), "help", nil).Payload())
	for _, want := range []string{`"user":{`, `"context":1`, `"locale":"de"`} {
		if !strings.Contains(direct, want) {
			t.Errorf("direct payload lacks %s: %s", want, direct)
		}
	}
	if strings.Contains(direct, `"member"`) || strings.Contains(direct, `"guild_id"`) {
		t.Errorf("direct payload names a guild: %s", direct)
	}
	odd := string(s.Inject(x.bob, x.open, 99, nil, dt.Delivery{Without: []string{"app_permissions", "context"}, With: map[string]any{"novelty": 1}}).Payload())
	if strings.Contains(odd, `"data"`) || strings.Contains(odd, `"app_permissions"`) || strings.Contains(odd, `"context"`) || !strings.Contains(odd, `"novelty"`) {
		t.Errorf("changed payload: %s", odd)
	}
}
