package slacktest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Texts are given as Slack stores them: & < > escaped, <@U…> for people.

// Mention posts text in the channel, with the bot named in front unless the
// text names it already. It returns the message.
func (s *Server) Mention(user, channel, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, "", s.named(text), "", true, o)
}

// ReplyInThread posts a reply as it stands: it names the bot only if text does.
func (s *Server) ReplyInThread(user, channel, parent, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, parent, text, "", strings.Contains(text, "<@"), o)
}

// Say posts in the channel without naming anybody.
func (s *Server) Say(user, channel, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, "", text, "", false, o)
}

// DM writes to the bot directly; with a parent, in that thread.
func (s *Server) DM(user, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, s.DMChannel(user), "", text, "", true, o)
}

// DMReply writes to the bot in a thread of the direct channel.
func (s *Server) DMReply(user, parent, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, s.DMChannel(user), parent, text, "", true, o)
}

// GroupDM writes in the group conversation of the users and the bot.
func (s *Server) GroupDM(user string, others []string, text string, o ...Delivery) Message {
	s.T.Helper()
	s.mu.Lock()
	ch := s.world.mpim(append(slices.Clone(others), user, s.world.App.BotUser)).ID
	s.mu.Unlock()
	return s.says(user, ch, "", text, "", true, o)
}

// FileShare posts text with a file.
func (s *Server) FileShare(user, channel, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, "", text, "file_share", true, o)
}

// Broadcast replies in the thread and shows the reply in the channel as well.
func (s *Server) Broadcast(user, channel, parent, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, parent, text, "thread_broadcast", true, o)
}

// SaysWith posts with any subtype, for example me_message.
func (s *Server) SaysWith(subtype, user, channel, parent, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, parent, text, subtype, subtype == "me_message", o)
}

// DMChannel is the direct channel of the user and the bot.
func (s *Server) DMChannel(user string) string {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.world.users[user] == nil {
		s.Failf("no user %s in this world", user)
	}
	return s.world.im(user).ID
}

func (s *Server) named(text string) string {
	bot := s.App().BotUser
	if strings.Contains(text, "<@"+bot) {
		return text
	}
	return strings.TrimSpace("<@" + bot + "> " + text)
}

func (s *Server) says(user, channel, parent, text, subtype string, question bool, o []Delivery) Message {
	s.T.Helper()
	return s.saysWith(user, channel, parent, text, subtype, question, nil, o)
}

func (s *Server) saysWith(user, channel, parent, text, subtype string, question bool, files []string, o []Delivery) Message {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch := s.world.users[user], s.world.channels[channel]
	if u == nil || ch == nil {
		s.Failf("no user %s or no channel %s in this world", user, channel)
	}
	if !ch.has(user) && !(ch.Kind == Public && s.world.canRead(u, &Message{Channel: channel})) {
		s.Failf("%s cannot post in %s", user, channel)
	}
	m := &Message{User: user, BotID: u.BotID, AppID: u.AppID, Text: text, Subtype: subtype, Blocks: richBlocks(text), Files: files}
	if parent != "" {
		p := s.world.live(channel, parent)
		if p == nil || p.ThreadTS != "" {
			s.Failf("no thread %s in %s", parent, channel)
		}
		m.ThreadTS = parent
	}
	s.store(ch, m)
	if s.world.App.AgentView && ch.Kind == IM && parent == "" {
		m.ThreadTS = m.TS
	}
	m.Broadcast = subtype == "thread_broadcast"
	d := one(o)
	if s.scatter != nil {
		d = s.scatter(s.rng, d)
	}
	if question && (ch.Kind == IM || strings.Contains(text, "<@"+s.world.App.BotUser)) {
		s.ask(m)
	}
	s.emitMessage(ch, m, d)
	s.Bump()
	return m.clone()
}

func (s *Server) ask(m *Message) {
	q := Question{User: m.User, Channel: m.Channel, Thread: m.TS, TS: m.TS}
	if m.ThreadTS != "" {
		q.Thread = m.ThreadTS
	}
	s.questions = append(s.questions, q)
}

