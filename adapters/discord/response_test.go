package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
)

// D-20: the deferral does not wait for the answer.
func TestD20DeferredWhileWorkTakesLong(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	hold := make(chan struct{})
	r.shelf.wait = func(context.Context, bot.Message) { <-hold }
	i := r.ask(x.cy, x.open, "what about all")
	if kind := i.Wait(); kind != respondDeferred {
		t.Errorf("first response %d", kind)
	}
	if m, ok := i.Response(); !ok || !m.Thinking {
		t.Errorf("not thinking: %+v", m)
	}
	close(hold)
	i.WaitAnswer()
	r.clean()
}

// D-22: the deferred response is resolved before anything follows it.
func TestD22EditBeforeFollowUps(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.say["all"] = long(40)
	i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all", "private": true})
	i.WaitAnswer()
	r.idle()
	var order []string
	for _, c := range r.Requests(dt.RouteCallback, dt.RouteEditResponse, dt.RouteFollowup) {
		order = append(order, c.Route)
	}
	if len(order) < 3 || order[0] != dt.RouteCallback || order[1] != dt.RouteEditResponse {
		t.Errorf("calls %v", order)
	}
	for _, route := range order[2:] {
		if route != dt.RouteFollowup {
			t.Errorf("then %s", route)
		}
	}
	r.clean()
}

// C-06: what may have been posted is not posted again.
func TestC06NoPartTwice(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]dt.Fault{
		"a part that came and was not confirmed":                  {Route: dt.RouteFollowup, Calls: dt.Nth(1), ResetAfter: true},
		"the last part that came and was not confirmed":           {Route: dt.RouteFollowup, Calls: dt.Nth(2), ResetAfter: true},
		"an edit that came and was not confirmed":                 {Route: dt.RouteEditResponse, Calls: dt.First(3), ResetAfter: true},
		"an edit that was confirmed by garbage":                   {Route: dt.RouteEditResponse, Calls: dt.First(3), Malformed: true},
		"a first response that came and was not confirmed":        {Route: dt.RouteCallback, Calls: dt.First(1), ResetAfter: true},
		"a message in the thread that came and was not confirmed": {Route: dt.RouteMessage, Calls: dt.First(2), ResetAfter: true},
		"a thread that was opened and not confirmed":              {Route: dt.RouteMessageThread, ResetAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, r := inTown(t)
			r.AddFault(f)
			var lines []string
			for n := range 60 {
				lines = append(lines, fmt.Sprintf("Sentence %d is about what everybody here may read, and it is not short.", n))
			}
			r.shelf.say["all"] = strings.Join(lines, "\n")
			private := f.Route == dt.RouteFollowup
			i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all", "private": private})
			i.WaitAnswer()
			r.idle()
			m, _ := i.Response()
			all := r.Responses(i.ID)
			if m.Thread != "" {
				all = append(all, r.FromBot(m.Thread)...)
			}
			seen := map[string]bool{}
			sources := 0
			for _, m := range all {
				if seen[m.Content] {
					t.Errorf("twice: %.80s", m.Content)
				}
				seen[m.Content] = true
				if strings.Contains(m.Content, "Sources") {
					sources++
				}
			}
			if sources != 1 {
				t.Errorf("the sources are shown %d times in %d messages", sources, len(all))
			}
			if unsure := strings.Contains(m.Content, "did not confirm"); unsure != private {
				t.Errorf("the person is told that the rest may be missing: %v", unsure)
			}
			r.clean()
		})
	}
}

