package acl

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/acl/internal/bypass"
)

var (
	hr, it = Group("hr"), Group("it")
	ada    = NewIdentity(User("ada"), Everyone, hr)
	bob    = NewIdentity(User("bob"), Everyone, it)
	guest  = NewIdentity("slack:T1:user/U9", "slack:T1:guests")
)

func TestAdmits(t *testing.T) {
	t.Parallel()
	direct := AskerOnly()
	for _, c := range []struct {
		name  string
		grant Grant
		list  List
		want  bool
	}{
		{"member of everyone", NewGrant(ada, direct), NewList(Everyone), true},
		{"member of the group", NewGrant(ada, direct), NewList(it, hr), true},
		{"person named", NewGrant(ada, direct), NewList(User("ada")), true},
		{"member of another group", NewGrant(bob, direct), NewList(hr), false},
		{"guest and everyone", NewGrant(guest, direct), NewList(Everyone), false},
		{"document without list", NewGrant(ada, direct), List{}, false},
		{"document with an empty list", NewGrant(ada, direct), NewList(), false},
		{"group of another case", NewGrant(NewIdentity("user:x", Group("HR")), direct), NewList(hr), false},
		{"group that is a prefix", NewGrant(NewIdentity("user:x", Group("h")), direct), NewList(hr), false},

		{"room where all may read", NewGrant(ada, Room(bob.Principals())), NewList(Everyone), true},
		{"room where each may read by another principal", NewGrant(ada, Room(bob.Principals())), NewList(hr, it), true},
		{"room where the other may not", NewGrant(ada, Room(bob.Principals())), NewList(hr), false},
		{"room where the asker may not", NewGrant(bob, Room(ada.Principals())), NewList(hr), false},
		{"room with one guest among members", NewGrant(ada, Room(bob.Principals(), guest.Principals())), NewList(Everyone), false},
		{"room of nobody known", NewGrant(ada, Room()), NewList(Everyone), false},
		{"room with a viewer who holds nothing", NewGrant(ada, Room(ada.Principals(), nil)), NewList(Everyone), false},

		{"zero grant", Grant{}, NewList(Everyone), false},
		{"zero identity", NewGrant(Identity{}, direct), NewList(Everyone), false},
		{"identity without id", NewGrant(NewIdentity("", Everyone), direct), NewList(Everyone), false},
		{"zero audience", NewGrant(ada, Audience{}), NewList(Everyone), false},
		{"empty principal matches nothing of its kind", NewGrant(NewIdentity("user:x", ""), direct), NewList(""), false},

		{"operator", Bypass(bypass.Token{}), NewList(User("anybody")), true},
		{"operator, document without list", Bypass(bypass.Token{}), List{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.grant.Admits(c.list); got != c.want {
				t.Errorf("Admits([%s]) = %t: %s", c.list, got, c.grant.Explain(c.list))
			}
			if said := strings.HasPrefix(c.grant.Explain(c.list), "admitted"); said != c.want {
				t.Errorf("Explain says %q, Admits %t", c.grant.Explain(c.list), c.want)
			}
		})
	}
}

