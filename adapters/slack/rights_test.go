package slack_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"footnote/acl"
	"footnote/adapters/slack"
	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/slacktest"
	"footnote/bot/cite"
	"footnote/bot/clocktest"
	"footnote/bot/generate"
)

var all = []doc{handbook, plan, diary, leaflet, minutes}

// people are the accounts of the matrix, places where they ask.
func matrixWorld() slacktest.World {
	w := slacktest.DemoWorld()
	w.Others = append(w.Others, slacktest.Team{ID: "T0AWAY", Name: "Away"})
	eve := w.Add(slacktest.User{ID: "U0EVE", Name: "eve", TeamID: "T0AWAY"})
	w.AddChannel(slacktest.Channel{Name: "shared", Kind: slacktest.Public, Members: []string{"U0BOT", "U0ADA", eve}, ExtShared: true, Connected: []string{"T0AWAY"}})
	w.Private("small", "U0ADA", "U0CYD")
	w.Private("guests", "U0ADA", "U0DAN")
	return w
}

// What is answered where, for each document: the whole access matrix of the
// platform. "" is a refusal in the thread, "dm" an answer there, "no" nothing.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	questions := map[string]string{"handbook": qHandbook, "plan": qPlan, "diary": qDiary, "leaflet": qLeaflet, "minutes": qMinutes}
	cases := []struct {
		id, who, where string
		may            []string
	}{
		{"P-01", "U0ADA", "dm", []string{"handbook", "plan", "diary", "leaflet", "minutes"}},
		{"P-13", "U0BOB", "dm", []string{"handbook", "plan", "leaflet", "minutes"}},
		{"P-01", "U0CYD", "dm", []string{"handbook", "leaflet", "minutes"}},
		{"S-64", "U0DAN", "dm", []string{"leaflet"}},
		// P-10: a public channel is read by every full member.
		{"P-10", "U0ADA", "C0GENERAL", []string{"handbook", "leaflet", "minutes"}},
		// P-12: a guest among them lowers that.
		{"P-12", "U0ADA", "C0HELP", []string{"leaflet"}},
		{"S-64", "U0DAN", "C0HELP", []string{"leaflet"}},
		// P-11: a private channel is enumerated; a person's own documents stay out.
		{"P-14", "U0ADA", "C0SECURITY", []string{"handbook", "plan", "leaflet"}},
		{"P-30", "U0ADA", "C0SMALL", []string{"handbook", "leaflet"}},
		{"P-12", "U0ADA", "C0GUESTS", []string{"leaflet"}},
	}
	for _, c := range cases {
		for name, text := range questions {
			t.Run(fmt.Sprint(c.id, " ", c.who, " in ", c.where, " asks for ", name), func(t *testing.T) {
				t.Parallel()
				s := slacktest.New(t, matrixWorld())
				p := start(t, s, newStore(t, all...))
				var q msg
				if c.where == "dm" {
					q = s.DM(c.who, text)
				} else {
					q = s.Mention(c.who, c.where, text)
				}
				got := shown(p.answer(q))
				if answered := strings.Contains(got, "Sources"); answered != slices.Contains(c.may, name) {
					t.Errorf("answered %t: %s", answered, got)
				}
				p.done()
			})
		}
	}
}

func TestP13AGroupConversationIsItsPeople(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	for text, want := range map[string]bool{"<@U0BOT> " + qPlan: true, "<@U0BOT> " + qDiary: false} {
		q := s.GroupDM("U0ADA", []string{"U0BOB"}, text)
		if got := strings.Contains(shown(p.answer(q)), "Sources"); got != want {
			t.Errorf("%s: answered %t", text, got)
		}
	}
	p.done()
}

