// Package inboxtest is the suite that every inbox must pass, whether it lies in a
// directory or is shared by processes: Run over an inbox alone, RunGuard over one
// that is taken into an index.
package inboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/inbox"
)

// Open opens the inbox that an earlier call with the same place left, which
// begins its paths with "push:". place is an empty directory at first, which no
// other test has.
type Open func(t testing.TB, place string, o inbox.Options) *inbox.Inbox

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"what is put is there after opening": reopened,
		"what changes what":                  changes,
		"refusals":                           refusals,
		"limits":                             limits,
		"conditions":                         conditions,
		"pages":                              pages,
		"senders of one document":            senders,
		"reading ends with its context":      interrupted,
		"gone speaks of its own paths":       gone,
		"watchers are told":                  watched,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Doc describes a document in Markdown.
func Doc(id string, access ...string) inbox.Meta {
	return inbox.Meta{ID: id, Name: "a.md", Access: access}
}

// Put puts a document, or fails the test.
func Put(t testing.TB, b *inbox.Inbox, m inbox.Meta, content string) inbox.Entry {
	t.Helper()
	e, _, err := b.Put(t.Context(), m, strings.NewReader(content), inbox.Condition{})
	must(t, err)
	return e
}

// Holds is what an inbox holds: id to access list and content.
func Holds(t testing.TB, b *inbox.Inbox) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := b.List(t.Context(), "", "", 1000)
	must(t, err)
	for _, e := range all {
		c, err := b.Read(t.Context(), b.PathOf(e.ID))
		must(t, err)
		out[e.ID] = strings.Join(e.Access, " ") + ": " + string(c.Data)
	}
	return out
}

func reopened(t *testing.T, open Open) {
	dir := t.TempDir()
	b := open(t, dir, inbox.Options{Now: func() time.Time { return time.Unix(1e9, 0) }})
	m := inbox.Meta{
		ID: "위키/휴가 정책", Name: "leave.md", Title: "Leave", Link: "https://wiki.example.org/1", Author: "Ada",
		Modified: time.Date(2031, 4, 1, 9, 0, 0, 5, time.FixedZone("", 3600)), Access: []string{"hr", "everyone", "hr"},
	}
	want := Put(t, b, m, "# Leave\n")
	Put(t, b, Doc("other", "everyone"), "text")
	Put(t, b, Doc("other", "group:it"), "text, changed")
	Put(t, b, Doc("gone", "everyone"), "text")
	must(t, b.Delete(t.Context(), "gone", inbox.Condition{}))

	b = open(t, dir, inbox.Options{})
	got, ok, err := b.Get(t.Context(), "위키/휴가 정책")
	must(t, err)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("-put +opened:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"위키/휴가 정책": "everyone group:hr: # Leave\n", "other": "group:it: text, changed"}, Holds(t, b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	content, err := b.Read(t.Context(), "push:/위키/휴가 정책")
	must(t, err)
	if diff := cmp.Diff(ingest.Content{
		Data: []byte("# Leave\n"), Modified: time.Date(2031, 4, 1, 8, 0, 0, 0, time.UTC), Name: "leave.md", Title: "Leave",
		Link: "https://wiki.example.org/1", Revision: want.Revision(),
	}, content); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func changes(t *testing.T, open Open) {
	for _, c := range []struct {
		name     string
		second   func(*inbox.Meta)
		content  string
		change   inbox.Change
		revision bool // another one
	}{
		{"the same again", func(*inbox.Meta) {}, "text", inbox.Same, false},
		{"the list in another order", func(m *inbox.Meta) { m.Access = []string{"hr", "everyone"} }, "text", inbox.Same, false},
		{"another list", func(m *inbox.Meta) { m.Access = []string{"hr"} }, "text", inbox.Updated, false},
		{"another author", func(m *inbox.Meta) { m.Author = "Bob" }, "text", inbox.Updated, false},
		{"another title", func(m *inbox.Meta) { m.Title = "T" }, "text", inbox.Updated, true},
		{"another link", func(m *inbox.Meta) { m.Link = "https://x.example" }, "text", inbox.Updated, true},
		{"another format", func(m *inbox.Meta) { m.Name = "a.html" }, "text", inbox.Updated, true},
		{"another time", func(m *inbox.Meta) { m.Modified = time.Unix(1, 0) }, "text", inbox.Updated, true},
		{"other bytes", func(*inbox.Meta) {}, "Text", inbox.Updated, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, t.TempDir(), inbox.Options{})
			first := Put(t, b, Doc("a", "everyone", "group:hr"), "text")
			m := Doc("a", "everyone", "group:hr")
			c.second(&m)
			second, change, err := b.Put(t.Context(), m, strings.NewReader(c.content), inbox.Condition{})
			must(t, err)
			if change != c.change || (first.Revision() != second.Revision()) != c.revision || (first.Tag() != second.Tag()) != (c.change == inbox.Updated) {
				t.Errorf("change %d, revisions %s %s, tags %s %s", change, first.Revision(), second.Revision(), first.Tag(), second.Tag())
			}
		})
	}
}

