package discordtest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot/clocktest"
)

func TestWhoCanView(t *testing.T) {
	t.Parallel()
	x := newTown()
	out := x.world.AddUser(dt.User{Name: "outsider"})
	admin := x.world.AddUser(dt.User{Name: "admin"})
	x.world.AddMember(x.guild, admin, x.world.AddRole(x.guild, dt.Role{Name: "admin", Permissions: dt.Administrator}))
	mod := x.world.AddUser(dt.User{Name: "mod"})
	x.world.AddMember(x.guild, mod, x.world.AddRole(x.guild, dt.Role{Name: "mod", Permissions: dt.ManageThreads}))
	secret := x.world.AddChannel(dt.Channel{GuildID: x.guild, Name: "p", Type: dt.PrivateThread, Parent: x.open, Members: []string{x.cy}})
	own := x.world.AddChannel(dt.Channel{GuildID: x.guild, Name: "own", Type: dt.Text, Overwrites: []dt.Overwrite{
		{ID: x.guild, Deny: dt.ViewChannel}, {ID: x.cy, Member: true, Allow: dt.ViewChannel},
		{ID: x.staff, Allow: dt.ViewChannel}, {ID: x.bob, Member: true, Deny: dt.ViewChannel},
	}})
	s, _ := x.start(t)
	bot := s.App().BotUser
	cases := map[string]struct {
		channel string
		want    []string
	}{
		"open":                          {x.open, []string{x.ada, x.bob, x.cy, admin, mod, bot}},
		"role only":                     {x.closed, []string{x.ada, x.bob, admin, bot}},
		"thread of an open channel":     {x.thread, []string{x.ada, x.bob, x.cy, admin, mod, bot}},
		"thread of a hidden channel":    {x.hidden, []string{x.ada, x.bob, admin, bot}},
		"private thread":                {secret, []string{x.ada, x.cy, admin, mod}},
		"member overwrites beat roles":  {own, []string{x.ada, x.cy, admin}},
		"hidden even from the bot":      {x.gone, []string{x.ada, x.bob, admin}},
		"direct channel":                {s.DMChannel(x.bob), []string{x.bob, bot}},
		"direct channel of an outsider": {s.DMChannel(out), []string{out, bot}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, u := range []string{x.ada, x.bob, x.cy, admin, mod, out, bot} {
				if s.CanView(u, c.channel) {
					got = append(got, u)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("viewers (-want +got):\n%s", d)
			}
		})
	}
}

func TestPermissionsChange(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t)
	if !s.Permissions(x.bob, x.open).Has(dt.SendMessages) {
		t.Error("bob cannot write in an open channel")
	}
	s.TimeOut(x.guild, x.bob, clock.Now().Add(time.Hour))
	if p := s.Permissions(x.bob, x.open); p != dt.ViewChannel|dt.ReadMessageHistory {
		t.Errorf("while timed out: %v, want to view and read only", p)
	}
	clock.Advance(2 * time.Hour)
	if !s.Permissions(x.bob, x.open).Has(dt.SendMessages) {
		t.Error("the time-out does not end")
	}
	s.SetRoles(x.guild, x.bob)
	if s.CanView(x.bob, x.closed) {
		t.Error("bob sees the staff channel without the role")
	}
	s.SetRoles(x.guild, x.cy, x.staff)
	s.DeleteRole(x.guild, x.staff)
	if s.CanView(x.cy, x.closed) {
		t.Error("a deleted role still grants")
	}
	s.ChangeGuild(x.guild, func(g *dt.Guild) { g.Owner = x.cy })
	if s.Permissions(x.cy, x.closed) != dt.AllPerms || s.Permissions(x.ada, x.closed) != 0 {
		t.Error("ownership did not move")
	}
	s.RemoveMember(x.guild, x.bob)
	if s.Permissions(x.bob, x.open) != 0 {
		t.Error("somebody who left keeps permissions")
	}
}

