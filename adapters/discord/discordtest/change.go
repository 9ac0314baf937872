package discordtest

import (
	"slices"
	"time"
)

// Each of these is something an administrator or a member does; the app hears
// of it by the event that Discord sends, if it has the intent.

func (s *Server) guildOf(id string) *Guild {
	s.T.Helper()
	g := s.world.guilds[id]
	if g == nil {
		s.Failf("no guild %s in this world", id)
	}
	return g
}

func (s *Server) channelOf(id string) *Channel {
	s.T.Helper()
	ch := s.world.channels[id]
	if ch == nil {
		s.Failf("no channel %s in this world", id)
	}
	return ch
}

// change runs f with the lock and wakes the waiters.
func (s *Server) change(f func()) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.Bump()
}

// AddMember lets the user join the guild.
func (s *Server) AddMember(guild, user string, roles ...string) {
	s.T.Helper()
	s.change(func() {
		s.account(user)
		g := s.guildOf(guild)
		g.Members = append(g.Members, Member{User: user, Roles: roles})
		s.emitMember("GUILD_MEMBER_ADD", g, user)
	})
}

// RemoveMember lets the user leave, or be removed from, the guild.
func (s *Server) RemoveMember(guild, user string) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		g.Members = slices.DeleteFunc(g.Members, func(m Member) bool { return m.User == user })
		s.announce("GUILD_MEMBER_REMOVE", MembersIntent, guild, object{"guild_id": guild, "user": s.world.userWire(user)})
	})
}

// ChangeMember lets f change roles, time-out, screening or nick of the member.
func (s *Server) ChangeMember(guild, user string, f func(*Member)) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		m := g.member(user)
		if m == nil {
			s.Failf("%s is not in guild %s", user, guild)
		}
		m.Roles = slices.Clone(m.Roles)
		f(m)
		s.emitMember("GUILD_MEMBER_UPDATE", g, user)
	})
}

// SetRoles replaces the roles of the member.
func (s *Server) SetRoles(guild, user string, roles ...string) {
	s.T.Helper()
	s.ChangeMember(guild, user, func(m *Member) { m.Roles = roles })
}

// TimeOut keeps the member from acting until the time.
func (s *Server) TimeOut(guild, user string, until time.Time) {
	s.T.Helper()
	s.ChangeMember(guild, user, func(m *Member) { m.TimedOutUntil = until })
}

// emitMember sends a member event; of the bot itself even without the intent.
func (s *Server) emitMember(name string, g *Guild, user string) {
	need := MembersIntent
	if user == s.world.app.BotUser && name == "GUILD_MEMBER_UPDATE" {
		need = 0
	}
	w := s.world.memberWire(g.member(user), true)
	w["guild_id"] = g.ID
	s.announce(name, need, g.ID, w)
}

// CreateRole adds a role to the guild and returns its id.
func (s *Server) CreateRole(guild string, r Role) string {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		if r.ID == "" {
			r.ID = s.world.snowflake(s.clock.Now())
		}
		g.Roles = append(g.Roles, r)
		s.announce("GUILD_ROLE_CREATE", GuildsIntent, guild, object{"guild_id": guild, "role": roleWire(&r)})
	})
	return r.ID
}

// ChangeRole lets f change name or permissions of the role.
func (s *Server) ChangeRole(guild, role string, f func(*Role)) {
	s.T.Helper()
	s.change(func() {
		r := s.guildOf(guild).role(role)
		if r == nil {
			s.Failf("no role %s in guild %s", role, guild)
		}
		f(r)
		s.announce("GUILD_ROLE_UPDATE", GuildsIntent, guild, object{"guild_id": guild, "role": roleWire(r)})
	})
}

// DeleteRole removes the role from the guild and from everybody who had it.
func (s *Server) DeleteRole(guild, role string) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		g.Roles = slices.DeleteFunc(g.Roles, func(r Role) bool { return r.ID == role })
		for i := range g.Members {
			g.Members[i].Roles = slices.DeleteFunc(slices.Clone(g.Members[i].Roles), func(r string) bool { return r == role })
		}
		s.announce("GUILD_ROLE_DELETE", GuildsIntent, guild, object{"guild_id": guild, "role_id": role})
	})
}

