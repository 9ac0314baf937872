package inbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	all, err := b.List(t.Context(), "", "", 1000)
	must(t, err)
	for _, e := range all {
		c, err := b.Read(t.Context(), b.PathOf(e.ID))
		must(t, err)
		out[e.ID] = strings.Join(e.Access, " ") + ": " + string(c.Data)
	}
	return out
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
		"delete": {func(b *Inbox) error { return b.Delete(context.Background(), "a", Condition{}) }, ""},
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
	if got, err := b.List(t.Context(), "", "", 9); err != nil || len(b.Damaged()) != 2 || len(got) != 1 || got[0].ID != "b" {
		t.Errorf("damaged %v, held %v", b.Damaged(), got)
	}
	var fault *ingest.Fault
	if _, err := b.Read(t.Context(), "push:/b"); !errors.As(err, &fault) {
		t.Errorf("changed content is read: %v", err)
	}
	put(t, b, doc("a", "everyone"), "text a, again")
	b, err = Open(dir, "push:", Options{})
	must(t, err)
	if got, err := b.List(t.Context(), "", "", 9); err != nil || len(b.Damaged()) != 0 || len(got) != 2 {
		t.Errorf("damaged %v, held %v, %v", b.Damaged(), got, err)
	}
}

// Nothing is left of what is not taken.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	d := newDisk()
	b, err := open(d, "push:", Options{MaxBytes: 10, MaxTotal: 15})
	must(t, err)
	put(t, b, doc("a", "everyone"), "1234567890")
	for what, content := range map[string]string{"too large": "12345678901", "too much": "123456", "empty": ""} {
		if _, _, err := b.Put(t.Context(), doc("b", "everyone"), strings.NewReader(content), Condition{}); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
	put(t, b, doc("a", "everyone"), "1234567890")
	if left := d.left(); len(left) != 0 {
		t.Errorf("it left %v", left)
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