// Absent and forbidden look the same, and both offer a direct message.
func TestCase_P18(t *testing.T) {
	t.Parallel()
	t.Run("C-12 P-02 P-40 forbidden is as absent, and both offer a way on", func(t *testing.T) {
		s := slacktest.New(t, matrixWorld())
		with, without := newStore(t, handbook, plan), newStore(t, handbook)
		say := func(index *store) string {
			s := slacktest.New(t, matrixWorld())
			p := start(t, s, index)
			text := shown(p.answer(s.Mention("U0CYD", "C0GENERAL", qPlan)))
			p.done()
			return text
		}
		a, b := say(with), say(without)
		if a != b || !strings.Contains(a, "Ask in a direct message") || strings.Contains(a, "The plan") {
			t.Errorf("forbidden:\n%s\nabsent:\n%s", a, b)
		}
		// There the same question is answered to one who may.
		p := start(t, s, with)
		q := s.Mention("U0ADA", "C0GENERAL", qPlan)
		r := p.answer(q)
		s.Click("U0ADA", r, "direct")
		m := s.WaitMessage(s.DMChannel("U0ADA"), slacktest.HasButtons)
		if !strings.Contains(shown(m), "rotates each Friday") {
			t.Errorf("answered %s", shown(m))
		}
		p.quiet()
	})
}

// An unknown or failing lookup shows less, never more.
func TestC04P04EveryLookupThatFailsShowsLess(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"users.info", "users.list", "usergroups.list", "conversations.info", "conversations.members", "users.conversations"} {
		for _, f := range []slacktest.Fault{{Error: "fatal_error"}, {EmptyError: true}, {Error: "missing_scope"}, {Error: "fetch_members_failed"}, {Malformed: true}, {Status: 500}} {
			f.Route = route
			t.Run(fmt.Sprintf("%s %+v", route, f.Error), func(t *testing.T) {
				t.Parallel()
				s := slacktest.New(t, matrixWorld())
				s.AddFault(f)
				p := start(t, s, newStore(t, all...))
				s.Mention("U0ADA", "C0SECURITY", qPlan)
				s.Mention("U0DAN", "C0HELP", qHandbook)
				p.done()
				for _, m := range slices.Concat(s.Everything("C0SECURITY"), s.Everything("C0HELP")) {
					if m.BotID != "" && strings.Contains(shown(m), "vacation days each year.") {
						t.Errorf("shown %s", shown(m))
					}
				}
			})
		}
	}
}

func TestCase_P11(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	s.AddFault(slacktest.Fault{Route: "conversations.info", Error: "internal_error"})
	p := start(t, s, newStore(t, all...))
	q := s.Mention("U0ADA", "C0GENERAL", qHandbook)
	m := s.WaitMessage(s.DMChannel("U0ADA"), slacktest.HasButtons)
	if !strings.Contains(shown(m), "only you see this answer") {
		t.Errorf("said %s", shown(m))
	}
	p.done()
	if got := s.FromBot(q.Channel); len(got) > 0 {
		t.Errorf("said in the channel: %s", got[0].Text)
	}
}

// Removed from the group: not a minute later, but at once; and without any
// event when the data is too old.
func TestCase_P12(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewManualClock(time.Time{})
	s := slacktest.New(t, matrixWorld(), slacktest.WithClock(clock))
	p := start(t, s, newStore(t, all...))
	q := s.DM("U0BOB", qPlan)
	a := p.answer(q)
	if !strings.Contains(shown(a), "Friday") {
		t.Fatalf("answered %s", shown(a))
	}
	p.quiet()
	s.SetGroup("S0SECURITY", "U0ADA")
	p.quiet()
	s.Eventually("the event to be taken", func() bool { return s.Unsettled() == 0 })
	if text := shown(p.answer(s.DM("U0BOB", qPlan))); strings.Contains(text, "Sources") {
		t.Errorf("answered %s", text)
	}
	s.Click("U0BOB", a, "source_1")
	if v := s.WaitView("U0BOB", slacktest.Any[slacktest.View]); strings.Contains(string(v.Blocks), "Friday") {
		t.Errorf("opened %s", v.Blocks)
	}
	p.quiet()
	// Without a word from Slack, after the maximum age.
	s.ChangeSilently(func(_ map[string]*slacktest.User, groups map[string]*slacktest.Group, _ map[string]*slacktest.Channel) {
		groups["S0SECURITY"].Users = nil
	})
	clock.Advance(6 * time.Minute)
	if text := shown(p.answer(s.DM("U0ADA", qPlan))); strings.Contains(text, "Sources") {
		t.Errorf("answered %s", text)
	}
	p.quiet()
}

