package slacktest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/slack/slacktest"
)

func TestWhoCanSeeAMessage(t *testing.T) {
	t.Parallel()
	w := slacktest.NewWorld()
	w.Team.Enterprise = "E0ORG"
	w.Others = []slacktest.Team{{ID: "T0SISTER", Enterprise: "E0ORG"}, {ID: "T0AWAY"}}
	w.Person("ada")
	w.Person("bob")
	w.Add(slacktest.User{Name: "guest", Guest: true})
	w.Add(slacktest.User{Name: "single", SingleGuest: true})
	w.Add(slacktest.User{Name: "gone", Deleted: true})
	w.Add(slacktest.User{Name: "sister", TeamID: "T0SISTER", Enterprise: "E0ORG", Teams: []string{"T0SISTER"}})
	w.Add(slacktest.User{Name: "eve", TeamID: "T0AWAY"})
	w.Add(slacktest.User{Name: "strange", TeamID: "T0AWAY", Stranger: true})
	w.Public("open", "U0GUEST")
	w.Private("closed", "U0ADA", "U0SINGLE", "U0GONE")
	w.AddChannel(slacktest.Channel{Name: "org", Members: []string{"U0BOT"}, OrgShared: true})
	w.AddChannel(slacktest.Channel{Name: "ext", Members: []string{"U0BOT"}, ExtShared: true, Connected: []string{"T0AWAY"}})
	w.AddChannel(slacktest.Channel{Name: "dm", Kind: slacktest.IM, Members: []string{"U0BOT", "U0BOB"}})
	s := slacktest.New(t, w)
	for channel, want := range map[string][]string{
		"C0OPEN":   {"U0ADA", "U0BOB", "U0BOT", "U0GUEST"},
		"C0CLOSED": {"U0ADA", "U0BOT", "U0SINGLE"},
		"C0ORG":    {"U0ADA", "U0BOB", "U0BOT", "U0SISTER"},
		"C0EXT":    {"U0ADA", "U0BOB", "U0BOT", "U0EVE"},
		"D0DM":     {"U0BOB", "U0BOT"},
	} {
		if c := call(s, "chat.postMessage", args{"channel": channel, "text": "x"}).code(); c != "ok" {
			t.Fatalf("posting in %s: %s", channel, c)
		}
		m := s.FromBot(channel)[0]
		if diff := cmp.Diff(want, s.SeenBy(m)); diff != "" {
			t.Errorf("viewers in %s (-want +got):\n%s", channel, diff)
		}
		for _, u := range []string{"U0ADA", "U0EVE", "U0GONE", "U0STRANGE"} {
			if s.VisibleTo(u, m) != slices.Contains(want, u) {
				t.Errorf("VisibleTo(%s) in %s disagrees", u, channel)
			}
		}
	}
}

func TestSeenByRemembersTheTimeOfPosting(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	call(s, "chat.postMessage", args{"channel": "C0SECURITY", "text": "x"})
	s.Leave("U0BOB", "C0SECURITY")
	s.Join("U0CYD", "C0SECURITY")
	m := s.FromBot("C0SECURITY")[0]
	if got := s.SeenBy(m); !slices.Contains(got, "U0BOB") || slices.Contains(got, "U0CYD") {
		t.Errorf("seen by %v at the time", got)
	}
	if s.VisibleTo("U0BOB", m) || !s.VisibleTo("U0CYD", m) {
		t.Error("VisibleTo does not follow the membership of now")
	}
}

