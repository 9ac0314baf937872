package sandbox

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"footnote/adapters/slack/slacktest"
)

// workspace is the stage that looks like Slack.
type workspace struct {
	s    *slacktest.Server
	who  crowd
	open []place // channels
}

// shortcut is the callback id of the message shortcut, as deploy/slack/manifest.yaml has it.
const shortcut = "triage_message"

func newWorkspace() *workspace {
	w := slacktest.NewWorld()
	w.Team.Name = "Lumen Harbour"
	// As an operator who wants follow-ups without a mention.
	w.App.Scopes = append(slices.Clone(slacktest.DefaultScopes), "channels:history", "groups:history")
	w.App.Events = append(slices.Clone(slacktest.DefaultEvents), "message.channels", "message.groups")
	ws := &workspace{who: demoPeople()}
	for i, p := range ws.who {
		u := slacktest.User{Name: p.ID, RealName: p.Name, Email: emails[p.ID], EmailConfirmed: true, Guest: p.ID == "gus"}
		ws.who[i].account = w.Add(u)
	}
	ada, bob, mina, gus := ws.who[0].account, ws.who[1].account, ws.who[2].account, ws.who[3].account
	w.AddGroup("security", ada)
	ws.open = []place{
		{ID: "general", Name: "general", About: "public, all members", channel: w.Public("general", ada, bob, mina)},
		{ID: "security", Name: "security", About: "private, Ada alone", channel: w.Private("security", ada)},
		{ID: "lobby", Name: "lobby", About: "with a guest in it", channel: w.Public("lobby", ada, bob, mina, gus)},
	}
	ws.s = slacktest.New(nil, w)
	return ws
}

func (w *workspace) environment() map[string]string {
	a := w.s.App()
	return map[string]string{
		"FOOTNOTE_SLACK_API_URL": w.s.APIURL(), "FOOTNOTE_SLACK_BOT_TOKEN": a.BotToken, "FOOTNOTE_SLACK_APP_TOKEN": a.AppToken,
		"FOOTNOTE_SLACK_DEFAULT_FOLLOW_UPS": "true",
	}
}

func (w *workspace) lists() map[string]string {
	return map[string]string{"group:security": "slack:T0HOME:usergroup/S0SECURITY", "group:guests": "slack:T0HOME:guests"}
}

func (w *workspace) ready(ctx context.Context) error {
	return w.wait(ctx, func() bool { return w.s.Sockets() > 0 })
}

func (w *workspace) wait(ctx context.Context, until func() bool) error { return w.s.Wait(ctx, until) }
func (w *workspace) close()                                            { w.s.Close() }
func (w *workspace) people() []person                                  { return w.who }

func (w *workspace) places(as person) []place {
	out := slices.Clone(w.open)
	for i, p := range out {
		out[i].Open = w.s.VisibleTo(as.account, slacktest.Message{Channel: p.channel})
	}
	return append(out, place{ID: dm, Name: "footnote", About: "direct message, " + as.Name + " alone", Open: true, channel: w.s.DMChannel(as.account)})
}

func (w *workspace) ways(in place) []way {
	private := []way{
		{"/ask", "/ask", "only you see the answer"},
		{"/footnote", "/footnote", "help, status or why"},
	}
	if in.ID == dm {
		return append([]way{{"say", "message", "write to footnote directly"}}, private...)
	}
	return append([]way{{"mention", "@footnote", "the answer goes to the thread"}}, append(private, way{"say", "message", "no question to the bot"})...)
}

// seen lists what the person sees in the place: the channel's messages, and
// those to them alone.
func (w *workspace) seen(as person, in place) []slacktest.Message {
	var out []slacktest.Message
	for _, m := range append(w.s.Messages(in.channel), w.s.Ephemerals(as.account)...) {
		if m.Channel == in.channel && w.s.VisibleTo(as.account, m) && (m.To == "" || m.Shown) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b slacktest.Message) int { return a.At.Compare(b.At) })
	return out
}

