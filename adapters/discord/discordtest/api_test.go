package discordtest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dt "footnote/adapters/discord/discordtest"
)

func TestStrictErrors(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	long := strings.Repeat("x", 2001)
	agent := func(r *http.Request) { r.Header.Set("User-Agent", "curl/8") }
	noToken := func(r *http.Request) { r.Header.Del("Authorization") }
	bare := func(r *http.Request) { r.Header.Set("Authorization", s.App().Token) }
	said := s.Say(x.bob, x.open, "hello")
	cases := map[string]struct {
		verb, path   string
		body         any
		change       func(*http.Request)
		status, code int
		errors       string // dotted path in errors
	}{
		"no such route":            {verb: "GET", path: "/nothing", status: 404},
		"wrong method":             {verb: "PUT", path: "/gateway", status: 405},
		"not the bot's user agent": {verb: "GET", path: "/gateway", change: agent, status: 403, code: 40333},
		"no token":                 {verb: "GET", path: "/users/@me", change: noToken, status: 401},
		"token without Bot":        {verb: "GET", path: "/users/@me", change: bare, status: 401},
		"gateway needs no token":   {verb: "GET", path: "/gateway", change: noToken, status: 200},
		"channel id is no number":  {verb: "GET", path: "/channels/general", status: 400, code: 50035, errors: "channel_id"},
		"unknown channel":          {verb: "GET", path: "/channels/1", status: 404, code: 10003},
		"channel the bot cannot see": {
			verb: "GET", path: "/channels/" + x.gone, status: 403, code: 50001,
		},
		"unknown guild":             {verb: "GET", path: "/guilds/1", status: 404, code: 10004},
		"user that is no member":    {verb: "GET", path: "/guilds/" + x.guild + "/members/1", status: 404, code: 10013},
		"members without intent":    {verb: "GET", path: "/guilds/" + x.guild + "/members?limit=10", status: 403, code: 50001},
		"body is no JSON":           {verb: "POST", path: "/channels/" + x.open + "/messages", body: "{", status: 400, code: 50109},
		"content of the wrong type": {verb: "POST", path: "/channels/" + x.open + "/messages", body: obj{"content": 1}, status: 400, code: 50035, errors: "content"},
		"content too long":          {verb: "POST", path: "/channels/" + x.open + "/messages", body: msg(long), status: 400, code: 50035, errors: "content"},
		"empty message":             {verb: "POST", path: "/channels/" + x.open + "/messages", body: msg(" "), status: 400, code: 50006},
		"ephemeral in a channel":    {verb: "POST", path: "/channels/" + x.open + "/messages", body: obj{"content": "x", "flags": 64}, status: 400, code: 50035, errors: "flags"},
		"message in a forum":        {verb: "POST", path: "/channels/" + x.forum + "/messages", body: msg("x"), status: 400, code: 50008},
		"reply to nothing":          {verb: "POST", path: "/channels/" + x.open + "/messages", body: obj{"content": "x", "message_reference": obj{"message_id": "1"}}, status: 400, code: 50035, errors: "message_reference"},
		"editing another's message": {verb: "PATCH", path: "/channels/" + x.open + "/messages/" + said.ID, body: msg("x"), status: 403, code: 50005},
		"deleting another's":        {verb: "DELETE", path: "/channels/" + x.open + "/messages/" + said.ID, status: 403, code: 50013},
		"unknown message":           {verb: "GET", path: "/channels/" + x.open + "/messages/1", status: 404, code: 10008},
		"thread in a thread":        {verb: "POST", path: "/channels/" + x.thread + "/threads", body: obj{"name": "x", "type": 11}, status: 400, code: 50024},
		"thread without a name":     {verb: "POST", path: "/channels/" + x.open + "/messages/" + said.ID + "/threads", body: obj{"name": " "}, status: 400, code: 50035, errors: "name"},
		"thread with odd duration":  {verb: "POST", path: "/channels/" + x.open + "/messages/" + said.ID + "/threads", body: obj{"name": "x", "auto_archive_duration": 5}, status: 400, code: 50035, errors: "auto_archive_duration"},
		"someone else's commands":   {verb: "GET", path: "/applications/1/commands", status: 404, code: 10002},
		"interaction that is not":   {verb: "POST", path: "/interactions/1/x/callback", body: obj{"type": 4}, status: 404, code: 10062},
		"webhook token that is not": {verb: "PATCH", path: "/webhooks/" + s.App().ID + "/x/messages/@original", body: msg("x"), status: 401, code: 50027},
		"webhook of another app":    {verb: "PATCH", path: "/webhooks/1/x/messages/@original", body: msg("x"), status: 404, code: 10015},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*http.Request){}
			if c.change != nil {
				change = append(change, c.change)
			}
			r := api(t, s, c.verb, c.path, c.body, change...)
			if r.Status != c.status || r.Code != c.code {
				t.Errorf("got %d code %d %s, want %d code %d", r.Status, r.Code, r.Body, c.status, c.code)
			}
			if c.errors != "" && r.at("errors", c.errors, "_errors") == nil {
				t.Errorf("no nested error at %s in %s", c.errors, r.Body)
			}
			if c.status != 404 && c.status != 405 && r.Header.Get("X-RateLimit-Remaining") == "" {
				t.Errorf("no rate headers in %v", r.Header)
			}
		})
	}
}

