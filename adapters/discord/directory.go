package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"footnote/acl"
	"footnote/adapters/discord/guild"
)

// Directory is the acl.Directory of Discord. Accounts are
// "discord:GUILD:user/ID" and, for somebody who writes a direct message,
// "discord:dm:user/ID"; rooms are "discord:GUILD:channel/ID" and
// "discord:dm:channel/ID". It is safe for concurrent use.
type Directory struct {
	a *Adapter

	mu      sync.Mutex
	members map[string]cached    // by account in a guild
	changed map[string]time.Time // when members of a guild last changed
}

// cached is a member as of a moment; nil is somebody who is none.
type cached struct {
	member *member
	at     time.Time
}

func newDirectory(a *Adapter) *Directory {
	return &Directory{a: a, members: map[string]cached{}, changed: map[string]time.Time{}}
}

var _ acl.Directory = (*Directory)(nil)

// Identify implements acl.Directory.
func (d *Directory) Identify(ctx context.Context, account string) (acl.Identity, error) {
	g, u, ok := parse(account, ":user/")
	if !ok {
		return acl.Identity{}, fmt.Errorf("%q: write discord:GUILD:user/ID: %w", account, acl.ErrUnknown)
	}
	return d.identify(ctx, g, u, d.a.c.MaxAge)
}

// Audience implements acl.Directory.
func (d *Directory) Audience(_ context.Context, room string) (acl.Audience, error) {
	g, c, ok := parse(room, ":channel/")
	if !ok {
		return acl.Audience{}, fmt.Errorf("%q: write discord:GUILD:channel/ID: %w", room, acl.ErrUnknown)
	}
	if g == direct {
		return acl.AskerOnly(), nil
	}
	audience, _, err := d.room(g, c, guild.Channel{})
	return audience, err
}