func TestPings(t *testing.T) {
	t.Parallel()
	x := newTown()
	text := "@everyone @here <@" + x.cy + "> <@!" + x.bob + "> <@&" + x.staff + ">"
	all := []string{"everyone", "here", "role:" + x.staff, "user:" + x.bob, "user:" + x.cy}
	cases := map[string]struct {
		rules any
		want  []string
	}{
		"absent":          {nil, all},
		"null parse":      {obj{"parse": nil}, all},
		"empty object":    {obj{}, all},
		"empty list":      {quiet, nil},
		"users":           {obj{"parse": []string{"users"}}, []string{"user:" + x.bob, "user:" + x.cy}},
		"one user":        {obj{"parse": []string{}, "users": []string{x.cy}}, []string{"user:" + x.cy}},
		"roles":           {obj{"parse": []string{"roles"}}, []string{"role:" + x.staff}},
		"everyone":        {obj{"parse": []string{"everyone"}}, []string{"everyone", "here"}},
		"lists, no parse": {obj{"roles": []string{x.staff}}, []string{"role:" + x.staff}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := x.start(t)
			body := obj{"content": text}
			if c.rules != nil {
				body["allowed_mentions"] = c.rules
			}
			expect(t, "posting", api(t, s, "POST", "/channels/"+x.open+"/messages", body), 200, 0)
			var got []string
			for _, p := range s.Pings() {
				got = append(got, p.Who)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("pings (-want +got):\n%s", d)
			}
			if (len(c.want) > 0) != (len(s.CheckInvariants()) > 0) {
				t.Errorf("invariants %v for pings %v", s.CheckInvariants(), c.want)
			}
		})
	}
}

func TestReplyPingsItsAuthorUnlessTold(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	m := s.Say(x.cy, x.open, "hm")
	api(t, s, "POST", "/channels/"+x.open+"/messages", obj{"content": "a", "message_reference": obj{"message_id": m.ID}})
	api(t, s, "POST", "/channels/"+x.open+"/messages", obj{"content": "b", "message_reference": obj{"message_id": m.ID}, "allowed_mentions": quiet})
	if p := s.Pings(); len(p) != 1 || p[0].Who != "user:"+x.cy {
		t.Errorf("pings %v, want cy once", p)
	}
}

// TestInvariants breaks each promise and expects exactly one line about it.
func TestInvariants(t *testing.T) {
	t.Parallel()
	answer := obj{"content": "a", "allowed_mentions": quiet, "components": []obj{{"type": 1, "components": []obj{{"type": 2, "style": 1, "label": "x", "custom_id": "b"}}}}}
	cases := map[string]struct {
		rules dt.Rules
		act   func(*testing.T, *town, *dt.Server, *clocktest.ManualClock)
		want  string
	}{
		"two final answers": {act: func(t *testing.T, x *town, s *dt.Server, _ *clocktest.ManualClock) {
			i := x.ask(s)
			callback(t, s, i, 4, answer)
			api(t, s, "POST", hook(s, i, ""), answer)
		}, want: "2 final answers"},
		"two replies to one mention": {act: func(t *testing.T, x *town, s *dt.Server, _ *clocktest.ManualClock) {
			m := s.Mention(x.bob, x.open, "why?")
			for range 2 {
				reply := obj{"content": "a", "components": answer["components"], "message_reference": obj{"message_id": m.ID}, "allowed_mentions": quiet}
				api(t, s, "POST", "/channels/"+x.open+"/messages", reply)
			}
		}, want: "2 final answers"},
		"a citation too far": {
			rules: dt.Rules{CanRead: func(_ string, m dt.Message) bool { return !strings.Contains(m.Content, "secret") }},
			act: func(t *testing.T, x *town, s *dt.Server, _ *clocktest.ManualClock) {
				i := x.ask(s)
				callback(t, s, i, 4, obj{"content": "secret", "flags": 64, "allowed_mentions": quiet})
				api(t, s, "PATCH", hook(s, i, original), msg("sorry"))
			}, want: "may not read"},
		"no explicit list": {rules: dt.Rules{Explicit: true}, act: func(t *testing.T, x *town, s *dt.Server, _ *clocktest.ManualClock) {
			callback(t, s, x.ask(s), 4, obj{"content": "plain"})
		}, want: "explicit"},
		"dead token twice": {act: func(t *testing.T, x *town, s *dt.Server, clock *clocktest.ManualClock) {
			i := x.ask(s)
			clock.Advance(4 * time.Second)
			callback(t, s, i, 5, nil)
			callback(t, s, i, 5, nil)
		}, want: "dead token"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, s, clock := askedIn(t, dt.WithRules(c.rules))
			c.act(t, x, s, clock)
			if bad := s.CheckInvariants(); len(bad) != 1 || !strings.Contains(bad[0], c.want) {
				t.Errorf("invariants %q, want one with %q", bad, c.want)
			}
		})
	}
}

func TestMisuseWithoutATestPanics(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := dt.New(nil, x.world)
	defer s.Close()
	defer func() {
		if r := recover(); r == nil {
			t.Error("a command that is not registered was accepted")
		}
	}()
	x.ask(s)
}