func TestAPIVersions(t *testing.T) {
	t.Parallel()
	s, _ := newTown().start(t)
	for v, want := range map[string]int{"v9": 200, "v10": 200, "v6": 400} {
		req, _ := http.NewRequest("GET", s.URL()+"/api/"+v+"/gateway", nil)
		req.Header.Set("User-Agent", "DiscordBot (x, 1)")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("version %s: status %d, want %d", v, resp.StatusCode, want)
		}
	}
}

func TestMessageLimits(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	rep := strings.Repeat
	row := func(kids ...obj) []obj { return []obj{{"type": 1, "components": kids}} }
	btn := func(label, id string) obj { return obj{"type": 2, "style": 1, "label": label, "custom_id": id} }
	rows := func(n int) (out []obj) {
		for i := range n {
			out = append(out, row(btn("x", rep("i", i+1)))...)
		}
		return out
	}
	embed := func(e obj) obj { return obj{"embeds": []obj{e}} }
	cases := map[string]struct {
		body obj
		code int
	}{
		"2000 characters":                  {msg(rep("x", 2000)), 0},
		"1001 emoji of two units":          {msg(rep("😀", 1001)), 50035},
		"embed at its limits":              {embed(obj{"title": rep("t", 256), "description": rep("d", 4096)}), 0},
		"title too long":                   {embed(obj{"title": rep("t", 257)}), 50035},
		"description too long":             {embed(obj{"description": rep("t", 4097)}), 50035},
		"all embeds together too long":     {obj{"embeds": []obj{{"description": rep("x", 3001)}, {"description": rep("x", 3000)}}}, 50035},
		"eleven embeds":                    {obj{"embeds": slices.Repeat([]obj{{"title": "x"}}, 11)}, 50035},
		"empty embed":                      {embed(obj{}), 50035},
		"five rows":                        {obj{"content": "x", "components": rows(5)}, 0},
		"six rows":                         {obj{"content": "x", "components": rows(6)}, 50035},
		"six buttons":                      {obj{"content": "x", "components": row(btn("x", "1"), btn("x", "2"), btn("x", "3"), btn("x", "4"), btn("x", "5"), btn("x", "6"))}, 50035},
		"one id twice":                     {obj{"content": "x", "components": row(btn("x", "1"), btn("x", "1"))}, 50035},
		"label too long":                   {obj{"content": "x", "components": row(btn(rep("x", 81), "1"))}, 50035},
		"no custom id":                     {obj{"content": "x", "components": row(btn("x", ""))}, 50035},
		"custom id too long":               {obj{"content": "x", "components": row(btn("x", rep("x", 101)))}, 50035},
		"link button":                      {obj{"content": "x", "components": row(obj{"type": 2, "style": 5, "label": "x", "url": "https://example.org/a"})}, 0},
		"link button without scheme":       {obj{"content": "x", "components": row(obj{"type": 2, "style": 5, "label": "x", "url": "example.org"})}, 50035},
		"link too long":                    {obj{"content": "x", "components": row(obj{"type": 2, "style": 5, "label": "x", "url": "https://example.org/" + rep("a", 500)})}, 50035},
		"components v2 with content":       {obj{"content": "x", "flags": dt.FlagComponentsV2, "components": []obj{{"type": 10, "content": "y"}}}, 50035},
		"components v2":                    {obj{"flags": dt.FlagComponentsV2, "components": []obj{{"type": 10, "content": "y"}}}, 0},
		"forty-one components":             {obj{"flags": dt.FlagComponentsV2, "components": slices.Repeat([]obj{{"type": 10, "content": "y"}}, 41)}, 50035},
		"components without anything else": {obj{"components": rows(1)}, 50006},
		"null lists":                       {obj{"content": "x", "embeds": nil, "components": nil, "sticker_ids": nil, "attachments": nil}, 0},
		"unknown fields":                   {obj{"content": "x", "novelty": obj{"a": 1}}, 0},
		"parse and list of users":          {obj{"content": "x", "allowed_mentions": obj{"parse": []string{"users"}, "users": []string{"1"}}}, 50035},
		"unknown kind of mention":          {obj{"content": "x", "allowed_mentions": obj{"parse": []string{"all"}}}, 50035},
		"nonce too long":                   {obj{"content": "x", "nonce": rep("n", 26)}, 50035},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := api(t, s, "POST", "/channels/"+x.open+"/messages", c.body)
			if r.Code != c.code || (c.code == 0) != (r.Status == 200) {
				t.Errorf("got %d code %d %s, want code %d", r.Status, r.Code, r.Body, c.code)
			}
		})
	}
}

