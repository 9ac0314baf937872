package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
)

// serves asks a question and waits for the answer.
func (r *rig) serves(what string) {
	r.t.Helper()
	r.WaitSessions(1)
	if m := r.ask(r.town.cy, r.town.open, "what about all").WaitAnswer(); !strings.Contains(m.Content, "docall") {
		r.t.Errorf("%s: %s", what, m.Content)
	}
}

// LD-01, LD-02, LD-03, D-65: whatever comes instead of READY.
func TestLD01SpoiltHandshakes(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]dt.Handshake{
		"LD-02, B-67, B-68 op 7 before READY": {Reconnect: true},
		"LD-03, B-71 op 9 before READY":       {Invalid: true},
		"op 9 that can be resumed":            {Invalid: true, Resumable: true},
		"no hello":                            {NoHello: true},
		"silence after the identify":          {Silent: true},
		"LD-04 close 4000":                    {Close: 4000},
		"close 4009":                          {Close: 4009},
		"a reset":                             {Drop: true},
		"READY without fields":                {ReadyWithout: []string{"guilds", "application", "user", "session_id", "resume_gateway_url"}},
		"unknown frames first":                {First: []json.RawMessage{json.RawMessage(`{"op":99,"d":1}`), json.RawMessage(`{"op":0,"t":"NEWS","s":1,"d":[1]}`)}},
		"null first":                          {First: []json.RawMessage{json.RawMessage(`null`)}},
		"an array first":                      {First: []json.RawMessage{json.RawMessage(`[]`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTown()
			s := dt.New(t, x.world, dt.WithRules(dt.Rules{CanRead: x.canRead}))
			s.SetHandshakes(h)
			r := newRig(t, x, setting{server: s, config: func(c *Config) { c.pace.open = 300 * time.Millisecond; c.DevGuild = x.guild }})
			r.serves(name)
			_ = r.stop()
		})
	}
}

// D-65: whatever comes later.
func TestD65OrdersAndGarbage(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*rig){
		"op 7":                func(r *rig) { r.SendOp(7, nil) },
		"op 9 false":          func(r *rig) { r.ExpireSessions(); r.SendOp(9, false) },
		"op 9 true":           func(r *rig) { r.SendOp(9, true) },
		"op 1":                func(r *rig) { r.SendOp(1, nil) },
		"an unknown op":       func(r *rig) { r.SendOp(42, map[string]int{"x": 1}) },
		"an unknown event":    func(r *rig) { r.SendEvent("TOMORROW", []int{1}) },
		"a guild that is odd": func(r *rig) { r.SendEvent("GUILD_ROLE_UPDATE", map[string]any{"guild_id": "5", "role": 7}) },
		"no interaction":      func(r *rig) { r.SendEvent("INTERACTION_CREATE", map[string]any{"id": "1"}) },
		"null interaction":    func(r *rig) { r.SendEvent("INTERACTION_CREATE", nil) },
		"broken JSON":         func(r *rig) { r.SendRaw(`{"op":0,"t":`) },
		"null":                func(r *rig) { r.SendRaw(`null`) },
		"close 4000":          func(r *rig) { r.CloseSockets(4000) },
		"close 4007":          func(r *rig) { r.CloseSockets(4007) },
		"close 1000":          func(r *rig) { r.CloseSockets(1000) },
		"a reset":             func(r *rig) { r.DropSockets() },
		"an expired session":  func(r *rig) { r.ExpireSessions(); r.CloseSockets(4000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, newTown(), setting{})
			do(r)
			r.Eventually("connected", func() bool { return r.Sessions() == 1 && !r.adapter.Health().Connected.IsZero() })
			r.serves(name)
			r.clean()
		})
	}
}

// LD-03, LD-14: a lost connection is resumed by the same session, and the facts
// stay.
func TestLD14ResumeKeepsTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	for range 2 {
		before := r.adapter.Health().Reconnects
		r.SendOp(7, nil)
		r.Eventually("resumed", func() bool {
			return r.adapter.Health().Reconnects > before && !r.adapter.Health().Connected.IsZero()
		})
	}
	if n := r.Identifies(); n != 1 {
		t.Errorf("%d identifications for one session", n)
	}
	t.Run("LD-03, B-74 by one owner, on one socket", func(t *testing.T) {
		resumes := 0
		for _, f := range r.Frames() {
			if f.Op == 6 {
				resumes++
			}
		}
		if resumes != 2 || r.Sockets() != 1 {
			t.Errorf("%d resumptions, %d sockets", resumes, r.Sockets())
		}
	})
	r.serves("after two resumptions")
	r.clean()
}

