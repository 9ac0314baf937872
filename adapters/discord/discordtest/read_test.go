package discordtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dt "footnote/adapters/discord/discordtest"
)

// ids lists the id fields of a JSON list.
func ids(r reply) []string {
	var out []string
	l, _ := r.at().([]any)
	for _, v := range l {
		o, _ := v.(obj)
		out = append(out, fmt.Sprint(o["id"]))
	}
	return out
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	var m []string
	for i := range 5 {
		m = append(m, s.Say(x.bob, x.open, fmt.Sprint(i)).ID)
	}
	path := "/channels/" + x.open + "/messages"
	cases := map[string]struct {
		query string
		want  []string
	}{
		"newest first":   {"?limit=2", []string{m[4], m[3]}},
		"before":         {"?limit=2&before=" + m[3], []string{m[2], m[1]}},
		"after":          {"?limit=2&after=" + m[1], []string{m[3], m[2]}},
		"all by default": {"", []string{m[4], m[3], m[2], m[1], m[0]}},
	}
	for name, c := range cases {
		if d := cmp.Diff(c.want, ids(api(t, s, "GET", path+c.query, nil))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	expect(t, "limit out of range", api(t, s, "GET", path+"?limit=101", nil), 400, 50035)
	if r := api(t, s, "GET", path+"/"+m[0], nil); r.at("content") != "" {
		t.Errorf("content %v of another's message without the intent", r.at("content"))
	}
	s.SetOverwrite(x.open, dt.Overwrite{ID: s.App().BotUser, Member: true, Deny: dt.ReadMessageHistory})
	if got := ids(api(t, s, "GET", path, nil)); got != nil {
		t.Errorf("history without the permission: %v", got)
	}
	expect(t, "one message without the permission", api(t, s, "GET", path+"/"+m[0], nil), 403, 50013)
}

func TestContentIntentShowsText(t *testing.T) {
	t.Parallel()
	x := newTown()
	x.world.App.Privileged = dt.ContentIntent | dt.MembersIntent
	s, _ := x.start(t)
	m := s.Say(x.bob, x.open, "text")
	if r := api(t, s, "GET", "/channels/"+x.open+"/messages/"+m.ID, nil); r.at("content") != "text" {
		t.Errorf("content %v", r.at("content"))
	}
	l, _ := api(t, s, "GET", "/guilds/"+x.guild+"/members?limit=2", nil).at().([]any)
	if len(l) != 2 {
		t.Errorf("%d members on the page, want 2", len(l))
	}
	if f := api(t, s, "GET", "/applications/@me", nil).at("flags"); f != float64(1<<15|1<<19) {
		t.Errorf("application flags %v, want the two intents", f)
	}
}

func TestReadingTheGuild(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	cases := map[string]struct {
		path string
		want int
	}{
		"channels": {"/guilds/" + x.guild + "/channels", 6},
		"roles":    {"/guilds/" + x.guild + "/roles", 3},
		"guilds":   {"/users/@me/guilds", 1},
	}
	for name, c := range cases {
		if n := len(ids(api(t, s, "GET", c.path, nil))); n != c.want {
			t.Errorf("%s: %d, want %d", name, n, c.want)
		}
	}
	if th, _ := api(t, s, "GET", "/guilds/"+x.guild+"/threads/active", nil).at("threads").([]any); len(th) != 2 {
		t.Errorf("%d active threads, want 2", len(th))
	}
	if r := api(t, s, "GET", "/guilds/"+x.guild+"?with_counts=true", nil); r.at("approximate_member_count") != 4.0 || r.at("owner_id") != x.ada {
		t.Errorf("guild %s", r.Body)
	}
	if r := api(t, s, "GET", "/users/"+x.cy, nil); r.at("username") != "cy" {
		t.Errorf("user %s", r.Body)
	}
	s.RemoveMember(x.guild, x.cy)
	expect(t, "somebody who left", api(t, s, "GET", "/guilds/"+x.guild+"/members/"+x.cy, nil), 404, 10007)
	s.Kick(x.guild)
	expect(t, "guild after the bot left", api(t, s, "GET", "/guilds/"+x.guild, nil), 404, 10004)
	expect(t, "its channel", api(t, s, "GET", "/channels/"+x.open, nil), 403, 50001)
	expect(t, "its commands", api(t, s, "GET", "/applications/"+s.App().ID+"/guilds/"+x.guild+"/commands", nil), 403, 50001)
}

func TestEditsAndReactions(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	path := "/channels/" + x.open + "/messages"
	id, _ := api(t, s, "POST", path, msg("one")).at("id").(string)
	expect(t, "edit", api(t, s, "PATCH", path+"/"+id, msg("two")), 200, 0)
	expect(t, "edit to nothing", api(t, s, "PATCH", path+"/"+id, obj{"content": nil}), 400, 50006)
	expect(t, "reaction", api(t, s, "PUT", path+"/"+id+"/reactions/%F0%9F%91%80/@me", nil), 204, 0)
	expect(t, "typing", api(t, s, "POST", "/channels/"+x.open+"/typing", nil), 204, 0)
	m, _ := s.Message(id)
	if len(m.Revisions) != 2 || m.Content != "two" || len(s.SeenBy(m)) != 4 {
		t.Errorf("message %+v, want two revisions seen by four", m)
	}
	expect(t, "delete", api(t, s, "DELETE", path+"/"+id, nil), 204, 0)
	expect(t, "edit after delete", api(t, s, "PATCH", path+"/"+id, msg("x")), 404, 10008)
	if len(s.Everything(x.open)) != 1 || len(s.Messages(x.open)) != 0 {
		t.Error("a deleted message must be remembered and not shown")
	}
}

func TestThreadModeration(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	expect(t, "archiving another's thread", api(t, s, "PATCH", "/channels/"+x.thread, obj{"archived": true}), 403, 50013)
	own, _ := api(t, s, "POST", "/channels/"+x.open+"/threads", obj{"name": "own", "type": 11}).at("id").(string)
	expect(t, "archiving its own", api(t, s, "PATCH", "/channels/"+own, obj{"archived": true}), 200, 0)
	expect(t, "renaming an archived one", api(t, s, "PATCH", "/channels/"+own, obj{"name": "x"}), 400, 50083)
	expect(t, "locking", api(t, s, "PATCH", "/channels/"+own, obj{"archived": false, "locked": true}), 403, 50013)
	expect(t, "joining", api(t, s, "PUT", "/channels/"+x.thread+"/thread-members/@me", nil), 204, 0)
	expect(t, "members without the intent", api(t, s, "GET", "/channels/"+x.thread+"/thread-members", nil), 403, 50001)
	s.DeleteChannel(x.open)
	expect(t, "thread of a deleted channel", api(t, s, "GET", "/channels/"+x.thread, nil), 404, 10003)
}

func TestResponsesCanBeTakenBack(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	i := x.ask(s)
	expect(t, "deferral", callback(t, s, i, 5, nil), 204, 0)
	if kind := i.Wait(); kind != 5 || i.AckTime() != 0 {
		t.Errorf("callback %d after %v", kind, i.AckTime())
	}
	expect(t, "delete", api(t, s, "DELETE", hook(s, i, original), nil), 204, 0)
	expect(t, "private follow-up", api(t, s, "POST", hook(s, i, ""), obj{"content": "x", "flags": 64, "allowed_mentions": quiet}), 200, 0)
	if len(s.Messages(x.open)) != 0 || len(s.Ephemerals(x.bob)) != 1 {
		t.Error("a public deferral that was deleted must leave only the private follow-up")
	}
	clean(t, s)
}

func TestFilterAndArchivedThread(t *testing.T) {
	t.Parallel()
	x, s, _ := askedIn(t)
	s.SetFilter(func(text string) int {
		if strings.Contains(text, "http") {
			return 240000
		}
		return 0
	})
	i := s.Command(x.bob, x.thread, "ask", map[string]any{"question": "why?"})
	callback(t, s, i, 5, nil)
	expect(t, "link", api(t, s, "PATCH", hook(s, i, original), msg("see http://x")), 400, 240000)
	s.Archive(x.thread, false)
	expect(t, "edit in an archived thread", api(t, s, "PATCH", hook(s, i, original), msg("x")), 400, 50083)
}

func TestClientsCheckOptions(t *testing.T) {
	t.Parallel()
	cases := map[string]func(x *town, s *dt.Server){
		"option missing": func(x *town, s *dt.Server) { s.Command(x.bob, x.open, "ask", nil) },
		"option too long": func(x *town, s *dt.Server) {
			s.Command(x.bob, x.open, "ask", obj{"question": strings.Repeat("x", 101)})
		},
		"wrong type":     func(x *town, s *dt.Server) { s.Command(x.bob, x.open, "ask", obj{"question": "x", "private": "yes"}) },
		"unknown option": func(x *town, s *dt.Server) { s.Command(x.bob, x.open, "ask", obj{"question": "x", "loud": true}) },
		"no subcommand":  func(x *town, s *dt.Server) { s.Command(x.bob, x.open, "footnote dance", nil) },
		"unseen channel": func(x *town, s *dt.Server) { s.Command(x.cy, x.closed, "ask", obj{"question": "x"}) },
		"archived thread": func(x *town, s *dt.Server) {
			s.Archive(x.thread, false)
			s.Command(x.bob, x.thread, "ask", obj{"question": "x"})
		},
		"timed out":        func(x *town, s *dt.Server) { s.TimeOut(x.guild, x.bob, time.Now().Add(time.Hour)); x.ask(s) },
		"button not there": func(x *town, s *dt.Server) { s.Click(x.bob, s.Say(x.bob, x.open, "x"), "b") },
		"writing, screened": func(x *town, s *dt.Server) {
			s.ChangeMember(x.guild, x.bob, func(m *dt.Member) { m.Pending = true })
			s.Say(x.bob, x.open, "x")
		},
	}
	for name, act := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTown()
			s := dt.New(nil, x.world)
			defer s.Close()
			register(t, s, x.guild)
			defer func() {
				if recover() == nil {
					t.Error("the client let it through")
				}
			}()
			act(x, s)
		})
	}
}
