package bot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/retrieval"
)

var (
	lists = map[string][]string{
		"everyone":       everyone,
		"security":       {"security"},
		"ben":            {"user:ben"},
		"ben, security":  {"user:ben", "security"},
		"another tenant": {"slack:T9:everyone"},
	}
	people = map[string]acl.Identity{"ada": ada, "ben": ben, "eve": eve, "nobody": {}}
	rooms  = map[string]acl.Audience{
		"direct":            acl.AskerOnly(),
		"room of everyone":  acl.Room([]acl.Principal{acl.Everyone}),
		"room of security":  acl.Room([]acl.Principal{acl.Everyone, acl.Group("security")}),
		"room with a guest": acl.Room([]acl.Principal{acl.Everyone}, []acl.Principal{acl.User("eve")}),
		"room of nobody":    acl.Room(),
		"room unknown":      {},
	}
)

// TestAccessMatrix tries people x documents x audiences on every way to read:
// answers, nearest documents, missing words, opening. What is right is said by
// acl alone.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	for listName, list := range lists {
		secret := doc{"secret", "The zanzibar password rotates each Friday.", list}
		w := newWorld(t, handbook, secret)
		l, err := acl.ParseList(list)
		if err != nil {
			t.Fatal(err)
		}
		for person, who := range people {
			for room, audience := range rooms {
				t.Run(fmt.Sprintf("%s reads %s in %s", person, listName, room), func(t *testing.T) {
					may := acl.NewGrant(who, audience).Admits(l)
					ask := func(text string) Reply {
						r, err := w.bot.Handle(t.Context(), Message{Text: text, Asker: who, Audience: audience})
						if err != nil {
							t.Fatal(err)
						}
						return r
					}
					answer := ask("When does the zanzibar password rotate?")
					if got := answer.Outcome == Answered; got != may {
						t.Errorf("answered %v, may read %v", got, may)
					}
					if !may && !slices.Contains(answer.Missing, "zanzibar") {
						t.Errorf("missing %v: the word must be found nowhere", answer.Missing)
					}
					near := ask("Which zanzibar xylophone?")
					if got := strings.Contains(fmt.Sprint(near.Nearest, near.Text), "SECRET"); near.Outcome != Refused || got != may {
						t.Errorf("%s, names the document %v, may read %v", near.Outcome, got, may)
					}
					_, err := w.bot.Open(t.Context(), who, audience, "secret", "", 0, 3)
					if (err == nil) != may {
						t.Errorf("opening gives %v, may read %v", err, may)
					}
					if !may {
						_, absent := w.bot.Open(t.Context(), who, audience, "absent", "", 0, 3)
						if err.Error() != absent.Error() || !errors.Is(err, retrieval.ErrNotFound) {
							t.Errorf("forbidden reads %q, absent %q", err, absent)
						}
					}
				})
			}
		}
	}
}

// A forbidden document changes nothing, even where it would be the best hit.
func TestForbiddenBestHitChangesNothing(t *testing.T) {
	t.Parallel()
	forbidden := []doc{
		{"best", "Badges are made in room 212, where badges are made.", []string{"security"}},
		{"vault", "The world cup of 1998 was won in room 9.", []string{"security"}},
		{"interns", "Interns get twenty vacation days. And for interns?", []string{"security"}},
	}
	without, with := newWorld(t, handbook), newWorld(t, append(forbidden, handbook)...)
	questions := []string{"Where are badges made?", "Who won the world cup in 1998?", "vacation days", "When is lunch?", "🙂", "xyzzy"}
	for _, q := range questions {
		for room, audience := range rooms {
			for person, who := range people {
				if who.ID() == ada.ID() && (audience.Private() || room == "room of security") {
					continue // ada may read them there
				}
				m := Message{Text: q, Asker: who, Audience: audience, History: []Turn{{User, "How many vacation days do employees get?"}}}
				if d := cmp.Diff(without.ask(m), with.ask(m), cmpopts.IgnoreFields(Reply{}, "Trace", "MS", "Generation"), cmpopts.IgnoreUnexported(Nearest{})); d != "" {
					t.Errorf("%q of %s in %s:\n%s", q, person, room, d)
				}
			}
		}
	}
	if r := with.says(ada, "Who won the world cup in 1998?"); r.Outcome != Answered {
		t.Errorf("who may read the documents gets no answer: %s", r.Text)
	}
}

func TestCase_P18(t *testing.T) {
	t.Parallel()
	w, empty := newWorld(t, handbook, plan), newWorld(t, handbook)
	q := "When does the master password of the vault rotate?"
	if r := w.says(ada, q); r.Outcome != Answered {
		t.Fatalf("in a direct message: %s", r.Text)
	}
	in := func(w *world) Reply {
		return w.ask(Message{Text: q, Asker: ada, Audience: acl.Room([]acl.Principal{acl.Everyone})})
	}
	room := in(w)
	if room.Outcome != Refused || !strings.Contains(room.Text, "direct message") {
		t.Errorf("in the room: %s %q", room.Outcome, room.Text)
	}
	if strings.Contains(room.Text, "PLAN") {
		t.Errorf("the refusal names the document: %q", room.Text)
	}
	if other := in(empty); other.Text != room.Text {
		t.Errorf("the refusal reads otherwise where nothing exists:\n%s\n%s", room.Text, other.Text)
	}
	if r := w.says(ben, q); strings.Contains(r.Text, "direct message") {
		t.Errorf("a direct message offers a direct message: %q", r.Text)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handbook)
	old := revision(handbook.text)
	open := func(rev retrieval.Revision, from, to int) (Opened, error) {
		return w.bot.Open(t.Context(), ben, acl.AskerOnly(), "handbook", rev, from, to)
	}
	if o, err := open(old, 0, 9); err != nil || o.Quote != "Employees" || o.Superseded {
		t.Errorf("the current revision: %+v, %v", o, err)
	}
	w.publish(doc{"handbook", "Everything is new.", everyone})
	if o, err := open(old, 0, 9); err != nil || o.Quote != "Employees" || !o.Superseded {
		t.Errorf("the superseded revision: %q, superseded %v, %v", o.Quote, o.Superseded, err)
	}
	if o, err := open("", 0, 10); err != nil || o.Quote != "Everything" || o.Superseded {
		t.Errorf("no revision: %q, superseded %v, %v", o.Quote, o.Superseded, err)
	}
	for name, at := range map[string][2]int{"past the end": {0, 100_000}, "before the start": {-1, 3}, "backwards": {5, 3}} {
		if _, err := open("", at[0], at[1]); !errors.As(err, new(*UserError)) || errors.Is(err, retrieval.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open("unknown", 0, 1); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("an unknown revision gives %v", err)
	}
	if err := w.gen.SetAccess(t.Context(), "handbook", acl.NewList(acl.Group("security"))); err != nil {
		t.Fatal(err)
	}
	if _, err := open(old, 0, 9); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("after the access was taken away: %v", err)
	}
}