// Age says how old the knowledge of an account or a room is, for an operator.
func (d *Directory) Age(name string) (time.Duration, bool) {
	if g, c, ok := parse(name, ":channel/"); ok {
		_, age, err := d.a.book.Viewers(g, c, guild.Channel{})
		return age, err == nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.members[name]
	return d.a.d.Now().Sub(m.at), ok
}

// direct stands for the guild in names of direct conversations.
const direct = "dm"

func parse(name, kind string) (guildID, id string, ok bool) {
	rest, ok := strings.CutPrefix(name, "discord:")
	guildID, id, found := strings.Cut(rest, kind)
	return guildID, id, ok && found && isID(id) && (guildID == direct || isID(guildID))
}

// identify looks a member up, no older than age.
//
// SECURITY: somebody who is not, or not surely, a member of a guild that is
// served holds nothing, not even what everybody may read.
func (d *Directory) identify(ctx context.Context, g, u string, age time.Duration) (acl.Identity, error) {
	if g == direct {
		home, ok := d.home()
		if !ok {
			return d.wanderer(ctx, u, age)
		}
		g = home
	}
	if !d.tenant(g) {
		return acl.Identity{}, fmt.Errorf("the server %s is not served: %w", g, acl.ErrUnknown)
	}
	m, err := d.member(ctx, g, u, age)
	if err != nil {
		return acl.Identity{}, err
	}
	if m == nil || m.timedOut(d.a.d.Now()) {
		return acl.Identity{}, nil
	}
	return d.identity(g, u, m.Roles, !m.Pending), nil
}

// wanderer is somebody who writes a direct message while several guilds are
// served: a member of exactly one of them is that member; one of several holds
// what is for everyone.
//
// SECURITY: roles of different guilds are never added up. Guilds that nobody
// configured give nothing.
func (d *Directory) wanderer(ctx context.Context, u string, age time.Duration) (acl.Identity, error) {
	var only acl.Identity
	full, in := false, 0
	for _, g := range d.a.c.Guilds {
		m, err := d.member(ctx, g, u, age)
		if err != nil {
			return acl.Identity{}, err
		}
		if m == nil || m.timedOut(d.a.d.Now()) {
			continue
		}
		in++
		full = full || !m.Pending
		only = d.identity(g, u, m.Roles, !m.Pending)
	}
	if in < 2 {
		return only, nil
	}
	if !full {
		return acl.Identity{}, nil
	}
	return acl.NewIdentity(of(direct, "user/"+u), acl.Everyone), nil
}

// identity is what a member holds. full is false for one who has not passed
// the guild's screening.
func (d *Directory) identity(g, u string, roles []string, full bool) acl.Identity {
	id := of(g, "user/"+u)
	if !full {
		return acl.NewIdentity(id)
	}
	holds := d.everybody(g)
	for _, r := range roles {
		// A deleted role grants nothing.
		if there, known := d.a.book.Role(g, r); isID(r) && r != g && (there || !known) {
			holds = append(holds, of(g, "role/"+r))
		}
	}
	return acl.NewIdentity(id, holds...)
}

// everybody is what every full member of a guild holds.
//
// SECURITY: documents for everyone are for an organisation. A guild is surely
// its own if the operator named it, or if the bot is in no other; not if
// anybody can find and join it.
func (d *Directory) everybody(g string) []acl.Principal {
	holds := []acl.Principal{of(g, "everyone")}
	if home, ok := d.home(); slices.Contains(d.a.c.Guilds, g) || ok && home == g && !d.a.book.Discoverable(g) {
		holds = append(holds, acl.Everyone)
	}
	return holds
}

func of(g, what string) acl.Principal { return acl.Principal("discord:" + g + ":" + what) }

// home is the one guild that is served, if it is one.
func (d *Directory) home() (string, bool) {
	guilds := d.a.c.Guilds
	if len(guilds) == 0 {
		guilds = d.a.book.Guilds()
	}
	if len(guilds) != 1 {
		return "", false
	}
	return guilds[0], true
}

// tenant reports that a guild is served.
func (d *Directory) tenant(g string) bool {
	if len(d.a.c.Guilds) > 0 {
		return slices.Contains(d.a.c.Guilds, g)
	}
	return d.a.book.Has(g)
}

// member asks for a member; nil is nobody.
func (d *Directory) member(ctx context.Context, g, u string, age time.Duration) (*member, error) {
	account := string(of(g, "user/"+u))
	now := d.a.d.Now()
	d.mu.Lock()
	c, ok := d.members[account]
	d.mu.Unlock()
	if ok && now.Sub(c.at) < age {
		return c.member, nil
	}
	m := &member{}
	err := d.a.rest.do(ctx, call{name: "reading a member", method: "GET", path: "guilds/" + g + "/members/" + u, lane: "members " + g, again: true}, m)
	if status(err) == http.StatusNotFound {
		m, err = nil, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("identifying a member: %w", acl.ErrUnknown), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.members) >= maxMembers {
		d.members = map[string]cached{}
	}
	d.members[account] = cached{m, now}
	return m, nil
}

const maxMembers = 10_000

// forget drops what is known of people of a guild.
func (d *Directory) forget(g string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed[g] = d.a.d.Now()
	for account := range d.members {
		if strings.HasPrefix(account, "discord:"+g+":") {
			delete(d.members, account)
		}
	}
}

// changedSince reports that the roles of a member of the guild may be others
// than they were at that moment.
func (d *Directory) changedSince(g string, at time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.changed[g]
	return ok && !last.Before(at)
}

// room is the audience of a channel: one viewer for each class of people who
// can see it.
//
// SECURITY: a superset of the real readers; see guild.Viewers.
func (d *Directory) room(g, channel string, hint guild.Channel) (acl.Audience, time.Duration, error) {
	if !d.tenant(g) {
		return acl.Audience{}, 0, fmt.Errorf("the server %s is not served: %w", g, acl.ErrUnknown)
	}
	v, age, err := d.a.book.Viewers(g, channel, hint)
	if err != nil {
		return acl.Audience{}, age, fmt.Errorf("who can see the channel is not known: %w", acl.ErrUnknown)
	}
	if v.Everyone {
		return acl.Room(d.everybody(g)), age, nil
	}
	var viewers [][]acl.Principal
	add := func(what string) { viewers = append(viewers, append(d.everybody(g), of(g, what))) }
	for _, r := range v.Roles {
		add("role/" + r)
	}
	for _, u := range v.Users {
		add("user/" + u)
	}
	// Administrators can let themselves in everywhere, and are trusted with
	// what they see unless the operator does not want that. A channel for
	// nobody else still has one reader.
	if d.a.c.DistrustAdmins {
		for _, r := range v.Admins {
			add("role/" + r)
		}
	}
	if d.a.c.DistrustAdmins || len(viewers) == 0 {
		add("user/" + v.Owner)
	}
	return acl.Room(viewers...), age, nil
}

// mode is that of the channel, its parent or its category.
func (d *Directory) mode(g, channel string, hint guild.Channel) string {
	for range 3 {
		if m := d.a.c.Channels[channel]; m != "" {
			return m
		}
		c, _, err := d.a.book.Channel(g, channel, hint)
		if err != nil {
			c = hint
			hint = guild.Channel{}
		}
		channel = c.Parent
	}
	return PublicSafe
}
