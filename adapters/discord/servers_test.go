package discord

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot"
)

// D-03: what comes back of a guild's commands says nothing of contexts, and
// lists come in any order.
func TestD03TheSameCommands(t *testing.T) {
	t.Parallel()
	const ours = `[{"name":"a","description":"x","contexts":[0,1],"integration_types":[0]}]`
	for name, tt := range map[string]struct {
		theirs  string
		inGuild bool
		same    bool
	}{
		"the same":                         {ours, false, true},
		"contexts in another order":        {strings.Replace(ours, "[0,1]", "[1,0]", 1), false, true},
		"a guild without contexts":         {strings.Replace(ours, "[0,1]", "null", 1), true, true},
		"a guild with a default":           {strings.Replace(ours, "[0]}", "[0,1]}", 1), true, true},
		"a guild with another description": {strings.Replace(ours, `"x"`, `"y"`, 1), true, false},
		"global ones without contexts":     {strings.Replace(ours, "[0,1]", "null", 1), false, false},
	} {
		if same, err := sameCommands([]byte(ours), []byte(tt.theirs), tt.inGuild); err != nil || same != tt.same {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
	if _, err := sameCommands([]byte(`{}`), []byte(ours), false); err == nil {
		t.Error("what is no list is read")
	}
}

// A server that lacks a route which is not needed is served all the same.
func TestServersWithoutSomeRoutes(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dt.Fault{
		"gateway":                      {Route: dt.RouteGateway, Status: 404},
		"the commands of a guild":      {Route: dt.RouteGuildCommands, Status: 405},
		"who the application is":       {Route: "GET /applications/@me", Status: 404},
		"the commands of a guild, 403": {Route: dt.RouteGuildCommands, Status: 403, Code: 50001},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTown()
			s := dt.New(t, x.world)
			s.AddFault(fault)
			r := newRig(t, x, setting{server: s})
			if m := r.ask(x.cy, x.open, "what about all").WaitAnswer(); !strings.Contains(m.Content, "docall") {
				t.Errorf("%s", m.Content)
			}
			r.clean()
		})
	}
}

// D-51: a field of another form than expected spoils only itself.
func TestD51OwnersOfAnotherForm(t *testing.T) {
	t.Parallel()
	for raw, user := range map[string]bool{
		`{"0":0}`: false, `{"0":"1"}`: false, `{"1":5}`: true, `{"0":null,"1":"5"}`: false, `{}`: false,
	} {
		in, ok := readInteraction([]byte(`{"id":"1","token":"t","type":2,"guild_id":"7","authorizing_integration_owners":` + raw + `}`))
		if !ok || in.Guild != "7" || in.userInstalled() != user {
			t.Errorf("%s: %+v", raw, in)
		}
	}
}

// P-31: by HTTP nobody tells that a channel was opened. It is looked at for
// every answer that all in its place can read.
func TestP31ChannelOpenedWithoutGateway(t *testing.T) {
	t.Parallel()
	r, _ := newHTTPRig(t)
	x := r.town
	if m := r.ask(x.bob, x.closed, "what about staff").WaitAnswer(); !strings.Contains(m.Content, "docstaff") {
		t.Errorf("before: %s", m.Content)
	}
	r.SetOverwrite(x.closed, dt.Overwrite{ID: x.guild, Allow: dt.ViewChannel})
	if m := r.ask(x.bob, x.closed, "what about staff").WaitAnswer(); strings.Contains(m.Content, "docstaff") {
		t.Errorf("everybody reads %s", m.Content)
	}
	r.clean()
}

// C-04: nothing is said aloud where the facts cannot be read again.
func TestC04FactsThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	r, _ := newHTTPRig(t)
	x := r.town
	r.AddFault(dt.Fault{Route: dt.RouteGuild, Status: 403, Code: 50001})
	if m := r.ask(x.bob, x.closed, "what about staff").WaitAnswer(); strings.Contains(m.Content, "docstaff") {
		t.Errorf("aloud: %s", m.Content)
	}
	private := r.WaitEphemeral(x.bob, func(m dt.Message) bool { return strings.Contains(m.Content, "docstaff") })
	if private.EphemeralTo != x.bob {
		t.Errorf("%+v", private)
	}
	r.clean()
}

// P-31: an event about a member makes the roles that came with the question
// worth nothing.
func TestP31RolesTakenWhileItIsWorkedOn(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	var once atomic.Bool
	r.shelf.wait = func(context.Context, bot.Message) {
		if !once.Swap(true) {
			r.ChangeMember(x.guild, x.bob, func(m *dt.Member) { m.Roles = nil })
			r.heard(func() {
				r.SendEvent("GUILD_MEMBER_UPDATE", map[string]any{"guild_id": x.guild, "user": map[string]any{"id": x.bob}, "roles": []string{}})
			})
		}
	}
	m := r.privately(x.bob, x.open, "what about staff")
	if strings.Contains(m.Content, "docstaff") || !once.Load() {
		t.Errorf("one who is no longer on the staff reads %s", m.Content)
	}
	r.clean()
}

// Connections that become ready are followed soon by the next one, however
// many there were; only those that do not are waited for longer and longer.
func TestReadyConnectionsAreMadeAgainSoon(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{config: func(c *Config) {
		c.pace.least, c.pace.soon, c.pace.most = time.Millisecond, 2*time.Millisecond, time.Hour
	}})
	for range 6 {
		before := r.adapter.Health().Reconnects
		r.CloseSockets(4000)
		r.Eventually("connected again", func() bool {
			return r.adapter.Health().Reconnects > before && !r.adapter.Health().Connected.IsZero()
		})
	}
	pauses := regexp.MustCompile(`pause=(\S+)`).FindAllStringSubmatch(r.logs.String(), -1)
	for _, p := range pauses {
		if d, err := time.ParseDuration(p[1]); err != nil || d > 2*time.Millisecond {
			t.Errorf("a pause of %s", p[1])
		}
	}
	if len(pauses) != 6 {
		t.Errorf("%d pauses", len(pauses))
	}
	r.serves("after many connections")
	r.clean()
}
