package slacktest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"footnote/adapters/slack/slacktest"
)

// allScopes lets the app read histories and make group conversations as well.
func allScopes(w slacktest.World) slacktest.World {
	w.App.Scopes = append([]string{"channels:history", "groups:history", "mpim:history", "mpim:write", "assistant:write"}, slacktest.DefaultScopes...)
	w.App.Events = append([]string{"message.mpim", "message.groups"}, slacktest.DefaultEvents...)
	return w
}

func client2(s *slacktest.Server) *slack.Client {
	return slack.New(s.App().BotToken, slack.OptionAPIURL(s.APIURL()))
}

func TestHistoryAndReplies(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, allScopes(world()))
	api := client2(s)
	q := s.Say("U0ADA", "C0GENERAL", "first")
	r1 := s.ReplyInThread("U0BOB", "C0GENERAL", q.TS, "reply one")
	s.ReplyInThread("U0CYD", "C0GENERAL", q.TS, "reply two")
	last := s.Say("U0ADA", "C0GENERAL", "last")
	h, err := api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: "C0GENERAL"})
	if err != nil {
		t.Fatal(err)
	}
	texts := func(ms []slack.Message) (out []string) {
		for _, m := range ms {
			out = append(out, m.Text)
		}
		return out
	}
	if diff := cmp.Diff([]string{"last", "first"}, texts(h.Messages)); diff != "" {
		t.Errorf("history, newest first and without replies (-want +got):\n%s", diff)
	}
	ms, _, _, err := api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C0GENERAL", Timestamp: q.TS})
	if err != nil || ms[0].ThreadTimestamp != q.TS {
		t.Fatalf("replies %+v, %v", ms, err)
	}
	if diff := cmp.Diff([]string{"first", "reply one", "reply two"}, texts(ms)); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	ms, _, _, err = api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C0GENERAL", Timestamp: q.TS, Oldest: r1.TS, Limit: 2})
	if err != nil || len(ms) != 1 || ms[0].Text != "reply two" {
		t.Errorf("replies after the first: %+v, %v", texts(ms), err)
	}
	for channel, want := range map[string]string{"C0NOTIN": "not_in_channel", "C0SECRET": "channel_not_found"} {
		if got := call(s, "conversations.history", args{"channel": channel}).code(); got != want {
			t.Errorf("history of %s: %s, want %s", channel, got, want)
		}
	}
	if got := call(s, "conversations.replies", args{"channel": "C0GENERAL", "ts": "1.0"}).code(); got != "thread_not_found" {
		t.Errorf("replies of nothing: %s", got)
	}
	if link, err := api.GetPermalink(&slack.PermalinkParameters{Channel: "C0GENERAL", Ts: last.TS}); err != nil || !strings.HasSuffix(link, "p"+strings.ReplaceAll(last.TS, ".", "")) {
		t.Errorf("permalink %q, %v", link, err)
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	q := s.Say("U0ADA", "C0GENERAL", "x")
	a := args{"channel": "C0GENERAL", "timestamp": q.TS, "name": "eyes"}
	for i, step := range []struct{ route, want string }{
		{"reactions.add", "ok"}, {"reactions.add", "already_reacted"}, {"reactions.remove", "ok"}, {"reactions.remove", "no_reaction"},
	} {
		if got := call(s, step.route, a).code(); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
		if on := len(s.Messages("C0GENERAL")[0].Reactions["eyes"]) == 1; on != (i < 2) {
			t.Errorf("step %d: reaction there: %v", i, on)
		}
	}
}

func TestOnlyOwnMessagesCanBeChanged(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	q := s.Say("U0ADA", "C0GENERAL", "x")
	r := call(s, "chat.postMessage", args{"channel": "C0GENERAL", "text": "mine", "metadata": `{"event_type":"a","event_payload":{"id":"b"}}`})
	mine, _ := r.Body["ts"].(string)
	for _, c := range []struct{ route, ts, text, want string }{
		{"chat.update", q.TS, "y", "cant_update_message"},
		{"chat.delete", q.TS, "", "cant_delete_message"},
		{"chat.update", mine, strings.Repeat("a", 4001), "msg_too_long"},
		{"chat.update", mine, strings.Repeat("a", 4000), "ok"},
		{"chat.delete", mine, "", "ok"},
		{"chat.delete", mine, "", "message_not_found"},
	} {
		if got := call(s, c.route, args{"channel": "C0GENERAL", "ts": c.ts, "text": c.text}).code(); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.route, c.ts, got, c.want)
		}
	}
	if all, now := s.Everything("C0GENERAL"), s.Messages("C0GENERAL"); len(all) != 2 || len(now) != 1 || len(all[1].Revisions) != 2 {
		t.Errorf("%d messages ever, %d now, revisions %+v", len(all), len(now), all[1].Revisions)
	}
}