// richBlocks is what Slack's own client sends along with a text.
func richBlocks(text string) json.RawMessage {
	var parts []any
	rest := text
	for rest != "" {
		loc := tokenRE.FindStringSubmatchIndex(rest)
		if loc == nil || loc[2] < 0 {
			break
		}
		if loc[0] > 0 {
			parts = append(parts, map[string]any{"type": "text", "text": unescape(rest[:loc[0]])})
		}
		parts = append(parts, map[string]any{"type": "user", "user_id": rest[loc[2]:loc[3]]})
		rest = rest[loc[1]:]
	}
	if rest != "" {
		parts = append(parts, map[string]any{"type": "text", "text": unescape(rest)})
	}
	return raw([]any{map[string]any{"type": "rich_text", "block_id": "b1", "elements": []any{
		map[string]any{"type": "rich_text_section", "elements": append([]any{}, parts...)},
	}}})
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// Edit changes the text of the user's own message. An edit that names the bot
// sends an app_mention as well, with edited set.
func (s *Server) Edit(m Message, text string, o ...Delivery) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.world.live(m.Channel, m.TS)
	if p == nil {
		s.Failf("no message %s in %s", m.TS, m.Channel)
	}
	ch, old := s.world.channels[m.Channel], p.Text
	p.Text, p.Blocks, p.EditedBy, p.EditedTS = text, richBlocks(text), p.User, stamp(s.clock.Now())
	s.revise(p)
	s.emitChanged(ch, p, old, nil)
	d := one(o)
	d.Edited = true
	s.emitMessage(ch, p, d)
	s.Bump()
}

// Touch causes a message_changed without a change of text, as link previews,
// reply counts and language detection do.
func (s *Server) Touch(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.world.live(m.Channel, m.TS); p != nil {
		s.emitChanged(s.world.channels[m.Channel], p, p.Text, map[string]any{"attachments": []any{map[string]any{"id": 1}}})
	}
}

// Delete removes the message, as its author or a moderator.
func (s *Server) Delete(m Message) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.world.live(m.Channel, m.TS)
	if p == nil {
		s.Failf("no message %s in %s", m.TS, m.Channel)
	}
	p.Deleted = true
	s.emitDeleted(s.world.channels[m.Channel], p)
	s.Bump()
}

// LockThread makes the thread refuse replies.
func (s *Server) LockThread(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.world.live(m.Channel, m.TS); p != nil {
		p.Locked = true
	}
}

// Interaction is a command, click or submission on its way.
type Interaction struct {
	ID      string // of the response_url, "" when there is none
	Trigger string
	s       *Server
	d       *delivery
}

// Acked reports whether the app has acknowledged, and what it sent along.
func (i *Interaction) Acked() (payload json.RawMessage, ok bool) {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return i.d.answer, i.d.acked
}

// Payload is what the app was sent.
func (i *Interaction) Payload() json.RawMessage {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return raw(i.d.payload)
}

// Wait returns the acknowledgement's payload; no acknowledgement fails the test.
func (i *Interaction) Wait() json.RawMessage {
	i.s.T.Helper()
	i.s.Eventually("an acknowledgement", func() bool { _, ok := i.Acked(); return ok })
	p, _ := i.Acked()
	return p
}

func (s *Server) interact(kind, user, channel string, payload map[string]any, o []Delivery, onAck func(json.RawMessage)) *Interaction {
	trigger := s.newTrigger(user)
	payload["trigger_id"] = trigger
	d := &delivery{kind: kind, payload: payload, accepts: true, user: user, channel: channel, onAck: onAck}
	s.deliver(d, one(o))
	return &Interaction{Trigger: trigger, s: s, d: d}
}

// Slash runs a command. The person must be able to write in the channel; the
// app need not be there.
func (s *Server) Slash(user, channel, command, text string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch := s.world.users[user], s.world.channels[channel]
	if u == nil || ch == nil || !s.world.canRead(u, &Message{Channel: channel}) {
		s.Failf("%s cannot run a command in %s", user, channel)
	}
	name := map[Kind]string{IM: "directmessage", Private: "privategroup", MPIM: "privategroup", Public: ch.Name}[ch.Kind]
	url := s.newResponseURL(user, channel, "", nil)
	id := url[strings.LastIndexByte(url, '/')+1:]
	p := map[string]any{
		"token": "legacy-verification-token", "team_id": s.world.Team.ID, "team_domain": s.world.Team.Domain, "channel_id": channel,
		"channel_name": name, "user_id": user, "user_name": u.Name, "command": command, "text": text,
		"api_app_id": s.world.App.ID, "is_enterprise_install": "false", "response_url": url,
	}
	if e := s.world.Team.Enterprise; e != "" {
		p["enterprise_id"] = e
	}
	s.questions = append(s.questions, Question{User: user, Channel: channel, Interaction: id})
	i := s.interact(kindSlash, user, channel, p, o, func(ack json.RawMessage) { s.ackMessage(id, ack) })
	i.ID = id
	return i
}

