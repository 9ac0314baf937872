package discord

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
	"footnote/bot/cite"
	"footnote/bot/clocktest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// D14: an answer with every kind of mention pings nobody and shows it as text.
func TestCase_D14(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for _, token := range []string{"@everyone", "@here", "<@" + x.bob + ">", "<@&" + x.staff + ">", "<#" + x.open + ">", "</ask:1>", "<t:1>", "<:a:1>", "<id:guide>"} {
		r.shelf.say["all"] = "Say " + token + " now"
		if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); strings.Contains(m.Content, token) && token[0] == '<' || len(r.Pings()) > 0 {
			t.Errorf("%s: %s, pings %v", token, m.Content, r.Pings())
		}
	}
	r.clean()
}

// D21: the token is dead after sixteen minutes; the answer still comes, in the
// thread where it was asked for.
func TestCase_D21(t *testing.T) {
	t.Parallel()
	x := newTown()
	clock := clocktest.NewManualClock(time.Now())
	r := newRig(t, x, setting{now: clock.Now, options: []dt.Option{dt.WithClock(clock)}})
	var once atomic.Bool
	r.shelf.wait = func(context.Context, bot.Message) {
		if !once.Swap(true) {
			clock.Advance(16 * time.Minute)
			r.adapter.book.Confirm()
		}
	}
	r.ask(x.bob, x.hidden, "what about staff")
	m := r.WaitMessage(x.hidden, func(m dt.Message) bool { return strings.Contains(m.Content, "docstaff") })
	s := r.Click(x.bob, m, button(t, m, "s1")).WaitAnswer()
	if !strings.Contains(string(s.Embeds), "the passage of docstaff") {
		t.Errorf("its sources: %+v", s)
	}
	r.idle()
}

// C2: what is shown are the numbers of the sources.
func TestCase_C2(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.say["all"] = "As [7] says"
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	if strings.Contains(m.Content, " [7]") || !strings.Contains(m.Content, `\[7\] says [1]`) {
		t.Errorf("answer %s", m.Content)
	}
	r.clean()
}

// P11: rights that cannot be looked up are no rights.
func TestCase_P11(t *testing.T) {
	t.Parallel()
	t.Run("C-04, P-04 every kind of failure gives nothing", func(t *testing.T) {
		for name, f := range map[string]dt.Fault{
			"refused": {Status: 403, Code: 50013}, "broken": {Status: 500}, "cut off": {ResetBefore: true}, "cut short": {Truncate: true}, "no JSON": {Malformed: true},
			"HTML": {Status: 502, HTML: true}, "a token that is dead": {Status: 401}, "not a member": {Status: 404, Code: 10007}, "limited": {Status: 429, RetryAfter: 0.01, Calls: dt.First(3)},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				x := newTown()
				r := newRig(t, x, setting{config: func(c *Config) { c.Recheck = time.Nanosecond }})
				f.Route = dt.RouteMember
				r.AddFault(f)
				allowed := map[bool]string{true: "limited"}[name == "limited"] // that one passes
				for _, channel := range []string{x.open, x.closed, r.DMChannel(x.bob)} {
					m := r.Command(x.bob, channel, "ask", map[string]any{"question": "what about all and staff", "private": channel != x.closed}).WaitAnswer()
					if got := strings.Contains(m.Content, "doc"); got && allowed == "" || m.Content == "" {
						t.Errorf("in %s: %s", channel, m.Content)
					}
				}
				r.idle()
			})
		}
	})
}

// P15: two members with different roles get different answers.
func TestCase_P15(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for user, want := range map[string]bool{x.bob: true, x.cy: false} {
		m := r.privately(user, x.open, "what about staff")
		if got := strings.Contains(m.Content, "docstaff"); got != want {
			t.Errorf("%s: %s", user, m.Content)
		}
	}
	r.SetRoles(x.guild, x.bob)
	if m := r.privately(x.bob, x.open, "what about staff"); strings.Contains(m.Content, "docstaff") {
		t.Errorf("after the role was taken away: %s", m.Content)
	}
	r.clean()
}

