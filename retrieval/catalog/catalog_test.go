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

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/catalog/catalogtest"
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

func TestConformance(t *testing.T) {
	t.Parallel()
	catalogtest.Run(t, open)
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