// D-63: what a resume replays is answered if it can be, and not touched
// otherwise.
func TestD63ReplayedInteractions(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.SetRules(dt.Rules{CanRead: x.canRead, Lost: true})
	r.DropSockets()
	t.Run("B-77 what came in the gap is answered", func(t *testing.T) {
		fresh := r.ask(x.cy, x.open, "what about all")
		if m := fresh.WaitAnswer(); !strings.Contains(m.Content, "docall") {
			t.Errorf("a fresh one: %s", m.Content)
		}
	})
	g := r.adapter.gate
	old := "175928847299117063" // of 2016
	if g.dead(old) {
		t.Error("an id that is no time of the last day must not be judged")
	}
	if g.dead("x") {
		t.Error("an id that is none must not be judged")
	}
	g.a.d.Now = func() time.Time { return time.UnixMilli(175928847299117063>>22 + epoch).Add(time.Minute) }
	if !g.dead(old) {
		t.Error("one of a minute ago is dead")
	}
}

// D-60, LD-04: final codes end it, at the first connection and later.
func TestD60FinalCloseCodes(t *testing.T) {
	t.Parallel()
	for _, code := range []int{4004, 4010, 4011, 4012, 4013, 4014} {
		t.Run(fmt.Sprintf("LD-04, B-75 %d later", code), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, newTown(), setting{})
			r.CloseSockets(code)
			r.ends(code)
		})
		t.Run(fmt.Sprintf("D-60 %d at first", code), func(t *testing.T) {
			t.Parallel()
			x := newTown()
			s := dt.New(t, x.world)
			s.SetHandshakes(dt.Handshake{Close: code})
			r := newRig(t, x, setting{server: s, cold: true})
			r.ends(code)
		})
	}
}

func (r *rig) ends(code int) {
	r.t.Helper()
	r.Eventually("Run returned", func() bool { return r.adapter.Health().Fatal != "" })
	if err := r.stop(); err == nil || !strings.Contains(err.Error(), "Discord does not let the bot in") {
		r.t.Errorf("%d: %v", code, err)
	}
	if n := r.Identifies(); n > 2 {
		r.t.Errorf("%d: %d identifications", code, n)
	}
}

// B-69: an intent that is switched off while it is used.
func TestD60IntentSwitchedOff(t *testing.T) {
	t.Parallel()
	t.Run("B-69 4003, then 4014", func(t *testing.T) {
		r := newRig(t, newTown(), setting{})
		r.SetHandshakes(dt.Handshake{Close: 4014})
		r.CloseSockets(4003)
		r.ends(4014)
	})
}

// B-73: a connection outlives its token.
func TestD60TokenResetWhileConnected(t *testing.T) {
	t.Parallel()
	t.Run("B-73 a reset token is noticed", func(t *testing.T) {
		r := newRig(t, newTown(), setting{config: func(c *Config) { c.pace.probe = 20 * time.Millisecond }})
		r.AddFault(dt.Fault{Status: 401})
		r.Eventually("Run returned", func() bool { return r.adapter.Health().Fatal != "" })
		if err := r.stop(); err == nil || !strings.Contains(err.Error(), "FOOTNOTE_DISCORD_TOKEN") {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestD60BadTokenIsNamed(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{cold: true, config: func(c *Config) { c.Token = "wrong" }})
	r.Eventually("Run returned", func() bool { return r.adapter.Health().Fatal != "" })
	if err := r.stop(); err == nil || !strings.Contains(err.Error(), "FOOTNOTE_DISCORD_TOKEN") {
		t.Errorf("a wrong token: %v", err)
	}
}

// LD-17: the library notices after five heartbeats that none is answered.
func TestLD17UnansweredHeartbeats(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{config: func(c *Config) { c.pace.silence = 500 * time.Millisecond }, options: []dt.Option{dt.WithHeartbeat(120 * time.Millisecond)}})
	r.SetAcks(false)
	r.Eventually("the connection is given up", func() bool { return strings.Contains(r.logs.String(), "nothing came from Discord for too long") })
	r.SetAcks(true)
	r.Eventually("connected again", func() bool { return r.Sessions() == 1 && !r.adapter.Health().Connected.IsZero() })
	beats := 0
	for _, f := range r.Frames() {
		if f.Op == 1 {
			beats++
		}
	}
	if beats == 0 {
		t.Error("no heartbeat was sent, so nothing was tested")
	}
	r.serves("afterwards")
	_ = r.stop()
}

// D-64: a silent connection is replaced.
func TestD64SilentConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{config: func(c *Config) { c.pace.silence = 500 * time.Millisecond }, options: []dt.Option{dt.WithHeartbeat(100 * time.Millisecond)}})
	r.SetSilent(true)
	r.Eventually("the connection is given up", func() bool { return strings.Contains(r.logs.String(), "nothing came from Discord for too long") })
	r.SetSilent(false)
	r.Eventually("connected again", func() bool { return r.Sessions() == 1 && !r.adapter.Health().Connected.IsZero() })
	r.serves("after the silence")
	_ = r.stop()
}

