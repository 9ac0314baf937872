package discordtest

import (
	"encoding/hex"
	"maps"
	"slices"
)

// inGuild finds the guild of a route if the bot is in it.
func (s *Server) inGuild(c *call) (*Guild, *result) {
	g := s.world.guilds[c.p["guild"]]
	if g == nil || g.member(s.world.app.BotUser) == nil {
		out := unknown("Guild", 10004) // Discord does not tell absent from forbidden here
		return nil, &out
	}
	return g, nil
}

func (s *Server) getGuild(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	o := s.world.guildWire(g)
	if c.query.Get("with_counts") == "true" {
		o["approximate_member_count"], o["approximate_presence_count"] = len(g.Members), len(g.Members)
	}
	return ok(o)
}

func (s *Server) guildChannels(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	return ok(s.channelsOf(g, func(ch *Channel) bool { return !ch.Type.Thread() }))
}

func (s *Server) channelsOf(g *Guild, keep func(*Channel) bool) []object {
	out := []object{}
	for _, id := range s.world.order {
		if ch := s.world.channels[id]; ch.GuildID == g.ID && !ch.Deleted && keep(ch) {
			out = append(out, s.world.channelWire(ch))
		}
	}
	return out
}

// threadsOf are the active threads that the bot can see.
func (s *Server) threadsOf(g *Guild) []object {
	return s.channelsOf(g, func(ch *Channel) bool {
		return ch.Type.Thread() && !ch.Archived && s.world.canView(s.world.app.BotUser, ch, s.clock.Now())
	})
}

func (s *Server) activeThreads(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	return ok(object{"threads": s.threadsOf(g), "members": []any{}})
}

func (s *Server) guildRoles(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	return ok(s.world.guildWire(g)["roles"])
}

// guildMembers needs a privileged intent.
func (s *Server) guildMembers(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	if s.world.app.Privileged&MembersIntent == 0 {
		return noAccess()
	}
	limit, wrong := pageLimit(c.query, 1, 1000)
	if wrong != nil {
		return *wrong
	}
	members := slices.SortedFunc(slices.Values(g.Members), func(a, b Member) int {
		if older(a.User, b.User) {
			return -1
		}
		return 1
	})
	out := []object{}
	for _, m := range members {
		if after := c.query.Get("after"); (after == "" || older(after, m.User)) && len(out) < limit {
			out = append(out, s.world.memberWire(&m, true))
		}
	}
	return ok(out)
}

func (s *Server) getMember(c *call) result {
	g, bad := s.inGuild(c)
	if bad != nil {
		return *bad
	}
	id := c.p["user"]
	if id == "@me" {
		id = s.world.app.BotUser
	}
	m := g.member(id)
	switch {
	case m != nil:
		return ok(s.world.memberWire(m, true))
	case s.world.users[id] == nil:
		return unknown("User", 10013)
	}
	return unknown("Member", 10007)
}

func (s *Server) getUser(c *call) result {
	if s.world.users[c.p["user"]] == nil {
		return unknown("User", 10013)
	}
	return ok(s.world.userWire(c.p["user"]))
}

func (s *Server) me(*call) result { return ok(s.world.userWire(s.world.app.BotUser)) }

func (s *Server) myGuilds(*call) result {
	out := []object{}
	for _, id := range slices.Sorted(maps.Keys(s.world.guilds)) {
		g := s.world.guilds[id]
		if g.member(s.world.app.BotUser) != nil {
			out = append(out, object{
				"id": g.ID, "name": g.Name, "owner": false, "features": orEmpty(g.Features),
				"permissions": s.world.perms(g, s.world.app.BotUser, nil, s.clock.Now()).String(),
			})
		}
	}
	return ok(out)
}

// Bits of the application's flags that tell which privileged intents are on.
const (
	flagPresence = 1 << 13
	flagMembers  = 1 << 15
	flagContent  = 1 << 19
)

func (s *Server) appFlags() int {
	f := 0
	for intent, bit := range map[Intent]int{PresencesIntent: flagPresence, MembersIntent: flagMembers, ContentIntent: flagContent} {
		if s.world.app.Privileged&intent != 0 {
			f |= bit
		}
	}
	return f
}

// PublicKey is the Ed25519 key that verifies interactions by HTTP, in hex as the portal shows it.
func (s *Server) PublicKey() string { return hex.EncodeToString(s.key[32:]) }

func (s *Server) application(*call) result {
	a := s.world.app
	var endpoint any
	if s.endpoint != "" {
		endpoint = s.endpoint
	}
	return ok(object{
		"id": a.ID, "name": a.Name, "icon": nil, "description": "", "bot_public": true, "bot_require_code_grant": false,
		"verify_key": s.PublicKey(), "flags": s.appFlags(), "bot": s.world.userWire(a.BotUser), "interactions_endpoint_url": endpoint,
		"integration_types_config": object{"0": object{}}, "team": nil,
	})
}

// openDM finds or opens the direct channel with a person.
func (s *Server) openDM(c *call) result {
	var b struct {
		Recipient string `json:"recipient_id"`
	}
	if bad := c.bind(&b); bad != nil {
		return *bad
	}
	u := s.world.users[b.Recipient]
	switch {
	case u == nil:
		return failure(400, 50033, "Invalid Recipient(s)")
	case u.Bot:
		return failure(400, 50007, "Cannot send messages to this user")
	}
	return ok(s.world.channelWire(s.world.dm(u.ID, s.clock.Now())))
}
