// Package catalogtest is the suite that every catalog must pass, whether it is
// kept in the data directory or shared by processes.
package catalogtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// Open opens the catalog that an earlier call with the same place left. place
// is an empty directory at first, which no other test has.
type Open func(t testing.TB, place string) *catalog.Catalog

// Run runs the suite.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"survives reopening":   survivesReopening,
		"paths and ids":        pathsAndIDs,
		"refuses the nameless": refusesNameless,
		"whatever is put":      property,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func put(t testing.TB, c *catalog.Catalog, rs ...catalog.Record) {
	t.Helper()
	if err := c.Put(rs...); err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2025, 3, 4, 12, 0, 0, 123456789, time.UTC)

func record(id, path string, s catalog.State) catalog.Record {
	r := catalog.Record{ID: retrieval.DocumentID(id), Path: path}
	r.Enter(s, noon)
	return r
}

func survivesReopening(t *testing.T, open Open) {
	dir := t.TempDir()
	c := open(t, dir)
	full := record("aa", "/d/a.md", catalog.Published)
	full.Revision, full.Serving, full.Declared, full.Access = "r1", "r1", []string{"group:x"}, []string{"group:x"}
	full.Bytes, full.Characters, full.Chunks, full.Truncated, full.Warnings = 1, 2, 3, 1, []string{"w"}
	full.Stamp = catalog.Stamp{Pipeline: "1", Extractor: "2", Chunker: "3", Analysis: "4"}
	full.Stamp.Embedder.Dimensions = 384
	waiting := record("bb", "/d/b.md", catalog.Queued)
	waiting.Own = true
	put(t, c, full, waiting)
	want := c.List()
	if diff := cmp.Diff([]catalog.Record{full, waiting}, want); diff != "" {
		t.Errorf("put and list (-want +got):\n%s", diff)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, open(t, dir).List()); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
}

func pathsAndIDs(t *testing.T, open Open) {
	c := open(t, t.TempDir())
	first := c.NewID("/d/a.md")
	if len(first) != 12 || strings.Trim(string(first), "0123456789abcdef") != "" {
		t.Errorf("id %q: want 12 hex digits", first)
	}
	put(t, c, record(string(first), "/d/a.md", catalog.Published))
	// The file moves; a new one takes its old path.
	put(t, c, record(string(first), "/d/moved.md", catalog.Published))
	if _, ok := c.At("/d/a.md"); ok {
		t.Error("the old path still leads to the document")
	}
	second := c.NewID("/d/a.md")
	if second == first {
		t.Fatal("two documents would have one id")
	}
	put(t, c, record(string(second), "/d/a.md", catalog.Published))
	// What was removed does not take the path from what lies there.
	put(t, c, record("ffff", "/d/a.md", catalog.Removed))
	for path, want := range map[string]retrieval.DocumentID{"/d/a.md": second, "/d/moved.md": first} {
		if r, ok := c.At(path); !ok || r.ID != want {
			t.Errorf("at %s: %q, want %q", path, r.ID, want)
		}
	}
	for text, want := range map[string]retrieval.DocumentID{string(first[:6]): first, "/d/a.md": second, "ffff": "ffff"} {
		if r, err := c.Find(text); err != nil || r.ID != want {
			t.Errorf("find %q: %q, %v", text, r.ID, err)
		}
	}
	for _, none := range []string{"", "zz"} {
		if _, err := c.Find(none); !errors.Is(err, retrieval.ErrNotFound) {
			t.Errorf("find %q: %v", none, err)
		}
	}
	put(t, c, record("ffee", "/e", catalog.Queued))
	if _, err := c.Find("ff"); err == nil || !strings.Contains(err.Error(), "2 documents") {
		t.Errorf("find an ambiguous prefix: %v", err)
	}
}

func refusesNameless(t *testing.T, open Open) {
	c := open(t, t.TempDir())
	for _, r := range []catalog.Record{{Path: "/a"}, {ID: "a"}} {
		if err := c.Put(record("ok", "/ok", catalog.Queued), r); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	if got := c.List(); len(got) != 0 {
		t.Errorf("a refused group left %d records", len(got))
	}
}

// Whatever is put and however often the catalog is reopened, it holds the
// last record of each id, and no live document hides behind a removed one.
func property(outer *testing.T, open Open) {
	states := []catalog.State{catalog.Queued, catalog.Published, catalog.Failed, catalog.Refused, catalog.Removed}
	step := rapid.Custom(func(t *rapid.T) catalog.Record {
		return record(rapid.SampledFrom([]string{"a", "b", "c", "reopen"}).Draw(t, "id"), rapid.SampledFrom([]string{"/x", "/y"}).Draw(t, "path"), rapid.SampledFrom(states).Draw(t, "state"))
	})
	rapid.Check(outer, func(t *rapid.T) {
		dir := outer.TempDir()
		c := open(outer, dir)
		want := map[retrieval.DocumentID]catalog.Record{}
		for _, r := range rapid.SliceOfN(step, 1, 8).Draw(t, "steps") {
			at, taken := c.At(r.Path)
			switch {
			case r.ID == "reopen":
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				c = open(outer, dir)
			case taken && at.ID != r.ID && at.State != catalog.Removed && r.State != catalog.Removed:
				// Two live documents never share a path.
			default:
				if err := c.Put(r); err != nil {
					t.Fatal(err)
				}
				want[r.ID] = r
			}
			holds(t, c, want)
		}
	})
}

func holds(t *rapid.T, c *catalog.Catalog, want map[retrieval.DocumentID]catalog.Record) {
	for _, r := range c.List() {
		if diff := cmp.Diff(want[r.ID], r); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", r.ID, diff)
		}
		if at, ok := c.At(r.Path); r.State != catalog.Removed && (!ok || at.ID != r.ID) {
			t.Fatalf("%s at %s hides behind %s", r.ID, r.Path, at.ID)
		}
	}
	if len(c.List()) != len(want) {
		t.Fatalf("%d records, want %d", len(c.List()), len(want))
	}
}