// D-62: the budget of identifications is kept, whatever the server does.
func TestD62IdentifyBudget(t *testing.T) {
	t.Parallel()
	_, r := inTown(t)
	g := r.adapter.gate
	g.mu.Lock()
	for range maxIdentifies {
		g.identifies = append(g.identifies, time.Now())
	}
	g.mu.Unlock()
	r.ExpireSessions()
	r.SendOp(9, false)
	t.Run("B-72 it stops before the token is reset", func(t *testing.T) {
		r.Eventually("it stops", func() bool { return r.adapter.Health().Fatal != "" })
		if err := r.stop(); !errors.Is(err, errBudget) {
			t.Errorf("ended with %v", err)
		}
	})
}

// D-66: one shard, up to what Discord allows; beyond, it is said.
func TestD66OneShard(t *testing.T) {
	t.Parallel()
	x := newTown()
	one := newRig(t, x, setting{})
	for _, f := range one.Frames() {
		if f.Op == 2 && strings.Contains(string(f.Body), `"shard"`) && !strings.Contains(string(f.Body), `"shard":[0,1]`) {
			t.Errorf("identified with %s", f.Body)
		}
	}
	if bad := failing(one.adapter.Check(context.Background())); strings.Contains(bad, "shards") {
		t.Errorf("one is enough: %s", bad)
	}
	_ = one.stop()
	many := newRig(t, x, setting{cold: true, options: []dt.Option{dt.WithShards(3)}})
	many.ends(4011)
	if bad := failing(many.adapter.Check(context.Background())); !strings.Contains(bad, "3 shards") {
		t.Errorf("three are recommended: %s", bad)
	}
}

func TestD11Intents(t *testing.T) {
	t.Parallel()
	x := newTown()
	for mentions, want := range map[bool]string{false: `"intents":1`, true: `"intents":4609`} {
		r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = mentions }})
		found := false
		for _, f := range r.Frames() {
			found = found || f.Op == 2 && strings.Contains(string(f.Body), want)
		}
		if !found {
			t.Errorf("mentions %v: not identified with %s", mentions, want)
		}
		_ = r.stop()
	}
}

// LD-13, LD-09: the library logs nothing and keeps nothing.
func TestLD13LibraryIsQuiet(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	s := r.adapter.rest.session
	if s.Debug || s.LogLevel >= 0 || s.StateEnabled || s.ShouldReconnectOnError || s.ShouldRetryOnRateLimit || s.MaxRestRetries != 0 || !s.SyncEvents {
		t.Error("the library's session is not as it must be")
	}
	r.serves("once")
	t.Run("B-70 the library keeps no state that others write to", func(t *testing.T) {
		if s.State != nil && len(s.State.Guilds) > 0 {
			t.Errorf("%d guilds", len(s.State.Guilds))
		}
	})
	t.Run("B-82 one client for all calls", func(t *testing.T) {
		if r.adapter.gate.transport != s.Client.Transport {
			t.Error("the gateway and the calls have clients of their own")
		}
	})
	r.clean()
}

