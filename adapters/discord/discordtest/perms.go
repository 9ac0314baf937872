package discordtest

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// Perm is a set of permission bits.
type Perm uint64

// The permissions that matter here, by Discord's bit numbers.
const (
	Administrator        Perm = 1 << 3
	ManageChannels       Perm = 1 << 4
	AddReactions         Perm = 1 << 6
	ViewChannel          Perm = 1 << 10
	SendMessages         Perm = 1 << 11
	SendTTS              Perm = 1 << 12
	ManageMessages       Perm = 1 << 13
	EmbedLinks           Perm = 1 << 14
	AttachFiles          Perm = 1 << 15
	ReadMessageHistory   Perm = 1 << 16
	MentionEveryone      Perm = 1 << 17
	Connect              Perm = 1 << 20
	UseCommands          Perm = 1 << 31
	ManageThreads        Perm = 1 << 34
	CreatePublicThreads  Perm = 1 << 35
	CreatePrivateThreads Perm = 1 << 36
	SendInThreads        Perm = 1 << 38
	UseExternalApps      Perm = 1 << 50

	AllPerms Perm = 1<<53 - 1

	// BotPerms is what the install link of an app of this kind asks for.
	BotPerms = ViewChannel | SendMessages | SendInThreads | CreatePublicThreads | EmbedLinks | ReadMessageHistory
	// EveryonePerms is what a new guild gives to everybody.
	EveryonePerms = ViewChannel | SendMessages | EmbedLinks | AttachFiles | ReadMessageHistory | AddReactions | Connect |
		UseCommands | CreatePublicThreads | CreatePrivateThreads | SendInThreads | UseExternalApps
)

// Has reports whether all bits of q are set.
func (p Perm) Has(q Perm) bool { return p&q == q }

// String is the decimal form of the wire.
func (p Perm) String() string { return strconv.FormatUint(uint64(p), 10) }

// perms computes what the user may do in the channel (nil: in the guild), in the
// order that Discord documents: base, administrator, overwrites of @everyone, of
// the roles together, of the member, then the implied denials.
func (s *state) perms(g *Guild, user string, ch *Channel, now time.Time) Perm {
	m := g.member(user)
	if m == nil {
		return 0
	}
	if g.Owner == user {
		return AllPerms
	}
	p := g.role(g.ID).Permissions
	for _, id := range m.Roles {
		if r := g.role(id); r != nil {
			p |= r.Permissions
		}
	}
	if p.Has(Administrator) {
		return AllPerms
	}
	if ch != nil {
		p = overwritten(p, s.ruling(ch), g.ID, m)
	}
	if now.Before(m.TimedOutUntil) {
		p &= ViewChannel | ReadMessageHistory
	}
	return implied(p, ch)
}

// ruling is the channel whose overwrites count: a thread has none of its own.
func (s *state) ruling(ch *Channel) *Channel {
	if ch.Type.Thread() {
		return s.channels[ch.Parent]
	}
	return ch
}

func overwritten(p Perm, ch *Channel, everyone string, m *Member) Perm {
	var roleAllow, roleDeny, ownAllow, ownDeny Perm
	for _, o := range ch.Overwrites {
		switch {
		case o.Member && o.ID == m.User:
			ownAllow, ownDeny = o.Allow, o.Deny
		case o.Member:
		case o.ID == everyone:
			p = p&^o.Deny | o.Allow
		case slices.Contains(m.Roles, o.ID):
			roleAllow |= o.Allow
			roleDeny |= o.Deny
		}
	}
	p = p&^roleDeny | roleAllow
	return p&^ownDeny | ownAllow
}

func implied(p Perm, ch *Channel) Perm {
	if ch == nil {
		return p
	}
	if !p.Has(ViewChannel) {
		return 0
	}
	need := SendMessages
	if ch.Type.Thread() {
		need = SendInThreads
	}
	if !p.Has(need) {
		p &^= MentionEveryone | SendTTS | AttachFiles | EmbedLinks
	}
	return p
}

// canView is the rule for one account and one channel, now.
func (s *state) canView(user string, ch *Channel, now time.Time) bool {
	if ch == nil || ch.Deleted || s.users[user] == nil {
		return false
	}
	if ch.GuildID == "" {
		return slices.Contains(ch.Recipients, user)
	}
	p := s.perms(s.guilds[ch.GuildID], user, ch, now)
	if ch.Type == PrivateThread && !slices.Contains(ch.Members, user) && !p.Has(ManageThreads) {
		return false
	}
	return p.Has(ViewChannel)
}

// canRead is canView for a message; an ephemeral one has a single reader.
func (s *state) canRead(user string, m *Message, now time.Time) bool {
	if m.EphemeralTo != "" {
		return m.EphemeralTo == user
	}
	return s.canView(user, s.channels[m.Channel], now)
}

// viewers is everybody who can read the message now, by looking at each
// account in turn: nothing is cached and nothing is shared with an adapter.
func (s *state) viewers(m *Message, now time.Time) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		if s.canRead(id, m, now) {
			out = append(out, id)
		}
	}
	return out
}

// Permissions is what the user may do in the channel now, by the oracle.
func (s *Server) Permissions(user, channel string) Perm {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.world.channels[channel]
	if ch == nil || ch.GuildID == "" {
		return 0
	}
	return s.world.perms(s.world.guilds[ch.GuildID], user, ch, s.clock.Now())
}

// CanView reports whether the user can see the channel now, by the oracle.
func (s *Server) CanView(user, channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.canView(user, s.world.channels[channel], s.clock.Now())
}
