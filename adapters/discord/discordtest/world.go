package discordtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// User is an account.
type User struct {
	ID, Name   string
	GlobalName string
	Bot        bool
	Locale     string // en-US when empty
	DMsClosed  bool   // direct messages fail with 50007
	Installed  bool   // has installed the app for themselves
}

// Role is a role of a guild. The role whose id is the guild's is @everyone.
type Role struct {
	ID, Name    string
	Permissions Perm
	Managed     bool
	Position    int
}

// Member is a user in a guild. Roles do not contain @everyone.
type Member struct {
	User          string
	Roles         []string
	Nick          string
	Pending       bool // has not passed membership screening
	TimedOutUntil time.Time
}

// Guild is a server. The bot is in it only if it is one of the members.
type Guild struct {
	ID, Name, Owner string
	Locale          string   // en-US when empty
	Features        []string // COMMUNITY, DISCOVERABLE
	Roles           []Role
	Members         []Member
	NoBot           bool // AddGuild does not add the bot: commands only
	NoCommands      bool // the app is not authorised here at all
}

func (g *Guild) member(user string) *Member {
	for i := range g.Members {
		if g.Members[i].User == user {
			return &g.Members[i]
		}
	}
	return nil
}

func (g *Guild) role(id string) *Role {
	for i := range g.Roles {
		if g.Roles[i].ID == id {
			return &g.Roles[i]
		}
	}
	return nil
}

// ChannelType is Discord's number for a kind of channel.
type ChannelType int

// The kinds of channel.
const (
	Text               ChannelType = 0
	DM                 ChannelType = 1
	Voice              ChannelType = 2
	GroupDM            ChannelType = 3
	Category           ChannelType = 4
	Announcement       ChannelType = 5
	AnnouncementThread ChannelType = 10
	PublicThread       ChannelType = 11
	PrivateThread      ChannelType = 12
	Stage              ChannelType = 13
	Forum              ChannelType = 15
	Media              ChannelType = 16
)

// Thread reports whether the type is one of the three kinds of thread.
func (t ChannelType) Thread() bool {
	return t == AnnouncementThread || t == PublicThread || t == PrivateThread
}

// Overwrite changes permissions in one channel, for a role or one member.
type Overwrite struct {
	ID          string
	Member      bool // else a role
	Allow, Deny Perm
}

// Channel is a channel, a thread or a direct conversation.
type Channel struct {
	ID, GuildID, Name string
	Type              ChannelType
	Parent            string // category, or the channel of a thread
	Owner             string // who opened the thread
	Overwrites        []Overwrite
	Archived, Locked  bool
	AutoArchive       int      // minutes; 1440 when 0
	Members           []string // of a thread
	Recipients        []string // of a direct conversation
	Deleted           bool
	active            time.Time
}

// App is the bot under test.
type App struct {
	ID, BotUser, Name string
	Token             string
	Seed              []byte // 32 bytes of the Ed25519 key
	Privileged        Intent // privileged intents that are switched on
}

// World is where a Server starts. Fill it by hand or with its Add methods.
type World struct {
	App      App
	Users    []User
	Guilds   []Guild
	Channels []Channel
	next     int
}

// firstID leaves room above for ids made from the time.
const firstID = 1_000_000_000_000_000_000

func (w *World) id() string {
	w.next++
	return strconv.Itoa(firstID + w.next<<22)
}

// NewWorld has the app and nobody in it.
func NewWorld() World {
	var w World
	w.App = App{ID: w.id(), Name: "footnote", Token: "token.of.the-fake", Seed: []byte("0123456789abcdef0123456789abcdef")}
	w.App.BotUser = w.AddUser(User{Name: "footnote", Bot: true})
	return w
}

// AddUser puts an account in and returns its id.
func (w *World) AddUser(u User) string {
	if u.ID == "" {
		u.ID = w.id()
	}
	w.Users = append(w.Users, u)
	return u.ID
}