// D-11, LD-09: what administrators change is known at once.
func TestLD09FactsFollowEvents(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	known := func(channel string) bool {
		v, _, err := r.adapter.book.Viewers(x.guild, channel, noHint)
		return err == nil && v.Everyone
	}
	r.SetOverwrite(x.open, dt.Overwrite{ID: x.guild, Deny: dt.ViewChannel})
	r.Eventually("the overwrite is known", func() bool { return !known(x.open) })
	r.SetOverwrite(x.open, dt.Overwrite{ID: x.guild, Allow: dt.ViewChannel})
	r.Eventually("and the other one", func() bool { return known(x.open) && known(x.thread) })
	c := r.CreateChannel(dt.Channel{GuildID: x.guild, Name: "new", Type: dt.Text})
	r.Eventually("a new channel is known", func() bool { return known(c) })
	r.ChangeRole(x.guild, x.guild, func(role *dt.Role) { role.Permissions &^= dt.ViewChannel })
	r.Eventually("the base is known", func() bool { return !known(c) })
	r.Outage(x.guild, true)
	r.Eventually("an outage is known", func() bool { _, _, err := r.adapter.book.Viewers(x.guild, c, noHint); return err != nil })
	if !r.adapter.book.Has(x.guild) {
		t.Error("the bot is still in a guild that has an outage")
	}
	r.Outage(x.guild, false)
	r.Eventually("its end is known", func() bool { _, _, err := r.adapter.book.Viewers(x.guild, c, noHint); return err == nil })
	_ = r.stop()
}

func TestTapSeesFrames(t *testing.T) {
	t.Parallel()
	head := "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	text := func(s string) string { return "\x81" + string(rune(len(s))) + s }
	tests := map[string]struct {
		stream string
		want   error
	}{
		"op 7":          {head + text(`{"op":11}`) + text(`{"op":7,"d":null}`), errReconnect},
		"op 9":          {head + text(`{"op":9,"d":false}`), errInvalid},
		"op 9 true":     {head + text(`{"op":9,"d":true}`), errReconnect},
		"null":          {head + text(`null`), errGarbage},
		"close":         {head + "\x88\x02\x0f\xa4", closeError(4004)},
		"close of none": {head + "\x88\x00", closeError(1005)},
		"dispatch":      {head + text(`{"op":0,"t":"X","d":{"op":7}}`), nil},
		"long dispatch": {head + "\x81\x7e\x13\x88" + strings.Repeat("x", 5000) + text(`{"op":1}`), nil},
		"then an order": {head + "\x81\x7e\x13\x88" + strings.Repeat("x", 5000) + text(`{"op":7}`), errReconnect},
	}
	for name, tt := range tests {
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			a, b := net.Pipe()
			tap := newTap(a)
			go func() {
				for s := tt.stream; s != ""; {
					n := min(size, len(s))
					if _, err := b.Write([]byte(s[:n])); err != nil {
						break
					}
					s = s[n:]
				}
				b.Close()
			}()
			var err error
			p := make([]byte, 1<<16)
			for err == nil {
				_, err = tap.Read(p)
			}
			if tt.want != nil && !errors.Is(tap.why(), tt.want) || tt.want == nil && err.Error() != "EOF" {
				t.Errorf("%s in pieces of %d: %v", name, size, tap.why())
			}
		}
	}
}

func FuzzTap(f *testing.F) {
	f.Add([]byte("HTTP/1.1 101\r\n\r\n\x81\x09{\"op\":11}"), 3)
	f.Add([]byte("\r\n\r\n\x88\x02\x0f\xa4"), 1)
	f.Add([]byte("\r\n\r\n\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xffx"), 100)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		tap := newTap(nil)
		whole := newTap(nil)
		_, want := whole.feed(stream)
		var got error
		for s := stream; len(s) > 0 && got == nil; {
			n := min(max(size%64, 1), len(s))
			var keep int
			if keep, got = tap.feed(s[:n]); keep < 0 || keep > n {
				t.Fatalf("kept %d of %d", keep, n)
			}
			s = s[n:]
		}
		if got != want {
			t.Errorf("in pieces %v, whole %v", got, want)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	if err := r.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// A connection that was made while it was given up is not left open.
func TestGivenUpSessionLeavesNoConnection(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	g := &gateway{tap: newTap(near), readyOnce: true}
	g.drop()
	if _, err := far.Read(make([]byte, 1)); err == nil || g.tap.why() == nil || g.readyOnce {
		t.Errorf("still open: %v, %v", err, g.tap.why())
	}
}