// P18: the same question in two places; the public one offers a direct
// message without a word of what there is.
func TestCase_P18(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	aloud := r.ask(x.bob, x.open, "what about staff").WaitAnswer()
	if strings.Contains(aloud.Content, "docstaff") || !strings.Contains(aloud.Content, "direct message") {
		t.Errorf("aloud: %s", aloud.Content)
	}
	if dm := r.ask(x.bob, r.DMChannel(x.bob), "what about staff").WaitAnswer(); !strings.Contains(dm.Content, "docstaff") {
		t.Errorf("in a direct message: %s", dm.Content)
	}
	r.clean()
}

// P20: a document makes no link, image or preview.
func TestCase_P20(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }})
	r.shelf.say["all"] = "![x](https://evil.test/?q=secret) and [y](https://evil.test) and https://evil.test/z and <https://evil.test>"
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	r.Mention(x.cy, x.open, "what about all")
	if m := r.WaitMessage(x.open, func(m dt.Message) bool { return m.ReplyTo != "" && strings.Contains(m.Content, "docall") }); m.Flags&dt.FlagSuppressEmbeds == 0 {
		t.Errorf("a message with previews: %+v", m)
	}
	if strings.Contains(m.Content, "https://") || strings.Contains(m.Content, "](h") || m.Flags&dt.FlagSuppressEmbeds == 0 {
		t.Errorf("answer %s", m.Content)
	}
	r.clean()
}

// L3: the platform's limits are waited for.
func TestCase_L3(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Calls: dt.First(2), Status: 429, RetryAfter: 0.1})
	start := time.Now()
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	if !strings.Contains(m.Content, "docall") || time.Since(start) < 200*time.Millisecond || len(r.Requests(dt.RouteEditResponse)) != 3 {
		t.Errorf("after %v and %d calls: %s", time.Since(start), len(r.Requests(dt.RouteEditResponse)), m.Content)
	}
	r.clean()
}

// L4, L5: planted words and secrets are in no log, in no error, at any level.
func TestCase_L4(t *testing.T) {
	t.Parallel()
	t.Run("L5 what is taken out of one place is in no other", canaries)
}

// canaries makes everything fail that logs, with a planted word everywhere.
func canaries(t *testing.T) {
	x, r := inTown(t)
	const canary = "canaryword"
	for _, f := range []dt.Fault{
		{Route: dt.RouteEditResponse, Status: 500, Calls: dt.First(8)},
		{Route: dt.RouteCallback, ResetAfter: true, Calls: dt.Nth(1)},
		{Route: dt.RouteFollowup, Status: 403, Code: 50001},
	} {
		r.AddFault(f)
	}
	r.SetRules(dt.Rules{Lost: true})
	r.shelf.say["all"] = canary + "\n" + long(60)
	var tokens []string
	for _, q := range []string{"what about all", "panic"} {
		i := r.Command(x.cy, x.open, "ask", map[string]any{"question": canary + " " + q, "private": true})
		tokens = append(tokens, i.Token)
		i.Wait()
	}
	r.SendRaw(`{"op":0,"t":"INTERACTION_CREATE","s":9,"d":{"token":"` + canary + `"}}`)
	r.idle()
	_ = r.stop()
	log := r.logs.String()
	if log == "" {
		t.Error("nothing was logged, so nothing was tested")
	}
	for _, secret := range append(tokens, canary, r.App().Token) {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log:\n%s", secret, log)
		}
	}
}

// LD-11: a permission that is missing is unknown, not granted and not needed.
func TestLD11AbsentPermissionsAreUnknown(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.say["all"] = long(40)
	i := r.ask(x.cy, x.open, "what about all", dt.Delivery{Without: []string{"app_permissions"}})
	i.WaitAnswer()
	r.idle()
	if n := len(r.Requests(dt.RouteMessageThread)); n != 0 || len(r.Responses(i.ID)) < 2 {
		t.Errorf("%d threads, %d parts", n, len(r.Responses(i.ID)))
	}
	r.clean()
}

