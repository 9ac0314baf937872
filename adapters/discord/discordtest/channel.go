package discordtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The routes that tests name most, for Requests and Fault.
const (
	RouteGateway        = "GET /gateway"
	RouteGatewayBot     = "GET /gateway/bot"
	RouteCallback       = "POST /interactions/{interaction}/{token}/callback"
	RouteGetResponse    = "GET /webhooks/{app}/{token}/messages/{message}"
	RouteEditResponse   = "PATCH /webhooks/{app}/{token}/messages/{message}"
	RouteDeleteResponse = "DELETE /webhooks/{app}/{token}/messages/{message}"
	RouteFollowup       = "POST /webhooks/{app}/{token}"
	RouteMessage        = "POST /channels/{channel}/messages"
	RouteEditMessage    = "PATCH /channels/{channel}/messages/{message}"
	RouteDeleteMessage  = "DELETE /channels/{channel}/messages/{message}"
	RouteMessageThread  = "POST /channels/{channel}/messages/{message}/threads"
	RouteThread         = "POST /channels/{channel}/threads"
	RouteChannel        = "GET /channels/{channel}"
	RouteGuild          = "GET /guilds/{guild}"
	RouteMember         = "GET /guilds/{guild}/members/{user}"
	RouteDM             = "POST /users/@me/channels"
	RouteCommands       = "GET /applications/{app}/commands"
	RoutePutCommands    = "PUT /applications/{app}/commands"
	RouteGuildCommands  = "GET /applications/{app}/guilds/{guild}/commands"
	RoutePutGuild       = "PUT /applications/{app}/guilds/{guild}/commands"
)

var routes = table()

