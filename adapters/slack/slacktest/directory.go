package slacktest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

var readScopes = map[Kind]string{Public: "channels:read", Private: "groups:read", IM: "im:read", MPIM: "mpim:read"}
var historyScopes = map[Kind]string{Public: "channels:history", Private: "groups:history", IM: "im:history", MPIM: "mpim:history"}

var directoryMethods = map[string]method{
	"auth.test":             {kind: "bot", get: true, run: authTest},
	"apps.connections.open": {kind: "app", scopes: []string{"connections:write"}, run: openConnection},
	"oauth.v2.access":       {kind: "none", run: refreshToken},

	"conversations.info":    {kind: "bot", get: true, run: conversationInfo},
	"conversations.members": {kind: "bot", get: true, run: conversationMembers},
	"conversations.history": {kind: "bot", get: true, run: conversationHistory},
	"conversations.replies": {kind: "bot", get: true, run: conversationReplies},
	"conversations.open":    {kind: "bot", run: conversationOpen},

	"users.info":          {kind: "bot", get: true, scopes: []string{"users:read"}, run: userInfo},
	"users.list":          {kind: "bot", get: true, scopes: []string{"users:read"}, run: userList},
	"users.lookupByEmail": {kind: "bot", get: true, scopes: []string{"users:read.email"}, run: userByEmail},
	"users.conversations": {kind: "bot", get: true, run: userConversations},
	"usergroups.list":     {kind: "bot", get: true, scopes: []string{"usergroups:read"}, run: groupList},
	"bots.info":           {kind: "bot", get: true, scopes: []string{"users:read"}, run: botInfo},
	"team.info":           {kind: "bot", get: true, scopes: []string{"team:read"}, run: teamInfo},
}

func authTest(s *Server, _ *call) reply {
	w := s.world
	r := reply{
		"ok": true, "url": "https://" + w.Team.Domain + ".slack.com/", "team": w.Team.Name, "user": w.App.Name,
		"team_id": w.Team.ID, "user_id": w.App.BotUser, "bot_id": w.App.BotID, "is_enterprise_install": w.App.IsEnterpriseInstall,
	}
	if w.Team.Enterprise != "" {
		r["enterprise_id"] = w.Team.Enterprise
	}
	return r
}

// refreshToken rotates the bot token: 12 h of life, the refresh token once only.
func refreshToken(s *Server, c *call) reply {
	a := &s.world.App
	id, secret := c.args["client_id"], c.args["client_secret"]
	if u, p, ok := basicAuth(c.req.Header); ok {
		id, secret = u, p
	}
	switch {
	case id != a.ClientID:
		return failure("invalid_client_id")
	case secret != a.ClientSecret:
		return failure("bad_client_secret")
	case c.args["grant_type"] != "refresh_token":
		return failure("invalid_grant_type")
	case c.args["refresh_token"] != a.RefreshToken:
		return failure("invalid_refresh_token")
	}
	life := 12 * time.Hour
	a.BotToken, a.RefreshToken = "xoxe.xoxb-"+s.id("rotated-"), s.id("xoxe-1-")
	s.tokens[a.BotToken] = &token{kind: "bot", team: s.world.Team.ID, scopes: a.Scopes, expires: s.clock.Now().Add(life)}
	return reply{
		"ok": true, "access_token": a.BotToken, "token_type": "bot", "scope": strings.Join(a.Scopes, ","),
		"refresh_token": a.RefreshToken, "expires_in": int(life.Seconds()), "bot_user_id": a.BotUser, "app_id": a.ID,
		"team": map[string]any{"id": s.world.Team.ID, "name": s.world.Team.Name},
	}
}

// readable finds the channel and checks the scope for its kind.
func (s *Server) readable(c *call, scopes map[Kind]string) (*Channel, reply) {
	if !slices.ContainsFunc(c.tok.scopes, func(sc string) bool {
		return slices.Contains([]string{scopes[Public], scopes[Private], scopes[IM], scopes[MPIM]}, sc)
	}) {
		return nil, missingScope(c, scopes[Public], scopes[Private], scopes[MPIM], scopes[IM])
	}
	ch := s.visible(c.args["channel"])
	if ch == nil {
		return nil, failure("channel_not_found")
	}
	if !slices.Contains(c.tok.scopes, scopes[ch.Kind]) {
		return nil, missingScope(c, scopes[ch.Kind])
	}
	return ch, nil
}