// LD-12: order of events is kept, and a handler's panic is not the process's.
func TestLD12EventsInOrder(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for n := range 50 {
		allow := dt.Overwrite{ID: x.guild, Allow: dt.ViewChannel}
		if n%2 == 0 {
			allow = dt.Overwrite{ID: x.guild, Deny: dt.ViewChannel}
		}
		r.SetOverwrite(x.open, allow)
	}
	marker := r.CreateChannel(dt.Channel{GuildID: x.guild, Name: "marker", Type: dt.Text})
	r.Eventually("the last event arrived", func() bool {
		_, _, err := r.adapter.book.Channel(x.guild, marker, noHint)
		return err == nil
	})
	if v, _, err := r.adapter.book.Viewers(x.guild, x.open, noHint); err != nil || !v.Everyone {
		t.Errorf("after fifty changes: %+v, %v", v, err)
	}
	_ = r.stop()
}

// LD-16: what the library cannot send is sent: flags of an edit, the nonce.
func TestLD16RawRequests(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }})
	r.Mention(x.cy, x.open, "what about all")
	r.WaitMessage(x.open, func(m dt.Message) bool { return strings.Contains(m.Content, "docall") })
	r.serves("an edit")
	r.idle()
	edit, post := r.Requests(dt.RouteEditResponse), r.Requests(dt.RouteMessage)
	if got := string(edit[0].Field("flags")); got != fmt.Sprint(dt.FlagSuppressEmbeds) {
		t.Errorf("flags of an edit: %s", got)
	}
	if string(post[0].Field("enforce_nonce")) != "true" || len(post[0].Field("nonce")) > 27 {
		t.Errorf("nonce %s, %s", post[0].Field("nonce"), post[0].Field("enforce_nonce"))
	}
	r.clean()
}

// LD-18: the library and its socket are of the versions that were looked at.
func TestLD18Versions(t *testing.T) {
	t.Parallel()
	wantVersions(t, map[string]string{"github.com/bwmarrin/discordgo": "v0.29.0", "github.com/gorilla/websocket": "v1.5.3"})
}

// D5: two questions in one thread are two, whatever came before.
func TestCase_D5(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }, desk: func(o *desk.Options) { o.PerAsker = 4 }})
	one, two := r.Mention(x.cy, x.thread, "what about all"), r.Mention(x.cy, x.thread, "what about all")
	three, four := r.ask(x.cy, x.thread, "what about all"), r.ask(x.cy, x.thread, "what about all")
	for _, q := range []dt.Message{one, two} {
		r.WaitMessage(x.thread, func(m dt.Message) bool { return m.ReplyTo == q.ID })
	}
	for _, i := range []*dt.Interaction{three, four} {
		if m := i.WaitAnswer(); !strings.Contains(m.Content, "docall") {
			t.Errorf("answer %s", m.Content)
		}
	}
	r.clean()
	if r.shelf.asked != 4 {
		t.Errorf("4 questions were worked on %d times", r.shelf.asked)
	}
}

// D6, D7, D15: what is no question gets no answer.
func TestCase_D6(t *testing.T) {
	t.Parallel()
	x := newTown()
	robot := x.world.AddUser(dt.User{Name: "robot", Bot: true})
	x.world.AddMember(x.guild, robot)
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }})
	t.Run("D6 edits of a question", func(t *testing.T) {
		q := r.Mention(x.cy, x.open, "what about all")
		r.WaitMessage(x.open, func(m dt.Message) bool { return m.ReplyTo == q.ID })
		for range 10 {
			r.Edit(q, q.Content)
		}
		r.Edit(q, q.Content+" and staff")
	})
	t.Run("D7 what another bot writes and edits", func(t *testing.T) {
		q := r.Mention(robot, x.open, "what about all")
		r.Edit(q, q.Content)
	})
	t.Run("D15 a message without a mention", func(t *testing.T) { r.Say(x.cy, x.open, "what about all") })
	r.serves("and a question in between")
	r.clean()
	if r.shelf.asked != 2 {
		t.Errorf("2 questions were worked on %d times", r.shelf.asked)
	}
}

// D15: without mentions switched on, not even a mention is read.
func TestCase_D15(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for _, c := range []string{x.open, x.closed, x.thread} {
		r.Mention(x.bob, c, "what about all")
		r.Say(x.bob, c, "what about all")
	}
	r.serves("a command")
	r.clean()
	if n := len(r.Requests(dt.RouteMessage)); n != 0 || r.shelf.asked != 1 {
		t.Errorf("%d messages, %d questions", n, r.shelf.asked)
	}
}

