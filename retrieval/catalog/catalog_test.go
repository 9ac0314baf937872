package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

func open(t testing.TB, dir string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
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

func TestRecord_Enter(t *testing.T) {
	t.Parallel()
	var r catalog.Record
	r.Enter(catalog.Failed, noon)
	r.Reason, r.Retryable = "the disk is full", true
	before := r
	for i := range 40 {
		r.Enter(catalog.Queued, noon.Add(time.Duration(i)*time.Second))
	}
	if r.Reason != "" || r.Retryable || r.State != catalog.Queued {
		t.Errorf("the reason of an earlier state stayed: %+v", r)
	}
	if len(r.Changes) != 24 || !r.Since().Equal(noon.Add(39*time.Second).Truncate(time.Millisecond)) {
		t.Errorf("%d changes, since %v", len(r.Changes), r.Since())
	}
	if len(before.Changes) != 1 || before.Changes[0].State != catalog.Failed {
		t.Errorf("an earlier copy changed: %+v", before.Changes)
	}
}

func TestCatalog_SurvivesReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir)
	full := record("aa", "/d/a.md", catalog.Published)
	full.Revision, full.Serving, full.Declared, full.Access = "r1", "r1", []string{"group:x"}, []string{"group:x"}
	full.Bytes, full.Characters, full.Chunks, full.Truncated, full.Warnings = 1, 2, 3, 1, []string{"w"}
	full.Stamp = catalog.Stamp{Pipeline: "1", Extractor: "2", Chunker: "3", Analysis: "4"}
	full.Stamp.Embedder.Dimensions = 384
	put(t, c, full, record("bb", "/d/b.md", catalog.Queued))
	want := c.List()
	if diff := cmp.Diff(full, want[0]); diff != "" {
		t.Errorf("put and list (-want +got):\n%s", diff)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, open(t, dir).List()); diff != "" {
		t.Errorf("after reopening (-want +got):\n%s", diff)
	}
}

func TestCatalog_PathsAndIDs(t *testing.T) {
	t.Parallel()
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

func TestCatalog_RefusesRecordsWithoutName(t *testing.T) {
	t.Parallel()
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

func TestCatalog_Compaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir)
	for i := range 30 {
		var rs []catalog.Record
		for j := range 200 {
			r := record(fmt.Sprintf("%04d", j), fmt.Sprintf("/d/%d.md", j), catalog.Failed)
			r.Reason = fmt.Sprintf("try %d: %s", i, strings.Repeat("x", 300))
			rs = append(rs, r)
		}
		put(t, c, rs...)
	}
	want := c.List()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	before, after := size(t, dir), int64(0)
	c = open(t, dir)
	after = size(t, dir)
	if after*4 > before {
		t.Errorf("%d bytes became %d", before, after)
	}
	if diff := cmp.Diff(want, c.List()); diff != "" {
		t.Errorf("after compaction (-want +got):\n%s", diff)
	}
	put(t, c, record("new", "/new", catalog.Queued))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir).List(); len(got) != 201 {
		t.Errorf("%d records after writing to the compacted log, want 201", len(got))
	}
}

func size(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, catalog.File))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestOpen_DamagedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, dir)
	put(t, c, record("aa", "/a", catalog.Published))
	put(t, c, record("bb", "/b", catalog.Published))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, catalog.File)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[70] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Open(dir); !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(err.Error(), "move catalog.log away") {
		t.Errorf("a flipped bit: %v", err)
	}
}

// Whatever is put and however often the catalog is reopened, it holds the
// last record of each id, and no live document hides behind a removed one.
func TestCatalog_Property(t *testing.T) {
	t.Parallel()
	states := []catalog.State{catalog.Queued, catalog.Published, catalog.Failed, catalog.Refused, catalog.Removed}
	step := rapid.Custom(func(t *rapid.T) catalog.Record {
		return record(rapid.SampledFrom([]string{"a", "b", "c", "reopen"}).Draw(t, "id"), rapid.SampledFrom([]string{"/x", "/y"}).Draw(t, "path"), rapid.SampledFrom(states).Draw(t, "state"))
	})
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "catalog")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c, err := catalog.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		want := map[retrieval.DocumentID]catalog.Record{}
		for _, r := range rapid.SliceOfN(step, 1, 8).Draw(t, "steps") {
			at, taken := c.At(r.Path)
			switch {
			case r.ID == "reopen":
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if c, err = catalog.Open(dir); err != nil {
					t.Fatal(err)
				}
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
