package guild

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrUnknown says that a guild or channel is not known, or was confirmed too
// long ago. The caller treats it as a place where nothing may be said aloud.
var ErrUnknown = errors.New("unknown guild or channel")

// Book is what is known of all guilds. It is safe for concurrent use.
type Book struct {
	maxAge time.Duration
	now    func() time.Time

	mu      sync.Mutex
	self    string // the bot's own account
	guilds  map[string]*entry
	joined  map[string]bool // the bot is in them, known or not
	version uint64
	// found are the guilds that anybody can find and join, as far as is known;
	// they stay while nothing else is.
	found map[string]bool
}

type entry struct {
	Guild
	confirmed time.Time
}

// NewBook makes an empty book. What was confirmed longer than maxAge ago is
// unknown.
func NewBook(maxAge time.Duration, now func() time.Time) *Book {
	return &Book{maxAge: maxAge, now: now, guilds: map[string]*entry{}, joined: map[string]bool{}, found: map[string]bool{}}
}

// Me is the bot's own account, "" until it is known.
func (b *Book) Me() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.self
}

// Self notes the bot's own account.
func (b *Book) Self(user string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.self = user
}

// Version changes with every fact.
func (b *Book) Version() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version
}

// Confirm says that everything is as events have told, now: the connection
// that brings them is alive.
func (b *Book) Confirm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.guilds {
		e.confirmed = b.now()
	}
}

// Forget drops everything: what happened meanwhile is unknown.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.guilds = map[string]*entry{}
	b.version++
}

// Join says in which guilds the bot is; what was known of others goes.
func (b *Book) Join(guilds ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.joined = map[string]bool{}
	for _, id := range guilds {
		b.joined[id] = true
	}
	for id := range b.guilds {
		if !b.joined[id] {
			delete(b.guilds, id)
		}
	}
	b.version++
}

// Guilds lists the guilds that the bot is in, in order, also those of which
// nothing else is known at the moment.
func (b *Book) Guilds() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.joined))
}

// Has reports that the bot is in the guild.
func (b *Book) Has(guild string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.joined[guild]
}

// Complete reports that all guilds the bot is in are known.
func (b *Book) Complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.joined {
		if b.guilds[id] == nil {
			return false
		}
	}
	return true
}

// Role reports that the guild has the role. ok is false if that is unknown.
func (b *Book) Role(guild, role string) (there, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.guilds[guild]
	if e == nil {
		return false, false
	}
	_, there = e.Roles[role]
	return there, true
}

// Channel finds a channel or thread and the age of what is known of it. hint
// is what an authenticated event says of a thread that is not known; its
// overwrites never count.
func (b *Book) Channel(guild, id string, hint Channel) (Channel, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, c, age, err := b.find(guild, id, hint)
	return c, age, err
}

// Viewers says who can see the channel, and how old that knowledge is.
func (b *Book) Viewers(guild, id string, hint Channel) (Viewers, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, c, age, err := b.find(guild, id, hint)
	if err != nil {
		return Viewers{}, age, err
	}
	v, ok := e.Guild.Viewers(c, b.self)
	if !ok {
		return Viewers{}, age, ErrUnknown
	}
	for _, list := range [][]string{v.Roles, v.Users, v.Admins} {
		slices.Sort(list)
	}
	return v, age, nil
}

// find is fail-closed in age. The caller holds mu.
func (b *Book) find(guild, id string, hint Channel) (*entry, Channel, time.Duration, error) {
	e := b.guilds[guild]
	if e == nil {
		return nil, Channel{}, 0, ErrUnknown
	}
	age := b.now().Sub(e.confirmed)
	if _, ok := e.Roles[guild]; !ok || age > b.maxAge || e.Owner == "" {
		return nil, Channel{}, age, ErrUnknown
	}
	c, ok := e.Channels[id]
	if !ok && hint.ID == id && hint.Thread() {
		c, ok = Channel{ID: id, Guild: guild, Type: hint.Type, Parent: hint.Parent}, true
	}
	if !ok {
		return nil, Channel{}, age, ErrUnknown
	}
	return e, c, age, nil
}

// wire is a guild as Discord sends it.
type wire struct {
	ID          string    `json:"id"`
	Owner       string    `json:"owner_id"`
	Unavailable bool      `json:"unavailable"`
	Features    []string  `json:"features"`
	Roles       []Role    `json:"roles"`
	Channels    []Channel `json:"channels"`
	Threads     []Channel `json:"threads"`
}