func TestAPersonPressesStopOnAStream(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	q := s.DM("U0ADA", "x")
	call(s, "chat.startStream", args{"channel": q.Channel, "thread_ts": q.TS})
	m := s.FromBot(q.Channel)[0]
	s.StopStream(m)
	if got := call(s, "chat.appendStream", args{"channel": m.Channel, "ts": m.TS, "markdown_text": "x"}).code(); got != "stopped_by_user" {
		t.Errorf("append: %s", got)
	}
}

func TestGroupConversations(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, allScopes(world()))
	k := dial(t, s)
	q := s.GroupDM("U0ADA", []string{"U0BOB"}, "<@U0BOT> x")
	if got := describe(k.next("events_api").Payload) + ", " + describe(k.next("events_api").Payload); got != "app_mention, message mpim" {
		t.Errorf("events %s", got)
	}
	c, _, _, err := client2(s).OpenConversation(&slack.OpenConversationParameters{Users: []string{"U0BOB", "U0ADA"}})
	if err != nil || c.ID != q.Channel {
		t.Errorf("opening it again: %+v, %v", c, err)
	}
	if s.VisibleTo("U0CYD", q) || !s.VisibleTo("U0BOB", q) {
		t.Error("group conversation has the wrong viewers")
	}
}

func TestShortcutAndClicks(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	q := s.Say("U0BOB", "C0NOTIN", "how long?")
	i := s.Shortcut("U0ADA", q, "triage_message")
	e := k.next("interactive")
	k.ack(e, nil)
	i.Wait()
	var p struct {
		Type, Callback_ID, Trigger_ID, Response_URL string
		Message                                     struct{ Text string }
		Container                                   struct{ Is_Ephemeral bool }
		Actions                                     []struct{ Action_ID, Value, Block_ID string }
	}
	decode := func(raw json.RawMessage) {
		t.Helper()
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
	}
	if decode(e.Payload); p.Type != "message_action" || p.Callback_ID != "triage_message" || p.Message.Text != "how long?" || p.Trigger_ID != i.Trigger {
		t.Errorf("shortcut payload %s", e.Payload)
	}
	blocks := `[{"type":"context_actions","block_id":"fb","elements":[{"type":"feedback_buttons","action_id":"f",
		"positive_button":{"text":{"type":"plain_text","text":"+"},"value":"good"},"negative_button":{"text":{"type":"plain_text","text":"-"},"value":"bad"}}]}]`
	call(s, "chat.postEphemeral", args{"channel": "C0GENERAL", "user": "U0ADA", "text": "x", "blocks": blocks})
	m := s.WaitEphemeral("U0ADA", slacktest.Any)
	c := s.Click("U0ADA", m, "f/negative")
	e = k.next("interactive")
	k.ack(e, nil)
	c.Wait()
	decode(e.Payload)
	if p.Actions[0].Value != "bad" || p.Actions[0].Block_ID != "fb" || !p.Container.Is_Ephemeral || strings.Contains(string(e.Payload), `"message":{`) {
		t.Errorf("click payload %s", e.Payload)
	}
	api := client2(s)
	if _, _, err := api.PostMessage("C0GENERAL", slack.MsgOptionReplaceOriginal(s.ResponseURL(c.ID)), slack.MsgOptionText("thanks", false)); err != nil {
		t.Fatal(err)
	}
	if got := s.Ephemerals("U0ADA"); len(got) != 1 || got[0].Text != "thanks" {
		t.Errorf("after replacing: %+v", got)
	}
	if _, _, err := api.PostMessage("C0GENERAL", slack.MsgOptionDeleteOriginal(s.ResponseURL(c.ID))); err != nil {
		t.Fatal(err)
	}
	if got := s.Ephemerals("U0ADA"); len(got) != 0 {
		t.Errorf("after deleting: %+v", got)
	}
	clean(t, s)
}

func TestHomeTab(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	s.OpenHome("U0ADA")
	k.ack(k.next("events_api"), nil)
	home := `{"type":"home","blocks":[{"type":"actions","block_id":"b","elements":[{"type":"button","action_id":"help","value":"v","text":{"type":"plain_text","text":"Help"}}]}]}`
	call(s, "views.publish", args{"user_id": "U0ADA", "view": home})
	v, ok := s.Home("U0ADA")
	if !ok || v.Type != "home" {
		t.Fatalf("home %+v, %v", v, ok)
	}
	i := s.ClickView("U0ADA", v, "help")
	e := k.next("interactive")
	k.ack(e, nil)
	i.Wait()
	if !strings.Contains(string(e.Payload), `"view_id":"`+v.ID+`"`) {
		t.Errorf("payload %s", e.Payload)
	}
	clean(t, s)
}