// ackMessage shows what an acknowledgement carried; it does not count as a use
// of the response_url.
func (s *Server) ackMessage(id string, ack json.RawMessage) {
	var b responseBody
	if len(ack) == 0 || json.Unmarshal(ack, &b) != nil || b.Text == "" && len(b.Blocks) == 0 {
		return
	}
	if r := s.applyResponse(s.responseURLs[id], b); r["ok"] != true {
		s.violate("acknowledgement with an unacceptable message: %v", r["error"])
	}
}

func (s *Server) common(kind string, u *User) map[string]any {
	p := map[string]any{
		"type": kind, "token": "legacy-verification-token", "api_app_id": s.world.App.ID, "is_enterprise_install": false,
		"team":       map[string]any{"id": s.world.Team.ID, "domain": s.world.Team.Domain},
		"user":       map[string]any{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID},
		"enterprise": nil,
	}
	if e := s.world.Team.Enterprise; e != "" {
		p["enterprise"] = map[string]any{"id": e, "name": e}
	}
	return p
}

// Shortcut runs a message shortcut on the message, which the user must see.
func (s *Server) Shortcut(user string, m Message, callbackID string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, p := s.seen(user, m)
	url := s.newResponseURL(user, m.Channel, p.ThreadTS, nil)
	body := s.common("message_action", u)
	maps.Copy(body, map[string]any{
		"callback_id": callbackID, "action_ts": stamp(s.clock.Now()), "message_ts": p.TS, "response_url": url,
		"channel": map[string]any{"id": m.Channel, "name": s.world.channels[m.Channel].Name}, "message": copyOf(p.wire()),
	})
	id := url[strings.LastIndexByte(url, '/')+1:]
	s.questions = append(s.questions, Question{User: user, Channel: m.Channel, TS: p.TS, Interaction: id})
	i := s.interact(kindInteractive, user, m.Channel, body, o, nil)
	i.ID = id
	return i
}

// copyOf detaches a value from the world by way of JSON.
func copyOf(v any) any {
	var out any
	_ = json.Unmarshal(raw(v), &out)
	return out
}

// seen finds the user and the message, ephemeral ones too, and insists that
// the user can see it.
func (s *Server) seen(user string, m Message) (*User, *Message) {
	u, p := s.world.users[user], s.world.live(m.Channel, m.TS)
	for _, e := range s.ephemerals {
		if m.To != "" && e.Channel == m.Channel && e.TS == m.TS && !e.Deleted {
			p = e
		}
	}
	if u == nil || p == nil || !s.world.canRead(u, p) {
		s.Failf("%s cannot see message %s in %s", user, m.TS, m.Channel)
	}
	return u, p
}

// Click presses the button with the action id on a message, ephemeral or not.
func (s *Server) Click(user string, m Message, actionID string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, p := s.seen(user, m)
	action := s.action(p.Blocks, actionID)
	url := s.newResponseURL(user, m.Channel, p.ThreadTS, p)
	body := s.common("block_actions", u)
	container := map[string]any{"type": "message", "message_ts": p.TS, "channel_id": m.Channel, "is_ephemeral": p.To != ""}
	if p.ThreadTS != "" {
		container["thread_ts"] = p.ThreadTS
	}
	maps.Copy(body, map[string]any{
		"container": container, "response_url": url, "actions": []any{action},
		"channel": map[string]any{"id": m.Channel, "name": s.world.channels[m.Channel].Name},
		"state":   map[string]any{"values": map[string]any{}},
	})
	if p.To == "" {
		body["message"] = copyOf(p.wire())
	}
	i := s.interact(kindInteractive, user, m.Channel, body, o, nil)
	i.ID = url[strings.LastIndexByte(url, '/')+1:]
	return i
}

// ClickView presses a button in an open modal or the home tab.
func (s *Server) ClickView(user string, v View, actionID string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, open := s.world.users[user], s.view(v.ID, "")
	if h := s.homes[user]; h != nil && h.ID == v.ID {
		open = h
	}
	if u == nil || open == nil || open.User != user {
		s.Failf("%s has no view %s open", user, v.ID)
	}
	body := s.common("block_actions", u)
	maps.Copy(body, map[string]any{
		"container": map[string]any{"type": "view", "view_id": open.ID}, "actions": []any{s.action(open.Blocks, actionID)},
		"view": copyOf(s.viewWire(open)), "state": map[string]any{"values": map[string]any{}},
	})
	return s.interact(kindInteractive, user, "", body, o, nil)
}

