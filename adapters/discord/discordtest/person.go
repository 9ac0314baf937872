package discordtest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Delivery says how something reaches the app. The zero Delivery is one copy
// to every session, at once.
type Delivery struct {
	Copies      int           // further copies to every session
	CopyDelay   time.Duration // before each of them
	Delay       time.Duration // before the first copy; the token's time runs meanwhile
	Drop        bool          // never delivered
	Session     int           // only to the n-th connected session, from 1
	UserInstall bool          // the person runs the app that they installed themselves
	Force       bool          // skip what the client checks first: time-outs, permissions, options
	Without     []string      // fields to leave out of the payload
	With        map[string]any
}

// Question is something that a person asked through one of the verbs.
type Question struct {
	User, Channel        string
	Message, Interaction string // one of the two
}

// Questions lists what has been asked so far.
func (s *Server) Questions() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.questions)
}

// SetScatter lets f change how each interaction or message is delivered, for storms.
func (s *Server) SetScatter(f func(*rand.Rand, Delivery) Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scatter = f
}

func (s *Server) one(o []Delivery) Delivery {
	var d Delivery
	if len(o) > 0 {
		d = o[0]
	}
	if s.scatter != nil {
		d = s.scatter(s.rng, d)
	}
	return d
}

// Interaction is a command, click or submission on its way.
type Interaction struct {
	ID, Token string
	s         *Server
	x         *interaction
}

func (i *Interaction) locked(f func(x *interaction)) {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	f(i.x)
}

// Acked reports the kind of the callback (4 message, 5 deferral, …) and whether there was one.
func (i *Interaction) Acked() (kind int, ok bool) {
	i.locked(func(x *interaction) { kind, ok = x.reply, x.reply != 0 })
	return kind, ok
}

// AckTime is how long the callback took, 0 while there is none.
func (i *Interaction) AckTime() (d time.Duration) {
	i.locked(func(x *interaction) {
		if x.reply != 0 {
			d = x.ackedAt.Sub(x.at)
		}
	})
	return d
}

// Payload is what the app was sent.
func (i *Interaction) Payload() (p json.RawMessage) {
	i.locked(func(x *interaction) { p = raw(x.payload) })
	return p
}

// Failed reports that the person was told that the app did not respond.
func (i *Interaction) Failed() (failed bool) {
	i.locked(func(x *interaction) { failed = x.failed })
	return failed
}

// Response is the original response as it is now.
func (i *Interaction) Response() (m Message, ok bool) {
	i.locked(func(x *interaction) {
		if x.original != nil && !x.original.Deleted {
			m, ok = x.original.clone(), true
		}
	})
	return m, ok
}

// Modal is the modal that was opened, nil if none was.
func (i *Interaction) Modal() (modal json.RawMessage) {
	i.locked(func(x *interaction) {
		if x.modal != nil {
			modal = raw(x.modal)
		}
	})
	return modal
}

// Choices is what an autocomplete suggested.
func (i *Interaction) Choices() (c json.RawMessage) {
	i.locked(func(x *interaction) { c = raw(x.choices) })
	return c
}

// Wait returns the kind of the callback; none fails the test.
func (i *Interaction) Wait() int {
	i.s.T.Helper()
	i.s.Eventually("a callback", func() bool { _, ok := i.Acked(); return ok })
	kind, _ := i.Acked()
	return kind
}

// WaitAnswer returns the original response once it is no longer thinking.
func (i *Interaction) WaitAnswer() Message {
	i.s.T.Helper()
	i.s.Eventually("an answer", func() bool { m, ok := i.Response(); return ok && !m.Thinking })
	m, _ := i.Response()
	return m
}

// DMChannel is the direct channel of the user and the bot.
func (s *Server) DMChannel(user string) string {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account(user)
	return s.world.dm(user, s.clock.Now()).ID
}

// account finds the user or ends the test.
func (s *Server) account(user string) *User {
	s.T.Helper()
	u := s.world.users[user]
	if u == nil {
		s.Failf("no user %s in this world", user)
	}
	return u
}

