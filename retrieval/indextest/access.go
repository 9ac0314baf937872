package indextest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
)

// accessMatrix is people x documents x audiences x operations. The expected
// decisions are written out; look covers the operations.
func accessMatrix(t *testing.T, s retrieval.Store) {
	security, sales := acl.Group("security"), acl.Group("sales")
	docs := []retrieval.Publication{
		Publication("open", "r1", everyone(), "open shared"),
		Publication("secret", "r1", acl.NewList(security), "secret shared"),
		Publication("both", "r1", acl.NewList(security, sales), "both shared"),
		Publication("adasown", "r1", acl.NewList(acl.User("ada")), "adasown shared"),
		Publication("partners", "r1", acl.NewList(acl.Principal("slack:T1:guests"), sales), "partners shared"),
	}
	ada := acl.NewIdentity(acl.User("ada"), acl.Everyone, security)
	bob := acl.NewIdentity(acl.User("bob"), acl.Everyone, sales)
	guest := acl.NewIdentity(acl.Principal("slack:T1:user/U9"), "slack:T1:guests")
	direct := acl.AskerOnly()
	team := acl.Room(ada.Principals(), bob.Principals())
	wide := acl.Room([]acl.Principal{acl.Everyone}, []acl.Principal{"slack:T1:guests"})
	members := acl.Room([]acl.Principal{acl.Everyone})
	rows := []struct {
		who   string
		grant acl.Grant
		sees  string // documents, in the order above
	}{
		{"ada direct", acl.NewGrant(ada, direct), "open secret both adasown"},
		{"ada in a room of ada and bob", acl.NewGrant(ada, team), "open both"},
		{"ada in a room of all members", acl.NewGrant(ada, members), "open"},
		{"ada in a room with guests", acl.NewGrant(ada, wide), ""},
		{"bob direct", acl.NewGrant(bob, direct), "open both partners"},
		{"bob in a room of ada and bob", acl.NewGrant(bob, team), "open both"},
		{"bob in a room with guests", acl.NewGrant(bob, acl.Room(guest.Principals())), "partners"},
		{"guest direct", acl.NewGrant(guest, direct), "partners"},
		{"guest in a room of all members", acl.NewGrant(guest, members), ""},
		{"unknown person", acl.NewGrant(acl.Identity{}, direct), ""},
		{"ada, audience unstated", acl.NewGrant(ada, acl.Audience{}), ""},
		{"ada, room of nobody known", acl.NewGrant(ada, acl.Room()), ""},
		{"ada, viewer without principals", acl.NewGrant(ada, acl.Room(nil)), ""},
		{"zero grant", acl.Grant{}, ""},
		{"operator", system.Grant(), "open secret both adasown partners"},
	}
	g := create(t, s)
	publish(t, g, docs...)
	for _, row := range rows {
		t.Run(row.who, func(t *testing.T) {
			t.Parallel()
			may := strings.Fields(row.sees)
			for _, d := range docs {
				want := none
				for _, id := range may {
					if id == string(d.Document.ID) {
						want = all
					}
				}
				expect(t, g, row.grant, d, want)
			}
			c := search(t, g, row.grant, ask("shared"))
			if len(c.Lexical) != len(may) || len(c.Dense) != len(may) {
				t.Errorf("%d lexical and %d dense hits, want %d each", len(c.Lexical), len(c.Dense), len(may))
			}
			absentLooksForbidden(t, g, row.grant)
		})
	}
}

// absentLooksForbidden: what is not there gives the same error as what is.
func absentLooksForbidden(t *testing.T, g retrieval.Generation, grant acl.Grant) {
	t.Helper()
	_, absent := g.Document(t.Context(), grant, "nosuchdocument", "")
	_, forbidden := g.Document(t.Context(), acl.Grant{}, "secret", "")
	_, norevision := g.Document(t.Context(), acl.Grant{}, "secret", "nosuchrevision")
	for _, err := range []error{absent, forbidden, norevision} {
		if !errors.Is(err, retrieval.ErrNotFound) || err.Error() != absent.Error() {
			t.Errorf("absent gives %q, forbidden %q, another revision %q", absent, forbidden, norevision)
			return
		}
	}
}

func caseP2(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p := Publication("private", "r1", acl.NewList(acl.Group("hr")), "private matter")
	publish(t, g, p)
	for _, grant := range []acl.Grant{
		{}, person("nobody"), person(""), acl.NewGrant(acl.Identity{}, acl.AskerOnly()),
		acl.NewGrant(acl.NewIdentity("user:ada", acl.Group("hr")), acl.Room([]acl.Principal{})),
	} {
		expect(t, g, grant, p, none)
	}
	expect(t, g, person("ada", acl.Group("hr")), p, all)
}