// A refresh that fails halfway serves neither half.
func TestCase_P13(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	members := []string{"U0ADA"}
	for i := range 250 {
		members = append(members, w.Add(slacktest.User{ID: fmt.Sprintf("U0M%04d", i), Name: fmt.Sprintf("m%d", i)}))
	}
	members = append(members, "U0DAN") // the guest is on the second page
	w.Private("large", members...)
	s := slacktest.New(t, w)
	s.AddFault(slacktest.Fault{Route: "conversations.members", Calls: func(n int) bool { return n > 1 }, Error: "fetch_members_failed"})
	p := start(t, s, newStore(t, all...))
	s.Mention("U0ADA", "C0LARGE", qHandbook)
	s.WaitMessage(s.DMChannel("U0ADA"), slacktest.HasButtons)
	p.done()
	if got := s.FromBot("C0LARGE"); len(got) > 0 {
		t.Errorf("said in the channel: %s", got[0].Text)
	}
}

func TestS69APrivateChannelIsEnumeratedInFull(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	members := []string{"U0ADA"}
	for i := range 450 {
		members = append(members, w.Add(slacktest.User{ID: fmt.Sprintf("U0M%04d", i), Name: fmt.Sprintf("m%d", i)}))
	}
	w.Private("large", append(members, "U0DAN")...)
	w.Private("members", members...)
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, handbook, leaflet))
	for ch, want := range map[string]bool{"C0LARGE": false, "C0MEMBERS": true} {
		if got := strings.Contains(shown(p.answer(s.Mention("U0ADA", ch, qHandbook))), "Sources"); got != want {
			t.Errorf("%s: answered %t", ch, got)
		}
	}
	p.quiet()
	if n := len(s.Requests("users.info")); n > 30 {
		t.Errorf("%d calls of users.info for 450 people", n)
	}
}

// Who may read changes while the question is worked on.
func TestP31ChangesBetweenQuestionAndAnswerCount(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		where, text string
		change      func(s *slacktest.Server)
	}{
		"S-66 the asker leaves the group": {"C0SECURITY", qPlan, func(s *slacktest.Server) { s.SetGroup("S0SECURITY", "U0BOB") }},
		"a member joins who may not read": {"C0SECURITY", qPlan, func(s *slacktest.Server) { s.Join("U0CYD", "C0SECURITY") }},
		"a guest joins":                   {"C0GENERAL", qHandbook, func(s *slacktest.Server) { s.Join("U0DAN", "C0GENERAL") }},
		"the channel is shared":           {"C0GENERAL", qHandbook, func(s *slacktest.Server) { s.ShareChannel("C0GENERAL", "T0AWAY", false) }},
		"the asker becomes a guest":       {"C0GENERAL", qHandbook, func(s *slacktest.Server) { s.UpdateUser("U0ADA", func(u *slacktest.User) { u.Guest = true }) }},
		"the account is closed":           {"C0GENERAL", qHandbook, func(s *slacktest.Server) { s.UpdateUser("U0ADA", func(u *slacktest.User) { u.Deleted = true }) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, matrixWorld())
			block, let := make(chan struct{}), make(chan struct{})
			p := start(t, s, newStore(t, handbook, plan), drafting(gated(block, let)))
			q := s.Mention("U0ADA", c.where, c.text)
			<-block
			c.change(s)
			s.WaitSettled()
			close(let)
			p.quiet()
			for _, m := range s.Everything(q.Channel) {
				if m.BotID != "" && strings.Contains(shown(m), "Sources") {
					t.Errorf("posted %s", shown(m))
				}
			}
		})
	}
}

