package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Team is a workspace. Teams with the same Enterprise belong to one organisation.
type Team struct {
	ID, Name, Domain, Enterprise string
}

// User is an account as the installation's workspace sees it.
type User struct {
	ID, Name, RealName string
	TeamID             string   // home workspace; the installation's when empty
	Enterprise         string   // organisation of the account, "" without Grid
	Teams              []string // workspaces of the organisation, Grid only
	Email              string
	EmailConfirmed     bool
	Locale, TZ         string
	Deleted            bool
	Bot                bool   // an app's bot user
	BotID, AppID       string // of a bot user
	Guest              bool   // multi-channel guest
	SingleGuest        bool   // single-channel guest
	Stranger           bool   // external, shares no channel with the workspace
	Invited            bool   // invitation not yet accepted
	Admin, Owner       bool
	Hidden             bool // users.info says user_not_visible
}

// Group is a user group (@handle).
type Group struct {
	ID, Name, Handle, TeamID string
	Users                    []string
	DateDelete               int64 // not 0: disabled
	ShortBy                  int   // usergroups.list leaves out that many users
}

// Kind is what sort of conversation a channel is.
type Kind string

// The kinds of conversation.
const (
	Public  Kind = "channel"
	Private Kind = "group"
	IM      Kind = "im"
	MPIM    Kind = "mpim"
)

// Channel is a conversation. Members are user ids; the bot is a member only
// if it is listed.
type Channel struct {
	ID, Name   string
	Kind       Kind
	TeamID     string // host workspace; the installation's when empty
	Members    []string
	ExtShared  bool
	PendingExt bool
	OrgShared  bool
	Archived   bool
	Connected  []string // workspaces that share the channel, besides the host
	Restrict   string   // error code that posting gives, "" for none
}

func (c *Channel) has(user string) bool { return slices.Contains(c.Members, user) }

// App is the bot under test: its ids, secrets, scopes and subscriptions.
type App struct {
	ID, BotUser, BotID, Name string
	BotToken, AppToken       string
	SigningSecret            string
	ClientID, ClientSecret   string
	RefreshToken             string   // for oauth.v2.access
	Scopes                   []string // DefaultScopes when nil
	Events                   []string // DefaultEvents when nil
	MessagesTabOff           bool     // direct messages fail: messages_tab_disabled
	AgentView                bool     // direct messages always come in a thread
	NoUserGroups             bool     // free plan: plan_upgrade_required
	IsEnterpriseInstall      bool
}

// World is where a Server starts. Fill it by hand or with its Add methods.
type World struct {
	Team     Team   // of the installation
	Others   []Team // other workspaces
	App      App
	Users    []User
	Groups   []Group
	Channels []Channel
}

// DefaultScopes are the bot scopes that an app of this kind asks for.
var DefaultScopes = strings.Fields(`app_mentions:read chat:write im:history im:read im:write users:read
	users:read.email channels:read groups:read mpim:read usergroups:read commands team:read reactions:write`)

// DefaultEvents are the subscriptions that an app of this kind has.
var DefaultEvents = strings.Fields(`app_mention message.im app_home_opened user_change team_join subteam_created
	subteam_updated subteam_members_changed member_joined_channel member_left_channel channel_shared
	channel_unshared channel_archive channel_unarchive group_archive group_unarchive channel_rename group_rename
	channel_id_changed channel_left group_left app_uninstalled tokens_revoked assistant_thread_started
	assistant_thread_context_changed`)

// NewWorld is a workspace T0HOME with the app and nobody in it.
func NewWorld() World {
	return World{
		Team: Team{ID: "T0HOME", Name: "Home", Domain: "home"},
		App: App{
			ID: "A0APP", BotUser: "U0BOT", BotID: "B0BOT", Name: "footnote",
			BotToken: "xoxb-test-bot", AppToken: "xapp-1-A0APP-test",
			SigningSecret: "signing-secret-of-the-fake",
			ClientID:      "1.2", ClientSecret: "client-secret", RefreshToken: "xoxe-1-first",
		},
	}
}

// Add puts a person in; empty fields are filled from Name. It returns the id.
func (w *World) Add(u User) string {
	if u.ID == "" {
		u.ID = "U0" + slug(u.Name)
	}
	w.Users = append(w.Users, u)
	return u.ID
}

// Person adds a full member of the workspace.
func (w *World) Person(name string) string { return w.Add(User{Name: name}) }

// AddGroup adds a user group and returns its id.
func (w *World) AddGroup(handle string, users ...string) string {
	id := "S0" + slug(handle)
	w.Groups = append(w.Groups, Group{ID: id, Name: handle, Handle: handle, Users: users})
	return id
}