func refusals(t *testing.T, open Open) {
	for _, c := range []struct {
		name, field string
		m           inbox.Meta
		content     string
	}{
		{"no id", "id", Doc("", "everyone"), "x"},
		{"an id that climbs", "id", Doc("a/../b", "everyone"), "x"},
		{"an id with a dot as a part", "id", Doc("./a", "everyone"), "x"},
		{"an id that begins with a slash", "id", Doc("/a", "everyone"), "x"},
		{"an id with two slashes", "id", Doc("a//b", "everyone"), "x"},
		{"an id with a line end", "id", Doc("a\nb", "everyone"), "x"},
		{"an id with a NUL", "id", Doc("a\x00b", "everyone"), "x"},
		{"an id with a backslash", "id", Doc(`a\b`, "everyone"), "x"},
		{"an id that is no UTF-8", "id", Doc("a\xff", "everyone"), "x"},
		{"an id with a mark that turns text", "id", Doc("a\u202eb", "everyone"), "x"},
		{"a long id", "id", Doc(strings.Repeat("ö", 257), "everyone"), "x"},
		{"no list", "access", Doc("a"), "x"},
		{"an empty entry", "access", Doc("a", ""), "x"},
		{"a list that cannot be understood", "access", Doc("a", "everyone", "Everyone"), "x"},
		{"too long a list", "access", Doc("a", strings.Split(strings.Repeat("g ", 101), " ")...), "x"},
		{"a format that is not read", "name", inbox.Meta{ID: "a", Name: "a.exe", Access: []string{"everyone"}}, "x"},
		{"a name with a folder", "name", inbox.Meta{ID: "a", Name: "b/a.md", Access: []string{"everyone"}}, "x"},
		{"a link that runs", "link", inbox.Meta{ID: "a", Name: "a.md", Link: "javascript:alert(1)", Access: []string{"everyone"}}, "x"},
		{"a link with a password", "link", inbox.Meta{ID: "a", Name: "a.md", Link: "https://u:p@x.example/", Access: []string{"everyone"}}, "x"},
		{"a title of two lines", "title", inbox.Meta{ID: "a", Name: "a.md", Title: "a\nb", Access: []string{"everyone"}}, "x"},
		{"a time before all", "modified", inbox.Meta{ID: "a", Name: "a.md", Modified: time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC), Access: []string{"everyone"}}, "x"},
		{"no content", "content", Doc("a", "everyone"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, t.TempDir(), inbox.Options{})
			_, _, err := b.Put(t.Context(), c.m, strings.NewReader(c.content), inbox.Condition{})
			var r *inbox.Refusal
			if !errors.As(err, &r) || r.Field != c.field {
				t.Errorf("%v, want a refusal of %s", err, c.field)
			}
			if got := Holds(t, b); len(got) != 0 {
				t.Errorf("it holds %v", got)
			}
		})
	}
}

func limits(t *testing.T, open Open) {
	b := open(t, t.TempDir(), inbox.Options{MaxBytes: 10, MaxDocuments: 2, MaxTotal: 15})
	Put(t, b, Doc("a", "everyone"), "1234567890")
	for _, c := range []struct {
		id, content string
		want        error
	}{
		{"b", "12345678901", inbox.ErrTooLarge}, {"b", "123456", inbox.ErrFull}, {"b", "12345", nil}, {"c", "1", inbox.ErrFull}, {"a", "1", nil}, {"b", "1234567890", nil},
	} {
		if _, _, err := b.Put(t.Context(), Doc(c.id, "everyone"), strings.NewReader(c.content), inbox.Condition{}); !errors.Is(err, c.want) {
			t.Errorf("%s %q: %v, want %v", c.id, c.content, err, c.want)
		}
	}
}