func TestS63PeopleFromOutsideAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*slacktest.User){
		"S-62 B-35 not a stranger, yet of another organisation": func(u *slacktest.User) {},
		"a stranger":                  func(u *slacktest.User) { u.Stranger = true },
		"S-61 B-36 hidden from users": func(u *slacktest.User) { u.Hidden = true },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := matrixWorld()
			i := slices.IndexFunc(w.Users, func(u slacktest.User) bool { return u.ID == "U0EVE" })
			change(&w.Users[i])
			s := slacktest.New(t, w)
			p := start(t, s, newStore(t, all...), drafting(nil))
			s.Mention("U0EVE", "C0SHARED", qHandbook)
			got := s.WaitEphemeral("U0EVE", slacktest.Any[msg])
			if !strings.Contains(got.Text, "only members of the organisation") {
				t.Errorf("said %s", got.Text)
			}
			p.done()
			if got := s.FromBot("C0SHARED"); len(got) > 0 {
				t.Errorf("said %s", got[0].Text)
			}
		})
	}
}

func TestP12WhereOutsidersReadNothingIsAnswered(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...), drafting(nil))
	s.Mention("U0ADA", "C0SHARED", qHandbook)
	if got := s.WaitEphemeral("U0ADA", slacktest.Any[msg]); !strings.Contains(got.Text, "direct message") {
		t.Errorf("said %s", got.Text)
	}
	p.done()
}

func TestP12WhereOutsidersReadLabelledDocumentsAreAnswered(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	open := doc{"terms", "Our public terms allow returns within ninety days.", []string{"everyone", "external"}}
	p := start(t, s, newStore(t, open, handbook), with(func(c *slack.Config) { c.ExternalLabelled = true }))
	if text := shown(p.answer(s.Mention("U0ADA", "C0SHARED", "When do our public terms allow returns?"))); !strings.Contains(text, "ninety days") {
		t.Errorf("answered %s", text)
	}
	if text := shown(p.answer(s.Mention("U0ADA", "C0SHARED", qHandbook))); strings.Contains(text, "Sources") {
		t.Errorf("answered %s", text)
	}
	p.done()
}

// A pending invitation counts as shared, though no event says so.
func TestS68APendingInvitationIsShared(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	s.ShareChannel("C0GENERAL", "T0AWAY", true)
	p := start(t, s, newStore(t, all...))
	s.Mention("U0ADA", "C0GENERAL", qHandbook)
	s.WaitEphemeral("U0ADA", slacktest.Any[msg])
	p.done()
}

func TestS61AClosedAccountGetsNothing(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...), drafting(nil))
	s.ChangeSilently(func(users map[string]*slacktest.User, _ map[string]*slacktest.Group, _ map[string]*slacktest.Channel) {
		users["U0CYD"].Deleted = true
	})
	s.Emit(map[string]any{"type": "app_mention", "user": "U0CYD", "text": "<@U0BOT> " + qHandbook, "ts": fmt.Sprintf("%d.000700", time.Now().Unix()), "channel": "C0GENERAL"})
	p.done()
	if n := len(s.Requests("chat.postMessage", "chat.postEphemeral")); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestP03ChannelModes(t *testing.T) {
	t.Parallel()
	t.Run("P-03 S-95 B-50 private-always", func(t *testing.T) {
		t.Parallel()
		s := slacktest.New(t, matrixWorld())
		p := start(t, s, newStore(t, all...), channel("C0GENERAL", slack.Channel{Answer: slack.PrivateAlways}))
		s.Mention("U0ADA", "C0GENERAL", qDiary)
		if m := s.WaitMessage(s.DMChannel("U0ADA"), slacktest.HasButtons); !strings.Contains(shown(m), "mascarpone") {
			t.Errorf("answered %s", shown(m))
		}
		if got := s.WaitEphemeral("U0ADA", slacktest.Any[msg]); !strings.Contains(got.Text, "direct message") {
			t.Errorf("said %s", got.Text)
		}
		p.done()
	})
	t.Run("P-03 off", func(t *testing.T) {
		t.Parallel()
		s := slacktest.New(t, matrixWorld())
		p := start(t, s, newStore(t, all...), channel("C0GENERAL", slack.Channel{Answer: slack.Off}), drafting(nil))
		s.Mention("U0ADA", "C0GENERAL", qHandbook)
		if got := s.WaitEphemeral("U0ADA", slacktest.Any[msg]); !strings.Contains(got.Text, "do not answer in this channel") {
			t.Errorf("said %s", got.Text)
		}
		p.done()
	})
}