// AddGuild puts a guild in, with an @everyone role and the bot under a role of
// its own if they are missing. It returns the id.
func (w *World) AddGuild(g Guild) string {
	if g.ID == "" {
		g.ID = w.id()
	}
	if g.role(g.ID) == nil {
		g.Roles = append(g.Roles, Role{ID: g.ID, Name: "@everyone", Permissions: EveryonePerms})
	}
	if !g.NoBot && g.member(w.App.BotUser) == nil {
		r := Role{ID: w.id(), Name: w.App.Name, Permissions: BotPerms, Managed: true, Position: 1}
		g.Roles = append(g.Roles, r)
		g.Members = append(g.Members, Member{User: w.App.BotUser, Roles: []string{r.ID}})
	}
	w.Guilds = append(w.Guilds, g)
	return g.ID
}

func (w *World) guild(id string) *Guild {
	i := slices.IndexFunc(w.Guilds, func(g Guild) bool { return g.ID == id })
	if i < 0 {
		panic("discordtest: no guild " + id + " in this world")
	}
	return &w.Guilds[i]
}

// AddRole puts a role in the guild and returns its id.
func (w *World) AddRole(guild string, r Role) string {
	g := w.guild(guild)
	if r.ID == "" {
		r.ID = w.id()
	}
	if r.Position == 0 {
		r.Position = len(g.Roles)
	}
	g.Roles = append(g.Roles, r)
	return r.ID
}

// AddMember puts an account in the guild with the roles.
func (w *World) AddMember(guild, user string, roles ...string) {
	g := w.guild(guild)
	g.Members = append(g.Members, Member{User: user, Roles: roles})
}

// AddChannel puts a channel in and returns its id.
func (w *World) AddChannel(c Channel) string {
	if c.ID == "" {
		c.ID = w.id()
	}
	w.Channels = append(w.Channels, c)
	return c.ID
}

// Message is a message of the world. Embeds and Components are as sent.
type Message struct {
	ID, Channel, Guild, Author string
	Content                    string
	Embeds, Components         json.RawMessage
	Flags                      int
	Type                       int
	EphemeralTo                string // the only one who sees it, "" for everybody in the channel
	Interaction                string // id of the interaction that it answers
	Original                   bool   // the first response, else a follow-up or channel message
	Thinking                   bool   // a deferral not yet resolved
	Asker                      string // whose interaction it answers
	ReplyTo                    string // message id
	Files                      []File // attachments
	Thread                     string // thread that was started from it
	Nonce                      string
	At, EditedAt               time.Time
	Deleted                    bool
	Revisions                  []Revision
	askKind                    int
}

// Revision is what a message once said, who could read that then, and whom it pinged.
type Revision struct {
	At                 time.Time
	Content            string
	Embeds, Components json.RawMessage
	Viewers            []string
	Pings              []string
	Explicit           bool // allowed_mentions was there with a parse list
}

func (m *Message) clone() Message {
	c := *m
	c.Embeds, c.Components = slices.Clone(m.Embeds), slices.Clone(m.Components)
	c.Revisions = slices.Clone(m.Revisions)
	return c
}

// Flag bits of messages.
const (
	FlagSuppressEmbeds = 1 << 2
	FlagEphemeral      = 1 << 6
	FlagLoading        = 1 << 7
	FlagSilent         = 1 << 12
	FlagComponentsV2   = 1 << 15
)

// state is the world while the server runs.
type state struct {
	app      App
	users    map[string]*User
	guilds   map[string]*Guild
	channels map[string]*Channel
	order    []string              // of channels
	files    int                   // attachments so far
	messages map[string][]*Message // by channel, ephemeral ones too
	byID     map[string]*Message
	last     uint64
}