// place finds the channel and insists that the user can see it.
func (s *Server) place(user, channel string, force bool) *Channel {
	s.T.Helper()
	s.account(user)
	ch := s.world.channels[channel]
	if ch == nil || ch.Deleted {
		s.Failf("no channel %s in this world", channel)
	}
	if !force && !s.world.canView(user, ch, s.clock.Now()) {
		s.Failf("%s cannot see channel %s", user, channel)
	}
	return ch
}

// Command runs a slash command; name may hold a subcommand, as in "footnote
// status". The client's checks apply: permissions, contexts, options.
func (s *Server) Command(user, channel, name string, options map[string]any, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	ch := s.place(user, channel, d.Force)
	words := strings.Fields(name)
	cmd := s.available(user, ch, 1, words[0], d)
	opts, bad := fillOptions(cmd.options, words[1:], options, d.Force, "")
	if bad != "" {
		s.Failf("/%s: %s", name, bad)
	}
	x := s.newInteraction(commandKind, user, ch)
	data := object{"id": cmd.object["id"], "name": cmd.name(), "type": 1}
	if g := cmd.object["guild_id"]; g != nil {
		data["guild_id"] = g
	}
	if len(opts) > 0 {
		data["options"] = opts
	}
	s.questions = append(s.questions, Question{User: user, Channel: channel, Interaction: x.id})
	return s.send(x, data, d)
}

// available finds the command that the client offers, the guild's own first.
func (s *Server) available(user string, ch *Channel, kind int, name string, d Delivery) *command {
	s.T.Helper()
	cmd := s.commandNamed(ch.GuildID, kind, name)
	if cmd == nil {
		cmd = s.commandNamed("", kind, name)
	}
	if cmd == nil {
		s.Failf("no command %q of type %d is registered for this place", name, kind)
	}
	if bad := s.blocked(user, ch, cmd, d); bad != "" && !d.Force {
		s.Failf("command %q is not available to %s here: %s", name, user, bad)
	}
	return cmd
}

// blocked says why the client would not offer the command.
func (s *Server) blocked(user string, ch *Channel, cmd *command, d Delivery) string {
	if ctx := cmd.object["contexts"]; ctx != nil && !listed(ctx, contextOf(ch, s.world.app.BotUser)) {
		return "not in this context"
	}
	if d.UserInstall && (!s.world.users[user].Installed || !listed(cmd.object["integration_types"], 1)) {
		return "not installed by the user"
	}
	g := s.world.guilds[ch.GuildID]
	if g == nil {
		return ""
	}
	p := s.world.perms(g, user, ch, s.clock.Now())
	need, _ := cmd.object["default_member_permissions"].(string)
	bits, _ := strconv.ParseUint(need, 10, 64)
	switch {
	case g.NoCommands && !d.UserInstall:
		return "the app is not in the guild"
	case ch.Archived:
		return "the thread is archived"
	case !p.Has(UseCommands):
		return "no permission to use commands"
	case need != "" && p != AllPerms && (bits == 0 || !p.Has(Perm(bits))):
		return "default_member_permissions"
	}
	return ""
}

func listed(v any, n int) bool {
	switch l := v.(type) {
	case []int:
		return slices.Contains(l, n)
	case []any:
		return slices.ContainsFunc(l, func(e any) bool { return number(e) == n })
	}
	return false
}

func contextOf(ch *Channel, bot string) int {
	switch {
	case ch.GuildID != "":
		return 0
	case ch.Type == DM && slices.Contains(ch.Recipients, bot):
		return 1
	}
	return 2
}