// A reason, to the asker alone, where there is no answer for the room.
func TestCase_D18(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...), channel("C0GENERAL", slack.Channel{Answer: slack.Off}))
	s.Mention("U0CYD", "C0GENERAL", qPlan)
	s.WaitEphemeral("U0CYD", slacktest.Any[msg])
	p.done()
}

// Two people, two groups: not one key for all.
func TestCase_P15(t *testing.T) {
	t.Parallel()
	t.Run("P-05 the same question of two people", func(t *testing.T) {
		s := slacktest.New(t, matrixWorld())
		p := start(t, s, newStore(t, all...))
		for who, want := range map[string]bool{"U0BOB": true, "U0CYD": false} {
			if got := strings.Contains(shown(p.answer(s.DM(who, qPlan))), "Sources"); got != want {
				t.Errorf("%s: answered %t", who, got)
			}
		}
		p.done()
	})
}

func TestC03NamesAreNoIdentity(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	twin := w.Add(slacktest.User{ID: "U0TWIN", Name: "ada", RealName: "ada"})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, all...))
	if text := shown(p.answer(s.DM(twin, qDiary))); strings.Contains(text, "Sources") {
		t.Errorf("answered %s", text)
	}
	p.quiet()
}

// What the directory says of people, as acl explain prints it.
func TestS67S65DirectoryPrincipals(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	w.Users[0].Email, w.Users[0].EmailConfirmed = "Ada@Example.org", true
	w.Users[1].Email = "bob@example.org" // not confirmed
	w.Groups = append(w.Groups,
		slacktest.Group{ID: "S0OFF", Name: "off", Users: []string{"U0ADA"}, DateDelete: 1},
		slacktest.Group{ID: "S0SHORT", Name: "short", Users: []string{"U0ADA", "U0BOB"}, ShortBy: 1},
	)
	w.AddChannel(slacktest.Channel{Name: "secret", Kind: slacktest.Private, Members: []string{"U0ADA"}}) // without the bot
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t))
	cases := map[string]string{
		"U0ADA": "ada@example.org everyone slack:T0HOME:channel/C0GENERAL slack:T0HOME:channel/C0GUESTS slack:T0HOME:channel/C0HELP slack:T0HOME:channel/C0SECURITY " +
			"slack:T0HOME:channel/C0SHARED slack:T0HOME:channel/C0SMALL slack:T0HOME:everyone slack:T0HOME:user/U0ADA slack:T0HOME:usergroup/S0SECURITY",
		"slack:T0HOME:user/U0BOB": "everyone slack:T0HOME:channel/C0GENERAL slack:T0HOME:channel/C0HELP slack:T0HOME:channel/C0SECURITY slack:T0HOME:everyone " +
			"slack:T0HOME:user/U0BOB slack:T0HOME:usergroup/S0SECURITY",
		"U0DAN": "slack:T0HOME:channel/C0GUESTS slack:T0HOME:channel/C0HELP slack:T0HOME:guests slack:T0HOME:user/U0DAN",
	}
	for who, want := range cases {
		id, err := p.adapter.Directory().Identify(t.Context(), who)
		var got []string
		for _, pr := range id.Principals() {
			got = append(got, string(pr))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v\n got %s\nwant %s", who, err, strings.Join(got, " "), want)
		}
	}
	for _, who := range []string{"U0EVE", "U0BOT", "U0NOBODY", "slack:T0OTHER:user/U0ADA", "", "slack:T0HOME:channel/C0GENERAL"} {
		if id, err := p.adapter.Directory().Identify(t.Context(), who); !errors.Is(err, acl.ErrUnknown) || id.ID() != "" {
			t.Errorf("%q: %v, %v", who, id, err)
		}
	}
	d, err := p.adapter.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f, err := d.Room(t.Context(), "slack:T0HOME:channel/C0SECURITY"); err != nil || d.Age(f) > time.Minute || f.Fetched.IsZero() {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := d.Room(t.Context(), "C0SHARED"); !errors.Is(err, directory.ErrExternal) {
		t.Errorf("%v", err)
	}
}

