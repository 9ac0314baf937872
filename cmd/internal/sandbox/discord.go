package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"sync"

	"footnote/adapters/discord/discordtest"
)

// server is the stage that looks like Discord.
type server struct {
	s     *discordtest.Server
	guild string
	roles map[string]string
	who   crowd
	open  []place
	mu    sync.Mutex
	asked map[string]string // what was run, by interaction
}

// message command of the adapter.
const askMessage = "Ask footnote"

func newServer() *server {
	w := discordtest.NewWorld()
	sv := &server{who: demoPeople(), asked: map[string]string{}}
	for i, p := range sv.who {
		sv.who[i].account = w.AddUser(discordtest.User{Name: p.ID, GlobalName: p.Name})
	}
	owner := w.AddUser(discordtest.User{Name: "owner", GlobalName: "Owner"})
	sv.guild = w.AddGuild(discordtest.Guild{Name: "Lumen Harbour", Owner: owner})
	staff := w.AddRole(sv.guild, discordtest.Role{Name: "staff"})
	security := w.AddRole(sv.guild, discordtest.Role{Name: "security"})
	sv.roles = map[string]string{"staff": staff, "security": security}
	w.AddMember(sv.guild, owner)
	w.AddMember(sv.guild, sv.who[0].account, staff, security)
	w.AddMember(sv.guild, sv.who[1].account, staff)
	w.AddMember(sv.guild, sv.who[2].account, staff)
	w.AddMember(sv.guild, sv.who[3].account)
	bot := w.App.BotUser
	only := func(role string) []discordtest.Overwrite {
		return []discordtest.Overwrite{
			{ID: sv.guild, Deny: discordtest.ViewChannel},
			{ID: role, Allow: discordtest.ViewChannel},
			{ID: bot, Member: true, Allow: discordtest.ViewChannel},
		}
	}
	sv.open = []place{
		{ID: "general", Name: "general", About: "role staff", channel: w.AddChannel(discordtest.Channel{GuildID: sv.guild, Name: "general", Overwrites: only(staff)})},
		{ID: "security", Name: "security", About: "role security, Ada alone", channel: w.AddChannel(discordtest.Channel{GuildID: sv.guild, Name: "security", Overwrites: only(security)})},
		{ID: "lobby", Name: "lobby", About: "everybody, guests too", channel: w.AddChannel(discordtest.Channel{GuildID: sv.guild, Name: "lobby"})},
	}
	sv.s = discordtest.New(nil, w)
	return sv
}

func (w *server) environment() map[string]string {
	return map[string]string{
		"FOOTNOTE_DISCORD_API_URL": w.s.URL(), "FOOTNOTE_DISCORD_TOKEN": w.s.App().Token, "FOOTNOTE_DISCORD_MENTIONS": "true",
	}
}

// lists: on a server everybody is a member, so that the demo's "everyone" is
// the roles that staff have, since #security is read by whoever has its role, and
// its guests are everybody.
func (w *server) lists() map[string]string {
	of := func(what string) string { return "discord:" + w.guild + ":" + what }
	return map[string]string{
		"everyone": of("role/"+w.roles["staff"]) + ", " + of("role/"+w.roles["security"]), "group:security": of("role/" + w.roles["security"]), "group:guests": of("everyone"),
	}
}

func (w *server) ready(ctx context.Context) error {
	return w.wait(ctx, func() bool { return w.s.Sessions() > 0 && len(w.s.Commands("")) > 0 })
}

func (w *server) wait(ctx context.Context, until func() bool) error { return w.s.Wait(ctx, until) }
func (w *server) close()                                            { w.s.Close() }
func (w *server) people() []person                                  { return w.who }

func (w *server) places(as person) []place {
	out := slices.Clone(w.open)
	for i, p := range out {
		out[i].Open = w.s.VisibleTo(as.account, discordtest.Message{Channel: p.channel})
	}
	return append(out, place{ID: dm, Name: "footnote", About: "direct message, " + as.Name + " alone", Open: true, channel: w.s.DMChannel(as.account)})
}

func (w *server) ways(in place) []way {
	out := []way{
		{"/ask", "/ask", "everybody here sees the answer"},
		{"/ask private", "/ask private:True", "only you see the answer"},
		{"mention", "@footnote", "everybody here sees the answer"},
		{"/footnote", "/footnote", "help, status or why"},
		{"say", "message", "no question to the bot"},
	}
	if in.ID == dm {
		return []way{{"say", "message", "write to footnote directly"}, out[0], out[3]}
	}
	return out
}

