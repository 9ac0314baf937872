package discordtest_test

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	dt "footnote/adapters/discord/discordtest"
)

type frame struct {
	Op int
	S  int
	T  string
	D  json.RawMessage
}

// peer is a client that does what the test says and nothing by itself.
type peer struct {
	t    *testing.T
	s    *dt.Server
	conn *websocket.Conn
}

func dial(t *testing.T, s *dt.Server, query string) *peer {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(s.GatewayURL()+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	return &peer{t, s, conn}
}

func (p *peer) send(op int, d any) {
	p.t.Helper()
	if err := p.conn.WriteJSON(obj{"op": op, "d": d}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() frame {
	p.t.Helper()
	kind, data, err := p.conn.ReadMessage()
	if err != nil {
		p.t.Fatal(err)
	}
	if kind == websocket.BinaryMessage {
		z, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			p.t.Fatal(err)
		}
		data, _ = io.ReadAll(z)
	}
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	return f
}

// until reads frames up to the named event and returns it.
func (p *peer) until(event string) frame {
	p.t.Helper()
	for {
		if f := p.read(); f.T == event {
			return f
		}
	}
}

// code reads up to the close and returns its code.
func (p *peer) code() int {
	p.t.Helper()
	for {
		if _, _, err := p.conn.ReadMessage(); err != nil {
			var ce *websocket.CloseError
			if errors.As(err, &ce) {
				return ce.Code
			}
			return 1006
		}
	}
}

func (p *peer) identity(intents int) obj {
	return obj{"token": "Bot " + p.s.App().Token, "intents": intents, "properties": obj{}, "shard": []int{0, 1}}
}

// session connects up to READY and returns the session id.
func session(t *testing.T, s *dt.Server, intents int) (*peer, string) {
	t.Helper()
	p := dial(t, s, "?v=9&encoding=json")
	if f := p.read(); f.Op != 10 {
		t.Fatalf("first frame %+v, want HELLO", f)
	}
	p.send(2, p.identity(intents))
	var ready struct {
		ID string `json:"session_id"`
	}
	_ = json.Unmarshal(p.until("READY").D, &ready)
	return p, ready.ID
}

func TestHandshakeAndGuild(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	p, _ := session(t, s, 1)
	var g struct {
		ID       string
		Roles    []obj
		Channels []obj
		Threads  []obj
		Members  []obj
	}
	if err := json.Unmarshal(p.until("GUILD_CREATE").D, &g); err != nil {
		t.Fatal(err)
	}
	if g.ID != x.guild || len(g.Roles) != 3 || len(g.Channels) != 6 || len(g.Threads) != 2 || len(g.Members) != 1 {
		t.Errorf("guild %s with %d roles, %d channels, %d threads, %d members", g.ID, len(g.Roles), len(g.Channels), len(g.Threads), len(g.Members))
	}
	p.send(1, 1)
	if f := p.read(); f.Op != 11 {
		t.Errorf("heartbeat answered with %+v, want op 11", f)
	}
	s.SetAcks(false)
	p.send(1, 1)
	s.SendOp(1, nil)
	if f := p.read(); f.Op != 1 {
		t.Errorf("got %+v, want the request for a heartbeat and no acknowledgement before", f)
	}
}

func TestIdentifyRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		query  string
		change func(obj)
		opts   []dt.Option
		want   int
	}{
		"wrong token":       {change: func(o obj) { o["token"] = "Bot x" }, want: 4004},
		"invalid shard":     {change: func(o obj) { o["shard"] = []int{1, 1} }, want: 4010},
		"too few shards":    {opts: []dt.Option{dt.WithShards(2)}, want: 4011},
		"no intents":        {change: func(o obj) { delete(o, "intents") }, want: 4013},
		"unknown intent":    {change: func(o obj) { o["intents"] = 1 << 30 }, want: 4013},
		"content":           {change: func(o obj) { o["intents"] = 1 << 15 }, want: 4014},
		"members":           {change: func(o obj) { o["intents"] = 1<<0 | 1<<1 }, want: 4014},
		"old version":       {query: "?v=6", want: 4012},
		"no JSON object":    {change: func(o obj) { o["intents"] = "many" }, want: 4002},
		"budget is used up": {opts: []dt.Option{dt.WithIdentifyLimit(0)}, want: 4004},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newTown().start(t, c.opts...)
			if c.query == "" {
				c.query = "?v=10&encoding=json"
			}
			p := dial(t, s, c.query)
			id := p.identity(1)
			if c.change != nil {
				c.change(id)
			}
			_ = p.conn.WriteJSON(obj{"op": 2, "d": id})
			if got := p.code(); got != c.want {
				t.Errorf("closed with %d, want %d", got, c.want)
			}
		})
	}
}

