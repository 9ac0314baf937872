package discord

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
)

func newHTTPRig(t *testing.T) (*rig, *httptest.Server) {
	t.Helper()
	x := newTown()
	s := dt.New(t, x.world, dt.WithRules(dt.Rules{Explicit: true, CanRead: x.canRead}))
	r := newRig(t, x, setting{server: s, config: func(c *Config) { c.Mode, c.PublicKey = HTTP, s.PublicKey() }})
	mux := http.NewServeMux()
	for path, h := range r.adapter.Handlers() {
		mux.Handle(path, h)
	}
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	if err := s.SetEndpoint(context.Background(), web.URL+"/discord/interactions"); err != nil {
		t.Fatal(err)
	}
	return r, web
}

// D-10, D-12, D-13: the same answers without a gateway.
func TestD10HTTPGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	r, _ := newHTTPRig(t)
	x := r.town
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	if m.EphemeralTo != "" || !strings.Contains(m.Content, "docall") {
		t.Errorf("aloud: %+v", m)
	}
	t.Run("D-13 the call is answered with 202 and an empty body", func(t *testing.T) {
		i := r.ask(x.cy, x.open, "what about all")
		i.WaitAnswer()
		if n := len(r.Requests(dt.RouteCallback)); n != 2 {
			t.Errorf("%d first responses for two questions", n)
		}
		a, err := r.Send(context.Background(), dt.Post{Body: i.Payload()})
		if err != nil || a.Status != http.StatusAccepted || len(a.Body) != 0 {
			t.Errorf("%d %q, %v", a.Status, a.Body, err)
		}
	})
	if m := r.ask(x.bob, x.closed, "what about staff").WaitAnswer(); m.EphemeralTo != "" || !strings.Contains(m.Content, "docstaff") {
		t.Errorf("in the staff channel: %+v", m)
	}
	if s := r.Click(x.bob, m, button(t, m, "s1")).WaitAnswer(); s.EphemeralTo != x.bob {
		t.Errorf("a source: %+v", s)
	}
	r.clean()
}

func TestD12SignaturesAndReplays(t *testing.T) {
	t.Parallel()
	r, web := newHTTPRig(t)
	ctx := context.Background()
	send := func(p dt.Post) int {
		t.Helper()
		a, err := r.Send(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	_, forged, _ := ed25519.GenerateKey(nil)
	ping := r.PingBody()
	for name, tt := range map[string]struct {
		post dt.Post
		want int
	}{
		"good":               {dt.Post{Body: ping}, 200},
		"forged":             {dt.Post{Body: ping, Key: forged}, 401},
		"spoilt":             {dt.Post{Body: ping, Change: dt.BadSignature}, 401},
		"without headers":    {dt.Post{Body: ping, Change: dt.NoSignature}, 401},
		"too old":            {dt.Post{Body: ping, At: time.Now().Add(-6 * time.Minute)}, 401},
		"from the future":    {dt.Post{Body: ping, At: time.Now().Add(6 * time.Minute)}, 401},
		"a time of no sense": {dt.Post{Body: ping, Change: func(h http.Header) { h.Set("X-Signature-Timestamp", "99999999999999999999") }}, 401},
		"a short signature":  {dt.Post{Body: ping, Change: func(h http.Header) { h.Set("X-Signature-Ed25519", "abcd") }}, 401},
		"no interaction":     {dt.Post{Body: []byte(`[]`)}, 400},
		"too large":          {dt.Post{Body: append(append([]byte(`{"id":"`), make([]byte, maxBody)...), '"')}, 413},
	} {
		if got := send(tt.post); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	i := r.ask(r.town.cy, r.town.open, "what about all")
	i.WaitAnswer()
	before := len(r.Requests(dt.RouteCallback))
	if got := send(dt.Post{Body: i.Payload()}); got != 202 || len(r.Requests(dt.RouteCallback)) != before {
		t.Errorf("a replay: %d, and %d more responses", got, len(r.Requests(dt.RouteCallback))-before)
	}
	if resp, err := http.Get(web.URL + "/discord/interactions"); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", resp, err)
	}
	r.clean()
}

func TestReplaysAreForgotten(t *testing.T) {
	t.Parallel()
	var r replays
	now := time.Now()
	if !r.first("1", now) || r.first("1", now.Add(window)) || !r.first("1", now.Add(3*window)) {
		t.Error("an id must be new once in a window")
	}
}

func FuzzReadInteraction(f *testing.F) {
	f.Add([]byte(`{"id":"1","token":"t","type":2,"guild_id":"2","channel_id":"3","member":{"user":{"id":"4"},"roles":["5"]},"data":{"name":"ask","options":[{"name":"question","value":"x"}]}}`))
	f.Add([]byte(`{"id":"1","token":"t","type":2,"data":{"options":"x"},"context":null,"user":{"id":"1"}}`))
	f.Add([]byte(`{"id":1,"token":[],"member":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, ok := readInteraction(raw)
		if ok && in.Type != typePing && (!isID(in.ID) || in.Token == "") {
			t.Errorf("%q was taken", raw)
		}
		_, _, _, _ = in.account(), in.inGuild(), in.direct(), in.userInstalled()
		_, _ = text(in.data.Options, "question"), flag(in.data.Options, "private")
		if in.inGuild() && in.direct() {
			t.Error("nowhere is both")
		}
	})
}