// Free plans have no user groups: nobody is in one, and all else works.
func TestCase_P2(t *testing.T) {
	t.Parallel()
	t.Run("S-65 without user groups", func(t *testing.T) {
		w := matrixWorld()
		w.App.NoUserGroups = true
		s := slacktest.New(t, w)
		p := start(t, s, newStore(t, all...))
		if text := shown(p.answer(s.DM("U0ADA", qHandbook))); !strings.Contains(text, "Sources") {
			t.Errorf("answered %s", text)
		}
		if text := shown(p.answer(s.DM("U0ADA", qPlan))); strings.Contains(text, "Sources") {
			t.Errorf("answered %s", text)
		}
		p.done()
	})
}

// Grid: the enterprise decides who is internal, in whichever workspace.
func TestS62Grid(t *testing.T) {
	t.Parallel()
	w := slacktest.DemoWorld()
	w.Team.Enterprise = "E0ORG"
	for i := range w.Users {
		w.Users[i].Enterprise, w.Users[i].Teams = "E0ORG", []string{"T0HOME"}
	}
	w.Others = append(w.Others, slacktest.Team{ID: "T0SISTER", Name: "Sister", Enterprise: "E0ORG"}, slacktest.Team{ID: "T0AWAY", Name: "Away", Enterprise: "E0ELSE"})
	w.Add(slacktest.User{ID: "U0SIS", Name: "sis", TeamID: "T0SISTER", Enterprise: "E0ORG", Teams: []string{"T0SISTER"}})
	w.Add(slacktest.User{ID: "U0EVE", Name: "eve", TeamID: "T0AWAY", Enterprise: "E0ELSE", Teams: []string{"T0AWAY"}})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t))
	id, err := p.adapter.Directory().Identify(t.Context(), "U0SIS")
	if err != nil || !slices.Contains(id.Principals(), acl.Everyone) || slices.Contains(id.Principals(), "slack:T0HOME:everyone") {
		t.Errorf("%v %v", id.Principals(), err)
	}
	if _, err := p.adapter.Directory().Identify(t.Context(), "U0EVE"); !errors.Is(err, directory.ErrExternal) {
		t.Errorf("%v", err)
	}
}

// C-02: ids say nothing but which they are: not by their first letter, not
// without regard to case.
func TestC02IDsAreOpaque(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	w.AddChannel(slacktest.Channel{ID: "D0ODD", Name: "odd", Kind: slacktest.Private, Members: []string{"U0BOT", "U0ADA", "U0CYD"}})
	w.Add(slacktest.User{ID: "U0ADa", Name: "almost"})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, all...))
	for _, q := range []msg{s.Mention("U0ADA", "D0ODD", qDiary), s.DM("U0ADa", qDiary)} {
		if text := shown(p.answer(q)); strings.Contains(text, "Sources") {
			t.Errorf("answered in %s: %s", q.Channel, text)
		}
	}
	p.done()
}