// D9: a question in a thread has one answer, there.
func TestCase_D9(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }})
	q := r.Mention(x.cy, x.thread, "what about all")
	r.WaitMessage(x.thread, func(m dt.Message) bool { return m.ReplyTo == q.ID })
	r.shelf.say["all"] = long(40)
	r.ask(x.cy, x.thread, "what about all").WaitAnswer()
	r.idle()
	if elsewhere := r.FromBot(x.open); len(elsewhere) != 0 {
		t.Errorf("outside of the thread: %+v", elsewhere)
	}
	answers := 0
	for _, m := range r.FromBot(x.thread) {
		if dt.HasButtons(m) {
			answers++
		}
	}
	if answers != 2 {
		t.Errorf("%d answers to two questions", answers)
	}
	r.clean()
}

// D10: what is replayed half an hour later, after a restart, is not answered
// again.
func TestCase_D10(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Mentions = true }})
	i := r.ask(x.cy, x.open, "what about all")
	i.WaitAnswer()
	q := r.Mention(x.cy, x.thread, "what about all")
	r.WaitMessage(x.thread, func(m dt.Message) bool { return m.ReplyTo == q.ID })
	r.idle()
	_ = r.stop()
	before := len(r.Requests(dt.RouteCallback, dt.RouteMessage, dt.RouteEditResponse))
	later := newRig(t, x, setting{server: r.Server, ledger: r.ledger, shelf: r.shelf, config: func(c *Config) { c.Mentions = true }, now: func() time.Time { return time.Now().Add(30 * time.Minute) }})
	later.SendEvent("INTERACTION_CREATE", i.Payload())
	later.SendEvent("MESSAGE_CREATE", map[string]any{
		"id": q.ID, "channel_id": q.Channel, "guild_id": x.guild, "type": 0, "content": q.Content, "author": map[string]any{"id": x.cy},
		"member": map[string]any{"roles": []string{}}, "mentions": []any{map[string]any{"id": r.App().BotUser}},
	})
	later.Eventually("the interaction is known", func() bool { return later.adapter.Health().Copies == 1 })
	later.Eventually("the message is known", func() bool {
		d, err := r.ledger.Delivery(context.Background(), "discord|"+q.Channel+"|"+q.ID)
		return err == nil && d.Copies == 1
	})
	if n := len(r.Requests(dt.RouteCallback, dt.RouteMessage, dt.RouteEditResponse)) - before; n != 0 || r.shelf.asked != 2 {
		t.Errorf("%d more calls; 2 questions were worked on %d times", n, r.shelf.asked)
	}
	later.clean()
}

// D11: whatever happens to the connection, there is a next one.
func TestCase_D11(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.pace.open = 150 * time.Millisecond }})
	r.SetHandshakes(dt.Handshake{Drop: true}, dt.Handshake{Drop: true}, dt.Handshake{Close: 4000}, dt.Handshake{Drop: true}, dt.Handshake{NoHello: true}, dt.Handshake{Silent: true})
	before := r.adapter.Health().Reconnects
	r.DropSockets()
	r.Eventually("it got through", func() bool {
		h := r.adapter.Health()
		return h.Reconnects >= before+7 && !h.Connected.IsZero() && r.Sessions() == 1
	})
	r.serves("after six attempts")
	r.clean()
}

// D18: who is not answered is told why, alone.
func TestCase_D18(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Channels = map[string]string{x.open: Off} }})
	if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); m.EphemeralTo != x.cy || m.Content != sayOff {
		t.Errorf("told %+v", m)
	}
	if m := r.privately(x.cy, x.news, "what about staff"); m.EphemeralTo != x.cy || !strings.Contains(m.Content, "cannot answer") {
		t.Errorf("told %+v", m)
	}
	r.clean()
}