// fillOptions makes the option list of the wire and checks it as the client
// does. focused is the option that an autocomplete is about.
func fillOptions(defs []commandOption, path []string, values map[string]any, force bool, focused string) (out []object, bad string) {
	for _, def := range defs {
		if len(path) > 0 && def.Type <= 2 && def.Name == path[0] {
			kids, bad := fillOptions(def.Options, path[1:], values, force, focused)
			return []object{{"name": def.Name, "type": def.Type, "options": append([]object{}, kids...)}}, bad
		}
	}
	if len(path) > 0 {
		return nil, "no subcommand " + path[0]
	}
	left := maps.Clone(values)
	for _, def := range defs {
		v, has := values[def.Name]
		delete(left, def.Name)
		if !has {
			if def.Required && focused == "" && !force {
				return nil, "option " + def.Name + " is required"
			}
			continue
		}
		if bad := unfit(def, v); bad != "" && focused == "" && !force {
			return nil, "option " + def.Name + " " + bad
		}
		o := object{"name": def.Name, "type": def.Type, "value": v}
		if def.Name == focused {
			o["focused"] = true
		}
		out = append(out, o)
	}
	if len(left) > 0 && !force {
		return nil, "no option " + slices.Sorted(maps.Keys(left))[0]
	}
	return out, ""
}

func unfit(def commandOption, v any) string {
	switch t, isText := v.(string); {
	case def.Type == 3 && !isText:
		return "takes a text"
	case def.Type == 3 && def.MaxLength != nil && length(t) > *def.MaxLength, def.Type == 3 && length(t) > 6000:
		return "is too long"
	case def.Type == 3 && def.MinLength != nil && length(t) < *def.MinLength:
		return "is too short"
	}
	if _, isBool := v.(bool); def.Type == 5 && !isBool {
		return "takes true or false"
	}
	if len(def.Choices) > 0 && !slices.ContainsFunc(def.Choices, func(c commandChoice) bool { return c.Value == v }) {
		return "is not one of the choices"
	}
	return ""
}

// MessageCommand runs a message context menu command on a message that the user can see.
func (s *Server) MessageCommand(user string, m Message, name string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	p := s.seen(user, m)
	ch := s.world.channels[p.Channel]
	cmd := s.available(user, ch, 3, name, d)
	x := s.newInteraction(commandKind, user, ch)
	s.questions = append(s.questions, Question{User: user, Channel: ch.ID, Interaction: x.id})
	return s.send(x, object{
		"id": cmd.object["id"], "name": name, "type": 3, "target_id": p.ID,
		"resolved": object{"messages": object{p.ID: s.world.messageWire(p)}},
	}, d)
}

// seen finds the message and insists that the user can see it.
func (s *Server) seen(user string, m Message) *Message {
	s.T.Helper()
	s.account(user)
	p := s.world.live(m.Channel, m.ID)
	if p == nil || !s.world.canRead(user, p, s.clock.Now()) {
		s.Failf("%s cannot see message %s in %s", user, m.ID, m.Channel)
	}
	return p
}

// Autocomplete is the user typing in the option focused; values may be partial.
func (s *Server) Autocomplete(user, channel, name, focused string, values map[string]any, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	ch := s.place(user, channel, d.Force)
	words := strings.Fields(name)
	cmd := s.available(user, ch, 1, words[0], d)
	opts, bad := fillOptions(cmd.options, words[1:], values, d.Force, focused)
	if bad != "" {
		s.Failf("/%s: %s", name, bad)
	}
	x := s.newInteraction(autocompleteKind, user, ch)
	return s.send(x, object{"id": cmd.object["id"], "name": cmd.name(), "type": 1, "options": opts}, d)
}

// Click presses the button with the custom id on a message, ephemeral or not.
func (s *Server) Click(user string, m Message, customID string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	p := s.seen(user, m)
	kind := 0
	walk(list(p.Components), func(c object) {
		if c["custom_id"] == customID && (c["disabled"] != true || d.Force) {
			kind = number(c["type"])
		}
	})
	if kind == 0 && !d.Force {
		s.Failf("no component %q that can be used on message %s", customID, m.ID)
	}
	x := s.newInteraction(componentKind, user, s.world.channels[p.Channel])
	x.source = p
	data := object{"custom_id": customID, "component_type": max(kind, button), "id": 1}
	return s.send(x, data, d)
}

