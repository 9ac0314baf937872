package slacktest

import (
	"maps"
	"slices"
)

// change runs f on the world and wakes the waiters.
func (s *Server) change(f func()) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.Bump()
}

// event sends an event of the type if it is subscribed.
func (s *Server) event(kind string, fields map[string]any, ch *Channel) {
	e := map[string]any{"type": kind, "event_ts": stamp(s.clock.Now())}
	maps.Copy(e, fields)
	s.emit(kind, e, ch, Delivery{})
}

// channel returns the channel or fails the test.
func (s *Server) channel(id string) *Channel {
	s.T.Helper()
	c := s.world.channels[id]
	if c == nil {
		s.Failf("no channel %s in this world", id)
	}
	return c
}

// ChangeSilently changes the world without any event, as when Slack is slow to tell.
func (s *Server) ChangeSilently(f func(users map[string]*User, groups map[string]*Group, channels map[string]*Channel)) {
	s.change(func() { f(s.world.users, s.world.groups, s.world.channels) })
}

// Join adds the user to the channel; the app hears of it where it is a member.
func (s *Server) Join(user, channel string) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		if s.world.users[user] == nil {
			s.Failf("no user %s in this world", user)
		}
		if !c.has(user) {
			c.Members = append(c.Members, user)
		}
		s.moved("member_joined_channel", user, c)
	})
}

// Leave takes the user out of the channel. The app's own departure comes as
// channel_left or group_left.
func (s *Server) Leave(user, channel string) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		c.Members = slices.DeleteFunc(c.Members, func(m string) bool { return m == user })
		if user != s.world.App.BotUser {
			s.moved("member_left_channel", user, c)
			return
		}
		kind := map[Kind]string{Public: "channel_left", Private: "group_left"}[c.Kind]
		s.event(kind, map[string]any{"channel": c.ID, "actor_id": "U0ADMIN"}, c)
	})
}

func (s *Server) moved(kind, user string, c *Channel) {
	if !c.has(s.world.App.BotUser) {
		return
	}
	letter := "C"
	if c.Kind != Public {
		letter = "G"
	}
	s.event(kind, map[string]any{"user": user, "channel": c.ID, "channel_type": letter, "team": s.world.users[user].TeamID}, c)
}

// SetGroup replaces the members of a user group.
func (s *Server) SetGroup(group string, users ...string) {
	s.T.Helper()
	s.change(func() {
		g := s.world.groups[group]
		if g == nil {
			s.Failf("no group %s in this world", group)
		}
		old := g.Users
		g.Users = slices.Clone(users)
		s.event("subteam_members_changed", map[string]any{
			"subteam_id": g.ID, "team_id": g.TeamID, "date_previous_update": 1700000000, "date_update": s.clock.Now().Unix(),
			"added_users": without(users, old), "removed_users": without(old, users),
			"added_users_count": len(without(users, old)), "removed_users_count": len(without(old, users)),
		}, nil)
		s.event("subteam_updated", map[string]any{"subteam": s.groupWire(g, true)}, nil)
	})
}

func without(list, cut []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(e string) bool { return slices.Contains(cut, e) })
}

// AddGroup creates a user group while the server runs.
func (s *Server) AddGroup(g Group) {
	s.T.Helper()
	s.change(func() {
		if err := s.world.addGroup(g); err != nil {
			s.Failf("%v", err)
		}
		s.event("subteam_created", map[string]any{"subteam": s.groupWire(s.world.groups[g.ID], true)}, nil)
	})
}

// DisableGroup switches a user group off.
func (s *Server) DisableGroup(group string) {
	s.change(func() {
		if g := s.world.groups[group]; g != nil {
			g.DateDelete = s.clock.Now().Unix()
			s.event("subteam_updated", map[string]any{"subteam": s.groupWire(g, true)}, nil)
		}
	})
}

// UpdateUser changes an account: deactivated, made a guest, renamed.
func (s *Server) UpdateUser(user string, f func(*User)) {
	s.T.Helper()
	s.change(func() {
		u := s.world.users[user]
		if u == nil {
			s.Failf("no user %s in this world", user)
		}
		f(u)
		s.event("user_change", map[string]any{"user": s.userWire(u, true), "cache_ts": s.clock.Now().Unix()}, nil)
	})
}