func (w *workspace) look(as person, in place) room {
	r := room{Notices: w.s.UserErrors(as.account)}
	at := map[string]int{} // top messages by their time stamp
	for _, m := range w.seen(as, in) {
		v := w.message(m)
		if parent, ok := at[m.ThreadTS]; ok && m.ThreadTS != m.TS {
			r.Messages[parent].Replies = append(r.Messages[parent].Replies, v)
			continue
		}
		if m.To == "" {
			at[m.TS] = len(r.Messages)
			v.Thread = m.TS
		}
		r.Messages = append(r.Messages, v)
	}
	for ts, i := range at {
		r.Messages[i].Status = w.s.Status(in.channel, ts)
	}
	if open := w.s.Views(as.account); len(open) > 0 {
		top := open[len(open)-1]
		b := w.blocks()
		r.Modal = &modal{ID: top.ID, Title: top.Title, Body: b.show(top.Blocks), Buttons: b.buttons}
	}
	return r
}

func (w *workspace) blocks() *blocks { return &blocks{names: w.who.name} }

func (w *workspace) message(m slacktest.Message) message {
	b := w.blocks()
	v := message{ID: m.TS, Who: w.who.name(m.User), Tint: w.who.tint(m.User), App: m.AppID != "", At: stampOf(m.TS), Only: m.To != ""}
	if v.Body = b.show(m.Blocks); v.Body == "" {
		v.Body = template.HTML("<div class=\"said\">" + template.HTMLEscapeString(m.Text) + "</div>")
	}
	v.Buttons = b.buttons
	if len(m.Reactions) > 0 {
		v.Status = "is looking…"
	}
	if !v.App {
		v.Tools = []way{{shortcut, "Ask footnote about this message", "only you see the answer"}}
	}
	return v
}

// stampOf reads a time stamp of Slack's.
func stampOf(ts string) time.Time {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64)
	u, _ := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, u*1000)
}

var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (w *workspace) do(a act) error {
	text := slackEscape.Replace(strings.TrimSpace(a.Text))
	switch a.What {
	case "close":
		w.s.CloseView(a.as.account)
		return nil
	case "press":
		return w.press(a)
	case "tool":
		m, ok := w.find(a)
		if !ok || a.Action != shortcut {
			return errNot
		}
		w.s.Shortcut(a.as.account, m, shortcut)
		return nil
	case "/ask", "/footnote":
		w.s.Slash(a.as.account, a.in.channel, a.What, text)
		return nil
	case "mention":
		if a.Thread != "" {
			w.s.ReplyInThread(a.as.account, a.in.channel, a.Thread, "<@"+w.s.App().BotUser+"> "+text)
			return nil
		}
		w.s.Mention(a.as.account, a.in.channel, text)
		return nil
	case "say":
		return w.say(a, text)
	}
	return fmt.Errorf("%q: %w", a.What, errNot)
}

func (w *workspace) say(a act, text string) error {
	switch {
	case text == "":
		return errNot
	case a.in.ID == dm && a.Thread != "":
		w.s.DMReply(a.as.account, a.Thread, text)
	case a.in.ID == dm:
		w.s.DM(a.as.account, text)
	case a.Thread != "":
		w.s.ReplyInThread(a.as.account, a.in.channel, a.Thread, text)
	default:
		w.s.Say(a.as.account, a.in.channel, text)
	}
	return nil
}

// press clicks a button of the open window or of a message.
func (w *workspace) press(a act) error {
	if open := w.s.Views(a.as.account); len(open) > 0 && open[len(open)-1].ID == a.Message {
		w.s.ClickView(a.as.account, open[len(open)-1], a.Action)
		return nil
	}
	m, ok := w.find(a)
	if !ok {
		return errNot
	}
	w.s.Click(a.as.account, m, a.Action)
	return nil
}

func (w *workspace) find(a act) (slacktest.Message, bool) {
	for _, m := range w.seen(a.as, a.in) {
		if m.TS == a.Message {
			return m, true
		}
	}
	return slacktest.Message{}, false
}