// Modal submits the modal that the interaction opened, with values by custom id.
func (s *Server) Modal(user string, from *Interaction, values map[string]string, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	if from.x.modal == nil || from.x.user != user {
		s.Failf("interaction %s opened no modal for %s", from.ID, user)
	}
	rows := []any{}
	walk(from.x.modal["components"], func(c object) {
		if id, _ := c["custom_id"].(string); number(c["type"]) == textInput {
			rows = append(rows, object{"type": actionRow, "id": 1, "components": []any{
				object{"type": textInput, "custom_id": id, "value": values[id], "id": 2},
			}})
		}
	})
	x := s.newInteraction(modalKind, user, s.world.channels[from.x.channel])
	x.source = from.x.source
	return s.send(x, object{"custom_id": from.x.modal["custom_id"], "components": rows}, d)
}

// Inject sends an interaction of any type with any data, for what no client
// would send. Nobody is asking: it does not count as a question.
func (s *Server) Inject(user, channel string, kind int, data map[string]any, o ...Delivery) *Interaction {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.newInteraction(kind, user, s.place(user, channel, true))
	return s.send(x, data, s.one(o))
}

// send completes the payload and delivers it; the caller holds s.mu.
func (s *Server) send(x *interaction, data object, d Delivery) *Interaction {
	x.payload = s.common(x, d)
	if data != nil {
		x.payload["data"] = data
	}
	if x.source != nil {
		x.payload["message"] = s.world.messageWire(x.source)
	}
	maps.Copy(x.payload, d.With)
	for _, f := range d.Without {
		delete(x.payload, f)
	}
	body := raw(x.payload)
	if !d.Drop {
		s.Later(d.Delay, func() {
			s.transmit(x, body, d)
			for range d.Copies {
				s.Later(d.CopyDelay, func() { s.transmit(x, body, d) })
			}
		})
	}
	s.Bump()
	return &Interaction{ID: x.id, Token: x.token, s: s, x: x}
}

func (s *Server) transmit(x *interaction, body json.RawMessage, d Delivery) {
	if s.endpoint != "" {
		x.sentAt = append(x.sentAt, s.clock.Now())
		s.post(x, body)
		return
	}
	n := 0
	for _, sess := range s.sessions {
		if sess.dead || !sess.onShard(x.guild) {
			continue
		}
		if sess.sock != nil {
			if n++; d.Session > 0 && n != d.Session {
				continue
			}
			if !s.silent {
				x.sentAt = append(x.sentAt, s.clock.Now())
			}
		}
		s.deliver(sess, "INTERACTION_CREATE", body)
	}
}

// common is what every interaction carries.
func (s *Server) common(x *interaction, d Delivery) object {
	u, ch := s.world.users[x.user], s.world.channels[x.channel]
	p := object{
		"id": x.id, "application_id": s.world.app.ID, "type": x.kind, "token": x.token, "version": 1, "channel_id": ch.ID,
		"locale": locale(u.Locale), "entitlements": []any{}, "entitlement_sku_ids": []any{}, "attachment_size_limit": 10_485_760,
		"context": contextOf(ch, s.world.app.BotUser),
	}
	chanWire := s.world.channelWire(ch)
	delete(chanWire, "permission_overwrites")
	owners := object{}
	if d.UserInstall {
		owners["1"] = x.user
	}
	g := s.world.guilds[ch.GuildID]
	if g == nil {
		p["user"], p["channel"], p["app_permissions"] = s.world.userWire(x.user), chanWire, (EveryonePerms | MentionEveryone).String()
		if contextOf(ch, s.world.app.BotUser) == 1 && !d.UserInstall {
			owners["0"] = "0"
		}
		x.userOnly = d.UserInstall
	} else {
		s.guildPart(p, x, g, ch)
		if !g.NoCommands {
			owners["0"] = g.ID
		}
		chanWire["permissions"] = s.world.perms(g, x.user, ch, s.clock.Now()).String()
		p["channel"] = chanWire
		x.userOnly = d.UserInstall && g.NoCommands
	}
	p["authorizing_integration_owners"] = owners
	return p
}