// AddUser lets a new person join the workspace.
func (s *Server) AddUser(u User) {
	s.change(func() {
		s.world.addUser(u)
		s.event("team_join", map[string]any{"user": s.userWire(s.world.users[u.ID], true)}, nil)
	})
}

// AddChannel creates a channel while the server runs; there is no event for it
// among those that an app of this kind has.
func (s *Server) AddChannel(c Channel) {
	s.T.Helper()
	s.change(func() {
		if err := s.world.addChannel(c); err != nil {
			s.Failf("%v", err)
		}
	})
}

// ShareChannel shares the channel with another workspace: at once, or as an
// invitation that waits.
func (s *Server) ShareChannel(channel, team string, pending bool) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		if pending {
			c.PendingExt = true // no event: an invitation is silent
			return
		}
		c.ExtShared, c.PendingExt = true, false
		c.Connected = append(c.Connected, team)
		s.event("channel_shared", map[string]any{"channel": c.ID, "connected_team_id": team}, c)
	})
}

// UnshareChannel ends the sharing with the workspace.
func (s *Server) UnshareChannel(channel, team string) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		c.Connected = without(c.Connected, []string{team})
		c.ExtShared = len(c.Connected) > 0
		s.event("channel_unshared", map[string]any{
			"channel": c.ID, "previously_connected_team_id": team, "is_ext_shared": c.ExtShared,
		}, c)
	})
}

// Archive archives the channel, or takes that back.
func (s *Server) Archive(channel string, archived bool) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		c.Archived = archived
		kind := map[Kind]string{Public: "channel", Private: "group"}[c.Kind] + "_archive"
		if !archived {
			kind = map[Kind]string{Public: "channel", Private: "group"}[c.Kind] + "_unarchive"
		}
		s.event(kind, map[string]any{"channel": c.ID, "user": "U0ADMIN"}, c)
	})
}

// Rename renames the channel.
func (s *Server) Rename(channel, name string) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		c.Name = name
		kind := map[Kind]string{Public: "channel_rename", Private: "group_rename"}[c.Kind]
		s.event(kind, map[string]any{"channel": map[string]any{"id": c.ID, "name": name, "created": 1700000000}}, c)
	})
}

// Convert makes a public channel private or the other way round; the id stays.
func (s *Server) Convert(channel string, kind Kind) {
	s.T.Helper()
	s.change(func() { s.channel(channel).Kind = kind })
}

// ChangeID gives the channel a new id, as when it moves between organisations.
func (s *Server) ChangeID(channel, id string) {
	s.T.Helper()
	s.change(func() {
		c := s.channel(channel)
		delete(s.world.channels, channel)
		c.ID = id
		s.world.channels[id] = c
		s.world.messages[id] = s.world.messages[channel]
		delete(s.world.messages, channel)
		for _, m := range s.world.messages[id] {
			m.Channel = id
		}
		s.event("channel_id_changed", map[string]any{"old_channel_id": channel, "new_channel_id": id}, c)
	})
}

// Uninstall removes the app: its tokens die and it hears of it.
func (s *Server) Uninstall() {
	s.change(func() {
		for _, t := range s.tokens {
			if t.kind == "bot" {
				t.dead = "account_inactive"
			}
		}
		s.event("tokens_revoked", map[string]any{"tokens": map[string]any{"oauth": []string{}, "bot": []string{s.world.App.BotUser}}}, nil)
		s.event("app_uninstalled", nil, nil)
	})
}

// RateLimitedNotice is Slack saying that it cut deliveries short.
func (s *Server) RateLimitedNotice() {
	s.change(func() {
		s.deliver(&delivery{kind: kindEvents, payload: map[string]any{
			"token": "legacy-verification-token", "type": "app_rate_limited", "team_id": s.world.Team.ID,
			"minute_rate_limited": s.clock.Now().Unix(), "api_app_id": s.world.App.ID,
		}}, Delivery{})
	})
}

// Emit sends any inner event, subscribed or not, in the usual wrapping.
func (s *Server) Emit(event map[string]any, o ...Delivery) {
	s.change(func() {
		id, _ := event["channel"].(string)
		s.emitAnyway(event, s.world.channels[id], one(o))
	})
}