// seen lists what the person sees in the place and its threads.
func (w *server) seen(as person, channel string) []discordtest.Message {
	var out []discordtest.Message
	for _, m := range w.s.Everything(channel) {
		if !m.Deleted && w.s.VisibleTo(as.account, m) {
			out = append(out, m)
		}
	}
	return out
}

func (w *server) look(as person, in place) room {
	r := room{Notices: w.s.Failures(as.account)}
	threads := w.s.Threads(in.channel)
	for _, m := range w.seen(as, in.channel) {
		v := w.message(m)
		for _, t := range threads {
			if t.ID != m.Thread {
				continue
			}
			v.Thread = t.ID
			for _, reply := range w.seen(as, t.ID) {
				v.Replies = append(v.Replies, w.message(reply))
			}
		}
		r.Messages = append(r.Messages, v)
	}
	return r
}

func (w *server) message(m discordtest.Message) message {
	v := message{ID: m.ID, Who: w.who.name(m.Author), Tint: w.who.tint(m.Author), App: m.Author == w.s.App().BotUser, At: m.At, Only: m.EphemeralTo != ""}
	if m.Original {
		w.mu.Lock()
		v.Above = w.asked[m.Interaction]
		w.mu.Unlock()
	}
	v.Body = markdown(m.Content, w.who.name) + w.embeds(m.Embeds)
	if m.Thinking {
		v.Status = "is thinking…"
	}
	v.Buttons = components(m.Components)
	if !v.App {
		v.Tools = []way{{askMessage, askMessage, "only you see the answer"}}
	}
	return v
}

func (w *server) embeds(raw json.RawMessage) template.HTML {
	var list []struct {
		Title, Description string
		Footer             struct{ Text string }
	}
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var out strings.Builder
	for _, e := range list {
		out.WriteString(`<div class="embed"><b>` + html.EscapeString(e.Title) + "</b>" + string(markdown(e.Description, w.who.name)))
		out.WriteString(`<div class="small">` + html.EscapeString(e.Footer.Text) + "</div></div>")
	}
	return template.HTML(out.String())
}

func components(raw json.RawMessage) [][]pressable {
	var rows []struct {
		Components []struct {
			Label, URL string
			ID         string `json:"custom_id"`
		}
	}
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var out [][]pressable
	for _, r := range rows {
		var row []pressable
		for _, b := range r.Components {
			row = append(row, pressable{b.Label, b.ID, b.URL})
		}
		out = append(out, row)
	}
	return out
}

func (w *server) do(a act) error {
	text := strings.TrimSpace(a.Text)
	channel := a.in.channel
	if a.Thread != "" {
		channel = a.Thread
	}
	switch a.What {
	case "press":
		m, ok := w.find(a)
		if !ok {
			return errNot
		}
		w.s.Click(a.as.account, m, a.Action)
		return nil
	case "tool":
		m, ok := w.find(a)
		if !ok || a.Action != askMessage {
			return errNot
		}
		w.note(w.s.MessageCommand(a.as.account, m, askMessage), a.as, askMessage, "")
		return nil
	case "/ask", "/ask private":
		options := map[string]any{"question": text}
		if a.What != "/ask" {
			options["private"] = true
		}
		w.note(w.s.Command(a.as.account, channel, "ask", options), a.as, "/ask", text)
		return nil
	case "/footnote":
		if !slices.Contains([]string{"help", "status", "why"}, text) {
			return fmt.Errorf("write help, status or why: %w", errNot)
		}
		w.note(w.s.Command(a.as.account, channel, "footnote "+text, nil), a.as, "/footnote "+text, "")
		return nil
	case "mention":
		w.s.Mention(a.as.account, channel, text)
		return nil
	case "say":
		return w.say(a, channel, text)
	}
	return fmt.Errorf("%q: %w", a.What, errNot)
}

func (w *server) say(a act, channel, text string) error {
	switch {
	case text == "":
		return errNot
	case a.in.ID == dm:
		w.s.DM(a.as.account, text)
	default:
		w.s.Say(a.as.account, channel, text)
	}
	return nil
}

// note remembers what Discord shows above a response.
func (w *server) note(i *discordtest.Interaction, who person, what, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[i.ID] = strings.TrimSpace(who.Name + " used " + what + " " + text)
}

func (w *server) find(a act) (discordtest.Message, bool) {
	m, ok := w.s.Message(a.Message)
	if !ok || m.Deleted || !w.s.VisibleTo(a.as.account, m) {
		return discordtest.Message{}, false
	}
	return m, true
}

var (
	_ stage = (*server)(nil)
	_ stage = (*workspace)(nil)
)