func TestClientMistakes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		act  func(*peer)
		want int
	}{
		"unknown opcode":      {func(p *peer) { p.send(77, nil) }, 4001},
		"broken JSON":         {func(p *peer) { _ = p.conn.WriteMessage(websocket.TextMessage, []byte("{")) }, 4002},
		"status before ready": {func(p *peer) { p.send(3, obj{}) }, 4003},
		"identify twice":      {func(p *peer) { p.send(2, p.identity(1)); p.send(2, p.identity(1)) }, 4005},
		"resume with a high seq": {func(p *peer) {
			_, id := session(p.t, p.s, 1)
			p.send(6, obj{"token": p.s.App().Token, "session_id": id, "seq": 999})
		}, 4007},
		"too many frames": {func(p *peer) {
			p.send(2, p.identity(1))
			for range 121 {
				_ = p.conn.WriteJSON(obj{"op": 3, "d": obj{}})
			}
		}, 4008},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newTown().start(t)
			p := dial(t, s, "?v=9")
			c.act(p)
			if got := p.code(); got != c.want {
				t.Errorf("closed with %d, want %d", got, c.want)
			}
		})
	}
}

func TestCloseCodesAndResume(t *testing.T) {
	t.Parallel()
	for _, code := range []int{4000, 4003, 4004, 4007, 4008, 4009, 4010, 4011, 4012, 4013, 4014} {
		x := newTown()
		s, _ := x.start(t)
		p, id := session(t, s, 1)
		seq := p.until("GUILD_CREATE").S
		s.CloseSockets(code)
		if got := p.code(); got != code {
			t.Errorf("closed with %d, want %d", got, code)
		}
		register(t, s, x.guild)
		i := x.ask(s) // while nobody is connected
		again := dial(t, s, "?v=9")
		again.read()
		again.send(6, obj{"token": s.App().Token, "session_id": id, "seq": seq})
		f := again.read()
		if resumable := code == 4000 || code == 4008; !resumable {
			if f.Op != 9 || string(f.D) != "false" {
				t.Errorf("after %d: %+v, want op 9 false", code, f)
			}
			continue
		}
		var got struct{ ID string }
		_ = json.Unmarshal(f.D, &got)
		if f.T != "INTERACTION_CREATE" || got.ID != i.ID {
			t.Errorf("after %d: %+v, want the missed interaction", code, f)
		}
		again.until("RESUMED")
	}
}

func TestHandshakeFaults(t *testing.T) {
	t.Parallel()
	hello := func(p *peer) { p.read(); p.send(2, p.identity(1)) }
	cases := map[string]struct {
		hand  dt.Handshake
		check func(*testing.T, *peer)
	}{
		"reconnect before ready": {dt.Handshake{Reconnect: true}, func(t *testing.T, p *peer) {
			hello(p)
			if f := p.read(); f.Op != 7 {
				t.Errorf("got %+v, want op 7", f)
			}
		}},
		"invalid session, then ready on the same socket": {dt.Handshake{Invalid: true}, func(t *testing.T, p *peer) {
			hello(p)
			if f := p.read(); f.Op != 9 || string(f.D) != "false" {
				t.Errorf("got %+v, want op 9 false", f)
			}
			p.send(2, p.identity(1))
			p.until("READY")
		}},
		"close": {dt.Handshake{Close: 4004}, func(t *testing.T, p *peer) {
			hello(p)
			if c := p.code(); c != 4004 {
				t.Errorf("closed with %d", c)
			}
		}},
		"reset": {dt.Handshake{Drop: true}, func(t *testing.T, p *peer) {
			hello(p)
			if c := p.code(); c != 1006 {
				t.Errorf("closed with %d", c)
			}
		}},
		"ready without fields": {dt.Handshake{ReadyWithout: []string{"user", "guilds", "session_id", "application"}}, func(t *testing.T, p *peer) {
			hello(p)
			var d obj
			_ = json.Unmarshal(p.until("READY").D, &d)
			if d["user"] != nil || d["session_id"] != nil || d["v"] == nil {
				t.Errorf("READY %v", d)
			}
		}},
		"odd frames first": {dt.Handshake{First: []json.RawMessage{[]byte(`{"op":0,"t":"NOVELTY","s":1,"d":[]}`)}}, func(t *testing.T, p *peer) {
			hello(p)
			if f := p.read(); f.T != "NOVELTY" {
				t.Errorf("got %+v", f)
			}
			p.until("READY")
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newTown().start(t)
			s.SetHandshakes(c.hand)
			c.check(t, dial(t, s, "?v=9"))
		})
	}
}

func TestSilentSocketsKeepEventsForResume(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	p, id := session(t, s, 0)
	for n, h := range []dt.Handshake{{NoHello: true}, {Silent: true}} {
		s.SetHandshakes(h)
		mute := dial(t, s, "?v=9")
		mute.send(2, mute.identity(0))
		s.Eventually("the identify", func() bool { return s.Identifies() == n+2 })
	}
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d sessions, want the first alone", n)
	}
	s.SetSilent(true)
	s.SendEvent("NOVELTY", obj{})
	s.SetSilent(false)
	s.DropSockets()
	if c := p.code(); c != 1006 {
		t.Errorf("closed with %d, want no close frame", c)
	}
	again := dial(t, s, "?v=9")
	again.read()
	again.send(6, obj{"token": s.App().Token, "session_id": id, "seq": 1})
	if f := again.read(); f.T != "NOVELTY" || f.S != 2 {
		t.Errorf("got %+v, want what was missed in the silence", f)
	}
}

