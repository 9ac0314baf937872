package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dt "footnote/adapters/discord/discordtest"
)

// D-01: the fake, which checks by Discord's rules, takes all commands, and each
// says where it is available.
func TestD01Commands(t *testing.T) {
	t.Parallel()
	_, r := inTown(t)
	if got, want := len(r.Commands("")), len(commands()); got != want {
		t.Errorf("%d commands are registered, want %d", got, want)
	}
	for _, c := range commands() {
		if c.Contexts == nil || c.Installs == nil {
			t.Errorf("%q does not say where it is available", c.Name)
		}
	}
}

// D-03: written once, again only when different, in one scope.
func TestD03RegistrationIsIdempotent(t *testing.T) {
	t.Parallel()
	x := newTown()
	a := newRig(t, x, setting{config: func(c *Config) { c.DevGuild = x.guild }})
	t.Run("D-02 one call with all types", func(t *testing.T) {
		puts := a.Requests(dt.RoutePutGuild)
		if len(puts) != 1 || !bytes.Contains(puts[0].Body, []byte(askMessage)) || !bytes.Contains(puts[0].Body, []byte(`"name":"`+askCommand+`"`)) {
			t.Errorf("%d calls", len(puts))
		}
	})
	t.Run("D-04 a server alone while it is developed", func(t *testing.T) {
		if len(a.Commands(x.guild)) != 3 || len(a.Commands("")) != 0 {
			t.Errorf("%d in the server, %d globally", len(a.Commands(x.guild)), len(a.Commands("")))
		}
	})
	_ = a.stop()
	before := len(a.Requests(dt.RoutePutGuild, dt.RoutePutCommands))
	b := newRig(t, x, setting{server: a.Server, config: func(c *Config) { c.DevGuild = x.guild }})
	if n := len(a.Requests(dt.RoutePutGuild, dt.RoutePutCommands)) - before; n != 0 {
		t.Errorf("%d writes at the second start", n)
	}
	_ = b.stop()
	c := newRig(t, x, setting{server: a.Server})
	t.Run("B-60, B-61 no command shows twice", func(t *testing.T) {
		c.Eventually("one scope", func() bool { return len(c.Commands("")) == 3 && len(c.Commands(x.guild)) == 0 })
		if shown := c.Shown(x.guild); len(shown) != 3 {
			t.Errorf("shown: %v", shown)
		}
	})
	_ = c.stop()
}

func TestD05CommandsSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(commands())
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if diff := cmp.Diff([]any{0., 1.}, c["contexts"]) + cmp.Diff([]any{0.}, c["integration_types"]); diff != "" {
			t.Errorf("%v: %s", c["name"], diff)
		}
		t.Run(fmt.Sprintf("D-06 everybody may use %v", c["name"]), func(t *testing.T) {
			if who, given := c["default_member_permissions"]; !given || who != nil {
				t.Errorf("%v, %v", who, given)
			}
		})
	}
}

func TestD07ServersAddAndLeaveOut(t *testing.T) {
	t.Parallel()
	ours := `[{"name":"a","type":1,"description":"x","options":[],"contexts":[0],"integration_types":[0]}]`
	for name, tt := range map[string]struct {
		theirs string
		same   bool
	}{
		"null instead of a list":  {`[{"name":"a","type":1,"description":"x","options":null,"contexts":[0],"integration_types":[0]}]`, true},
		"fields of the server":    {`[{"id":"1","name":"a","description":"x","nsfw":false,"dm_permission":true,"contexts":[0],"integration_types":[0],"version":"3","name_localizations":null}]`, true},
		"another description":     {`[{"name":"a","description":"y","contexts":[0],"integration_types":[0]}]`, false},
		"contexts were left out":  {`[{"name":"a","description":"x","integration_types":[0]}]`, false},
		"a command too many":      {strings.Replace(ours, "[{", `[{"name":"b","description":"x","contexts":[0],"integration_types":[0]},{`, 1), false},
		"an option that is ours":  {strings.Replace(ours, `"options":[]`, `"options":[{"type":3,"name":"q","description":"x"}]`, 1), false},
		"for administrators only": {strings.Replace(ours, `"type":1`, `"type":1,"default_member_permissions":"8"`, 1), false},
	} {
		one, err := fingerprint([]byte(ours), false)
		two, err2 := fingerprint([]byte(tt.theirs), false)
		if err != nil || err2 != nil || (one == two) != tt.same {
			t.Errorf("%s: %s and %s", name, one, two)
		}
	}
}