// channelWire is a channel as conversations.info shows it to the bot.
func (s *Server) channelWire(c *Channel) map[string]any {
	o := map[string]any{
		"id": c.ID, "name": c.Name, "is_channel": c.Kind == Public, "is_group": c.Kind == Private, "is_im": c.Kind == IM,
		"is_mpim": c.Kind == MPIM, "is_private": c.Kind != Public, "is_archived": c.Archived, "is_general": c.Name == "general",
		"is_ext_shared": c.ExtShared, "is_pending_ext_shared": c.PendingExt, "is_org_shared": c.OrgShared,
		"is_shared": c.ExtShared || c.OrgShared, "is_member": c.has(s.world.App.BotUser), "context_team_id": s.world.Team.ID,
		"num_members": len(c.Members), "created": 1700000000, "shared_team_ids": append([]string{c.TeamID}, c.Connected...),
		"conversation_host_id": c.TeamID,
	}
	if c.ExtShared {
		o["connected_team_ids"] = c.Connected
	}
	if c.OrgShared {
		o["internal_team_ids"] = c.Connected
	}
	if c.Kind == IM {
		delete(o, "name")
		for _, m := range c.Members {
			if m != s.world.App.BotUser {
				o["user"] = m
			}
		}
	}
	return o
}

func conversationInfo(s *Server, c *call) reply {
	ch, bad := s.readable(c, readScopes)
	if bad != nil {
		return bad
	}
	return reply{"ok": true, "channel": s.channelWire(ch)}
}

func conversationMembers(s *Server, c *call) reply {
	ch, bad := s.readable(c, readScopes)
	if bad != nil {
		return bad
	}
	from, to, next, code := c.page(len(ch.Members), 100, 999)
	if code != "" {
		return failure(code)
	}
	return reply{"ok": true, "members": ch.Members[from:to], "response_metadata": map[string]any{"next_cursor": next}}
}

func conversationHistory(s *Server, c *call) reply {
	return s.history(c, func(m *Message) bool { return m.ThreadTS == "" || m.Broadcast }, true)
}

func conversationReplies(s *Server, c *call) reply {
	if ch, bad := s.readable(c, historyScopes); bad == nil && s.world.live(ch.ID, c.args["ts"]) == nil {
		return failure("thread_not_found")
	}
	return s.history(c, func(m *Message) bool { return m.TS == c.args["ts"] || m.ThreadTS == c.args["ts"] }, false)
}

func (s *Server) history(c *call, keep func(*Message) bool, newestFirst bool) reply {
	ch, bad := s.readable(c, historyScopes)
	if bad != nil {
		return bad
	}
	if !ch.has(s.world.App.BotUser) {
		return failure("not_in_channel")
	}
	var rows []map[string]any
	for _, m := range s.world.messages[ch.ID] {
		if m.Deleted || !keep(m) || !between(c, m.TS) {
			continue
		}
		o := s.withFiles(m.wire(), m)
		if n, latest := s.world.replies(ch.ID, m.TS); m.ThreadTS == "" && n > 0 {
			o["thread_ts"], o["reply_count"], o["latest_reply"] = m.TS, n, latest
		}
		rows = append(rows, o)
	}
	if newestFirst {
		slices.Reverse(rows)
	}
	from, to, next, code := c.page(len(rows), 100, 999)
	if code != "" {
		return failure(code)
	}
	if rows == nil {
		rows = []map[string]any{}
	}
	return reply{
		"ok": true, "messages": rows[from:to], "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next},
	}
}

// between applies oldest and latest, exclusive unless inclusive is set.
func between(c *call, ts string) bool {
	inc := c.truth("inclusive", false)
	if o := c.args["oldest"]; o != "" && o != "0" && (ts < o || ts == o && !inc) {
		return false
	}
	if l := c.args["latest"]; l != "" && (ts > l || ts == l && !inc) {
		return false
	}
	return true
}