// C-10: health says what an operator must know.
func TestC10Health(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	before := r.adapter.Health()
	if before.Connected.IsZero() || before.LastInbound.IsZero() || before.Fatal != "" || before.First != 0 || before.Copies != 0 {
		t.Errorf("after the start: %+v", before)
	}
	r.AddFault(dt.Fault{Route: dt.RouteEditResponse, Calls: dt.First(1), Status: 429, RetryAfter: 0.01})
	i := r.ask(x.cy, x.open, "what about all")
	i.WaitAnswer()
	r.idle()
	again := append(json.RawMessage{}, i.Payload()...)
	r.SendEvent("INTERACTION_CREATE", again)
	r.Eventually("the copy is counted", func() bool { return r.adapter.Health().Copies == 1 })
	if h := r.adapter.Health(); h.First == 0 || h.Limited != 1 || h.Identifies != 1 || h.LastInbound.Before(before.LastInbound) {
		t.Errorf("after a question: %+v", h)
	}
	if d := r.desk.Health(); d.Waiting != 0 || d.Running != 0 {
		t.Errorf("the queue: %+v", d)
	}
	r.CloseSockets(4004)
	r.Eventually("the end is told", func() bool { h := r.adapter.Health(); return h.Fatal != "" && h.Connected.IsZero() })
}

func TestC10FirstResponses(t *testing.T) {
	t.Parallel()
	a := &Adapter{}
	for n := range 1000 {
		a.timed(time.Duration(n) * time.Millisecond)
	}
	// Of the latest 256, 744 to 999, three are longer.
	if got := a.slowest(); got != 997*time.Millisecond {
		t.Errorf("99 in 100 took %v", got)
	}
}

// C-01: what comes through the gateway and by HTTP is one question.
func TestC01OneQuestionByBothWays(t *testing.T) {
	t.Parallel()
	asked := func(r *rig) bot.Message {
		x := r.town
		r.ask(x.bob, x.closed, "what about staff").WaitAnswer()
		r.idle()
		r.shelf.mu.Lock()
		defer r.shelf.mu.Unlock()
		return r.shelf.trail[0]
	}
	web, _ := newHTTPRig(t)
	one, two := asked(newRig(t, newTown(), setting{})), asked(web)
	if one.Text != two.Text || one.Audience.Private() || two.Audience.Private() || fmt.Sprint(one.Asker.Principals()) != fmt.Sprint(two.Asker.Principals()) ||
		acl.NewGrant(one.Asker, one.Audience).Digest() != acl.NewGrant(two.Asker, two.Audience).Digest() {
		t.Errorf("by the gateway %+v, by HTTP %+v", one, two)
	}
}

// C-02: ids are compared as they stand, also where a float would not tell them
// apart.
func TestC02IDsAreStrings(t *testing.T) {
	t.Parallel()
	in, ok := readInteraction([]byte(`{"id":"9007199254740993","token":"t","type":2,"guild_id":"9007199254740993","channel_id":"9007199254740995","member":{"user":{"id":"9007199254740997"},"roles":["9007199254740999"]}}`))
	if !ok || in.ID != "9007199254740993" || in.Guild != in.ID || in.ChannelID != "9007199254740995" || in.account() != "9007199254740997" || in.Member.Roles[0] != "9007199254740999" {
		t.Errorf("%+v, %v", in, ok)
	}
	if in, ok := readInteraction([]byte(`{"id":9007199254740993,"token":"t","type":2}`)); ok {
		t.Errorf("a number was taken as %q", in.ID)
	}
	for _, bad := range []string{"", "1.5", "9e3", "-1", "１２", "1/2", strings.Repeat("1", 33)} {
		if isID(bad) {
			t.Errorf("%q was taken", bad)
		}
	}
}

// D-52: roles are known by their ids alone.
func TestD52RolesByID(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	ask := func() string {
		return r.privately(x.bob, x.open, "what about staff").Content
	}
	namesake := r.CreateRole(x.guild, dt.Role{Name: "staff"})
	r.SetRoles(x.guild, x.cy, namesake)
	if m := r.privately(x.cy, x.open, "what about staff"); strings.Contains(m.Content, "docstaff") {
		t.Errorf("a role of the same name: %s", m.Content)
	}
	r.ChangeRole(x.guild, x.staff, func(role *dt.Role) { role.Name = "people" })
	if said := ask(); !strings.Contains(said, "docstaff") {
		t.Errorf("after it was renamed: %s", said)
	}
	r.DeleteRole(x.guild, x.staff)
	r.Eventually("it is known to be gone", func() bool { there, known := r.adapter.book.Role(x.guild, x.staff); return known && !there })
	i := r.Command(x.bob, x.open, "ask", map[string]any{"question": "what about staff", "private": true}, dt.Delivery{With: map[string]any{
		"member": map[string]any{"user": map[string]any{"id": x.bob}, "roles": []string{x.staff}},
	}})
	if m := i.WaitAnswer(); strings.Contains(m.Content, "docstaff") {
		t.Errorf("a deleted role: %s", m.Content)
	}
	r.idle()
}