func caseP5(t *testing.T, s retrieval.Store) {
	names := []string{"HR", "hr", "a,b", "a", "b", "a|b", "hr ", "h*", "a\\", "a}", `a"`, "a\x00b", "ａ"}
	g := create(t, s)
	docs := map[string]retrieval.Publication{}
	for i, n := range names {
		docs[n] = Publication(fmt.Sprintf("doc%d", i), "r1", acl.NewList(acl.Group(n)), fmt.Sprintf("doc%d shared", i))
		publish(t, g, docs[n])
	}
	for _, holder := range names {
		for name, p := range docs {
			want := none
			if name == holder {
				want = all
			}
			expect(t, g, person("ada", acl.Group(holder)), p, want)
		}
	}
}

func caseP9(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	kept := Publication("kept", "r1", everyone(), "kept shared")
	publish(t, g, kept)
	if err := g.Publish(t.Context(), Publication("unlisted", "r1", acl.List{}, "unlisted")); err == nil || !strings.Contains(err.Error(), "access list") {
		t.Errorf("publishing without a list gives %v", err)
	}
	if err := g.Publish(t.Context(), Publication("kept", "r2", acl.NewList(), "kept newer")); err == nil {
		t.Error("publishing a revision without a list succeeds")
	}
	if err := g.SetAccess(t.Context(), "kept", acl.List{}); err == nil || !strings.Contains(err.Error(), "access list") {
		t.Errorf("setting the empty list gives %v", err)
	}
	expect(t, g, person("ada", acl.Everyone), kept, all)
	diff(t, "counts", retrieval.Counts{Documents: 1, Chunks: 1}, g.Counts())
}

func caseP12(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	hr, p := acl.Group("hr"), Publication("file", "r1", acl.NewList(acl.Group("hr")), "file shared")
	publish(t, g, p, Publication("other", "r1", everyone(), "shared"))
	member, other := person("ada", acl.Everyone, hr), person("bob", acl.Everyone, acl.Group("it"))
	for range 3 { // the second round meets whatever the first one cached
		expect(t, g, member, p, all)
		expect(t, g, other, p, none)
		fatal(t, g.SetAccess(t.Context(), "file", acl.NewList(acl.Group("it"))))
		expect(t, g, member, p, none)
		expect(t, g, other, p, all)
		fatal(t, g.SetAccess(t.Context(), "file", acl.NewList(hr)))
	}
	expect(t, g, person("ada", acl.Everyone), p, none) // she left the group
	if err := g.SetAccess(t.Context(), "absent", everyone()); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("access of an absent document gives %v", err)
	}
}

// forbiddenChangesNothing compares an index with and without documents that
// the asker may not read: best hits, words of their own, many of them.
func forbiddenChangesNothing(t *testing.T, s retrieval.Store) {
	open := []retrieval.Publication{
		Publication("alpha", "r1", everyone(), "key rotation guide", "rotate the key every month month", "lunch menu"),
		Publication("beta", "r1", everyone(), "the key to success", "menu of the month"),
	}
	best := Publication("aaa", "r1", acl.NewList(acl.Group("security")), "rotate key rotate key", "month unknownword "+strings.Repeat("filler ", 300))
	best.Chunks[0].Vector = Vector(30) // the question's own
	forbidden := []retrieval.Publication{best}
	for i := range 50 {
		forbidden = append(forbidden, Publication(fmt.Sprintf("f%02d", i), "r1", acl.NewList(acl.Group("security")), "rotate the key", "key month"))
	}
	without, with, history := create(t, s), create(t, s), create(t, s)
	publish(t, without, open...)
	publish(t, with, append([]retrieval.Publication{open[0]}, append(forbidden, open[1])...)...)
	publish(t, history, append(forbidden, open...)...)
	for _, p := range forbidden[1:] {
		fatal(t, history.Remove(t.Context(), p.Document.ID))
	}
	ada := person("ada", acl.Everyone)
	for _, words := range []string{"rotate the key", "month key key", "unknownword menu", "filler", "the", ""} {
		for _, depth := range []int{1, 3, 1000} {
			q := ask(words)
			q.Depth = depth
			want := search(t, without, ada, q)
			diff(t, fmt.Sprintf("%q, depth %d, with forbidden documents", words, depth), want, search(t, with, ada, q))
			diff(t, fmt.Sprintf("%q, depth %d, with removed ones", words, depth), want, search(t, history, ada, q))
		}
	}
	if c := search(t, with, person("eve", acl.Everyone, acl.Group("security")), ask("rotate key")); c.Lexical[0].ID.Document != "aaa" || c.Dense[0].ID.Document != "aaa" {
		t.Errorf("the forbidden document would not have been the best hit: %v", c)
	}
}