// Put takes over a guild as the API tells of it: the guild, its channels, and
// its active threads.
func (b *Book) Put(guild, channels, threads json.RawMessage) error {
	var w wire
	if err := json.Unmarshal(guild, &w); err != nil {
		return err
	}
	if err := json.Unmarshal(channels, &w.Channels); err != nil {
		return err
	}
	if len(threads) > 0 {
		var t struct {
			Threads []Channel `json:"threads"`
		}
		if err := json.Unmarshal(threads, &t); err != nil {
			return err
		}
		w.Threads = t.Threads
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(w)
	return nil
}

func (b *Book) put(w wire) {
	if w.ID != "" {
		b.joined[w.ID] = true
	}
	if w.ID == "" || w.Unavailable {
		delete(b.guilds, w.ID)
		return
	}
	e := &entry{confirmed: b.now()}
	e.Guild = Guild{ID: w.ID, Owner: w.Owner, Roles: map[string]Role{}, Channels: map[string]Channel{}}
	for _, r := range w.Roles {
		e.Roles[r.ID] = r
	}
	for _, c := range append(w.Channels, w.Threads...) {
		e.Channels[c.ID] = c
	}
	b.guilds[w.ID] = e
	b.found[w.ID] = Discoverable(w.Features)
	b.version++
}

// Discoverable reports features of a guild that anybody on the internet can
// find and join.
func Discoverable(features []string) bool { return slices.Contains(features, "DISCOVERABLE") }

// Discoverable reports that anybody can find and join the guild.
func (b *Book) Discoverable(guild string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.found[guild]
}

// Apply takes over what a gateway event says. Events must come in order. One
// that cannot be read makes its guild unknown, or all if it does not say
// which: a fact may have been lost.
func (b *Book) Apply(event string, data json.RawMessage) {
	change := changes[event]
	if change == nil {
		return
	}
	var of struct {
		ID    string `json:"id"`
		Guild string `json:"guild_id"`
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	err := json.Unmarshal(data, &of)
	if event == "GUILD_CREATE" || event == "GUILD_UPDATE" || event == "GUILD_DELETE" {
		of.Guild = of.ID
	}
	if err != nil || of.Guild == "" {
		b.guilds = map[string]*entry{}
		return
	}
	if err := change(b, b.guilds[of.Guild], data); err != nil {
		delete(b.guilds, of.Guild)
	}
}

// changes say what each event does. The entry is nil if the guild is unknown.
var changes = map[string]func(b *Book, e *entry, data json.RawMessage) error{
	"GUILD_CREATE": func(b *Book, _ *entry, data json.RawMessage) error {
		var w wire
		err := json.Unmarshal(data, &w)
		if err == nil {
			b.put(w)
		}
		return err
	},
	"GUILD_UPDATE":        updateGuild,
	"GUILD_DELETE":        dropGuild,
	"GUILD_ROLE_CREATE":   putRole,
	"GUILD_ROLE_UPDATE":   putRole,
	"GUILD_ROLE_DELETE":   dropRole,
	"CHANNEL_CREATE":      putChannel,
	"CHANNEL_UPDATE":      putChannel,
	"CHANNEL_DELETE":      dropChannel,
	"THREAD_CREATE":       putChannel,
	"THREAD_UPDATE":       putChannel,
	"THREAD_DELETE":       dropChannel,
	"THREAD_LIST_SYNC":    putThreads,
	"GUILD_MEMBER_UPDATE": func(*Book, *entry, json.RawMessage) error { return nil },
}

// dropGuild forgets a guild. One that is only unavailable still has the bot in
// it.
func dropGuild(b *Book, _ *entry, data json.RawMessage) error {
	var w wire
	if err := json.Unmarshal(data, &w); err == nil && !w.Unavailable {
		delete(b.joined, w.ID)
	}
	return ErrUnknown
}

func updateGuild(b *Book, e *entry, data json.RawMessage) error {
	var w wire
	err := json.Unmarshal(data, &w)
	if err == nil && w.Features != nil {
		b.found[w.ID] = Discoverable(w.Features)
	}
	if err != nil || e == nil {
		return err
	}
	if w.Owner != "" {
		e.Owner = w.Owner
	}
	if w.Roles != nil {
		e.Roles = map[string]Role{}
		for _, r := range w.Roles {
			e.Roles[r.ID] = r
		}
	}
	return nil
}

func putRole(_ *Book, e *entry, data json.RawMessage) error {
	var w struct {
		Role Role `json:"role"`
	}
	if err := json.Unmarshal(data, &w); err != nil || e == nil {
		return err
	}
	if w.Role.ID == "" {
		return ErrUnknown
	}
	e.Roles[w.Role.ID] = w.Role
	return nil
}

func dropRole(_ *Book, e *entry, data json.RawMessage) error {
	var w struct {
		ID string `json:"role_id"`
	}
	if err := json.Unmarshal(data, &w); err != nil || e == nil {
		return err
	}
	delete(e.Roles, w.ID)
	return nil
}

func putChannel(_ *Book, e *entry, data json.RawMessage) error {
	var c Channel
	if err := json.Unmarshal(data, &c); err != nil || e == nil {
		return err
	}
	if c.ID == "" {
		return ErrUnknown
	}
	e.Channels[c.ID] = c
	return nil
}

func dropChannel(_ *Book, e *entry, data json.RawMessage) error {
	var c Channel
	if err := json.Unmarshal(data, &c); err != nil || e == nil {
		return err
	}
	delete(e.Channels, c.ID)
	return nil
}

func putThreads(_ *Book, e *entry, data json.RawMessage) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil || e == nil {
		return err
	}
	for _, c := range w.Threads {
		e.Channels[c.ID] = c
	}
	return nil
}