func TestModalsAreStackedThreeHigh(t *testing.T) {
	t.Parallel()
	s, _ := manual(t)
	k := dial(t, s)
	view := `{"type":"modal","notify_on_close":true,"title":{"type":"plain_text","text":"t"},"blocks":[{"type":"actions","elements":[
		{"type":"button","action_id":"more","text":{"type":"plain_text","text":"More"}}]}]}`
	i := s.Slash("U0ADA", "C0GENERAL", "/ask", "x")
	k.ack(k.next("slash_commands"), nil)
	trigger, route := i.Trigger, "views.open"
	for n, want := range []string{"ok", "ok", "ok", "push_limit_reached"} {
		if got := call(s, route, args{"trigger_id": trigger, "view": view}).code(); got != want {
			t.Errorf("view %d: %s, want %s", n, got, want)
		}
		stack := s.Views("U0ADA")
		c := s.ClickView("U0ADA", stack[len(stack)-1], "more")
		k.ack(k.next("interactive"), nil)
		trigger, route = c.Trigger, "views.push"
	}
	stack := s.Views("U0ADA")
	if len(stack) != 3 || stack[2].Root != stack[0].ID || stack[2].Previous != stack[1].ID {
		t.Errorf("stack %+v", stack)
	}
	s.CloseView("U0ADA")
	for range 3 {
		if e := k.next("interactive"); !strings.Contains(string(e.Payload), "view_closed") {
			t.Errorf("payload %s", e.Payload)
		} else {
			k.ack(e, nil)
		}
	}
	s.WaitSettled()
}

func TestUserConversations(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	got, _, err := client2(s).GetConversationsForUser(&slack.GetConversationsForUserParameters{
		UserID: "U0ADA", Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range got {
		ids = append(ids, c.ID)
	}
	want := []string{"C0GENERAL", "C0HELP", "C0LOCKED", "C0NOTIN", "C0SECURITY", "C0SHARED"} // not C0SECRET, not C0OLD
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("conversations (-want +got):\n%s", diff)
	}
}

func TestChannelFacts(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	s.AddChannel(slacktest.Channel{ID: "C0LATE", Name: "late", Members: []string{"U0BOT"}})
	s.ShareChannel("C0LATE", "T0AWAY", true)
	info := func(id string) *slack.Channel {
		t.Helper()
		c, err := client2(s).GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: id})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := info("C0LATE"); !c.IsPendingExtShared || c.IsExtShared {
		t.Errorf("pending: %+v", c)
	}
	if c := info("C0SHARED"); !c.IsExtShared || !cmp.Equal(c.ConnectedTeamIDs, []string{"T0AWAY"}) {
		t.Errorf("shared: %+v", c)
	}
	s.Convert("C0LATE", slacktest.Private)
	if c := info("C0LATE"); !c.IsPrivate {
		t.Errorf("converted: %+v", c)
	}
	if c := info(s.DMChannel("U0ADA")); !c.IsIM || c.User != "U0ADA" {
		t.Errorf("direct: %+v", c)
	}
}

func TestWhatCanGoWrongAtTheDoor(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t, world())
	s.FailOpen("too_many_requests")
	if _, code := openURL(t, s); code != "too_many_requests" {
		t.Errorf("open: %s", code)
	}
	s.FailOpen("")
	s.HelloAppID("A0OTHER")
	k := dialRaw(t, s)
	if e := k.next("hello"); e.Info.App != "A0OTHER" {
		t.Errorf("hello names %s", e.Info.App)
	}
	s.SendFrame(json.RawMessage(`{"type":"an_envelope_of_the_future"}`))
	k.next("an_envelope_of_the_future")
	s.KillToken(s.App().AppToken, "token_revoked")
	if _, code := openURL(t, s); code != "token_revoked" {
		t.Errorf("open with a revoked token: %s", code)
	}
	s.ChangeSilently(func(users map[string]*slacktest.User, _ map[string]*slacktest.Group, _ map[string]*slacktest.Channel) {
		users["U0BOB"].Guest = true
	})
	u, err := client2(s).GetUserInfo("U0BOB")
	if err != nil || !u.IsRestricted || u.IsUltraRestricted {
		t.Errorf("user %+v, %v", u, err)
	}
	if len(k.in) != 0 {
		t.Error("a silent change sent an event")
	}
}

func TestAgentViewThreadsDirectMessages(t *testing.T) {
	t.Parallel()
	w := world()
	w.App.AgentView = true
	s := slacktest.New(t, w)
	k := dial(t, s)
	s.DM("U0ADA", "x")
	var p struct {
		Event struct{ TS, Thread_TS string }
	}
	if err := json.Unmarshal(k.next("events_api").Payload, &p); err != nil || p.Event.Thread_TS == "" || p.Event.Thread_TS != p.Event.TS {
		t.Errorf("event %+v, %v", p, err)
	}
}