// D19: without a key nothing starts; unsigned, old and forged calls are
// refused.
func TestCase_D19(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"none": "", "blank": "   ", "short": "abcd", "no hexadecimal": strings.Repeat("z", 64)} {
		_, err := New(Config{Mode: HTTP, Token: "x", PublicKey: key}, Deps{})
		if err == nil || !strings.Contains(err.Error(), "FOOTNOTE_DISCORD_PUBLIC_KEY") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, _ := newHTTPRig(t)
	nobody := make(ed25519.PrivateKey, ed25519.PrivateKeySize)
	for name, p := range map[string]dt.Post{
		"unsigned":       {Change: dt.NoSignature},
		"old":            {At: time.Now().Add(-6 * time.Minute)},
		"an empty key":   {Key: nobody},
		"all zeros":      {Change: dt.BadSignature},
		"another time":   {Change: func(h http.Header) { h.Set("X-Signature-Timestamp", fmt.Sprint(time.Now().Unix()+1)) }},
		"no time at all": {Change: func(h http.Header) { h.Del("X-Signature-Timestamp") }},
	} {
		p.Body = r.PingBody()
		if a, err := r.Send(context.Background(), p); err != nil || a.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d, %v", name, a.Status, err)
		}
	}
	r.clean()
}

// F2: a message is within the limits as a whole, not only each of its parts.
func TestCase_F2(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for _, text := range []string{long(5), strings.Repeat("*_~`|>#", 400), strings.Repeat("🙂", 3000), strings.Repeat("x", 2900) + "\n" + strings.Repeat("y", 2900)} {
		r.shelf.say["all"] = text
		r.privately(x.cy, x.open, "what about all")
		m := r.latest(x.cy)
		r.Click(x.cy, m, button(t, m, "s1")).WaitAnswer()
	}
	r.clean() // the fake refuses what is over a limit
	for _, c := range r.Requests() {
		if c.Code == codeInvalidBody {
			t.Errorf("%s was refused: %.200s", c.Route, c.Body)
		}
	}
}

// latest is the last part of the latest answer that the person alone saw.
func (r *rig) latest(user string) dt.Message {
	r.t.Helper()
	r.idle()
	all := r.Ephemerals(user)
	for i := len(all) - 1; i >= 0; i-- {
		if dt.HasButtons(all[i]) {
			return all[i]
		}
	}
	r.t.Fatal("no answer has buttons")
	return dt.Message{}
}

// F7: edits that are refused for their rate still end with the whole text.
func TestCase_F7(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Calls: dt.First(4), Status: 429, RetryAfter: 0.02})
	r.AddFault(dt.Fault{Route: dt.RouteFollowup, Calls: dt.First(2), Status: 429, RetryAfter: 0.02})
	r.shelf.say["all"] = long(40)
	i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all", "private": true})
	i.WaitAnswer()
	r.idle()
	parts := r.Responses(i.ID)
	said := ""
	for _, p := range parts {
		said += p.Content
	}
	if n := strings.Count(said, "it is not short at all"); n != 40 || !strings.Contains(said, "Sources") {
		t.Errorf("%d of 40 sentences in %d parts", n, len(parts))
	}
	r.clean()
}

// F9: one link that Discord refuses takes no source away.
func TestCase_F9(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) {
		c.Link = func(s cite.Source) string {
			return map[string]string{"all": "https://wiki.example/all", "staff": "javascript:alert(1)", "bob": "https://wiki.example/bob)>"}[string(s.Document)]
		}
	}})
	t.Run("a link that is none", func(t *testing.T) {
		m := r.privately(x.bob, x.open, "what about all, staff and bob")
		for _, want := range []string{"docall", "docstaff", "docbob", "](<https://wiki.example/all>)"} {
			if !strings.Contains(m.Content, want) {
				t.Errorf("%q is not in %s", want, m.Content)
			}
		}
		if strings.Contains(m.Content, "javascript") || strings.Contains(m.Content, "example/bob") {
			t.Errorf("a bad link: %s", m.Content)
		}
	})
	t.Run("a link that a filter refuses", func(t *testing.T) {
		r.SetFilter(func(content string) int {
			if strings.Contains(content, "https://") {
				return codeHarmfulLink
			}
			return 0
		})
		m := r.privately(x.bob, x.open, "what about all, staff and bob")
		for n := range 3 {
			if !strings.Contains(m.Content, fmt.Sprintf("[%d] doc", n+1)) {
				t.Errorf("source %d is not in %s", n+1, m.Content)
			}
			button(t, m, fmt.Sprintf("s%d", n+1))
		}
	})
	r.clean()
}