func conditions(t *testing.T, open Open) {
	for _, c := range []struct {
		name         string
		when         func(tag string) inbox.Condition
		absent, held bool // it holds
	}{
		{"none", func(string) inbox.Condition { return inbox.Condition{} }, true, true},
		{"absent", func(string) inbox.Condition { return inbox.Condition{Absent: true} }, true, false},
		{"any", func(string) inbox.Condition { return inbox.Condition{Any: true} }, false, true},
		{"this tag", func(tag string) inbox.Condition { return inbox.Condition{Tags: []string{"x", tag}} }, false, true},
		{"another tag", func(string) inbox.Condition { return inbox.Condition{Tags: []string{"x"}} }, false, false},
		{"the tag of nothing", func(string) inbox.Condition { return inbox.Condition{Tags: []string{""}} }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, t.TempDir(), inbox.Options{})
			e := Put(t, b, Doc("held", "everyone"), "x")
			try := func(id string) bool {
				_, _, err := b.Put(t.Context(), Doc(id, "everyone"), strings.NewReader("y"), c.when(e.Tag()))
				if err != nil && !errors.Is(err, inbox.ErrChanged) {
					t.Fatal(err)
				}
				return err == nil
			}
			if got := [2]bool{try("absent"), try("held")}; got != [2]bool{c.absent, c.held} {
				t.Errorf("put: absent %t, held %t", got[0], got[1])
			}
			Put(t, b, Doc("held", "everyone"), "x")
			if err := b.Delete(t.Context(), "held", c.when(e.Tag())); errors.Is(err, inbox.ErrChanged) == c.held {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

func pages(t *testing.T, open Open) {
	b := open(t, t.TempDir(), inbox.Options{})
	for _, id := range []string{"b/2", "a", "b/1", "c", "b/3"} {
		Put(t, b, Doc(id, "everyone"), "x")
	}
	var got []string
	for after := ""; ; {
		page, err := b.List(t.Context(), "b/", after, 2)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			got = append(got, e.ID)
		}
		after = got[len(got)-1]
	}
	if diff := cmp.Diff([]string{"b/1", "b/2", "b/3"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Many senders of one id: at the end the inbox, as it is known and as it is stored,
// holds one of what was sent, list and content together.
func senders(t *testing.T, open Open) {
	dir := t.TempDir()
	b := open(t, dir, inbox.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				text := fmt.Sprintf("g%d", i)
				if n%5 == 4 {
					if err := b.Delete(t.Context(), "a", inbox.Condition{}); err != nil && !errors.Is(err, inbox.ErrNotFound) {
						t.Error(err)
					}
				} else if _, _, err := b.Put(t.Context(), Doc("a", "group:"+text), strings.NewReader(text), inbox.Condition{}); err != nil {
					t.Error(err)
				}
				if c, err := b.Read(t.Context(), "push:/a"); err == nil && !bytes.HasPrefix(c.Data, []byte("g")) {
					t.Errorf("read %q", c.Data)
				}
			}
		})
	}
	wg.Wait()
	again := open(t, dir, inbox.Options{})
	if diff := cmp.Diff(Holds(t, b), Holds(t, again)); diff != "" {
		t.Errorf("-known +stored:\n%s", diff)
	}
	for _, v := range Holds(t, again) {
		group, text, _ := strings.Cut(strings.TrimPrefix(v, "group:"), ": ")
		if group != text {
			t.Errorf("list and content of two senders: %s", v)
		}
	}
}

func interrupted(t *testing.T, open Open) {
	b := open(t, t.TempDir(), inbox.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	endless := io.MultiReader(strings.NewReader("x"), readerFunc(func(p []byte) (int, error) { cancel(); return 1, nil }))
	if _, _, err := b.Put(ctx, Doc("a", "everyone"), endless, inbox.Condition{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, held, err := b.Get(t.Context(), "a"); held || err != nil {
		t.Error("half a document was taken")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func gone(t *testing.T, open Open) {
	b := open(t, t.TempDir(), inbox.Options{})
	Put(t, b, Doc("a", "everyone"), "x")
	for path, want := range map[string]bool{"push:/a": false, "push:/b": true, "/push:/b": false, "push:": false, "chat:/b": false} {
		if b.Gone(path) != want {
			t.Errorf("Gone(%q) = %t", path, !want)
		}
	}
}

// watched: who watches is told of each change, and whether it is quickly done.
func watched(t *testing.T, open Open) {
	b := open(t, t.TempDir(), inbox.Options{})
	type notice struct {
		path   string
		urgent bool
	}
	told := make(chan notice, 9)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Watch(ctx, func(path string, urgent bool) { told <- notice{path, urgent} }) }()
	for _, c := range []struct {
		do   func()
		want notice
	}{
		{func() { Put(t, b, Doc("a", "everyone"), "x") }, notice{"push:/a", false}},
		{func() { Put(t, b, Doc("a", "hr"), "x") }, notice{"push:/a", true}},
		{func() { Put(t, b, Doc("a", "everyone"), "y") }, notice{"push:/a", false}},
		{func() { must(t, b.Delete(t.Context(), "a", inbox.Condition{})) }, notice{"push:/a", true}},
	} {
		c.do()
		if got := <-told; got != c.want {
			t.Errorf("told %v, want %v", got, c.want)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watching ended with %v", err)
	}
}