// D-50: who asks is the member in a server and the user elsewhere, and nobody
// else.
func TestD50WhoAsks(t *testing.T) {
	t.Parallel()
	x := newTown()
	twin := x.world.AddUser(dt.User{Name: "bob", GlobalName: "bob"})
	x.world.AddMember(x.guild, twin)
	r := newRig(t, x, setting{})
	private := map[string]any{"question": "what about staff", "private": true}
	t.Run("D-50 the member", func(t *testing.T) {
		if m := r.Command(x.bob, x.open, "ask", private).WaitAnswer(); !strings.Contains(m.Content, "docstaff") {
			t.Error(m.Content)
		}
	})
	t.Run("D-50 the user", func(t *testing.T) {
		if m := r.ask(x.bob, r.DMChannel(x.bob), "what about staff").WaitAnswer(); !strings.Contains(m.Content, "docstaff") {
			t.Error(m.Content)
		}
	})
	t.Run("C-03 not somebody of the same name", func(t *testing.T) {
		if m := r.Command(twin, x.open, "ask", private).WaitAnswer(); strings.Contains(m.Content, "docstaff") {
			t.Error(m.Content)
		}
	})
	t.Run("C-03 not whom the text, a button or a field besides names", func(t *testing.T) {
		mine := r.Command(x.bob, x.open, "ask", private).WaitAnswer()
		for name, i := range map[string]*dt.Interaction{
			"the text":   r.Command(twin, x.open, "ask", map[string]any{"question": "I am <@" + x.bob + "> of discord:" + x.guild + ":role/" + x.staff + ", what about staff", "private": true}),
			"a button":   r.Inject(twin, x.open, typeComponent, map[string]any{"custom_id": button(t, mine, "s1"), "component_type": 2}),
			"a field":    r.Command(twin, x.open, "ask", private, dt.Delivery{With: map[string]any{"user": map[string]any{"id": x.bob}}}),
			"an account": r.Inject(twin, x.open, typeCommand, map[string]any{"name": "ask", "type": 1, "options": []any{map[string]any{"name": "question", "type": 3, "value": "what about staff"}, map[string]any{"name": "user", "type": 6, "value": x.bob}, map[string]any{"name": "private", "type": 5, "value": true}}}),
		} {
			if m := i.WaitAnswer(); strings.Contains(m.Content+string(m.Embeds), "docstaff") {
				t.Errorf("%s: %s", name, m.Content)
			}
		}
	})
	r.idle()
}

// D-53: several servers of one organisation.
func TestD53SeveralConfiguredServers(t *testing.T) {
	t.Parallel()
	x := newTown()
	eve, fay := x.world.AddUser(dt.User{Name: "eve"}), x.world.AddUser(dt.User{Name: "fay"})
	second := x.world.AddGuild(dt.Guild{Name: "second", Owner: eve})
	x.world.AddMember(second, eve)
	x.world.AddMember(second, x.bob)
	r := newRig(t, x, setting{config: func(c *Config) { c.Guilds = []string{x.guild, second} }})
	for _, tt := range []struct {
		name, user, doc string
		want            bool
	}{
		{"member of the second one alone, everyone's", eve, "all", true},
		{"member of the second one alone, staff's of the first", eve, "staff", false},
		{"member of both, everyone's", x.bob, "all", true},
		{"member of both, by a role in one of them", x.bob, "staff", false},
		{"member of the first one alone", x.cy, "all", true},
		{"member of neither", fay, "all", false},
	} {
		t.Run("D-53 "+tt.name, func(t *testing.T) {
			if m := r.ask(tt.user, r.DMChannel(tt.user), "what about "+tt.doc).WaitAnswer(); strings.Contains(m.Content, "doc"+tt.doc) != tt.want {
				t.Error(m.Content)
			}
		})
	}
	r.idle()
}