func TestExplainNamesWhoIsDenied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		grant Grant
		list  List
		want  string
	}{
		{"no list", NewGrant(ada, AskerOnly()), List{}, "denied: the document has no access list"},
		{"empty grant", Grant{}, NewList(hr), "denied: the grant is empty (unknown asker or audience)"},
		{"asker", NewGrant(bob, AskerOnly()), NewList(hr), "denied: the asker holds none of [group:hr], only [everyone, group:it, user:bob]"},
		{"viewer", NewGrant(ada, Room(bob.Principals())), NewList(hr), "denied: viewer 1 of the room holds none of [group:hr], only [everyone, group:it, user:bob]"},
		{"nobody", NewGrant(ada, Room(ada.Principals())), NewList(hr), "admitted: all 1 clauses meet [group:hr]"},
		{"operator", Bypass(bypass.Token{}), NewList(hr), "admitted: operator's bypass"},
	} {
		if got := c.grant.Explain(c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	got, err := ParseList([]string{"hr", "everyone", "group:hr", "Ada@Example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Principal{"ada@example.org", Everyone, hr}, got.Principals()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !got.Equal(NewList(hr, "ada@example.org", Everyone)) || got.Equal(NewList(hr)) {
		t.Error("Equal does not compare the principals")
	}
	for _, entries := range [][]string{nil, {}, {""}, {"hr", "a,b"}} {
		if l, err := ParseList(entries); err == nil || !l.IsZero() {
			t.Errorf("ParseList(%q) = [%s], %v", entries, l, err)
		}
	}
}

func TestValuesAreCopied(t *testing.T) {
	t.Parallel()
	holds, viewer, on := []Principal{hr}, []Principal{hr, Everyone}, []Principal{hr}
	list := NewList(on...)
	grant := NewGrant(NewIdentity("user:x", holds...), Room(viewer))
	digest := grant.Digest()
	holds[0], viewer[0], on[0] = it, it, it
	list.Principals()[0] = it
	for _, c := range grant.Clauses() {
		for i := range c {
			c[i] = it
		}
	}
	if !grant.Admits(list) || grant.Digest() != digest || !list.Equal(NewList(hr)) {
		t.Error("a caller's slice reaches into the values")
	}
}

// admitsByHand is Admits over the clauses that indexes see.
func admitsByHand(g Grant, l List) bool {
	if l.IsZero() {
		return false
	}
	if g.System() {
		return true
	}
	clauses := g.Clauses()
	for _, c := range clauses {
		if !slices.ContainsFunc(l.Principals(), func(p Principal) bool { return slices.Contains(c, p) }) {
			return false
		}
	}
	return len(clauses) > 0
}

func principals(t *rapid.T, label string) []Principal {
	return rapid.SliceOfN(rapid.SampledFrom([]Principal{Everyone, hr, it, Group("a"), Group("b"), User("ada"), "slack:T1:guests"}), 0, 4).Draw(t, label)
}

func drawGrant(t *rapid.T) Grant {
	id := NewIdentity(rapid.SampledFrom([]Principal{"", "user:ada", "user:bob"}).Draw(t, "id"), principals(t, "holds")...)
	switch rapid.IntRange(0, 3).Draw(t, "audience") {
	case 0:
		return NewGrant(id, Audience{})
	case 1:
		return NewGrant(id, AskerOnly())
	}
	var viewers [][]Principal
	for range rapid.IntRange(0, 3).Draw(t, "viewers") {
		viewers = append(viewers, principals(t, "viewer"))
	}
	return NewGrant(id, Room(viewers...))
}

func TestGrantProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, h, l := drawGrant(t), drawGrant(t), NewList(principals(t, "list")...)
		if g.Admits(l) != admitsByHand(g, l) {
			t.Fatalf("Admits([%s]) = %t, its clauses %v say otherwise", l, g.Admits(l), g.Clauses())
		}
		if g.Digest() == h.Digest() && g.Admits(l) != h.Admits(l) {
			t.Fatalf("%v and %v have one digest and differ on [%s]", g.Clauses(), h.Clauses(), l)
		}
		if cmp.Equal(g.Clauses(), h.Clauses()) && g.Digest() != h.Digest() {
			t.Fatalf("%v has two digests", g.Clauses())
		}
	})
}

// More people who see the reply never show more.
func TestWiderRoomShowsNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		viewers := [][]Principal{principals(t, "first")}
		l, id := NewList(principals(t, "list")...), NewIdentity("user:ada", principals(t, "holds")...)
		direct, room := NewGrant(id, AskerOnly()), NewGrant(id, Room(viewers...))
		wider := NewGrant(id, Room(append(viewers, principals(t, "second"))...))
		if room.Admits(l) && !direct.Admits(l) || wider.Admits(l) && !room.Admits(l) {
			t.Fatalf("[%s]: direct %t, room %t, wider room %t", l, direct.Admits(l), room.Admits(l), wider.Admits(l))
		}
	})
}