// AddChannel adds a conversation; ID is made of Name when empty. It returns the id.
func (w *World) AddChannel(c Channel) string {
	if c.ID == "" {
		prefix := map[Kind]string{IM: "D0", MPIM: "G0"}[c.Kind]
		if prefix == "" {
			prefix = "C0"
		}
		c.ID = prefix + slug(c.Name)
	}
	if c.Kind == "" {
		c.Kind = Public
	}
	w.Channels = append(w.Channels, c)
	return c.ID
}

// Public adds a public channel with the bot and the members in it.
func (w *World) Public(name string, members ...string) string {
	return w.AddChannel(Channel{Name: name, Kind: Public, Members: append([]string{w.App.BotUser}, members...)})
}

// Private adds a private channel with the bot and the members in it.
func (w *World) Private(name string, members ...string) string {
	return w.AddChannel(Channel{Name: name, Kind: Private, Members: append([]string{w.App.BotUser}, members...)})
}

// DemoWorld is the workspace of the sandbox: four people, three channels, one group.
func DemoWorld() World {
	w := NewWorld()
	ada, bob, cyd := w.Person("ada"), w.Person("bob"), w.Person("cyd")
	dan := w.Add(User{Name: "dan", Guest: true})
	w.AddGroup("security", ada, bob)
	w.Public("general", ada, bob, cyd)
	w.Public("help", ada, bob, cyd, dan)
	w.Private("security", ada, bob)
	return w
}

func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(s))
}

// Message is a message in a channel, or an ephemeral one to User To.
type Message struct {
	Channel, TS, ThreadTS string // ThreadTS of a parent is empty
	User, BotID, AppID    string
	To                    string   // ephemeral: the only one who sees it
	Files                 []string // ids
	Subtype, Text         string
	Blocks                json.RawMessage
	Metadata              json.RawMessage
	EditedBy, EditedTS    string
	Deleted               bool
	Broadcast             bool
	Locked                bool // thread takes no replies
	Streaming             bool
	Shown                 bool   // ephemeral: false when it went to a thread without replies
	ResponseURL           string // id of the response_url it came through
	Parse                 string // "", none, full
	LinkNames             bool
	At                    time.Time
	Reactions             map[string][]string
	// Revisions are all contents that were ever on screen, the current one last.
	Revisions []Revision
}

// Revision is what a message showed from At on, and who could see it then.
type Revision struct {
	Text    string
	Blocks  json.RawMessage
	At      time.Time
	Viewers []string
}

func (m *Message) clone() Message {
	c := *m
	c.Revisions = slices.Clone(m.Revisions)
	c.Reactions = make(map[string][]string, len(m.Reactions))
	for k, v := range m.Reactions {
		c.Reactions[k] = slices.Clone(v)
	}
	return c
}

// wire is the message as events and answers carry it.
func (m *Message) wire() map[string]any {
	o := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "team": ""}
	set := func(k, v string) {
		if v != "" {
			o[k] = v
		}
	}
	set("user", m.User)
	set("bot_id", m.BotID)
	set("app_id", m.AppID)
	set("subtype", m.Subtype)
	set("thread_ts", m.ThreadTS)
	if m.BotID != "" {
		o["bot_profile"] = map[string]any{"id": m.BotID, "app_id": m.AppID, "name": m.User, "deleted": false}
	}
	if len(m.Blocks) > 0 {
		o["blocks"] = m.Blocks
	}
	if len(m.Metadata) > 0 {
		o["metadata"] = m.Metadata
	}
	if m.EditedBy != "" {
		o["edited"] = map[string]any{"user": m.EditedBy, "ts": m.EditedTS}
	}
	if len(m.Reactions) > 0 {
		var rs []any
		for _, name := range slices.Sorted(maps.Keys(m.Reactions)) {
			rs = append(rs, map[string]any{"name": name, "users": m.Reactions[name], "count": len(m.Reactions[name])})
		}
		o["reactions"] = rs
	}
	return o
}

// state is the world while the server runs; Server.mu guards it.
type state struct {
	World
	users    map[string]*User
	groups   map[string]*Group
	channels map[string]*Channel
	teams    map[string]Team
	messages map[string][]*Message // by channel, in ts order
	files    map[string]*File
	lastTS   map[string]time.Time
}

