package guild

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func role(id string, p Perm) Role { return Role{ID: id, Permissions: p} }

func over(id string, member bool, allow, deny Perm) Overwrite {
	o := Overwrite{ID: id, Type: json.RawMessage("0"), Allow: allow, Deny: deny}
	if member {
		o.Type = json.RawMessage("1")
	}
	return o
}

func world(everyone Perm, overwrites ...Overwrite) *Guild {
	g := &Guild{ID: "1", Owner: "90", Roles: map[string]Role{}, Channels: map[string]Channel{}}
	for _, r := range []Role{role("1", everyone), role("2", 0), role("3", ViewChannel), role("4", Administrator), {ID: "5", Permissions: ViewChannel, Tags: map[string]json.RawMessage{"bot_id": nil}}} {
		g.Roles[r.ID] = r
	}
	g.Channels["10"] = Channel{ID: "10", Overwrites: overwrites}
	g.Channels["11"] = Channel{ID: "11", Type: PublicThread, Parent: "10"}
	g.Channels["12"] = Channel{ID: "12", Type: PrivateThread, Parent: "10"}
	g.Channels["13"] = Channel{ID: "13", Type: PublicThread, Parent: "99"}
	return g
}

// D-56, LD-08: the documented order, and threads by their parent.
func TestD56Permissions(t *testing.T) {
	t.Parallel()
	hidden := over("1", false, 0, ViewChannel)
	tests := []struct {
		name       string
		everyone   Perm
		overwrites []Overwrite
		user       string
		roles      []string
		want       bool
	}{
		{"everybody", ViewChannel, nil, "80", nil, true},
		{"nobody", 0, nil, "80", nil, false},
		{"hidden", ViewChannel, []Overwrite{hidden}, "80", nil, false},
		{"hidden from the owner", ViewChannel, []Overwrite{hidden}, "90", nil, true},
		{"hidden from an administrator", ViewChannel, []Overwrite{hidden, over("4", false, 0, ViewChannel), over("80", true, 0, ViewChannel)}, "80", []string{"4"}, true},
		{"a role's allow beats everyone's deny", ViewChannel, []Overwrite{hidden, over("2", false, ViewChannel, 0)}, "80", []string{"2"}, true},
		{"a role's base does not", ViewChannel, []Overwrite{hidden}, "80", []string{"3"}, false},
		{"an allow beats the deny of another role", ViewChannel, []Overwrite{over("2", false, 0, ViewChannel), over("3", false, ViewChannel, 0)}, "80", []string{"2", "3"}, true},
		{"a member's deny beats a role's allow", ViewChannel, []Overwrite{over("2", false, ViewChannel, 0), over("80", true, 0, ViewChannel)}, "80", []string{"2"}, false},
		{"a member's allow beats a role's deny", ViewChannel, []Overwrite{over("2", false, 0, ViewChannel), over("80", true, ViewChannel, 0)}, "80", []string{"2"}, true},
		{"a deleted role grants nothing", 0, []Overwrite{over("7", false, ViewChannel, 0)}, "80", []string{"7"}, false},
		{"a role's id as a member's", 0, []Overwrite{over("80", false, ViewChannel, 0)}, "80", nil, false},
	}
	for _, tt := range tests {
		g := world(tt.everyone, tt.overwrites...)
		for _, channel := range []string{"10", "11", "12"} {
			id := map[string]string{"10": "D-56 ", "11": "LD-08 in a thread: ", "12": "LD-08 in a private thread: "}[channel]
			t.Run(id+tt.name, func(t *testing.T) {
				p, ok := g.Permissions(tt.user, tt.roles, g.Channels[channel])
				if !ok || p.Has(ViewChannel) != tt.want {
					t.Errorf("%v, %v", p.Has(ViewChannel), ok)
				}
			})
		}
		if _, ok := g.Permissions(tt.user, tt.roles, g.Channels["13"]); ok {
			t.Errorf("%s: a thread without a parent is known", tt.name)
		}
	}
}

// P-20, P-21: classes of viewers.
func TestP20Viewers(t *testing.T) {
	t.Parallel()
	hidden := over("1", false, 0, ViewChannel)
	for name, tt := range map[string]struct {
		g    *Guild
		want Viewers
	}{
		"everybody":        {world(ViewChannel), Viewers{Everyone: true}},
		"a role":           {world(ViewChannel, hidden, over("2", false, ViewChannel, 0)), Viewers{Roles: []string{"2"}, Admins: []string{"4"}, Owner: "90"}},
		"a role's base":    {world(0), Viewers{Roles: []string{"3"}, Admins: []string{"4"}, Owner: "90"}},
		"a person":         {world(ViewChannel, hidden, over("80", true, ViewChannel, 0)), Viewers{Users: []string{"80"}, Admins: []string{"4"}, Owner: "90"}},
		"the bot itself":   {world(ViewChannel, hidden, over("70", true, ViewChannel, 0), over("5", false, ViewChannel, 0)), Viewers{Admins: []string{"4"}, Owner: "90"}},
		"a denied role":    {world(ViewChannel, over("2", false, 0, ViewChannel)), Viewers{Everyone: true}},
		"only administers": {world(ViewChannel, hidden), Viewers{Admins: []string{"4"}, Owner: "90"}},
	} {
		for _, channel := range []string{"10", "11", "12"} {
			got, ok := tt.g.Viewers(tt.g.Channels[channel], "70")
			if diff := cmp.Diff(tt.want, got); diff != "" || !ok {
				t.Errorf("%s in %s: %s", name, channel, diff)
			}
		}
	}
}