// P12: a right that was taken away is gone at once for questions and within the
// age of a look-up for what is open.
func TestCase_P12(t *testing.T) {
	t.Parallel()
	x := newTown()
	var ahead atomic.Int64
	r := newRig(t, x, setting{now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	dm := r.ask(x.bob, r.DMChannel(x.bob), "what about staff").WaitAnswer()
	here := r.privately(x.bob, x.open, "what about staff")
	r.SetRoles(x.guild, x.bob)
	if m := r.privately(x.bob, x.open, "what about staff"); strings.Contains(m.Content, "docstaff") {
		t.Errorf("asked at once: %s", m.Content)
	}
	if s := r.Click(x.bob, here, button(t, here, "s1")).WaitAnswer(); s.Content != sayNoSource {
		t.Errorf("pressed at once: %+v", s)
	}
	ahead.Store(int64(time.Minute))
	if s := r.Click(x.bob, dm, button(t, dm, "s1")).WaitAnswer(); s.Content != sayNoSource {
		t.Errorf("pressed in a direct message a minute later: %+v", s)
	}
	if m := r.ask(x.bob, r.DMChannel(x.bob), "what about staff").WaitAnswer(); strings.Contains(m.Content, "docstaff") {
		t.Errorf("asked in a direct message a minute later: %s", m.Content)
	}
	r.idle()
}

// C16: who was shown a source can open it, and who can open it would be shown
// it.
func TestCase_C16(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	all := r.privately(x.bob, x.open, "what about all, staff and bob")
	for _, user := range []string{x.ada, x.bob, x.cy} {
		for _, doc := range []string{"all", "staff", "bob"} {
			found := strings.Contains(r.privately(user, x.open, "what about "+doc).Content, "doc"+doc)
			who := r.adapter.dir.identity(x.guild, user, map[string][]string{x.bob: {x.staff}}[user], true)
			_, err := r.shelf.open(t.Context(), who, acl.AskerOnly(), source(doc))
			if opened := err == nil; opened != found {
				t.Errorf("%s and %s: found %v, opened %v", user, doc, found, opened)
			}
		}
	}
	for n := range 3 {
		if s := r.Click(x.bob, all, button(t, all, fmt.Sprintf("s%d", n+1))).WaitAnswer(); !strings.Contains(string(s.Embeds), "the passage of doc") {
			t.Errorf("source %d: %+v", n+1, s)
		}
	}
	r.clean()
}

func source(doc string) (s ledger.Source) {
	var c cite.Source
	setDocument(&c, doc)
	s.Document, s.Revision = c.Document, c.Revision
	return s
}

// C17, C8: the numbers of an answer stay with it over a restart, and a document
// that is gone is not available, whatever the reason.
func TestCase_C17(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	m := r.privately(x.bob, x.open, "what about staff")
	r.idle()
	_ = r.stop()
	next := newRig(t, x, setting{server: r.Server, ledger: r.ledger, shelf: r.shelf})
	t.Run("C8 after a restart", func(t *testing.T) {
		if s := next.Click(x.bob, m, button(t, m, "s1")).WaitAnswer(); !strings.Contains(string(s.Embeds), "the passage of docstaff") {
			t.Errorf("%+v", s)
		}
	})
	r.shelf.mu.Lock()
	delete(r.shelf.lists, "staff")
	r.shelf.mu.Unlock()
	if s := next.Click(x.bob, m, button(t, m, "s1")).WaitAnswer(); s.Content != sayNoSource {
		t.Errorf("after it was deleted: %+v", s)
	}
	next.clean()
}

// P8: half a configuration does not start.
func TestCase_P8(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"no token":         {},
		"another mode":     {Token: "x", Mode: "both"},
		"a server's name":  {Token: "x", Guilds: []string{"town"}},
		"a channel's mode": {Token: "x", Channels: map[string]string{"1": "public"}},
		"mentions by HTTP": {Token: "x", Mode: HTTP, PublicKey: strings.Repeat("0", 64), Mentions: true},
	} {
		if _, err := New(c, Deps{}); err == nil || strings.Contains(err.Error(), "needs a bot") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