func newState(w World) (*state, error) {
	s := &state{
		World: w, users: map[string]*User{}, groups: map[string]*Group{}, channels: map[string]*Channel{},
		teams: map[string]Team{w.Team.ID: w.Team}, messages: map[string][]*Message{}, files: map[string]*File{}, lastTS: map[string]time.Time{},
	}
	if s.App.Scopes == nil {
		s.App.Scopes = DefaultScopes
	}
	if s.App.Events == nil {
		s.App.Events = DefaultEvents
	}
	for _, t := range w.Others {
		s.teams[t.ID] = t
	}
	s.addUser(User{
		ID: s.App.BotUser, Name: s.App.Name, Bot: true, BotID: s.App.BotID, AppID: s.App.ID,
		Enterprise: w.Team.Enterprise,
	})
	for _, u := range w.Users {
		s.addUser(u)
	}
	for _, g := range w.Groups {
		if err := s.addGroup(g); err != nil {
			return nil, err
		}
	}
	for _, c := range w.Channels {
		if err := s.addChannel(c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *state) addUser(u User) {
	or := func(p *string, d string) {
		if *p == "" {
			*p = d
		}
	}
	or(&u.TeamID, s.Team.ID)
	or(&u.RealName, u.Name)
	or(&u.Email, strings.ToLower(u.Name)+"@example.com")
	or(&u.Locale, "en-GB")
	or(&u.TZ, "Europe/London")
	s.users[u.ID] = &u
}

func (s *state) addGroup(g Group) error {
	for _, u := range g.Users {
		if s.users[u] == nil {
			return fmt.Errorf("group %s: no user %s in this world", g.ID, u)
		}
	}
	g.Users = slices.Clone(g.Users)
	if g.TeamID == "" {
		g.TeamID = s.Team.ID
	}
	s.groups[g.ID] = &g
	return nil
}

func (s *state) addChannel(c Channel) error {
	for _, u := range c.Members {
		if s.users[u] == nil {
			return fmt.Errorf("channel %s: no user %s in this world", c.ID, u)
		}
	}
	c.Members, c.Connected = slices.Clone(c.Members), slices.Clone(c.Connected)
	if c.TeamID == "" {
		c.TeamID = s.Team.ID
	}
	if c.Kind == "" {
		c.Kind = Public
	}
	s.channels[c.ID] = &c
	return nil
}

// nextTS is the next timestamp of the channel, strictly increasing; two
// channels may well share one, as on Slack.
func (s *state) nextTS(channel string, now time.Time) string {
	now = now.Truncate(time.Microsecond)
	if last := s.lastTS[channel]; !now.After(last) {
		now = last.Add(time.Microsecond)
	}
	s.lastTS[channel] = now
	return stamp(now)
}

// stamp writes a time as Slack does, seconds.micros.
func stamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

// find returns the message, deleted ones too, or nil.
func (s *state) find(channel, ts string) *Message {
	for _, m := range s.messages[channel] {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

// live returns the message unless it is deleted or absent.
func (s *state) live(channel, ts string) *Message {
	if m := s.find(channel, ts); m != nil && !m.Deleted {
		return m
	}
	return nil
}

// im returns the direct channel of the bot and the user, opened when needed.
func (s *state) im(user string) *Channel {
	for _, c := range s.channels {
		if c.Kind == IM && c.has(user) && c.has(s.App.BotUser) {
			return c
		}
	}
	c := &Channel{ID: "D0" + strings.TrimPrefix(user, "U0"), Kind: IM, TeamID: s.Team.ID, Members: []string{s.App.BotUser, user}}
	s.channels[c.ID] = c
	return c
}

// mpim returns the group conversation of exactly these members.
func (s *state) mpim(members []string) *Channel {
	slices.Sort(members)
	for _, c := range s.channels {
		if c.Kind == MPIM && slices.Equal(slices.Sorted(slices.Values(c.Members)), members) {
			return c
		}
	}
	c := &Channel{
		ID: fmt.Sprintf("G0MPIM%d", len(s.channels)), Name: "mpdm-" + strings.ToLower(strings.Join(members, "--")),
		Kind: MPIM, TeamID: s.Team.ID, Members: members,
	}
	s.channels[c.ID] = c
	return c
}

// replied reports that the thread has at least one reply.
func (s *state) replied(channel, parent string) bool {
	return slices.ContainsFunc(s.messages[channel], func(m *Message) bool {
		return m.ThreadTS == parent && m.TS != parent && !m.Deleted
	})
}

// replies counts the replies of a thread and names the latest.
func (s *state) replies(channel, parent string) (n int, latest string) {
	for _, m := range s.messages[channel] {
		if m.ThreadTS == parent && m.TS != parent && !m.Deleted {
			n, latest = n+1, m.TS
		}
	}
	return n, latest
}