func TestTwoSessionsBothGetEverything(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, clock := x.start(t)
	register(t, s, x.guild)
	a, _ := session(t, s, 0)
	b, _ := session(t, s, 0)
	i := x.ask(s)
	for _, p := range []*peer{a, b} {
		var d struct{ ID string }
		_ = json.Unmarshal(p.until("INTERACTION_CREATE").D, &d)
		if d.ID != i.ID {
			t.Errorf("got interaction %s, want %s", d.ID, i.ID)
		}
	}
	second := s.Command(x.bob, x.open, "footnote status", nil, dt.Delivery{Session: 2, Copies: 1})
	late := s.Command(x.cy, x.open, "ask", map[string]any{"question": "late?"}, dt.Delivery{Delay: 4 * time.Second})
	lost := s.Command(x.cy, x.open, "ask", map[string]any{"question": "lost?"}, dt.Delivery{Drop: true})
	clock.Advance(5 * time.Second)
	var got []string
	for range 3 {
		var d struct{ ID string }
		_ = json.Unmarshal(b.until("INTERACTION_CREATE").D, &d)
		got = append(got, d.ID)
	}
	if d := cmp.Diff([]string{second.ID, second.ID, late.ID}, got); d != "" {
		t.Errorf("second session (-want +got):\n%s", d)
	}
	if slices.Contains(got, lost.ID) {
		t.Error("a dropped interaction arrived")
	}
	if bad := s.CheckInvariants(); len(bad) != 2 {
		t.Errorf("invariants %v, want the two that the app could have answered", bad)
	}
}

func TestMessagesNeedIntents(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	with, _ := session(t, s, 1<<9|1<<12)
	without, _ := session(t, s, 1)
	s.Say(x.bob, x.open, "not for you")
	s.Mention(x.bob, x.open, "for you")
	s.Mention(x.bob, x.gone, "where the bot is not")
	s.DM(x.cy, "hello")
	var got []string
	for range 3 {
		var d struct{ Content string }
		_ = json.Unmarshal(with.until("MESSAGE_CREATE").D, &d)
		got = append(got, d.Content)
	}
	if d := cmp.Diff([]string{"", "<@" + s.App().BotUser + "> for you", "hello"}, got); d != "" {
		t.Errorf("contents (-want +got):\n%s", d)
	}
	s.SendEvent("LAST", obj{})
	for f := (frame{}); f.T != "LAST"; f = without.read() {
		if f.T == "MESSAGE_CREATE" {
			t.Error("a message came without the intent")
		}
	}
}

func TestChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	x := newTown()
	s, _ := x.start(t)
	p, _ := session(t, s, 1)
	p.until("GUILD_CREATE")
	role := s.CreateRole(x.guild, dt.Role{Name: "new"})
	s.ChangeRole(x.guild, role, func(r *dt.Role) { r.Permissions = dt.ManageThreads })
	s.SetRoles(x.guild, x.bob, role) // no event without the intent
	s.SetRoles(x.guild, s.App().BotUser, role)
	s.DeleteRole(x.guild, role)
	s.SetOverwrite(x.open, dt.Overwrite{ID: x.guild, Deny: dt.SendMessages})
	s.Archive(x.thread, false)
	ch := s.CreateChannel(dt.Channel{GuildID: x.guild, Name: "new", Type: dt.Text})
	s.DeleteChannel(ch)
	s.ChangeGuild(x.guild, func(g *dt.Guild) { g.Owner = x.bob })
	s.Outage(x.guild, true)
	s.Outage(x.guild, false)
	s.Kick(x.guild)
	s.Invite(x.guild)
	want := []string{
		"GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE", "GUILD_ROLE_DELETE", "CHANNEL_UPDATE", "THREAD_UPDATE",
		"CHANNEL_CREATE", "CHANNEL_DELETE", "GUILD_UPDATE", "GUILD_DELETE", "GUILD_CREATE", "GUILD_DELETE", "GUILD_CREATE",
	}
	var got []string
	for range want {
		got = append(got, p.read().T)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestIntentSwitchedOffLive(t *testing.T) {
	t.Parallel()
	x := newTown()
	x.world.App.Privileged = dt.ContentIntent
	s, _ := x.start(t)
	p, _ := session(t, s, 1<<9|1<<15)
	s.DisableIntents(dt.ContentIntent)
	if c := p.code(); c != 4003 {
		t.Errorf("closed with %d, want 4003", c)
	}
	again := dial(t, s, "?v=9")
	again.send(2, again.identity(1<<9|1<<15))
	if c := again.code(); c != 4014 {
		t.Errorf("closed with %d, want 4014", c)
	}
}

func TestZlibFrames(t *testing.T) {
	t.Parallel()
	s, _ := newTown().start(t, dt.WithZlib())
	p := dial(t, s, "?v=9")
	p.read()
	id := p.identity(1)
	id["compress"] = true
	p.send(2, id)
	kind, _, err := p.conn.ReadMessage()
	if err != nil || kind != websocket.BinaryMessage {
		t.Fatalf("kind %d, %v, want a binary frame", kind, err)
	}
	p.until("GUILD_CREATE")
}
