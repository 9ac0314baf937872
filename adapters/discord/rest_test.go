package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	dt "footnote/adapters/discord/discordtest"
	"footnote/adapters/discord/render"
	"footnote/bot/outbox"
)

// stub answers every call and remembers it.
type stub struct {
	mu    sync.Mutex
	calls []*http.Request
	reply func(n int, r *http.Request) (status int, header http.Header, body string)
	delay time.Duration
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.calls = append(s.calls, r)
	n := len(s.calls)
	s.mu.Unlock()
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	status, header, body := 200, http.Header{}, `{}`
	if s.reply != nil {
		status, header, body = s.reply(n, r)
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header, Body: ioBody(body), Request: r}, nil
}

func stubbed(t *testing.T, s *stub, base string) *rest {
	t.Helper()
	w, err := newRewriter(base, s)
	if err != nil {
		t.Fatal(err)
	}
	return newREST("secret-token", w)
}

func edit(id string) call {
	return call{name: "answering", method: "PATCH", path: "webhooks/1/tok-" + id + "/messages/@original", lane: "response " + id, hook: true, body: render.Say("x")}
}

// LD-05: one slow edit does not hold up the others.
func TestLD05EditsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	t.Run("B-76 interactions share no limit", editsTogether)
}

func editsTogether(t *testing.T) {
	s := &stub{delay: 200 * time.Millisecond}
	r := stubbed(t, s, "")
	var wg sync.WaitGroup
	start := time.Now()
	for i := range 20 {
		wg.Go(func() {
			if err := r.do(context.Background(), edit(fmt.Sprint(i)), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > time.Second {
		t.Errorf("20 edits of 200 ms took %v", took)
	}
}

// LD-06: nothing is kept of interactions that are over.
func TestLD06NothingIsKeptOfInteractions(t *testing.T) {
	t.Parallel()
	r := stubbed(t, &stub{}, "")
	for i := range 3000 {
		if err := r.do(context.Background(), edit(fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("B-65 no bucket is left", func(t *testing.T) {
		kept := fmt.Sprintf("%+v %+v", r.session.Ratelimiter, r.holds)
		if strings.Contains(kept, "tok-") || len(r.holds) > 0 {
			t.Errorf("kept: %.300s", kept)
		}
	})
}

// LD-07: a limit is waited for, within the context.
func TestLD07Limits(t *testing.T) {
	t.Parallel()
	limit := func(times int, after string) func(int, *http.Request) (int, http.Header, string) {
		return func(n int, _ *http.Request) (int, http.Header, string) {
			if n <= times {
				return 429, nil, `{"message":"limited","retry_after":` + after + `}`
			}
			return 200, nil, `{"id":"1"}`
		}
	}
	r := stubbed(t, &stub{reply: limit(2, "0.05")}, "")
	start := time.Now()
	if err := r.do(context.Background(), edit("1"), nil); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Errorf("after two limits: %v in %v", err, time.Since(start))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	start = time.Now()
	s := &stub{reply: limit(1000, "5")}
	if err := stubbed(t, s, "").do(ctx, edit("1"), nil); !errors.Is(err, outbox.ErrLate) || time.Since(start) > time.Second || len(s.calls) != 1 {
		t.Errorf("a limit longer than the context: %v after %v and %d calls", err, time.Since(start), len(s.calls))
	}
	html := &stub{reply: func(n int, _ *http.Request) (int, http.Header, string) {
		if n == 1 {
			return 429, http.Header{"Retry-After": {"0.03"}}, "<html>blocked</html>"
		}
		return 200, nil, "{}"
	}}
	if err := stubbed(t, html, "").do(context.Background(), edit("1"), nil); err != nil || len(html.calls) != 2 {
		t.Errorf("a limit in HTML: %v after %d calls", err, len(html.calls))
	}
}

// D-67: what the headers say is heeded before a refusal.
func TestD67UsedUpRouteWaits(t *testing.T) {
	t.Parallel()
	s := &stub{reply: func(int, *http.Request) (int, http.Header, string) {
		return 200, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"0.08"}, "X-Ratelimit-Reset": {"garbage"}}, "{}"
	}}
	r := stubbed(t, s, "")
	start := time.Now()
	for range 2 {
		if err := r.do(context.Background(), edit("1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 80*time.Millisecond {
		t.Errorf("a used-up route was called again after %v", took)
	}
	var j rejections
	now := time.Now()
	for range maxRejections {
		j.add(now)
	}
	if j.wait(now) == 0 || j.wait(now.Add(11*time.Minute)) != 0 {
		t.Error("refused calls must slow everything down for ten minutes")
	}
}

// LD-15, D-49: what may have worked is repeated only where that does no harm.
func TestLD15Repetitions(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 502, 503, 504} {
		for again, want := range map[bool]int{false: 1, true: 2} {
			s := &stub{reply: func(n int, _ *http.Request) (int, http.Header, string) {
				if n == 1 {
					return status, nil, "oops"
				}
				return 200, nil, "{}"
			}}
			c := edit("1")
			c.again = again
			if err := stubbed(t, s, "").do(context.Background(), c, nil); len(s.calls) != want || (err == nil) != again {
				t.Errorf("%d, again %v: %d calls, %v", status, again, len(s.calls), err)
			}
		}
	}
}

// C-09: no error holds a token or an address.
func TestC09ErrorsHoldNoToken(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*stub{
		"refused": {reply: func(int, *http.Request) (int, http.Header, string) {
			return 400, nil, `{"code":50035,"message":"tok-9"}`
		}},
		"no JSON":  {reply: func(int, *http.Request) (int, http.Header, string) { return 404, nil, "<html>tok-9" }},
		"too slow": {delay: time.Second},
	} {
		c := edit("9")
		c.patience = 20 * time.Millisecond
		err := stubbed(t, s, "").do(context.Background(), c, nil)
		if err == nil || strings.Contains(err.Error(), "tok-") || strings.Contains(err.Error(), "http") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBaseAddresses(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                              "https://discord.com/api/v9/x",
		"http://127.0.0.1:1":            "http://127.0.0.1:1/api/v9/x",
		"http://127.0.0.1:1/":           "http://127.0.0.1:1/api/v9/x",
		"http://127.0.0.1:1/api":        "http://127.0.0.1:1/api/v9/x",
		"http://127.0.0.1:1/api/v10/":   "http://127.0.0.1:1/api/v10/x",
		"https://proxy.example/discord": "https://proxy.example/discord/api/v9/x",
	} {
		s := &stub{}
		if err := stubbed(t, s, base).do(context.Background(), call{name: "x", method: "GET", path: "x", lane: "x"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := s.calls[0].URL.String(); got != want {
			t.Errorf("%q: %s", base, got)
		}
		t.Run("D-68 the name of the client", func(t *testing.T) {
			if ua := s.calls[0].Header.Get("User-Agent"); !strings.HasPrefix(ua, "DiscordBot (") {
				t.Error(ua)
			}
		})
	}
	for _, bad := range []string{"discord.com", "ftp://x", "http://", "http://u:p@x", "http://x?y=1", ":"} {
		if _, err := newRewriter(bad, nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if discordgo.EndpointAPI != "https://discord.com/api/v9/" {
		t.Error("the library's own addresses were changed")
	}
}

// LD-10, D-31: the list of mentions is there and empty in every body.
func TestLD10MentionsAreExplicit(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.say["all"] = "Hello @everyone, @here, <@" + x.bob + "> and <@&" + x.staff + ">"
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	r.Click(x.cy, m, button(t, m, "s1")).WaitAnswer()
	for _, q := range r.Requests(dt.RouteCallback, dt.RouteEditResponse, dt.RouteFollowup, dt.RouteMessage) {
		var body struct {
			Type int `json:"type"`
			Data *struct {
				M json.RawMessage `json:"allowed_mentions"`
			} `json:"data"`
			M json.RawMessage `json:"allowed_mentions"`
		}
		if err := json.Unmarshal(q.Body, &body); err != nil {
			t.Fatal(err)
		}
		got := body.M
		if body.Data != nil {
			got = body.Data.M
		}
		if body.Type != respondDeferred && !strings.Contains(string(got), `"parse":[]`) {
			t.Errorf("%s: %s", q.Route, q.Body)
		}
	}
	t.Run("D-31 nobody is pinged", func(t *testing.T) {
		if p := r.Pings(); len(p) > 0 {
			t.Errorf("pinged: %v", p)
		}
	})
	t.Run("D-37 no message has components of the second kind", func(t *testing.T) {
		const second = 1 << 15
		for _, q := range r.Requests(dt.RouteCallback, dt.RouteEditResponse, dt.RouteFollowup, dt.RouteMessage) {
			var body struct {
				Flags int
				Data  struct{ Flags int }
			}
			if err := json.Unmarshal(q.Body, &body); err != nil || (body.Flags|body.Data.Flags)&second != 0 {
				t.Errorf("%s, %v", q.Body, err)
			}
		}
	})
	r.clean()
}

// D-36: what a filter refuses is sent once more without links.
func TestD36Filter(t *testing.T) {
	t.Parallel()
	for _, refusal := range []int{codeHarmfulLink, codeBlockedByAutoMod} {
		x := newTown()
		r := newRig(t, x, setting{config: func(c *Config) { c.Link = linkTo }})
		r.SetFilter(func(content string) int {
			if strings.Contains(content, "https://wiki.example/") {
				return refusal
			}
			return 0
		})
		r.SetRules(dt.Rules{Lost: true})
		m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
		if !strings.Contains(m.Content, "docall") || strings.Contains(m.Content, "https://") {
			t.Errorf("%d: %s", refusal, m.Content)
		}
		if n := len(r.Requests(dt.RouteEditResponse)); n != 2 {
			t.Errorf("%d: %d edits", refusal, n)
		}
		_ = r.stop()
	}
}
