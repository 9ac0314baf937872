package discordtest

import (
	"encoding/json"
	"slices"
	"testing"
)

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"content":null}`, `{"content":"@everyone","allowed_mentions":{"parse":[]}}`,
		`{"embeds":[{"fields":[{"name":1}]}],"components":[{"type":1,"components":[{"type":2}]}]}`,
		`{"flags":32768,"components":[{"type":17,"components":[{"type":10,"content":"<@1>"}]}]}`, `{"nonce":12345678901234567890}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, bad := parsePayload(body, "data.", messageFlags)
		if bad != nil {
			if bad.code() != 50035 || !json.Valid(raw(bad.body)) {
				t.Fatalf("refused with %+v, want a form error", bad)
			}
			return
		}
		if p.Content != nil && length(*p.Content) > 2000 {
			t.Fatal("an over-long content passed")
		}
		var m Message
		p.fill(&m)
		got := pings(m.Content+displays(m.Components), p.rules, p.explicit, "")
		if p.explicit && len(p.rules.Users)+len(p.rules.Roles) == 0 && p.rules.Parse != nil && len(*p.rules.Parse) == 0 && len(got) > 0 {
			t.Fatalf("an empty list pings %v", got)
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{
		`{"name":"ask","description":"x"}`, `{"name":"a","type":3,"options":null}`, `{"options":[{"type":1,"options":[{"type":1}]}]}`, `5`, `{"type":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := newForm()
		c := parseCommand(body, "0", e)
		if e.n > 0 {
			if !json.Valid(raw(e.result().body)) {
				t.Fatal("the errors are no JSON")
			}
			return
		}
		if c.kind() < 1 || c.kind() > 3 || c.name() == "" {
			t.Fatalf("accepted %s as %v", body, c.object)
		}
		again := newForm()
		twin := parseCommand(raw(c.shown(true)), "0", again)
		if again.n > 0 || string(raw(twin.object)) != string(raw(c.object)) {
			t.Fatalf("what the server gives back is not what it takes: %v, %v", again.errors, twin.object)
		}
	})
}

// FuzzFrame feeds the gateway whatever a client may write.
func FuzzFrame(f *testing.F) {
	w := NewWorld()
	guild := w.AddGuild(Guild{Name: "g"})
	for _, seed := range []string{
		`{"op":1,"d":null}`, `{"op":2,"d":{"token":"token.of.the-fake","intents":1}}`, `{"op":6,"d":{"seq":-1}}`, `{}`, `[`, `{"op":2,"d":{"shard":[0,0]}}`,
	} {
		f.Add([]byte(seed))
	}
	s := New(nil, w)
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, data []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		k := &socket{more: make(chan struct{}, 1)}
		s.received(k, data)
		if k.sess != nil && (k.sess.sock != k || !slices.Contains(s.sessions, k.sess)) {
			t.Fatal("a session that nobody knows")
		}
		s.sessions, s.frames, s.identifies = nil, nil, nil
		if s.world.guilds[guild].member(w.App.BotUser) == nil {
			t.Fatal("a frame changed the world")
		}
	})
}
