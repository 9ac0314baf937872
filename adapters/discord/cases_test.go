package discord

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
)

// D14: an answer with every kind of mention pings nobody and shows it as text.
func TestCase_D14(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{})
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
	clock := dt.NewManualClock(time.Now())
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
	x := newTown()
	r := newRig(t, x, setting{})
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
	x := newTown()
	r := newRig(t, x, setting{})
	for user, want := range map[string]bool{x.bob: true, x.cy: false} {
		m := r.Command(user, x.open, "ask", map[string]any{"question": "what about staff", "private": true}).WaitAnswer()
		if got := strings.Contains(m.Content, "docstaff"); got != want {
			t.Errorf("%s: %s", user, m.Content)
		}
	}
	r.SetRoles(x.guild, x.bob)
	if m := r.Command(x.bob, x.open, "ask", map[string]any{"question": "what about staff", "private": true}).WaitAnswer(); strings.Contains(m.Content, "docstaff") {
		t.Errorf("after the role was taken away: %s", m.Content)
	}
	r.clean()
}

// P18: the same question in two places; the public one offers a direct
// message without a word of what there is.
func TestCase_P18(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{})
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
	x := newTown()
	r := newRig(t, x, setting{})
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Calls: dt.First(2), Status: 429, RetryAfter: 0.1})
	start := time.Now()
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	if !strings.Contains(m.Content, "docall") || time.Since(start) < 200*time.Millisecond || len(r.Requests(dt.RouteEditResponse)) != 3 {
		t.Errorf("after %v and %d calls: %s", time.Since(start), len(r.Requests(dt.RouteEditResponse)), m.Content)
	}
	r.clean()
}

// L4, L5: planted words and secrets are in no log, in no error, at any level.
func TestCase_L4(t *testing.T) { t.Parallel(); canaries(t) }

// canaries makes everything fail that logs, with a planted word everywhere.
func canaries(t *testing.T) {
	x := newTown()
	r := newRig(t, x, setting{})
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
	x := newTown()
	r := newRig(t, x, setting{})
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
	x := newTown()
	r := newRig(t, x, setting{})
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