// S-43: a mention says neither what kind of channel it is from nor who wrote
// the parent; the audience is asked for.
func TestS43AMentionSaysNothingOfItsChannel(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	p := start(t, s, newStore(t, all...))
	if text := shown(p.answer(s.Mention("U0ADA", "C0SMALL", qDiary))); strings.Contains(text, "Sources") {
		t.Errorf("answered %s", text)
	}
	p.done()
	for _, f := range s.Frames() {
		if f.Type == "events_api" && (!strings.Contains(string(f.Body), "app_mention") || strings.Contains(string(f.Body), "channel_type")) {
			t.Errorf("the test tests nothing: %s", f.Body)
		}
	}
}

// S-31: the mention comes, the answer cannot be posted: the person learns how to
// get the bot in.
func TestS31AMentionWhereTheBotIsNot(t *testing.T) {
	t.Parallel()
	w := matrixWorld()
	w.AddChannel(slacktest.Channel{Name: "elsewhere", Members: []string{"U0ADA", "U0BOB"}})
	s := slacktest.New(t, w)
	p := start(t, s, newStore(t, all...))
	s.Mention("U0ADA", "C0ELSEWHERE", qHandbook)
	s.WaitMessage(s.DMChannel("U0ADA"), func(m msg) bool { return strings.Contains(shown(m), "/invite") })
	p.quiet()
	if got := s.FromBot("C0ELSEWHERE"); len(got) > 0 {
		t.Errorf("said %s", shown(got[0]))
	}
}

// P-06: what was said privately is not looked at for a room: the only history
// that is read is the thread's own.
func TestP06PrivateWordsStayPrivate(t *testing.T) {
	t.Parallel()
	s := historyScopes(slacktest.New(t, matrixWorld()))
	p := start(t, s, newStore(t, all...))
	d := s.DM("U0ADA", qDiary)
	p.answer(d)
	s.Slash("U0ADA", "C0GENERAL", "/ask", qDiary)
	s.WaitEphemeral("U0ADA", slacktest.HasButtons)
	root := s.Say("U0BOB", "C0GENERAL", "hm")
	text := shown(p.answer(s.ReplyInThread("U0ADA", "C0GENERAL", root.TS, "<@U0BOT> and what does it want?")))
	if strings.Contains(text, "tiramisu") || strings.Contains(text, "mascarpone") {
		t.Errorf("answered %s", text)
	}
	p.done()
	read := s.Requests("conversations.replies", "conversations.history")
	for _, r := range read {
		if r.Args["channel"] != "C0GENERAL" || r.Args["ts"] != root.TS {
			t.Errorf("read %v", r.Args)
		}
	}
	if len(read) == 0 {
		t.Error("no history was read: the test tests nothing")
	}
}

// P-07: a room's answer has no trace of the source that only the asker may
// read: no number is missing, no title named.
func TestP07MixedEvidence(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, matrixWorld())
	own := doc{"own", "Employees get sixty vacation days each year if they ask Ada.", []string{"slack:T0HOME:user/U0ADA"}}
	p := start(t, s, newStore(t, own, handbook), drafting(func(_ context.Context, r generate.Request) (generate.Draft, error) {
		var d generate.Draft
		for _, e := range r.Evidence {
			d.Claims = append(d.Claims, cite.Claim{Text: e.Content, Kind: cite.Text, Numbers: []int{e.N}, To: len(e.Content)})
		}
		return d, nil
	}))
	room := shown(p.answer(s.Mention("U0ADA", "C0GENERAL", qHandbook)))
	if !strings.Contains(room, "[1] The handbook") || strings.Contains(room, "[2]") || strings.Contains(room, "sixty") || strings.Contains(room, "The own") {
		t.Errorf("in the room: %s", room)
	}
	if private := shown(p.answer(s.DM("U0ADA", qHandbook))); !strings.Contains(private, "[1]") || !strings.Contains(private, "[2]") || !strings.Contains(private, "sixty") {
		t.Errorf("privately: %s", private)
	}
	p.done()
}