func TestNonceProtectsARetry(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t)
	send := func(enforce bool) any {
		return api(t, s, "POST", "/channels/"+x.open+"/messages", obj{"content": "x", "nonce": "n1", "enforce_nonce": enforce, "allowed_mentions": quiet}).at("id")
	}
	first := send(true)
	if again := send(true); again != first {
		t.Errorf("a retry made message %v, want the first one %v", again, first)
	}
	if other := send(false); other == first {
		t.Error("without enforce_nonce a second message was expected")
	}
	clock.Advance(6 * time.Minute)
	if late := send(true); late == first {
		t.Error("the nonce is remembered for too long")
	}
}

func TestCommandRegistration(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t)
	register(t, s, x.guild)
	path := "/applications/" + s.App().ID + "/guilds/" + x.guild + "/commands"
	if n := s.Created(x.guild); n != 3 {
		t.Errorf("%d creations counted, want 3", n)
	}
	register(t, s, x.guild)
	if n := s.Created(x.guild); n != 3 {
		t.Errorf("%d creations after the same list again, want 3", n)
	}
	got, _ := api(t, s, "GET", path+"?with_localizations=true", nil).at().([]any)
	first, _ := got[0].(obj)
	for _, k := range []string{"id", "application_id", "version", "nsfw", "default_member_permissions", "contexts", "integration_types", "name_localizations"} {
		if _, has := first[k]; !has {
			t.Errorf("the server's default %q is missing in %v", k, first)
		}
	}
	if d := cmp.Diff([]string{"Ask footnote", "ask", "footnote"}, s.Shown(x.guild)); d != "" {
		t.Errorf("shown commands (-want +got):\n%s", d)
	}
	api(t, s, "PUT", "/applications/"+s.App().ID+"/commands", []obj{{"name": "ask", "description": "Ask"}})
	if n := strings.Count(strings.Join(s.Shown(x.guild), " "), "ask"); n != 2 {
		t.Errorf("/ask is shown %d times, want twice: in the guild and globally", n)
	}
	for i := range 197 {
		api(t, s, "POST", path, obj{"name": "c" + strings.Repeat("x", i%20), "description": "x"})
		api(t, s, "PUT", path, []obj{})
	}
	if r := api(t, s, "POST", path, obj{"name": "last", "description": "x"}); r.Code != 30034 {
		t.Errorf("the 201st creation got %d %s, want 30034", r.Status, r.Body)
	}
	clock.Advance(25 * time.Hour)
	if r := api(t, s, "POST", path, obj{"name": "last", "description": "x"}); r.Status != 201 {
		t.Errorf("a day later: %d %s", r.Status, r.Body)
	}
}