func TestPings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		m    slacktest.Message
		want []string
	}{
		"plain":                  {slacktest.Message{Text: "hello @channel <https://a.b|x>"}, nil},
		"user and label":         {slacktest.Message{Text: "<@U0ADA> <@W0B|bob>"}, []string{"U0ADA", "W0B"}},
		"broadcasts":             {slacktest.Message{Text: "<!here> <!channel|x> <!everyone>"}, []string{"channel", "everyone", "here"}},
		"group":                  {slacktest.Message{Text: "<!subteam^S0A|@a>"}, []string{"S0A"}},
		"escaped":                {slacktest.Message{Text: "&lt;!channel&gt; &lt;@U0ADA&gt;"}, nil},
		"date and channel":       {slacktest.Message{Text: "<!date^1^x|y> <#C0A>"}, nil},
		"names linked":           {slacktest.Message{Text: "@channel a@b.c", LinkNames: true}, []string{"@channel"}},
		"mrkdwn block":           {slacktest.Message{Blocks: json.RawMessage(section("<!channel>"))}, []string{"channel"}},
		"mrkdwn not verbatim":    {slacktest.Message{Blocks: json.RawMessage(section("@here"))}, []string{"@here"}},
		"mrkdwn verbatim":        {slacktest.Message{Blocks: json.RawMessage(`[{"type":"section","text":{"type":"mrkdwn","verbatim":true,"text":"@here"}}]`)}, nil},
		"plain_text":             {slacktest.Message{Blocks: json.RawMessage(`[{"type":"header","text":{"type":"plain_text","text":"<!here>"}}]`)}, nil},
		"markdown block":         {slacktest.Message{Blocks: json.RawMessage(`[{"type":"markdown","text":"**x** <!here>"}]`)}, []string{"here"}},
		"rich text is literal":   {slacktest.Message{Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"<!here>"}]}]}]`)}, nil},
		"rich text user":         {slacktest.Message{Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0A"},{"type":"broadcast","range":"here"},{"type":"usergroup","usergroup_id":"S0A"}]}]}]`)}, []string{"S0A", "U0A", "here"}},
		"an earlier revision":    {slacktest.Message{Text: "x", Revisions: []slacktest.Revision{{Text: "<!here>"}, {Text: "x"}}}, []string{"here"}},
		"link that smuggles one": {slacktest.Message{Text: "<https://a.com|b><!channel>"}, []string{"channel"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, slacktest.Pings(c.m)); diff != "" {
				t.Errorf("pings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvariantsNameWhatWentWrong(t *testing.T) {
	t.Parallel()
	answer := `[{"type":"actions","elements":[{"type":"button","action_id":"a","text":{"type":"plain_text","text":"Helpful"}}]}]`
	cases := map[string]struct {
		rules slacktest.Rules
		do    func(*slacktest.Server)
		want  string
	}{
		"all well": {slacktest.Rules{}, func(s *slacktest.Server) {
			q := s.Say("U0ADA", "C0GENERAL", "x")
			call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "notice", "thread_ts": q.TS})
		}, ""},
		"two answers": {slacktest.Rules{}, func(s *slacktest.Server) {
			q := s.Mention("U0ADA", "C0GENERAL", "x")
			for range 2 {
				call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "a", "thread_ts": q.TS, "blocks": answer})
			}
		}, "2 final answers"},
		"a private answer by direct message": {slacktest.Rules{}, func(s *slacktest.Server) {
			s.Mention("U0ADA", "C0GENERAL", "x")
			call(s, "chat.postMessage", args{"channel": "U0ADA", "text": "a", "blocks": answer})
		}, ""},
		"an answer to nobody's question": {slacktest.Rules{}, func(s *slacktest.Server) {
			call(s, "chat.postMessage", args{"channel": "U0BOB", "text": "a", "blocks": answer})
		}, "1 final answers"},
		"an answer at the channel root": {slacktest.Rules{}, func(s *slacktest.Server) {
			call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "a", "blocks": answer})
		}, "1 final answers"},
		"a ping": {slacktest.Rules{}, func(s *slacktest.Server) {
			call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "<!here>"})
		}, "pings here"},
		"a ping in an ephemeral message": {slacktest.Rules{}, func(s *slacktest.Server) {
			call(s, "chat.postEphemeral", args{"channel": "C0GENERAL", "user": "U0ADA", "text": "<@U0BOB>"})
		}, "pings U0BOB"},
		"names linked by an update without parse": {slacktest.Rules{}, func(s *slacktest.Server) {
			r := call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "x"})
			call(s, "chat.update", args{"channel": "C0GENERAL", "ts": r.Body["ts"].(string), "text": "@bob"})
		}, "pings @bob"},
		"a placeholder": {slacktest.Rules{IsPlaceholder: func(m slacktest.Message) bool { return m.Text == "looking" }}, func(s *slacktest.Server) {
			call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "looking"})
		}, "placeholder"},
		"a broadcast": {slacktest.Rules{}, func(s *slacktest.Server) {
			q := s.Say("U0ADA", "C0GENERAL", "x")
			call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "a", "thread_ts": q.TS, "reply_broadcast": "true"})
		}, "reply_broadcast"},
		"a secret, edited away": {slacktest.Rules{CanRead: func(u string, m slacktest.Message) bool {
			return u == "U0ADA" || !strings.Contains(m.Text, "secret")
		}}, func(s *slacktest.Server) {
			r := call(s, "chat.postMessage", args{"channel": "C0SECURITY", "text": "secret"})
			call(s, "chat.update", args{"channel": "C0SECURITY", "ts": r.Body["ts"].(string), "text": "gone"})
		}, "U0BOB could see"},
		"a secret for the right eyes": {slacktest.Rules{CanRead: func(u string, m slacktest.Message) bool {
			return u == "U0ADA" || !strings.Contains(m.Text, "secret")
		}}, func(s *slacktest.Server) {
			call(s, "chat.postEphemeral", args{"channel": "C0GENERAL", "user": "U0ADA", "text": "secret"})
		}, ""},
		"an open stream": {slacktest.Rules{}, func(s *slacktest.Server) {
			q := s.DM("U0ADA", "x")
			call(s, "chat.startStream", args{"channel": q.Channel, "thread_ts": q.TS})
		}, "never stopped"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := slacktest.New(t, world(), slacktest.WithRules(c.rules))
			c.do(s)
			got := strings.Join(s.CheckInvariants(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("invariants %q, want %q", got, c.want)
			}
		})
	}
}

func TestMisuseWithoutATestPanics(t *testing.T) {
	t.Parallel()
	s := slacktest.New(nil, slacktest.DemoWorld())
	defer s.Close()
	defer func() {
		if r := recover(); r == nil {
			t.Error("posting in a channel that does not exist went well")
		}
		if len(s.Messages("C0GENERAL")) != 0 {
			t.Error("the server is unusable after a misuse")
		}
	}()
	s.Mention("U0ADA", "C0NONE", "x")
}
