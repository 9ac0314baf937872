package event

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/slack/slacktest"
)

func TestS40Clean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "how long?", "how long?"},
		{"the bot's name anywhere", "<@U0BOT> how <@U0BOT|footnote> long?", "how long?"},
		{"another person", "ask <@U1> or <@U2|bob>", "ask @U1 or @bob"},
		{"channel", "see <#C1|general> and <#C2>", "see #general and #C2"},
		{"link with a label", "<https://a.example/x?a=1&amp;b=2|the page>", "the page"},
		{"bare link", "<https://a.example/x?a=1&amp;b=2>", "https://a.example/x?a=1&b=2"},
		{"mail address", "<mailto:a@b.example|a@b.example> <mailto:c@d.example>", "a@b.example c@d.example"},
		{"broadcasts", "<!here> <!channel|channel> <!subteam^S1|@team> <!subteam^S1>", "@here @channel @team @subteam"},
		{"date", "<!date^1392734382^{date}|18 February 2014>", "18 February 2014"},
		{"entities once", "&lt;b&gt; &amp;lt; &amp;amp;", "<b> &lt; &amp;"},
		{"a token that is not closed", "a < b <c", "a < b <c"},
		{"invisible characters", "a\u200bb\u202e c\u00a0d\x00", "ab c d"},
		{"emoji joined", "👩\u200d💻", "👩\u200d💻"},
		{"decomposed", "re\u0301sume\u0301", "résumé"},
		{"line breaks", "a\n\n b\tc", "a b c"},
		{"invalid UTF-8", "a\xffb", "ab"},
		{"nothing", "<@U0BOT>", ""},
	} {
		if got := Clean(c.in, "U0BOT"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Clean(strings.Repeat("한", 20_000), ""); utf8.RuneCountInString(got) != MaxText {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
}

func TestUnescapeTakesEscapeBack(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a & b < c > d", "&lt;", "&amp;lt;", "<!channel>"} {
		if got := Unescape(Escape(s)); got != s {
			t.Errorf("%q gives %q", s, got)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	if got := Time("1712345678.000200"); !got.Equal(time.Unix(1712345678, 200_000)) {
		t.Error(got)
	}
	for _, s := range []string{"", "x", "-5.1", ".000200", "99999999999999999999.1"} {
		if !Time(s).IsZero() {
			t.Errorf("%q is a time", s)
		}
	}
}

// What each fixture is, by the event alone.
func TestClassify(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	self := Self{User: "U0BOT", Bot: "B0BOT", App: "A0APP"}
	for name, want := range map[string]Verdict{
		"event_app_mention": Question, "event_app_mention_bare": Question, "event_app_mention_edited": Question, "event_app_mention_empty_text": Question,
		"event_app_mention_external": Question, "event_app_mention_extra_fields": Question, "event_app_mention_file": Question,
		"event_app_mention_from_bot": Ignore, "event_app_mention_grid": Question, "event_app_mention_in_thread": Question, "event_app_mention_label": Question,
		"event_app_mention_mismatch": Question, "event_app_mention_own": Ignore, "event_message_bot_message": Ignore, "event_message_bot_no_subtype": Ignore,
		"event_message_changed_by_human": Edit, "event_message_changed_own": Ignore, "event_message_changed_reply_count": Ignore,
		"event_message_changed_unfurl": Ignore, "event_message_channel_join": Ignore, "event_message_deleted": Deletion, "event_message_file_share": Question,
		"event_message_hidden": Ignore, "event_message_huddle_thread": Ignore, "event_message_im": Question, "event_message_im_agent_view": Question,
		"event_message_im_mention": Question, "event_message_im_thread": Question, "event_message_me_message": Question, "event_message_no_user": Ignore,
		"event_message_reminder_add": Ignore, "event_message_slackbot": Ignore, "event_message_a_subtype_of_the_future": Ignore,
	} {
		c, err := Parse(s.Fixture(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := Classify(c.Message(), self, Policy{Edits: true, EditWindow: 5 * time.Minute}); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestS50TheInstallationIsTheAuthorisation(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	for name, want := range map[string]string{"event_app_mention_external": "T0HOME", "event_app_mention_grid": "T0HOME"} {
		c, err := Parse(s.Fixture(name))
		if err != nil || c.Team != want {
			t.Errorf("%s: team %s, %v", name, c.Team, err)
		}
	}
	c, err := Parse([]byte(`{"team_id":"T1","event":{"type":"message"}}`))
	if err != nil || c.Team != "T1" {
		t.Errorf("without authorisations: %+v %v", c, err)
	}
}

func TestS40TextIsTakenFromTheBlocksWhereThereIsNone(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	c, err := Parse(s.Fixture("event_app_mention_empty_text"))
	if err != nil {
		t.Fatal(err)
	}
	if got := Clean(c.Message().Raw(), "U0BOT"); !strings.Contains(got, "logs") {
		t.Errorf("%q", got)
	}
	f := Fields{"text": json.RawMessage(`""`), "blocks": json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a <b> & c "},{"type":"link","url":"https://x.example"},{"type":"emoji","name":"tada"},{"type":"channel","channel_id":"C1"}]}]}]`)}
	if got := Clean(message(f).Raw(), ""); got != "a <b> & c https://x.example:tada:#C1" {
		t.Errorf("%q", got)
	}
}

func TestInteractionsAndCommands(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, slacktest.DemoWorld())
	in, err := ParseInteraction(s.Fixture("interaction_button"))
	if err != nil {
		t.Fatal(err)
	}
	want := Interaction{
		Type: "block_actions", Team: "T0HOME", User: "U0ADA", UserTeam: "T0HOME", Channel: "C0GENERAL", ChannelName: "general",
		MessageTS: "1772442120.000100", Thread: "1772442000.000100", Trigger: "13345224609.738474920.fixture",
		ResponseURL: "https://hooks.slack.com/actions/T0HOME/1/fixture",
		Actions:     []Action{{ID: "helpful", Block: "feedback", Value: "opaque-id", TS: "1772442130.000100", Kind: "button"}},
	}
	in.Message = Message{}
	if diff := cmp.Diff(want, in, cmp.AllowUnexported(Message{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c, err := ParseCommand(s.Fixture("command_ask"))
	if err != nil || c.Name != "/ask" || c.Text != "how long do we keep logs?" || c.User != "U0ADA" || c.Channel != "C0GENERAL" {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range []string{"", "null", "[]", "7", "{"} {
		if _, err := ParseInteraction([]byte(bad)); err == nil {
			t.Errorf("%q is an interaction", bad)
		}
		if _, err := ParseCommand([]byte(bad)); err == nil {
			t.Errorf("%q is a command", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"event":{"type":"message","text":"x","ts":"1.2","channel":"C"}}`, `{"event":7}`, `{"authorizations":[7]}`, `null`, `{"event":{"type":"message","subtype":"message_changed","message":{"message":{}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err == nil {
			m := c.Message()
			if Classify(m, Self{User: "U0BOT"}, Policy{Edits: true}) == Question && (m.User == "" || m.TS == "" || m.Channel == "") {
				t.Fatalf("a question of nobody: %+v", m)
			}
			if s := Clean(m.Raw(), "U0BOT"); !utf8.ValidString(s) || strings.Contains(s, "  ") {
				t.Fatalf("%q", s)
			}
		}
		_, _ = ParseInteraction(data)
		_, _ = ParseCommand(data)
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"<@U0BOT>", "<https://x|y>", "&lt;!here&gt;", "<", "<<>>", "a\u200bb", "<!date^1^x|y>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s, "U0BOT")
		if !utf8.ValidString(got) || got != strings.TrimSpace(got) || utf8.RuneCountInString(got) > MaxText {
			t.Fatalf("%q gives %q", s, got)
		}
	})
}