func TestCommandValidation(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	opt := func(name string, required bool) obj {
		return obj{"type": 3, "name": name, "description": "x", "required": required}
	}
	cases := map[string]struct {
		cmd  obj
		good bool
	}{
		"upper case":             {obj{"name": "Ask", "description": "x"}, false},
		"space in a name":        {obj{"name": "a b", "description": "x"}, false},
		"space in a menu name":   {obj{"name": "Ask this", "type": 3}, true},
		"menu with description":  {obj{"name": "Ask", "type": 3, "description": "x"}, false},
		"no description":         {obj{"name": "ask"}, false},
		"description too long":   {obj{"name": "ask", "description": strings.Repeat("x", 101)}, false},
		"required after others":  {obj{"name": "ask", "description": "x", "options": []obj{opt("a", false), opt("b", true)}}, false},
		"one option twice":       {obj{"name": "ask", "description": "x", "options": []obj{opt("a", true), opt("a", true)}}, false},
		"max_length too large":   {obj{"name": "ask", "description": "x", "options": []obj{{"type": 3, "name": "a", "description": "x", "max_length": 6001}}}, false},
		"null lists of a client": {obj{"name": "ask", "description": "x", "options": []obj{{"type": 3, "name": "a", "description": "x", "choices": nil, "options": nil, "channel_types": nil}}}, true},
		"unknown context":        {obj{"name": "ask", "description": "x", "contexts": []int{3}}, false},
		"umlaut":                 {obj{"name": "prüfe", "description": "x"}, true},
		"twenty-six choices":     {obj{"name": "ask", "description": "x", "options": []obj{{"type": 3, "name": "a", "description": "x", "choices": slices.Repeat([]obj{{"name": "c", "value": "c"}}, 26)}}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := api(t, s, "POST", "/applications/"+s.App().ID+"/commands", c.cmd)
			if c.good != (r.Status < 300) || !c.good && r.Code != 50035 {
				t.Errorf("got %d %s, want good=%v", r.Status, r.Body, c.good)
			}
		})
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t)
	said := s.Say(x.bob, x.open, "hello")
	path := "/channels/" + x.open + "/messages/" + said.ID + "/threads"
	made := api(t, s, "POST", path, obj{"name": "talk", "auto_archive_duration": 60})
	if made.Status != 201 || made.at("id") != said.ID {
		t.Fatalf("got %d %s, want a thread with the id of the message", made.Status, made.Body)
	}
	if r := api(t, s, "POST", path, obj{"name": "talk"}); r.Code != 160004 {
		t.Errorf("a second thread got %d %s, want 160004", r.Status, r.Body)
	}
	clock.Advance(61 * time.Minute)
	if ch, _ := s.Channel(said.ID); !ch.Archived {
		t.Error("the thread is not archived after an hour of silence")
	}
	if r := api(t, s, "POST", "/channels/"+said.ID+"/messages", msg("x")); r.Status != 200 {
		t.Errorf("posting into an archived thread: %d %s, want 200", r.Status, r.Body)
	}
	if ch, _ := s.Channel(said.ID); ch.Archived {
		t.Error("posting did not unarchive the thread")
	}
	s.Archive(said.ID, true)
	if r := api(t, s, "POST", "/channels/"+said.ID+"/messages", msg("x")); r.Code != 50083 {
		t.Errorf("posting into a locked archived thread: %d %s, want 50083", r.Status, r.Body)
	}
	s.ChangeChannel(said.ID, func(c *dt.Channel) { c.Archived = false })
	if r := api(t, s, "POST", "/channels/"+said.ID+"/messages", msg("x")); r.Code != 160005 {
		t.Errorf("posting into a locked thread: %d %s, want 160005", r.Status, r.Body)
	}
	news := s.Say(x.ada, x.news, "read this")
	if r := api(t, s, "POST", "/channels/"+x.news+"/messages/"+news.ID+"/threads", obj{"name": "x"}); r.at("type") != 10.0 {
		t.Errorf("under an announcement: %s, want type 10", r.Body)
	}
	talk := s.Say(x.ada, x.voice, "hi")
	if r := api(t, s, "POST", "/channels/"+x.voice+"/messages/"+talk.ID+"/threads", obj{"name": "x"}); r.Code != 50024 {
		t.Errorf("in voice text: %d %s, want 50024", r.Status, r.Body)
	}
	if r := api(t, s, "POST", "/channels/"+x.forum+"/threads", obj{"name": "post", "message": msg("first")}); r.Status != 201 {
		t.Errorf("forum post: %d %s", r.Status, r.Body)
	}
	s.SetOverwrite(x.open, dt.Overwrite{ID: x.guild, Deny: dt.CreatePublicThreads})
	s.ChangeRole(x.guild, botRole(s, x), func(r *dt.Role) { r.Permissions &^= dt.CreatePublicThreads })
	other := s.Say(x.bob, x.open, "again")
	if r := api(t, s, "POST", "/channels/"+x.open+"/messages/"+other.ID+"/threads", obj{"name": "x"}); r.Code != 50013 {
		t.Errorf("without permission: %d %s, want 50013", r.Status, r.Body)
	}
}