// table lists every route; literal parts win over parameters.
func table() []*route {
	var out []*route
	for name, run := range map[string]func(*Server, *call) result{
		RouteGateway: (*Server).getGateway, RouteGatewayBot: (*Server).getGatewayBot,
		RouteCallback: (*Server).callback, RouteGetResponse: (*Server).getResponse, RouteEditResponse: (*Server).patchResponse,
		RouteDeleteResponse: (*Server).deleteResponse, RouteFollowup: (*Server).followup,
		RouteMessage: (*Server).postMessage, RouteEditMessage: (*Server).patchMessage, RouteDeleteMessage: (*Server).deleteMessage,
		"GET /channels/{channel}/messages": (*Server).getMessages, "GET /channels/{channel}/messages/{message}": (*Server).getMessage,
		RouteMessageThread: (*Server).threadFromMessage, RouteThread: (*Server).threadWithout,
		RouteChannel: (*Server).getChannel, "PATCH /channels/{channel}": (*Server).patchChannel,
		"POST /channels/{channel}/typing":                                     (*Server).typing,
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    (*Server).react,
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": (*Server).react,
		"PUT /channels/{channel}/thread-members/@me":                          (*Server).joinThread,
		"GET /channels/{channel}/thread-members":                              (*Server).threadMembers,
		RouteGuild:                                                            (*Server).getGuild,
		"GET /guilds/{guild}/channels":                                        (*Server).guildChannels,
		"GET /guilds/{guild}/roles":                                           (*Server).guildRoles,
		"GET /guilds/{guild}/members":                                         (*Server).guildMembers,
		"GET /guilds/{guild}/threads/active":                                  (*Server).activeThreads,
		RouteMember:                                                           (*Server).getMember,
		RouteDM:                                                               (*Server).openDM,
		"GET /users/@me":                                                      (*Server).me,
		"GET /users/@me/guilds":                                               (*Server).myGuilds,
		"GET /users/{user}":                                                   (*Server).getUser,
		"GET /applications/@me":                                               (*Server).application,
		"GET /oauth2/applications/@me":                                        (*Server).application,
		RouteCommands:                                                         (*Server).listCommands,
		RoutePutCommands:                                                      (*Server).putCommands,
		"POST /applications/{app}/commands":                                   (*Server).postCommand,
		"DELETE /applications/{app}/commands/{command}":                       (*Server).deleteCommand,
		RouteGuildCommands:                                                    (*Server).listCommands,
		RoutePutGuild:                                                         (*Server).putCommands,
		"POST /applications/{app}/guilds/{guild}/commands":                    (*Server).postCommand,
		"DELETE /applications/{app}/guilds/{guild}/commands/{command}":        (*Server).deleteCommand,
	} {
		out = append(out, newRoute(name, run))
	}
	slices.SortFunc(out, func(a, b *route) int {
		if n := strings.Count(a.name, "{") - strings.Count(b.name, "{"); n != 0 {
			return n
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// store gives the message its id and time and puts it in its channel.
func (s *Server) store(m *Message) {
	m.At = s.clock.Now()
	m.ID = s.world.snowflake(m.At)
	s.world.messages[m.Channel] = append(s.world.messages[m.Channel], m)
	s.world.byID[m.ID] = m
	if m.EphemeralTo == "" {
		if ch := s.world.channels[m.Channel]; ch.Type.Thread() {
			s.wake(ch)
		}
	}
	s.Bump()
}

// revise notes what the message says now, who can read it and whom it pings.
func (s *Server) revise(m *Message, p *payload) {
	r := Revision{At: s.clock.Now(), Content: m.Content, Embeds: m.Embeds, Components: m.Components, Viewers: s.world.viewers(m, s.clock.Now())}
	if p != nil {
		r.Explicit = p.explicit
		replied := ""
		if to := s.world.byID[m.ReplyTo]; to != nil && p.Reference != nil && to.Author != s.world.app.BotUser {
			replied = to.Author
		}
		r.Pings = pings(m.Content+displays(m.Components), p.rules, p.explicit, replied)
	}
	m.Revisions = append(m.Revisions, r)
}

// fill puts the fields that were sent into the message.
func (p *payload) fill(m *Message) {
	if p.sent["content"] {
		m.Content = ""
		if p.Content != nil {
			m.Content = *p.Content
		}
	}
	if p.sent["embeds"] {
		m.Embeds = p.Embeds
	}
	if p.sent["components"] {
		m.Components = p.Components
	}
	m.Flags |= p.Flags & (FlagSuppressEmbeds | FlagComponentsV2 | FlagSilent)
}

// admissible says why the message cannot stand as it is, if so.
func (s *Server) admissible(m *Message) *result {
	var out result
	switch {
	case strings.TrimSpace(m.Content) == "" && len(list(m.Embeds)) == 0 && (m.Flags&FlagComponentsV2 == 0 || len(list(m.Components)) == 0):
		out = failure(400, 50006, "Cannot send an empty message")
	case m.Flags&FlagComponentsV2 != 0 && (m.Content != "" || len(list(m.Embeds)) > 0):
		e := newForm()
		e.add("flags", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'content' field cannot be used with components v2.")
		out = e.result()
	case s.filter != nil && s.filter(m.Content+displays(m.Components)+string(m.Embeds)) != 0:
		out = failure(400, s.filter(m.Content+displays(m.Components)+string(m.Embeds)), "Message blocked by a filter")
	default:
		return nil
	}
	return &out
}

// create stores a new message; the caller checked its place.
func (s *Server) create(m *Message, p *payload) *result {
	p.fill(m)
	if bad := s.admissible(m); bad != nil {
		return bad
	}
	ch := s.world.channels[m.Channel]
	if ch == nil || ch.Deleted {
		out := unknown("Channel", 10003)
		return &out
	}
	if ch.Archived && ch.Locked {
		out := archived()
		return &out
	}
	s.store(m)
	s.revise(m, p)
	s.emitMessage("MESSAGE_CREATE", m)
	return nil
}

// edit changes a message in place; a deferral is resolved by it.
func (s *Server) edit(m *Message, p *payload) *result {
	var out result
	ch := s.world.channels[m.Channel]
	switch {
	case m.Deleted:
		out = unknown("Message", 10008)
		return &out
	case ch == nil || ch.Deleted:
		out = unknown("Channel", 10003)
		return &out
	case ch.Archived:
		out = archived()
		return &out
	}
	next := m.clone()
	p.fill(&next)
	if bad := s.admissible(&next); bad != nil {
		return bad
	}
	next.Thinking, next.Flags, next.EditedAt = false, next.Flags&^FlagLoading, s.clock.Now()
	*m = next
	s.revise(m, p)
	s.emitMessage("MESSAGE_UPDATE", m)
	s.Bump()
	return nil
}

func (s *Server) remove(m *Message) {
	m.Deleted = true
	if m.EphemeralTo == "" {
		s.announce("MESSAGE_DELETE", s.messageIntent(m.Channel), m.Guild, object{"id": m.ID, "channel_id": m.Channel, "guild_id": m.Guild})
	}
	s.Bump()
}

func archived() result { return failure(400, 50083, "Thread is archived") }

// channelFor finds the channel of a route and checks what the bot may do there.
func (s *Server) channelFor(c *call, need Perm) (*Channel, *result) {
	ch := s.world.channels[c.p["channel"]]
	bot := s.world.app.BotUser
	var out result
	switch {
	case ch == nil || ch.Deleted:
		out = unknown("Channel", 10003)
	case !s.world.canView(bot, ch, s.clock.Now()):
		out = noAccess()
	case ch.GuildID != "" && !s.world.perms(s.world.guilds[ch.GuildID], bot, ch, s.clock.Now()).Has(need):
		out = noPermission()
	default:
		return ch, nil
	}
	return nil, &out
}

func (s *Server) botPerms(ch *Channel) Perm {
	if ch.GuildID == "" {
		return AllPerms
	}
	return s.world.perms(s.world.guilds[ch.GuildID], s.world.app.BotUser, ch, s.clock.Now())
}

// sendable says why the bot cannot write in the channel; a thread that is
// archived but not locked wakes up when it is written in.
func (s *Server) sendable(ch *Channel, p *payload) *result {
	var out result
	need, mod := SendMessages, s.botPerms(ch).Has(ManageThreads)
	if ch.Type.Thread() {
		need = SendInThreads
	}
	switch {
	case ch.Type == Category || ch.Type == Forum || ch.Type == Media:
		out = failure(400, 50008, "Cannot send messages in a non-text channel")
	case !s.botPerms(ch).Has(need), len(list(p.Embeds)) > 0 && !s.botPerms(ch).Has(EmbedLinks):
		out = noPermission()
	case ch.Locked && ch.Archived && !mod:
		out = archived()
	case ch.Locked && !mod:
		out = failure(400, 160005, "This thread is locked")
	case ch.Type == DM && s.dmsClosed(ch):
		out = failure(403, 50007, "Cannot send messages to this user")
	default:
		return nil
	}
	return &out
}

func (s *Server) dmsClosed(ch *Channel) bool {
	return slices.ContainsFunc(ch.Recipients, func(id string) bool { return s.world.users[id] != nil && s.world.users[id].DMsClosed })
}

func (s *Server) postMessage(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	p, bad := parsePayload(c.body, "", FlagSuppressEmbeds|FlagSilent|FlagComponentsV2)
	if bad == nil {
		bad = s.sendable(ch, p)
	}
	if bad != nil {
		return *bad
	}
	m := &Message{Channel: ch.ID, Guild: ch.GuildID, Author: s.world.app.BotUser, Nonce: strings.Trim(string(p.Nonce), `"`)}
	if old := s.sameNonce(m, p); old != nil {
		return ok(s.world.messageWire(old))
	}
	if bad := s.reference(m, ch, p); bad != nil {
		return *bad
	}
	if bad := s.create(m, p); bad != nil {
		return *bad
	}
	if m.Nonce != "" {
		s.nonces[ch.ID+" "+m.Nonce] = m
	}
	return ok(s.world.messageWire(m))
}

// sameNonce finds the message that a retry with enforce_nonce already made, of
// the last few minutes.
func (s *Server) sameNonce(m *Message, p *payload) *Message {
	old := s.nonces[m.Channel+" "+m.Nonce]
	if m.Nonce == "" || !p.EnforceNonce || old == nil || s.clock.Now().Sub(old.At) > 5*time.Minute {
		return nil
	}
	return old
}

func (s *Server) reference(m *Message, ch *Channel, p *payload) *result {
	if p.Reference == nil || p.Reference.MessageID == "" {
		return nil
	}
	if !s.botPerms(ch).Has(ReadMessageHistory) {
		out := failure(400, 160002, "Cannot reply without permission to read message history")
		return &out
	}
	if to := s.world.live(ch.ID, p.Reference.MessageID); to != nil && to.EphemeralTo == "" {
		m.ReplyTo, m.Type = to.ID, 19
		return nil
	}
	if p.Reference.FailIfNotExists == nil || *p.Reference.FailIfNotExists {
		e := newForm()
		e.add("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
		out := e.result()
		return &out
	}
	return nil
}

// messageFor finds a message by a channel route; ephemeral ones do not exist there.
func (s *Server) messageFor(c *call, need Perm) (*Channel, *Message, *result) {
	ch, bad := s.channelFor(c, need)
	if bad != nil {
		return nil, nil, bad
	}
	m := s.world.live(ch.ID, c.p["message"])
	if m == nil || m.EphemeralTo != "" {
		out := unknown("Message", 10008)
		return nil, nil, &out
	}
	return ch, m, nil
}

func (s *Server) getMessage(c *call) result {
	_, m, bad := s.messageFor(c, ReadMessageHistory)
	if bad != nil {
		return *bad
	}
	return ok(s.forApp(m))
}

func (s *Server) getMessages(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	limit, err := pageLimit(c.query, 50, 100)
	if err != nil {
		return *err
	}
	out := []object{}
	if !s.botPerms(ch).Has(ReadMessageHistory) {
		return ok(out)
	}
	before, after := c.query.Get("before"), c.query.Get("after")
	for _, m := range slices.Backward(s.world.messages[ch.ID]) {
		if m.Deleted || m.EphemeralTo != "" || before != "" && !older(m.ID, before) || after != "" && !older(after, m.ID) {
			continue
		}
		out = append(out, s.forApp(m))
	}
	if after != "" && before == "" {
		return ok(out[max(0, len(out)-limit):])
	}
	return ok(out[:min(limit, len(out))])
}

func pageLimit(q url.Values, def, most int) (int, *result) {
	if q.Get("limit") == "" {
		return def, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > most {
		e := newForm()
		e.add("limit", "NUMBER_TYPE_MAX", fmt.Sprintf("int value should be between 1 and %d.", most))
		out := e.result()
		return 0, &out
	}
	return n, nil
}

// older compares ids as numbers: a shorter one is smaller.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

func (s *Server) patchMessage(c *call) result {
	_, m, bad := s.messageFor(c, 0)
	if bad != nil {
		return *bad
	}
	if m.Author != s.world.app.BotUser {
		return failure(403, 50005, "Cannot edit a message authored by another user")
	}
	p, bad := parsePayload(c.body, "", FlagSuppressEmbeds|FlagComponentsV2)
	if bad == nil {
		bad = s.edit(m, p)
	}
	if bad != nil {
		return *bad
	}
	return ok(s.world.messageWire(m))
}

func (s *Server) deleteMessage(c *call) result {
	ch, m, bad := s.messageFor(c, 0)
	if bad != nil {
		return *bad
	}
	if ch.Archived {
		return archived()
	}
	if m.Author != s.world.app.BotUser && !s.botPerms(ch).Has(ManageMessages) {
		return noPermission()
	}
	s.remove(m)
	return none()
}

func (s *Server) typing(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad == nil {
		bad = s.sendable(ch, &payload{})
	}
	if bad != nil {
		return *bad
	}
	return none()
}

func (s *Server) react(c *call) result {
	need := ReadMessageHistory
	if c.req.Verb == "PUT" {
		need |= AddReactions
	}
	ch, _, bad := s.messageFor(c, need)
	if bad != nil {
		return *bad
	}
	if ch.Archived {
		return archived()
	}
	return none()
}

func (s *Server) getChannel(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	return ok(s.world.channelWire(ch))
}

// threadBody is what both thread routes take.
type threadBody struct {
	Name        string          `json:"name"`
	AutoArchive int             `json:"auto_archive_duration"`
	Type        *ChannelType    `json:"type"`
	Message     json.RawMessage `json:"message"`
}

func (b *threadBody) check() *result {
	e := newForm()
	e.text("name", strings.TrimSpace(b.Name), 1, 100)
	if b.AutoArchive == 0 {
		b.AutoArchive = 1440
	}
	if !slices.Contains([]int{60, 1440, 4320, 10080}, b.AutoArchive) {
		e.add("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	if e.n == 0 {
		return nil
	}
	out := e.result()
	return &out
}

func wrongType() result {
	return failure(400, 50024, "Cannot execute action on this channel type")
}

// threadFromMessage starts the thread whose id is the message's.
func (s *Server) threadFromMessage(c *call) result {
	ch, m, bad := s.messageFor(c, 0)
	if bad != nil {
		return *bad
	}
	if ch.GuildID == "" {
		return failure(400, 50003, "Cannot execute action on a DM channel")
	}
	if ch.Type != Text && ch.Type != Announcement {
		return wrongType()
	}
	if !s.botPerms(ch).Has(CreatePublicThreads | ReadMessageHistory) {
		return noPermission()
	}
	var b threadBody
	if bad := c.bind(&b); bad != nil {
		return *bad
	}
	if bad := b.check(); bad != nil {
		return *bad
	}
	if s.world.channels[m.ID] != nil {
		return failure(400, 160004, "A thread has already been created for this message")
	}
	kind := PublicThread
	if ch.Type == Announcement {
		kind = AnnouncementThread
	}
	m.Thread, m.Flags = m.ID, m.Flags|1<<5
	return created(s.world.channelWire(s.openThread(m.ID, ch, kind, b)))
}

func (s *Server) openThread(id string, ch *Channel, kind ChannelType, b threadBody) *Channel {
	bot := s.world.app.BotUser
	t := &Channel{ID: id, GuildID: ch.GuildID, Name: b.Name, Type: kind, Parent: ch.ID, Owner: bot, AutoArchive: b.AutoArchive, Members: []string{bot}}
	_ = s.world.addChannel(t)
	s.wake(t)
	w := s.world.channelWire(t)
	w["newly_created"] = true
	s.announce("THREAD_CREATE", GuildsIntent, ch.GuildID, w)
	s.Bump()
	return t
}

// threadWithout starts a thread without a message, or a forum post.
func (s *Server) threadWithout(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	var b threadBody
	if bad := c.bind(&b); bad != nil {
		return *bad
	}
	kind, need := PrivateThread, CreatePrivateThreads
	if b.Type != nil {
		kind = *b.Type
	}
	post := ch.Type == Forum || ch.Type == Media
	switch {
	case post:
		kind, need = PublicThread, SendMessages
	case ch.Type == Announcement && kind == AnnouncementThread, ch.Type == Text && kind == PublicThread:
		need = CreatePublicThreads
	case ch.Type != Text || kind != PrivateThread:
		return wrongType()
	}
	if !s.botPerms(ch).Has(need) {
		return noPermission()
	}
	if bad := b.check(); bad != nil {
		return *bad
	}
	if post {
		return s.forumPost(ch, b)
	}
	return created(s.world.channelWire(s.openThread(s.world.snowflake(s.clock.Now()), ch, kind, b)))
}

func (s *Server) forumPost(ch *Channel, b threadBody) result {
	p, bad := parsePayload(b.Message, "message.", FlagSuppressEmbeds|FlagSilent|FlagComponentsV2)
	if bad != nil {
		return *bad
	}
	probe := &Message{}
	p.fill(probe)
	if bad := s.admissible(probe); bad != nil {
		return *bad
	}
	t := s.openThread(s.world.snowflake(s.clock.Now()), ch, PublicThread, b)
	m := &Message{Channel: t.ID, Guild: t.GuildID, Author: s.world.app.BotUser}
	if bad := s.create(m, p); bad != nil {
		return *bad
	}
	w := s.world.channelWire(t)
	w["message"] = s.world.messageWire(m)
	return created(w)
}

// patchChannel lets the bot archive, lock and rename threads.
func (s *Server) patchChannel(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	var b struct {
		Name             *string
		Archived, Locked *bool
	}
	if bad := c.bind(&b); bad != nil {
		return *bad
	}
	mod := s.botPerms(ch).Has(ManageThreads)
	switch {
	case !ch.Type.Thread() && !s.botPerms(ch).Has(ManageChannels), ch.Type.Thread() && !mod && ch.Owner != s.world.app.BotUser, b.Locked != nil && !mod:
		return noPermission()
	case ch.Archived && (b.Archived == nil || *b.Archived):
		return archived()
	}
	if b.Name != nil {
		ch.Name = *b.Name
	}
	if b.Archived != nil {
		ch.Archived = *b.Archived
	}
	if b.Locked != nil {
		ch.Locked = *b.Locked
	}
	s.emitChannel("UPDATE", ch)
	return ok(s.world.channelWire(ch))
}

func (s *Server) joinThread(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	if !ch.Type.Thread() {
		return wrongType()
	}
	if ch.Archived {
		return archived()
	}
	if !slices.Contains(ch.Members, s.world.app.BotUser) {
		ch.Members = append(ch.Members, s.world.app.BotUser)
	}
	return none()
}

func (s *Server) threadMembers(c *call) result {
	ch, bad := s.channelFor(c, 0)
	if bad != nil {
		return *bad
	}
	if s.world.app.Privileged&MembersIntent == 0 {
		return noAccess()
	}
	out := []object{}
	for _, id := range ch.Members {
		out = append(out, object{"id": ch.ID, "user_id": id, "flags": 0, "join_timestamp": stamp(ch.active)})
	}
	return ok(out)
}

// wake notes activity in a thread, which unarchives it and starts the time to
// the next archiving anew.
func (s *Server) wake(t *Channel) {
	was := t.Archived
	if was && t.Locked {
		return
	}
	t.active, t.Archived = s.clock.Now(), false
	if was {
		s.emitChannel("UPDATE", t)
	}
	s.watchArchive(t)
}

// watchArchive archives the thread when nothing happens in it for long enough.
func (s *Server) watchArchive(t *Channel) {
	if !t.Type.Thread() || t.Archived {
		return
	}
	seen := t.active
	s.After(time.Duration(t.AutoArchive)*time.Minute, func() {
		if t.active.Equal(seen) && !t.Archived && !t.Deleted {
			t.Archived = true
			s.emitChannel("UPDATE", t)
		}
	})
}