// ChangeGuild lets f change name, owner or features of the guild.
func (s *Server) ChangeGuild(guild string, f func(*Guild)) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		f(g)
		s.announce("GUILD_UPDATE", GuildsIntent, guild, s.world.guildWire(g))
	})
}

// emitChannel sends CHANNEL_… or THREAD_… with the suffix CREATE, UPDATE or DELETE.
func (s *Server) emitChannel(suffix string, ch *Channel) {
	if ch.GuildID == "" {
		return
	}
	name := "CHANNEL_" + suffix
	if ch.Type.Thread() {
		name = "THREAD_" + suffix
		if !s.world.canView(s.world.app.BotUser, ch, s.clock.Now()) && suffix != "DELETE" {
			return
		}
	}
	s.announce(name, GuildsIntent, ch.GuildID, s.world.channelWire(ch))
}

// CreateChannel adds a channel or thread and returns its id.
func (s *Server) CreateChannel(c Channel) string {
	s.T.Helper()
	s.change(func() {
		if c.ID == "" {
			c.ID = s.world.snowflake(s.clock.Now())
		}
		c.active = s.clock.Now()
		if err := s.world.addChannel(&c); err != nil {
			s.Failf("%v", err)
		}
		s.watchArchive(&c)
		s.emitChannel("CREATE", &c)
	})
	return c.ID
}

// ChangeChannel lets f change name, overwrites, parent, thread state or thread members.
func (s *Server) ChangeChannel(channel string, f func(*Channel)) {
	s.T.Helper()
	s.change(func() {
		ch := s.channelOf(channel)
		ch.Overwrites, ch.Members = slices.Clone(ch.Overwrites), slices.Clone(ch.Members)
		f(ch)
		s.emitChannel("UPDATE", ch)
	})
}

// SetOverwrite sets the overwrite of a role or member in the channel.
func (s *Server) SetOverwrite(channel string, o Overwrite) {
	s.T.Helper()
	s.ChangeChannel(channel, func(ch *Channel) {
		ch.Overwrites = append(slices.DeleteFunc(ch.Overwrites, func(p Overwrite) bool { return p.ID == o.ID }), o)
	})
}

// Archive puts the thread away; locked ones only a moderator can wake.
func (s *Server) Archive(thread string, locked bool) {
	s.T.Helper()
	s.ChangeChannel(thread, func(ch *Channel) { ch.Archived, ch.Locked = true, locked })
}

// DeleteChannel removes the channel and its threads.
func (s *Server) DeleteChannel(channel string) {
	s.T.Helper()
	s.change(func() {
		s.channelOf(channel).Deleted = true
		for _, id := range s.world.order {
			if c := s.world.channels[id]; c.Type.Thread() && c.Parent == channel {
				c.Deleted = true
			}
		}
		s.emitChannel("DELETE", s.world.channels[channel])
	})
}

// Kick removes the bot, and with it the app, from the guild.
func (s *Server) Kick(guild string) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		g.Members = slices.DeleteFunc(g.Members, func(m Member) bool { return m.User == s.world.app.BotUser })
		g.NoCommands = true
		s.announce("GUILD_DELETE", GuildsIntent, guild, object{"id": guild})
	})
}

// Invite puts the bot in the guild with the roles.
func (s *Server) Invite(guild string, roles ...string) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		g.NoCommands = false
		g.Members = append(g.Members, Member{User: s.world.app.BotUser, Roles: roles})
		s.announce("GUILD_CREATE", GuildsIntent, guild, s.guildCreate(g))
	})
}

// Outage makes the guild unavailable to the app, as in an outage, and back.
func (s *Server) Outage(guild string, on bool) {
	s.T.Helper()
	s.change(func() {
		g := s.guildOf(guild)
		if on {
			s.announce("GUILD_DELETE", GuildsIntent, guild, object{"id": guild, "unavailable": true})
			return
		}
		s.announce("GUILD_CREATE", GuildsIntent, guild, s.guildCreate(g))
	})
}