// botRole is the role that AddGuild gave to the bot.
func botRole(s *dt.Server, x *town) string {
	g := x.world.Guilds[0]
	for _, m := range g.Members {
		if m.User == s.App().BotUser {
			return m.Roles[0]
		}
	}
	return ""
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t, dt.WithRouteLimit(dt.RouteMessage, 2, 5*time.Second), dt.WithInvalidLimit(3))
	post := func(ch string) reply { return api(t, s, "POST", "/channels/"+ch+"/messages", msg("x")) }
	post(x.open)
	if r := post(x.open); r.Status != 200 || r.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("second call: %d, remaining %q", r.Status, r.Header.Get("X-RateLimit-Remaining"))
	}
	r := post(x.open)
	if r.Status != 429 || r.at("retry_after") != 5.0 || r.Header.Get("Retry-After") != "5" || r.Header.Get("X-RateLimit-Scope") != "user" {
		t.Errorf("third call: %d %s %v", r.Status, r.Body, r.Header)
	}
	if r := post(x.closed); r.Status != 200 {
		t.Errorf("another channel shares the bucket: %d", r.Status)
	}
	clock.Advance(6 * time.Second)
	if r := post(x.open); r.Status != 200 {
		t.Errorf("after the wait: %d", r.Status)
	}
	api(t, s, "GET", "/channels/"+x.gone, nil)
	api(t, s, "GET", "/channels/"+x.gone, nil)
	banned := api(t, s, "GET", "/users/@me", nil)
	if banned.Status != 429 || !strings.Contains(banned.Header.Get("Content-Type"), "html") || banned.Header.Get("Via") != "" {
		t.Errorf("after too many refusals: %d %v %s, want an HTML 429", banned.Status, banned.Header, banned.Body)
	}
	clock.Advance(11 * time.Minute)
	if r := api(t, s, "GET", "/users/@me", nil); r.Status != 200 {
		t.Errorf("after the ban: %d", r.Status)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	x := newTown()
	cases := map[string]struct {
		fault  dt.Fault
		status int // 0: the connection ends
		body   string
		effect bool
	}{
		"JSON 429":      {dt.Fault{Status: 429, RetryAfter: 0.5, Scope: "shared"}, 429, `"retry_after":0.5`, false},
		"HTML 429":      {dt.Fault{Status: 429, HTML: true}, 429, "<!DOCTYPE html>", false},
		"502":           {dt.Fault{Status: 502}, 502, "", false},
		"error code":    {dt.Fault{Code: 160006, Message: "Maximum"}, 400, "160006", false},
		"reset before":  {dt.Fault{ResetBefore: true}, 0, "", false},
		"reset after":   {dt.Fault{ResetAfter: true}, 0, "", true},
		"500 after":     {dt.Fault{FailAfter: true}, 500, "", true},
		"truncated":     {dt.Fault{Truncate: true}, 200, "{", true},
		"malformed":     {dt.Fault{Malformed: true}, 200, "<html>", true},
		"unknown field": {dt.Fault{Extra: map[string]any{"novelty": 1}}, 200, `"novelty":1`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := x.start(t)
			c.fault.Route, c.fault.Calls = dt.RouteMessage, dt.Nth(2)
			s.AddFault(c.fault)
			post := func() reply {
				req, _ := http.NewRequest("POST", s.URL()+"/api/v9/channels/"+x.open+"/messages", strings.NewReader(`{"content":"x"}`))
				req.Header.Set("User-Agent", "DiscordBot (x, 1)")
				req.Header.Set("Authorization", "Bot "+s.App().Token)
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return reply{}
				}
				defer resp.Body.Close()
				b := make([]byte, 4096)
				n, _ := resp.Body.Read(b)
				return reply{Status: resp.StatusCode, Body: string(b[:n])}
			}
			post()
			r := post()
			if r.Status != c.status || !strings.Contains(r.Body, c.body) {
				t.Errorf("got %d %s, want %d with %s", r.Status, r.Body, c.status, c.body)
			}
			want := 1
			if c.effect {
				want = 2
			}
			if n := len(s.Messages(x.open)); n != want {
				t.Errorf("%d messages, want %d", n, want)
			}
			if reqs := s.Requests(dt.RouteMessage); len(reqs) != 2 || !reqs[1].Faulted {
				t.Errorf("the second request is not marked: %v", reqs)
			}
		})
	}
}

func TestDirectMessages(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	ch, _ := api(t, s, "POST", "/users/@me/channels", obj{"recipient_id": x.cy}).at("id").(string)
	if ch != s.DMChannel(x.cy) {
		t.Errorf("the route opened %q, the person writes in %q", ch, s.DMChannel(x.cy))
	}
	api(t, s, "POST", "/channels/"+ch+"/messages", msg("hello"))
	m := s.WaitMessage(ch, dt.Any[dt.Message])
	if !s.VisibleTo(x.cy, m) || s.VisibleTo(x.bob, m) {
		t.Error("a direct message is for its recipient alone")
	}
	if r := api(t, s, "POST", "/users/@me/channels", obj{"recipient_id": "1"}); r.Code != 50033 {
		t.Errorf("unknown recipient: %d %s", r.Status, r.Body)
	}
}
