// Package guild knows who can see a channel of a Discord guild.
//
// Its one idea: an audience is computed from roles and overwrites alone, the
// facts that every bot gets without privileged intents, and is always a
// superset of the people who can really look. Whatever is not known for sure,
// or was confirmed too long ago, is ErrUnknown and never a guess.
//
//	everyone base -> roles base -> administrator -> everyone overwrite ->
//	denies of roles, allows of roles -> overwrite of the member
//
// A thread has the overwrites of its parent; a category is not consulted, since
// Discord copies its overwrites into its channels. Roles are known by id only.
//
// Formats: the JSON of Discord's API and gateway, read leniently. A Book is fed
// with gateway events or with answers of the API.
//
// It makes no calls, knows no list of members, and decides nothing about
// documents.
package guild

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Perm is a set of permissions. Bits above 63 do not concern footnote.
type Perm uint64

// Permissions that footnote looks at.
const (
	Administrator       Perm = 1 << 3
	ViewChannel         Perm = 1 << 10
	SendMessages        Perm = 1 << 11
	EmbedLinks          Perm = 1 << 14
	ReadHistory         Perm = 1 << 16
	CreatePublicThreads Perm = 1 << 35
	SendInThreads       Perm = 1 << 38

	all = ^Perm(0)
)

// Has reports that all of q are in p.
func (p Perm) Has(q Perm) bool { return p&q == q }

// UnmarshalJSON reads a decimal number, in quotes as Discord writes it, of any
// length. null is the empty set.
func (p *Perm) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "null" || s == "" {
		*p = 0
		return nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || n.Sign() < 0 {
		return fmt.Errorf("%.40q is no set of permissions", s)
	}
	*p = Perm(new(big.Int).And(n, new(big.Int).SetUint64(uint64(all))).Uint64())
	return nil
}

// Kinds of thread.
const (
	AnnouncementThread = 10
	PublicThread       = 11
	PrivateThread      = 12
)

// Role is a role of a guild. The one with the guild's id is everyone's.
type Role struct {
	ID          string `json:"id"`
	Permissions Perm   `json:"permissions"`
	// Tags holds the key bot_id if the role belongs to one bot alone.
	Tags map[string]json.RawMessage `json:"tags"`
}

func (r Role) bot() bool { _, ok := r.Tags["bot_id"]; return ok }

// Overwrite changes permissions in one channel.
type Overwrite struct {
	ID    string          `json:"id"`
	Type  json.RawMessage `json:"type"` // 0 or "role", 1 or "member"
	Allow Perm            `json:"allow"`
	Deny  Perm            `json:"deny"`
}

func (o Overwrite) member() bool {
	t := strings.Trim(string(o.Type), `"`)
	return t == "1" || t == "member"
}

// Channel is a channel or thread.
type Channel struct {
	ID         string      `json:"id"`
	Guild      string      `json:"guild_id"`
	Type       int         `json:"type"`
	Parent     string      `json:"parent_id"`
	Overwrites []Overwrite `json:"permission_overwrites"`
}

// Thread reports that the channel is one of the three kinds of thread.
func (c Channel) Thread() bool { return c.Type >= AnnouncementThread && c.Type <= PrivateThread }

// Guild is what is known of one guild.
type Guild struct {
	ID       string
	Owner    string
	Roles    map[string]Role
	Channels map[string]Channel // and threads
}

// Permissions are what a member may do in a channel or thread; ok is false
// if the channel, or the parent of the thread, is unknown. Roles that are
// unknown grant nothing.
func (g *Guild) Permissions(user string, roles []string, channel Channel) (p Perm, ok bool) {
	if channel.Thread() {
		parent, ok := g.Channels[channel.Parent]
		if !ok || parent.Thread() {
			return 0, false
		}
		channel = parent
	}
	if user != "" && user == g.Owner {
		return all, true
	}
	p = g.Roles[g.ID].Permissions
	held := map[string]bool{}
	for _, id := range roles {
		if r, known := g.Roles[id]; known {
			p |= r.Permissions
			held[id] = true
		}
	}
	if p.Has(Administrator) {
		return all, true
	}
	p = overwritten(p, g.ID, user, held, channel.Overwrites)
	if !p.Has(ViewChannel) {
		return 0, true
	}
	return p, true
}

// overwritten applies the overwrites of a channel in the documented order.
func overwritten(p Perm, everyone, user string, held map[string]bool, overwrites []Overwrite) Perm {
	var allow, deny Perm
	var own *Overwrite
	for i, o := range overwrites {
		switch {
		case o.member():
			if user != "" && o.ID == user {
				own = &overwrites[i]
			}
		case o.ID == everyone:
			p = p&^o.Deny | o.Allow
		case held[o.ID]:
			allow |= o.Allow
			deny |= o.Deny
		}
	}
	p = p&^deny | allow
	if own != nil {
		p = p&^own.Deny | own.Allow
	}
	return p
}

// Viewers are the people who can see a channel, as classes: everybody who
// can is in one of them. If Everyone, the rest is empty.
type Viewers struct {
	Everyone bool
	Roles    []string // each of them is enough to see it
	Users    []string // let in by name
	// Admins are roles with the permission Administrator, and Owner the
	// guild's: they can let themselves in anywhere.
	Admins []string
	Owner  string
}

// Viewers says who can see a channel or thread.
//
// SECURITY: a superset. A single role of a person who can see a channel lets
// in whoever holds that role alone: an allow is enough by itself, and so is
// a base permission that no role's deny takes away. Members of a private
// thread are among those who see its parent, or are let in as one of its
// moderators, who are.
func (g *Guild) Viewers(channel Channel, self string) (Viewers, bool) {
	p, ok := g.Permissions("", nil, channel)
	if !ok {
		return Viewers{}, false
	}
	if p.Has(ViewChannel) {
		return Viewers{Everyone: true}, true
	}
	v := Viewers{Owner: g.Owner}
	for id, r := range g.Roles {
		if r.bot() || id == g.ID {
			continue // a bot is no reader
		}
		if r.Permissions.Has(Administrator) {
			v.Admins = append(v.Admins, id)
		} else if p, _ := g.Permissions("", []string{id}, channel); p.Has(ViewChannel) {
			v.Roles = append(v.Roles, id)
		}
	}
	if channel.Thread() {
		channel = g.Channels[channel.Parent]
	}
	for _, o := range channel.Overwrites {
		if o.member() && o.Allow.Has(ViewChannel) && o.ID != self {
			v.Users = append(v.Users, o.ID)
		}
	}
	return v, true
}