func conversationOpen(s *Server, c *call) reply {
	users := strings.FieldsFunc(c.args["users"], func(r rune) bool { return r == ',' })
	need := "im:write"
	if len(users) > 1 {
		need = "mpim:write"
	}
	if !slices.Contains(c.tok.scopes, need) {
		return missingScope(c, need)
	}
	if id := c.args["channel"]; id != "" && len(users) == 0 {
		if ch := s.visible(id); ch != nil && (ch.Kind == IM || ch.Kind == MPIM) {
			return reply{"ok": true, "channel": map[string]any{"id": ch.ID}}
		}
		return failure("channel_not_found")
	}
	if len(users) == 0 {
		return failure("users_list_not_supplied")
	}
	if len(users) > 8 {
		return failure("too_many_users")
	}
	for _, id := range users {
		switch u := s.world.users[id]; {
		case u == nil:
			return failure("user_not_found")
		case u.Deleted:
			return failure("user_disabled")
		case u.Stranger || u.Bot:
			return failure("cannot_dm_bot")
		}
	}
	if len(users) > 1 {
		return reply{"ok": true, "channel": map[string]any{"id": s.world.mpim(append(users, s.world.App.BotUser)).ID}}
	}
	ch := s.world.im(users[0])
	if c.truth("return_im", false) {
		return reply{"ok": true, "channel": s.channelWire(ch)}
	}
	return reply{"ok": true, "channel": map[string]any{"id": ch.ID}}
}

// userWire is a user as users.info shows it.
func (s *Server) userWire(u *User, mail bool) map[string]any {
	profile := map[string]any{"real_name": u.RealName, "display_name": u.Name, "team": u.TeamID}
	if mail && !u.Bot && !u.Stranger {
		profile["email"] = u.Email
	}
	o := map[string]any{
		"id": u.ID, "team_id": u.TeamID, "name": u.Name, "real_name": u.RealName, "deleted": u.Deleted, "profile": profile,
		"is_bot": u.Bot, "updated": 1700000000, "is_email_confirmed": u.EmailConfirmed,
	}
	if u.BotID != "" {
		profile["bot_id"], profile["api_app_id"] = u.BotID, u.AppID
	}
	if u.Stranger {
		o["is_stranger"] = true
	}
	if u.Invited {
		o["is_invited_user"] = true
	}
	if u.Enterprise != "" {
		o["enterprise_user"] = map[string]any{
			"id": u.ID, "enterprise_id": u.Enterprise, "enterprise_name": u.Enterprise, "teams": append([]string{}, u.Teams...),
			"is_admin": u.Admin, "is_owner": u.Owner,
		}
	}
	if !u.Deleted {
		o["tz"], o["locale"] = u.TZ, u.Locale
		o["is_restricted"], o["is_ultra_restricted"] = u.Guest || u.SingleGuest, u.SingleGuest
		o["is_admin"], o["is_owner"], o["is_primary_owner"] = u.Admin, u.Owner, false
		o["is_app_user"] = false
	}
	return o
}

func userInfo(s *Server, c *call) reply {
	u := s.world.users[c.args["user"]]
	switch {
	case u == nil:
		return failure("user_not_found")
	case u.Hidden:
		return failure("user_not_visible")
	}
	o := s.userWire(u, slices.Contains(c.tok.scopes, "users:read.email"))
	if !c.truth("include_locale", false) {
		delete(o, "locale")
	}
	return reply{"ok": true, "user": o}
}