// action finds the element with the id and makes the action of pressing it.
// For feedback_buttons the id may be followed by "/negative".
func (s *Server) action(blocks json.RawMessage, actionID string) map[string]any {
	id, negative := strings.CutSuffix(actionID, "/negative")
	var list []object
	_ = json.Unmarshal(blocks, &list)
	for _, b := range list {
		var got object
		walk(b, func(o object) {
			if str(o, "action_id") == id && got == nil {
				got = o
			}
		})
		if got == nil {
			continue
		}
		a := map[string]any{
			"type": got["type"], "action_id": id, "block_id": str(b, "block_id"), "action_ts": stamp(s.clock.Now()),
			"text": got["text"], "value": str(got, "value"),
		}
		if str(got, "type") == "feedback_buttons" {
			key := "positive_button"
			if negative {
				key = "negative_button"
			}
			pressed, _ := got[key].(object)
			a["value"], a["text"] = str(pressed, "value"), pressed["text"]
		}
		return a
	}
	s.Failf("no element %q in the blocks", actionID)
	return nil
}

// SubmitView submits the modal with values by block id and action id; a value
// is a string, or an object as on the wire. The answer of the app takes effect.
func (s *Server) SubmitView(user string, v View, values map[string]map[string]any, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, open := s.world.users[user], s.view(v.ID, "")
	if u == nil || open == nil || open.User != user || open.Submit == "" {
		s.Failf("%s has no view %s to submit", user, v.ID)
	}
	state := map[string]any{}
	for block, actions := range values {
		row := map[string]any{}
		for id, val := range actions {
			if text, ok := val.(string); ok {
				val = map[string]any{"type": "plain_text_input", "value": text}
			}
			row[id] = val
		}
		state[block] = row
	}
	body := s.common("view_submission", u)
	view := s.viewWire(open)
	view["state"] = map[string]any{"values": state}
	body["view"], body["response_urls"] = copyOf(view), []any{}
	return s.interact(kindInteractive, user, "", body, o, func(ack json.RawMessage) { s.submitted(open, ack) })
}

// submitted applies the response_action of a submission.
func (s *Server) submitted(open *View, ack json.RawMessage) {
	var a struct {
		Action string            `json:"response_action"`
		View   json.RawMessage   `json:"view"`
		Errors map[string]string `json:"errors"`
	}
	if len(ack) > 0 && json.Unmarshal(ack, &a) != nil {
		s.violate("submission answered with something that is not an object")
		return
	}
	var r reply
	switch a.Action {
	case "":
		stack := s.views[open.User]
		s.views[open.User] = slices.DeleteFunc(stack, func(v *View) bool { return v == open })
	case "clear":
		s.views[open.User] = nil
	case "update":
		r = s.redraw(open, string(a.View))
	case "push":
		v, bad := s.parseView(string(a.View), SurfaceModal)
		if r = bad; bad == nil {
			r = s.show(v, open.User, true)
		}
	case "errors":
		for block, text := range a.Errors {
			s.userErrors[open.User] = append(s.userErrors[open.User], block+": "+text)
		}
	default:
		s.violate("submission answered with the unknown response_action %q", a.Action)
	}
	if r != nil && r["ok"] != true {
		s.violate("submission answered with an unacceptable view: %v", r["error"])
	}
}

// CloseView closes the user's modals; the app hears of it if it asked to.
func (s *Server) CloseView(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stack := s.views[user]
	s.views[user] = nil
	for _, v := range stack {
		if v.NotifyOnClose {
			body := s.common("view_closed", s.world.users[user])
			body["view"], body["is_cleared"] = copyOf(s.viewWire(v)), true
			s.interact(kindInteractive, user, "", body, nil, nil)
		}
	}
	s.Bump()
}

// OpenHome is the user opening the home tab of the app.
func (s *Server) OpenHome(user string, o ...Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit("app_home_opened", map[string]any{
		"type": "app_home_opened", "user": user, "channel": s.world.im(user).ID, "tab": "home", "event_ts": stamp(s.clock.Now()),
	}, nil, one(o))
}