// Whoever can see a channel is in one of the classes.
func TestP20IsASuperset(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		perm := rapid.SampledFrom([]Perm{0, ViewChannel, SendMessages})
		g := &Guild{ID: "1", Owner: "90", Roles: map[string]Role{}, Channels: map[string]Channel{}}
		for i := 1; i <= 5; i++ {
			p := perm.Draw(t, "role")
			if i == 5 && rapid.Bool().Draw(t, "admin") {
				p = Administrator
			}
			g.Roles[fmt.Sprint(i)] = role(fmt.Sprint(i), p)
		}
		var overwrites []Overwrite
		for _, id := range []string{"1", "2", "3", "4", "5", "80", "81"} {
			if rapid.Bool().Draw(t, "overwrite") {
				overwrites = append(overwrites, over(id, id >= "80", perm.Draw(t, "allow"), perm.Draw(t, "deny")))
			}
		}
		c := Channel{ID: "10", Overwrites: overwrites}
		v, _ := g.Viewers(c, "")
		user := rapid.SampledFrom([]string{"80", "81", "82", "90"}).Draw(t, "user")
		roles := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"2", "3", "4", "5"}), rapid.ID[string]).Draw(t, "roles")
		p, _ := g.Permissions(user, roles, c)
		if !p.Has(ViewChannel) || v.Everyone {
			return
		}
		in := user == v.Owner || slices.Contains(v.Users, user)
		for _, r := range roles {
			in = in || slices.Contains(v.Roles, r) || slices.Contains(v.Admins, r)
		}
		if !in {
			t.Fatalf("%s with %v sees the channel and is in no class of %+v", user, roles, v)
		}
	})
}

const guildJSON = `{"id":"1","owner_id":"90","roles":[{"id":"1","permissions":"1024"}],"channels":[{"id":"10","type":0}],"threads":[{"id":"11","type":11,"parent_id":"10"}]}`

func TestBookFailsClosed(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	fresh := func() *Book {
		b := NewBook(5*time.Minute, func() time.Time { return now })
		b.Apply("GUILD_CREATE", []byte(guildJSON))
		return b
	}
	see := func(b *Book, channel string, hint Channel) error {
		_, _, err := b.Viewers("1", channel, hint)
		return err
	}
	if b := fresh(); see(b, "10", Channel{}) != nil || see(b, "11", Channel{}) != nil || see(b, "12", Channel{ID: "12", Type: PublicThread, Parent: "10"}) != nil {
		t.Error("what is known must be known")
	}
	for name, spoil := range map[string]func(*Book){
		"unknown channel": func(b *Book) { b.Apply("CHANNEL_DELETE", []byte(`{"id":"10","guild_id":"1"}`)) },
		"unreadable channel": func(b *Book) {
			b.Apply("CHANNEL_UPDATE", []byte(`{"id":"10","guild_id":"1","permission_overwrites":7}`))
		},
		"unreadable event": func(b *Book) { b.Apply("CHANNEL_UPDATE", []byte(`7`)) },
		"no guild":         func(b *Book) { b.Apply("GUILD_ROLE_UPDATE", []byte(`{}`)) },
		"odd permissions": func(b *Book) {
			b.Apply("GUILD_ROLE_UPDATE", []byte(`{"guild_id":"1","role":{"id":"1","permissions":"x"}}`))
		},
		"everyone deleted": func(b *Book) { b.Apply("GUILD_ROLE_DELETE", []byte(`{"guild_id":"1","role_id":"1"}`)) },
		"left":             func(b *Book) { b.Apply("GUILD_DELETE", []byte(`{"id":"1"}`)) },
		"an outage":        func(b *Book) { b.Apply("GUILD_DELETE", []byte(`{"id":"1","unavailable":true}`)) },
		"too old":          func(*Book) { now = now.Add(6 * time.Minute) },
		"forgotten":        func(b *Book) { b.Forget() },
		"not joined":       func(b *Book) { b.Join("2") },
	} {
		b := fresh()
		spoil(b)
		if err := see(b, "10", Channel{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := fresh()
	if err := see(b, "12", Channel{ID: "12", Type: 0, Overwrites: nil}); err == nil {
		t.Error("a hint makes no channel, only threads of known ones")
	}
	now = now.Add(10 * time.Minute)
	b.Confirm()
	if err := see(b, "10", Channel{}); err != nil {
		t.Errorf("confirmed: %v", err)
	}
}

func TestPermOfAnyLength(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Perm{`"1024"`: ViewChannel, `1024`: ViewChannel, `null`: 0, `"36893488147419104256"`: ViewChannel} {
		var p Perm
		if err := json.Unmarshal([]byte(in), &p); err != nil || p != want {
			t.Errorf("%s: %d, %v", in, p, err)
		}
	}
	for _, bad := range []string{`"x"`, `"-1"`, `{}`, `1.5`} {
		var p Perm
		if json.Unmarshal([]byte(bad), &p) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add("GUILD_CREATE", []byte(guildJSON))
	f.Add("THREAD_LIST_SYNC", []byte(`{"guild_id":"1","threads":[null]}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		b := NewBook(time.Minute, time.Now)
		b.Apply("GUILD_CREATE", []byte(guildJSON))
		b.Apply(name, data)
		_, _, _ = b.Viewers("1", "10", Channel{})
	})
}