func newState(w World) (*state, error) {
	s := &state{
		app: w.App, users: map[string]*User{}, guilds: map[string]*Guild{}, channels: map[string]*Channel{},
		messages: map[string][]*Message{}, byID: map[string]*Message{},
	}
	for _, u := range w.Users {
		s.users[u.ID] = &u
	}
	for _, g := range w.Guilds {
		g.Roles, g.Members = slices.Clone(g.Roles), slices.Clone(g.Members)
		s.guilds[g.ID] = &g
	}
	for _, c := range w.Channels {
		if err := s.addChannel(&c); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

// check finds slips in a world made by hand.
func (s *state) check() error {
	if s.users[s.app.BotUser] == nil {
		return fmt.Errorf("the bot user %q is not among the users; start from NewWorld", s.app.BotUser)
	}
	for _, g := range s.guilds {
		if g.role(g.ID) == nil {
			return fmt.Errorf("guild %s has no @everyone role (id of the guild); use AddGuild", g.ID)
		}
		for _, m := range g.Members {
			if s.users[m.User] == nil {
				return fmt.Errorf("member %s of guild %s is not among the users", m.User, g.ID)
			}
		}
	}
	return nil
}

func (s *state) addChannel(c *Channel) error {
	if c.GuildID != "" && s.guilds[c.GuildID] == nil {
		return fmt.Errorf("channel %s names the unknown guild %s", c.Name, c.GuildID)
	}
	if p := s.channels[c.Parent]; c.Type.Thread() && p == nil {
		return fmt.Errorf("thread %s names the unknown parent %s; add the parent first", c.Name, c.Parent)
	}
	if c.AutoArchive == 0 {
		c.AutoArchive = 1440
	}
	c.Overwrites, c.Members = slices.Clone(c.Overwrites), slices.Clone(c.Members)
	s.channels[c.ID] = c
	s.order = append(s.order, c.ID)
	return nil
}

const epoch = 1_420_070_400_000 // Discord's first millisecond

// snowflake makes the next id for the time; ids only grow.
func (s *state) snowflake(now time.Time) string {
	s.last = max(s.last+1, uint64(now.UnixMilli()-epoch)<<22)
	return strconv.FormatUint(s.last, 10)
}

// live finds a message that is not deleted.
func (s *state) live(channel, id string) *Message {
	m := s.byID[id]
	if m == nil || m.Deleted || m.Channel != channel {
		return nil
	}
	return m
}

// dm finds or opens the direct channel of the bot and the user.
func (s *state) dm(user string, now time.Time) *Channel {
	for _, id := range s.order {
		c := s.channels[id]
		if c.Type == DM && slices.Contains(c.Recipients, user) {
			return c
		}
	}
	c := &Channel{ID: s.snowflake(now), Type: DM, Recipients: []string{user, s.app.BotUser}}
	_ = s.addChannel(c)
	return c
}

type object = map[string]any

func (s *state) userWire(id string) object {
	u := s.users[id]
	if u == nil {
		return object{"id": id, "username": "Deleted User", "discriminator": "0000", "avatar": nil}
	}
	var global any
	if u.GlobalName != "" {
		global = u.GlobalName
	}
	o := object{"id": u.ID, "username": u.Name, "global_name": global, "discriminator": "0", "avatar": nil, "public_flags": 0}
	if u.Bot {
		o["bot"] = true
	}
	return o
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

func orEmpty(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func (s *state) memberWire(m *Member, withUser bool) object {
	o := object{
		"roles": orEmpty(m.Roles), "joined_at": stamp(time.UnixMilli(epoch)), "pending": m.Pending, "deaf": false, "mute": false,
		"nick": nil, "avatar": nil, "premium_since": nil, "communication_disabled_until": nil, "flags": 0,
	}
	if m.Nick != "" {
		o["nick"] = m.Nick
	}
	if !m.TimedOutUntil.IsZero() {
		o["communication_disabled_until"] = stamp(m.TimedOutUntil)
	}
	if withUser {
		o["user"] = s.userWire(m.User)
	}
	return o
}

func roleWire(r *Role) object {
	return object{
		"id": r.ID, "name": r.Name, "permissions": r.Permissions.String(), "position": r.Position, "managed": r.Managed,
		"color": 0, "hoist": false, "mentionable": false, "flags": 0,
	}
}

func (s *state) channelWire(c *Channel) object {
	o := object{"id": c.ID, "type": int(c.Type), "flags": 0, "last_message_id": nil}
	if l := s.messages[c.ID]; len(l) > 0 {
		o["last_message_id"] = l[len(l)-1].ID
	}
	if c.Type == DM || c.Type == GroupDM {
		var who []object
		for _, r := range c.Recipients {
			if r != s.app.BotUser {
				who = append(who, s.userWire(r))
			}
		}
		o["recipients"] = who
		return o
	}
	o["guild_id"], o["name"] = c.GuildID, c.Name
	o["parent_id"] = nil
	if c.Parent != "" {
		o["parent_id"] = c.Parent
	}
	if c.Type.Thread() {
		maps.Copy(o, object{
			"owner_id": c.Owner, "message_count": len(s.messages[c.ID]), "member_count": len(c.Members), "rate_limit_per_user": 0,
			"thread_metadata": object{
				"archived": c.Archived, "locked": c.Locked, "auto_archive_duration": c.AutoArchive, "archive_timestamp": stamp(c.active),
			},
		})
		return o
	}
	ow := []object{}
	for _, w := range c.Overwrites {
		kind := 0
		if w.Member {
			kind = 1
		}
		ow = append(ow, object{"id": w.ID, "type": kind, "allow": w.Allow.String(), "deny": w.Deny.String()})
	}
	o["permission_overwrites"], o["position"], o["nsfw"], o["topic"] = ow, 0, false, nil
	return o
}

func (s *state) guildWire(g *Guild) object {
	roles := []object{}
	for i := range g.Roles {
		roles = append(roles, roleWire(&g.Roles[i]))
	}
	return object{
		"id": g.ID, "name": g.Name, "owner_id": g.Owner, "roles": roles, "features": orEmpty(g.Features), "preferred_locale": locale(g.Locale),
		"emojis": []any{}, "stickers": []any{}, "verification_level": 0, "icon": nil, "afk_timeout": 300, "mfa_level": 0, "nsfw_level": 0,
	}
}

func locale(l string) string {
	if l == "" {
		return "en-US"
	}
	return l
}

func (s *state) messageWire(m *Message) object {
	o := object{
		"id": m.ID, "channel_id": m.Channel, "author": s.userWire(m.Author), "content": m.Content, "timestamp": stamp(m.At),
		"edited_timestamp": nil, "tts": false, "mention_everyone": false, "mentions": []any{}, "mention_roles": []any{},
		"attachments": s.fileWires(m), "embeds": list(m.Embeds), "components": list(m.Components), "pinned": false, "type": m.Type, "flags": m.Flags,
	}
	if !m.EditedAt.IsZero() {
		o["edited_timestamp"] = stamp(m.EditedAt)
	}
	if n := len(m.Revisions); n > 0 {
		o["mentions"], o["mention_roles"], o["mention_everyone"] = s.mentionWire(m.Revisions[n-1].Pings)
	}
	if m.Nonce != "" {
		o["nonce"] = m.Nonce
	}
	if m.ReplyTo != "" {
		o["message_reference"] = object{"type": 0, "message_id": m.ReplyTo, "channel_id": m.Channel}
		if r := s.live(m.Channel, m.ReplyTo); r != nil {
			short := r.clone()
			short.ReplyTo = ""
			o["referenced_message"] = s.messageWire(&short)
		}
	}
	if m.Interaction != "" {
		o["webhook_id"], o["application_id"] = s.app.ID, s.app.ID
		o["interaction_metadata"] = object{
			"id": m.Interaction, "type": m.askKind, "user": s.userWire(m.Asker), "authorizing_integration_owners": object{},
		}
	} else if m.Author == s.app.BotUser {
		o["application_id"] = s.app.ID
	}
	if t := s.channels[m.Thread]; t != nil {
		o["thread"] = s.channelWire(t)
	}
	return o
}

// list decodes a JSON array; absent is an empty one.
func list(raw json.RawMessage) []any {
	out := []any{}
	_ = json.Unmarshal(raw, &out)
	if out == nil {
		out = []any{}
	}
	return out
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("discordtest: encoding: " + err.Error())
	}
	return b
}