// home lists the users of the installation's workspace, by id.
func (s *Server) home() []*User {
	var out []*User
	for _, u := range s.world.users {
		if u.TeamID == s.world.Team.ID && !u.Hidden {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *User) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func userList(s *Server, c *call) reply {
	all := s.home()
	from, to, next, code := c.page(len(all), 100, 999)
	if code != "" {
		return failure(code)
	}
	mail := slices.Contains(c.tok.scopes, "users:read.email")
	members := []any{}
	for _, u := range all[from:to] {
		members = append(members, s.userWire(u, mail))
	}
	return reply{"ok": true, "members": members, "response_metadata": map[string]any{"next_cursor": next}}
}

func userByEmail(s *Server, c *call) reply {
	for _, u := range s.home() {
		if !u.Deleted && !u.Bot && strings.EqualFold(u.Email, c.args["email"]) {
			return reply{"ok": true, "user": s.userWire(u, true)}
		}
	}
	return failure("users_not_found")
}

func userConversations(s *Server, c *call) reply {
	user := c.args["user"]
	if user == "" {
		user = s.world.App.BotUser
	}
	if s.world.users[user] == nil {
		return failure("user_not_found")
	}
	kinds := map[string]Kind{"public_channel": Public, "private_channel": Private, "im": IM, "mpim": MPIM}
	types := c.args["types"]
	if types == "" {
		types = "public_channel"
	}
	var rows []map[string]any
	for t := range strings.SplitSeq(types, ",") {
		k, ok := kinds[strings.TrimSpace(t)]
		if !ok {
			return failure("invalid_types")
		}
		if !slices.Contains(c.tok.scopes, readScopes[k]) {
			return missingScope(c, readScopes[k])
		}
		for _, ch := range s.world.channels {
			if ch.Kind == k && ch.has(user) && s.visible(ch.ID) != nil && (!c.truth("exclude_archived", false) || !ch.Archived) {
				rows = append(rows, s.channelWire(ch))
			}
		}
	}
	slices.SortFunc(rows, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
	from, to, next, code := c.page(len(rows), 100, 999)
	if code != "" {
		return failure(code)
	}
	return reply{"ok": true, "channels": append([]map[string]any{}, rows[from:to]...), "response_metadata": map[string]any{"next_cursor": next}}
}

func (s *Server) groupWire(g *Group, users bool) map[string]any {
	o := map[string]any{
		"id": g.ID, "team_id": g.TeamID, "is_usergroup": true, "name": g.Name, "handle": g.Handle, "is_external": false,
		"date_create": 1700000000, "date_update": 1700000000, "date_delete": g.DateDelete, "user_count": len(g.Users),
		"prefs": map[string]any{"channels": []string{}, "groups": []string{}},
	}
	if users {
		o["users"] = append([]string{}, g.Users[:max(0, len(g.Users)-g.ShortBy)]...)
	}
	return o
}

func groupList(s *Server, c *call) reply {
	if s.world.App.NoUserGroups {
		return failure("plan_upgrade_required")
	}
	if s.world.App.IsEnterpriseInstall && c.args["team_id"] == "" {
		return failure("missing_argument")
	}
	out := []map[string]any{}
	for _, g := range s.world.groups {
		if g.DateDelete == 0 || c.truth("include_disabled", false) {
			out = append(out, s.groupWire(g, c.truth("include_users", false)))
		}
	}
	slices.SortFunc(out, func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
	return reply{"ok": true, "usergroups": out}
}

func botInfo(s *Server, c *call) reply {
	for _, u := range s.world.users {
		if u.BotID != "" && u.BotID == c.args["bot"] {
			return reply{"ok": true, "bot": map[string]any{
				"id": u.BotID, "deleted": u.Deleted, "name": u.Name, "app_id": u.AppID, "user_id": u.ID, "updated": 1700000000,
			}}
		}
	}
	return failure("bot_not_found")
}

func teamInfo(s *Server, c *call) reply {
	id := c.args["team"]
	if id == "" {
		id = s.world.Team.ID
	}
	t, ok := s.world.teams[id]
	if !ok {
		return failure("team_not_found")
	}
	o := map[string]any{"id": t.ID, "name": t.Name, "domain": t.Domain, "url": "https://" + t.Domain + ".slack.com/"}
	if t.Enterprise != "" {
		o["enterprise_id"], o["enterprise_name"] = t.Enterprise, t.Enterprise
	}
	return reply{"ok": true, "team": o}
}

// raw marshals what is known to marshal.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