func (s *Server) guildPart(p object, x *interaction, g *Guild, ch *Channel) {
	m := g.member(x.user)
	if m == nil {
		m = &Member{User: x.user} // only by Force: somebody who has just left
	}
	w := s.world.memberWire(m, true)
	w["permissions"] = s.world.perms(g, x.user, ch, s.clock.Now()).String()
	p["guild_id"], p["member"], p["guild_locale"] = g.ID, w, locale(g.Locale)
	p["guild"] = object{"id": g.ID, "locale": locale(g.Locale), "features": orEmpty(g.Features)}
	p["app_permissions"] = s.appPerms(g, ch).String()
}

// appPerms is what the app may do in the channel; without a bot there it counts
// as a member without roles.
func (s *Server) appPerms(g *Guild, ch *Channel) Perm {
	bot := s.world.app.BotUser
	if g.member(bot) != nil {
		return s.world.perms(g, bot, ch, s.clock.Now())
	}
	return implied(overwritten(g.role(g.ID).Permissions, s.world.ruling(ch), g.ID, &Member{User: bot}), ch)
}

// Mention posts text in the channel, with the bot named in front unless the
// text names it already. The app gets it only with the intent for messages.
func (s *Server) Mention(user, channel, text string, o ...Delivery) Message {
	s.T.Helper()
	bot := "<@" + s.App().BotUser + ">"
	if !strings.Contains(text, bot) {
		text = bot + " " + text
	}
	return s.says(user, channel, text, "", o)
}

// Say posts in the channel without naming anybody.
func (s *Server) Say(user, channel, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, channel, text, "", o)
}

// Reply posts a reply to the message.
func (s *Server) Reply(user string, to Message, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, to.Channel, text, to.ID, o)
}

// DM writes to the bot directly.
func (s *Server) DM(user, text string, o ...Delivery) Message {
	s.T.Helper()
	return s.says(user, s.DMChannel(user), text, "", o)
}

func (s *Server) says(user, channel, text, replyTo string, o []Delivery) Message {
	s.T.Helper()
	return s.saysWith(user, channel, text, replyTo, nil, o)
}

func (s *Server) saysWith(user, channel, text, replyTo string, files []File, o []Delivery) Message {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.one(o)
	ch := s.place(user, channel, d.Force)
	if bad := s.mute(user, ch); bad != "" && !d.Force {
		s.Failf("%s cannot write in %s: %s", user, channel, bad)
	}
	m := &Message{Channel: ch.ID, Guild: ch.GuildID, Author: user, Content: text, ReplyTo: replyTo, Files: s.world.filed(s.Base, ch.ID, files)}
	if replyTo != "" {
		m.Type = 19
	}
	s.store(m)
	s.revise(m, &payload{})
	if s.readable(m) && len(files) == 0 {
		s.questions = append(s.questions, Question{User: user, Channel: channel, Message: m.ID})
	}
	if !d.Drop {
		s.Later(d.Delay, func() {
			for range 1 + d.Copies {
				s.emitMessage("MESSAGE_CREATE", m)
			}
		})
	}
	return m.clone()
}

// mute says why the person cannot write in the channel.
func (s *Server) mute(user string, ch *Channel) string {
	g := s.world.guilds[ch.GuildID]
	if g == nil {
		return ""
	}
	p, need := s.world.perms(g, user, ch, s.clock.Now()), SendMessages
	if ch.Type.Thread() {
		need = SendInThreads
	}
	switch {
	case !p.Has(need):
		return "no permission"
	case ch.Locked && !p.Has(ManageThreads):
		return "the thread is locked"
	case g.member(user).Pending:
		return "membership screening is not passed"
	}
	return ""
}

// Edit changes the text of the user's own message.
func (s *Server) Edit(m Message, text string) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.world.live(m.Channel, m.ID)
	if p == nil {
		s.Failf("no message %s in %s", m.ID, m.Channel)
	}
	p.Content, p.EditedAt = text, s.clock.Now()
	s.revise(p, &payload{})
	s.emitMessage("MESSAGE_UPDATE", p)
	s.Bump()
}

// Delete removes any message, as its author, a moderator or, of an ephemeral
// one, the person who dismisses it.
func (s *Server) Delete(m Message) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.world.live(m.Channel, m.ID)
	if p == nil {
		s.Failf("no message %s in %s", m.ID, m.Channel)
	}
	s.remove(p)
}
