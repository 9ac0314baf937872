package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/retrieval/ingest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func doc(id string, access ...string) Meta { return Meta{ID: id, Name: "a.md", Access: access} }

func put(t testing.TB, b *Inbox, m Meta, content string) Entry {
	t.Helper()
	e, _, err := b.Put(t.Context(), m, strings.NewReader(content), Condition{})
	must(t, err)
	return e
}

// holds is what an inbox holds: id to access list and content.
func holds(t testing.TB, b *Inbox) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range b.List("", "", 1000) {
		c, err := b.Read(t.Context(), b.PathOf(e.ID))
		must(t, err)
		out[e.ID] = strings.Join(e.Access, " ") + ": " + string(c.Data)
	}
	return out
}

func TestWhatIsPutIsThereAfterOpening(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "inbox")
	b, err := Open(dir, "push:", Options{Now: func() time.Time { return time.Unix(1e9, 0) }})
	must(t, err)
	m := Meta{
		ID: "위키/휴가 정책", Name: "leave.md", Title: "Leave", Link: "https://wiki.example.org/1", Author: "Ada",
		Modified: time.Date(2031, 4, 1, 9, 0, 0, 5, time.FixedZone("", 3600)), Access: []string{"hr", "everyone", "hr"},
	}
	want := put(t, b, m, "# Leave\n")
	put(t, b, doc("other", "everyone"), "text")
	put(t, b, doc("other", "group:it"), "text, changed")
	put(t, b, doc("gone", "everyone"), "text")
	must(t, b.Delete("gone", Condition{}))

	b, err = Open(dir, "push:", Options{})
	must(t, err)
	got, ok := b.Get("위키/휴가 정책")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("-put +opened:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"위키/휴가 정책": "everyone group:hr: # Leave\n", "other": "group:it: text, changed"}, holds(t, b)); diff != "" {
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

func TestWhatChangesWhat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		second   func(*Meta)
		content  string
		change   Change
		revision bool // another one
	}{
		{"the same again", func(*Meta) {}, "text", Same, false},
		{"the list in another order", func(m *Meta) { m.Access = []string{"hr", "everyone"} }, "text", Same, false},
		{"another list", func(m *Meta) { m.Access = []string{"hr"} }, "text", Updated, false},
		{"another author", func(m *Meta) { m.Author = "Bob" }, "text", Updated, false},
		{"another title", func(m *Meta) { m.Title = "T" }, "text", Updated, true},
		{"another link", func(m *Meta) { m.Link = "https://x.example" }, "text", Updated, true},
		{"another format", func(m *Meta) { m.Name = "a.html" }, "text", Updated, true},
		{"another time", func(m *Meta) { m.Modified = time.Unix(1, 0) }, "text", Updated, true},
		{"other bytes", func(*Meta) {}, "Text", Updated, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := open(newDisk(), "push:", Options{})
			must(t, err)
			first := put(t, b, doc("a", "everyone", "group:hr"), "text")
			m := doc("a", "everyone", "group:hr")
			c.second(&m)
			second, change, err := b.Put(t.Context(), m, strings.NewReader(c.content), Condition{})
			must(t, err)
			if change != c.change || (first.Revision() != second.Revision()) != c.revision || (first.Tag() != second.Tag()) != (c.change == Updated) {
				t.Errorf("change %d, revisions %s %s, tags %s %s", change, first.Revision(), second.Revision(), first.Tag(), second.Tag())
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, field string
		m           Meta
		content     string
	}{
		{"no id", "id", doc("", "everyone"), "x"},
		{"an id that climbs", "id", doc("a/../b", "everyone"), "x"},
		{"an id with a dot as a part", "id", doc("./a", "everyone"), "x"},
		{"an id that begins with a slash", "id", doc("/a", "everyone"), "x"},
		{"an id with two slashes", "id", doc("a//b", "everyone"), "x"},
		{"an id with a line end", "id", doc("a\nb", "everyone"), "x"},
		{"an id with a NUL", "id", doc("a\x00b", "everyone"), "x"},
		{"an id with a backslash", "id", doc(`a\b`, "everyone"), "x"},
		{"an id that is no UTF-8", "id", doc("a\xff", "everyone"), "x"},
		{"an id with a mark that turns text", "id", doc("a\u202eb", "everyone"), "x"},
		{"a long id", "id", doc(strings.Repeat("ö", 257), "everyone"), "x"},
		{"no list", "access", doc("a"), "x"},
		{"an empty entry", "access", doc("a", ""), "x"},
		{"a list that cannot be understood", "access", doc("a", "everyone", "Everyone"), "x"},
		{"too long a list", "access", doc("a", strings.Split(strings.Repeat("g ", 101), " ")...), "x"},
		{"a format that is not read", "name", Meta{ID: "a", Name: "a.exe", Access: []string{"everyone"}}, "x"},
		{"a name with a folder", "name", Meta{ID: "a", Name: "b/a.md", Access: []string{"everyone"}}, "x"},
		{"a link that runs", "link", Meta{ID: "a", Name: "a.md", Link: "javascript:alert(1)", Access: []string{"everyone"}}, "x"},
		{"a link with a password", "link", Meta{ID: "a", Name: "a.md", Link: "https://u:p@x.example/", Access: []string{"everyone"}}, "x"},
		{"a title of two lines", "title", Meta{ID: "a", Name: "a.md", Title: "a\nb", Access: []string{"everyone"}}, "x"},
		{"a time before all", "modified", Meta{ID: "a", Name: "a.md", Modified: time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC), Access: []string{"everyone"}}, "x"},
		{"no content", "content", doc("a", "everyone"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk()
			b, err := open(d, "push:", Options{})
			must(t, err)
			_, _, err = b.Put(t.Context(), c.m, strings.NewReader(c.content), Condition{})
			var r *Refusal
			if !errors.As(err, &r) || r.Field != c.field {
				t.Errorf("%v, want a refusal of %s", err, c.field)
			}
			if len(d.files) != 0 {
				t.Errorf("it left %v", d.files)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	d := newDisk()
	b, err := open(d, "push:", Options{MaxBytes: 10, MaxDocuments: 2, MaxTotal: 15})
	must(t, err)
	put(t, b, doc("a", "everyone"), "1234567890")
	for _, c := range []struct {
		id, content string
		want        error
	}{
		{"b", "12345678901", ErrTooLarge}, {"b", "123456", ErrFull}, {"b", "12345", nil}, {"c", "1", ErrFull}, {"a", "1", nil}, {"b", "1234567890", nil},
	} {
		if _, _, err := b.Put(t.Context(), doc(c.id, "everyone"), strings.NewReader(c.content), Condition{}); !errors.Is(err, c.want) {
			t.Errorf("%s %q: %v, want %v", c.id, c.content, err, c.want)
		}
	}
	if left := d.left(); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		when         func(tag string) Condition
		absent, held bool // it holds
	}{
		{"none", func(string) Condition { return Condition{} }, true, true},
		{"absent", func(string) Condition { return Condition{Absent: true} }, true, false},
		{"any", func(string) Condition { return Condition{Any: true} }, false, true},
		{"this tag", func(tag string) Condition { return Condition{Tags: []string{"x", tag}} }, false, true},
		{"another tag", func(string) Condition { return Condition{Tags: []string{"x"}} }, false, false},
		{"the tag of nothing", func(string) Condition { return Condition{Tags: []string{""}} }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := open(newDisk(), "push:", Options{})
			must(t, err)
			e := put(t, b, doc("held", "everyone"), "x")
			try := func(id string) bool {
				_, _, err := b.Put(t.Context(), doc(id, "everyone"), strings.NewReader("y"), c.when(e.Tag()))
				if err != nil && !errors.Is(err, ErrChanged) {
					t.Fatal(err)
				}
				return err == nil
			}
			if got := [2]bool{try("absent"), try("held")}; got != [2]bool{c.absent, c.held} {
				t.Errorf("put: absent %t, held %t", got[0], got[1])
			}
			put(t, b, doc("held", "everyone"), "x")
			if err := b.Delete("held", c.when(e.Tag())); errors.Is(err, ErrChanged) == c.held {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// Wherever the power goes, the inbox has all of the old or all of the new, and
// what was said to be done is done.
func TestPowerCutAtEveryStep(t *testing.T) {
	t.Parallel()
	const olds, news = "everyone: old, for all", "group:hr: new, for few"
	work := map[string]struct {
		do    func(*Inbox) error
		after string
	}{
		"put": {func(b *Inbox) error {
			_, _, err := b.Put(context.Background(), doc("a", "group:hr"), strings.NewReader("new, for few"), Condition{})
			return err
		}, news},
		"delete": {func(b *Inbox) error { return b.Delete("a", Condition{}) }, ""},
	}
	for name, w := range work {
		done := false
		for stop := 0; !done; stop++ {
			d := newDisk()
			b, err := open(d, "push:", Options{})
			must(t, err)
			put(t, b, doc("a", "everyone"), "old, for all")
			d.stop = stop
			err = w.do(b)
			done = err == nil
			for _, view := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
				again := d.after(view[0], view[1])
				b, err := open(again, "push:", Options{})
				must(t, err)
				got := holds(t, b)["a"]
				if got != w.after && (done || got != olds) {
					t.Errorf("%s cut at step %d (new names %t, new bytes %t): %q", name, stop, view[0], view[1], got)
				}
				if len(b.Damaged()) > 0 || len(again.left()) > 0 {
					t.Errorf("%s cut at step %d: damaged %v, left %v", name, stop, b.Damaged(), again.left())
				}
			}
		}
	}
}

// A step that fails once (a full disk) leaves the inbox usable, and the same
// request again is durable.
func TestFailureAtEveryStep(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for stop, failed := 0, true; failed; stop++ {
		d := newDisk()
		b, err := open(d, "push:", Options{})
		must(t, err)
		put(t, b, doc("a", "everyone"), "old")
		d.stop, d.failing = stop, full
		_, _, err = b.Put(t.Context(), doc("a", "group:hr"), strings.NewReader("new"), Condition{})
		if failed = err != nil; failed && !errors.Is(err, full) {
			t.Fatal(err)
		}
		d.stop = -1
		put(t, b, doc("a", "group:hr"), "new")
		again, err := open(d.after(false, false), "push:", Options{})
		must(t, err)
		if got := holds(t, again)["a"]; got != "group:hr: new" {
			t.Errorf("failure at step %d: %q", stop, got)
		}
	}
}

func TestDamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(dir, "push:", Options{})
	must(t, err)
	put(t, b, doc("a", "everyone"), "text a")
	put(t, b, doc("b", "everyone"), "text b")
	put(t, b, doc("c", "everyone"), "text c")
	raw, err := os.ReadFile(filepath.Join(dir, fileOf("a")))
	must(t, err)
	raw[len(raw)-footLen-3] ^= 1 // in the entry
	must(t, os.WriteFile(filepath.Join(dir, fileOf("a")), raw, 0o600))
	raw, err = os.ReadFile(filepath.Join(dir, fileOf("b")))
	must(t, err)
	raw[0] ^= 1 // in the content
	must(t, os.WriteFile(filepath.Join(dir, fileOf("b")), raw, 0o600))
	must(t, os.Rename(filepath.Join(dir, fileOf("c")), filepath.Join(dir, fileOf("x"))))

	b, err = Open(dir, "push:", Options{})
	must(t, err)
	if got := b.List("", "", 9); len(b.Damaged()) != 2 || len(got) != 1 || got[0].ID != "b" {
		t.Errorf("damaged %v, held %v", b.Damaged(), got)
	}
	var fault *ingest.Fault
	if _, err := b.Read(t.Context(), "push:/b"); !errors.As(err, &fault) {
		t.Errorf("changed content is read: %v", err)
	}
	put(t, b, doc("a", "everyone"), "text a, again")
	b, err = Open(dir, "push:", Options{})
	must(t, err)
	if len(b.Damaged()) != 0 || len(b.List("", "", 9)) != 2 {
		t.Errorf("damaged %v, held %v", b.Damaged(), b.List("", "", 9))
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b, err := open(newDisk(), "push:", Options{})
	must(t, err)
	for _, id := range []string{"b/2", "a", "b/1", "c", "b/3"} {
		put(t, b, doc(id, "everyone"), "x")
	}
	var got []string
	for after := ""; ; {
		page := b.List("b/", after, 2)
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

// Many senders of one id: at the end the inbox, in memory and on the disk,
// holds one of what was sent, list and content together.
func TestSendersOfOneDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(dir, "push:", Options{})
	must(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				text := fmt.Sprintf("g%d", i)
				if n%5 == 4 {
					if err := b.Delete("a", Condition{}); err != nil && !errors.Is(err, ErrNotFound) {
						t.Error(err)
					}
				} else if _, _, err := b.Put(t.Context(), doc("a", "group:"+text), strings.NewReader(text), Condition{}); err != nil {
					t.Error(err)
				}
				if c, err := b.Read(t.Context(), "push:/a"); err == nil && !bytes.HasPrefix(c.Data, []byte("g")) {
					t.Errorf("read %q", c.Data)
				}
			}
		})
	}
	wg.Wait()
	again, err := Open(dir, "push:", Options{})
	must(t, err)
	if diff := cmp.Diff(holds(t, b), holds(t, again)); diff != "" {
		t.Errorf("-memory +disk:\n%s", diff)
	}
	for _, v := range holds(t, again) {
		group, text, _ := strings.Cut(strings.TrimPrefix(v, "group:"), ": ")
		if group != text {
			t.Errorf("list and content of two senders: %s", v)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, err := open(newDisk(), "push:", Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	endless := io.MultiReader(strings.NewReader("x"), readerFunc(func(p []byte) (int, error) { cancel(); return 1, nil }))
	if _, _, err := b.Put(ctx, doc("a", "everyone"), endless, Condition{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, held := b.Get("a"); held {
		t.Error("half a document was taken")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestGoneSpeaksOfItsOwnPaths(t *testing.T) {
	t.Parallel()
	b, err := open(newDisk(), "push:", Options{})
	must(t, err)
	put(t, b, doc("a", "everyone"), "x")
	for path, want := range map[string]bool{"push:/a": false, "push:/b": true, "/push:/b": false, "push:": false, "chat:/b": false} {
		if b.Gone(path) != want {
			t.Errorf("Gone(%q) = %t", path, !want)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"a", "a/b", "휴가", "e\u0301", "../a", "a/./b", "a\x00", " a", "%2e%2e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		if again, err := ParseID(id); err != nil || again != id {
			t.Errorf("%q becomes %q, then %q, %v", s, id, again, err)
		}
		if path := "push:/" + id; filepath.Clean(path) != path || len(id) > MaxID {
			t.Errorf("%q is the path %q", id, filepath.Clean(path))
		}
	})
}

func FuzzDecode(f *testing.F) {
	e := Entry{Meta: doc("a", "everyone"), Size: 4, Sum: strings.Repeat("0", 64)}
	f.Add(append([]byte("text"), e.encode()...))
	e.Access = nil
	f.Add(append([]byte("text"), e.encode()...))
	f.Add([]byte("FNINBOX1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if e.List().IsZero() || e.List().Equal(acl.List{}) || e.Size < 0 || e.Size > int64(len(b)) {
			t.Errorf("decoded %+v", e)
		}
	})
}
