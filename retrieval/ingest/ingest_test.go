package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/catalog"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
	"footnote/retrieval/memindex"
)

// folder is a source over real files, with access lists by relative path
// ("" is the rule for the rest).
type folder struct {
	root   string
	access map[string]acl.List
	faults map[string]*Fault // of the listing, by relative path
	reads  map[string]error  // of reading
}

func (f *folder) Root() string { return f.root }

func (f *folder) Items(context.Context) ([]Item, error) {
	var items []Item
	err := filepath.WalkDir(f.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(f.root, path)
		if err != nil {
			return err
		}
		if fault := f.faults[rel]; fault != nil {
			items = append(items, Item{Path: path, Fault: fault})
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() {
			list, own := f.access[rel]
			if !own {
				list = f.access[""]
			}
			items = append(items, Item{Path: path, Access: list})
		}
		return nil
	})
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Path, b.Path) })
	return items, err
}

func (f *folder) Read(_ context.Context, path string) (Content, error) {
	if rel, err := filepath.Rel(f.root, path); err == nil && f.reads[rel] != nil {
		return Content{}, f.reads[rel]
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Content{}, &Fault{Reason: "the file vanished", Retryable: true}
	}
	return Content{Data: data, Modified: time.Unix(1700000000, 0)}, nil
}

func (f *folder) Gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (f *folder) write(t testing.TB, rel, content string) {
	t.Helper()
	path := filepath.Join(f.root, rel)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func (f *folder) path(rel string) string { return filepath.Join(f.root, rel) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var everyone = acl.NewList(acl.Everyone)

func newFolder(t testing.TB, files map[string]string) *folder {
	t.Helper()
	f := &folder{root: t.TempDir(), access: map[string]acl.List{"": everyone}, faults: map[string]*Fault{}, reads: map[string]error{}}
	for rel, content := range files {
		f.write(t, rel, content)
	}
	return f
}

// bench is a data directory with everything open.
type bench struct {
	*Pipeline
	t     testing.TB
	dir   string
	store *memindex.Store
	cat   *catalog.Catalog
	model *modelstest.Embedder
	close func()
}

func open(t testing.TB, dir string, model models.Embedder, tune ...func(*Options)) *bench {
	t.Helper()
	store, err := memindex.Open(dir)
	must(t, err)
	cat, err := catalog.Open(dir)
	must(t, err)
	cache, err := OpenCache(dir, model.Info())
	must(t, err)
	o := Options{Cache: cache, Wait: func(context.Context, int) error { return nil }}
	for _, f := range tune {
		f(&o)
	}
	b := &bench{Pipeline: New(store, cat, model, o), t: t, dir: dir, store: store, cat: cat}
	b.model, _ = model.(*modelstest.Embedder)
	closed := false
	b.close = func() {
		if !closed {
			closed = true
			must(t, errors.Join(cache.Close(), cat.Close(), store.Close()))
		}
	}
	t.Cleanup(b.close)
	return b
}

func (b *bench) ingest(src Source, how How) Report {
	b.t.Helper()
	r, err := b.Ingest(context.Background(), src, how)
	must(b.t, err)
	b.consistent()
	return r
}

// consistent holds the catalog to the index.
func (b *bench) consistent() {
	b.t.Helper()
	diffs, err := b.Verify(context.Background())
	if err != nil && !errors.Is(err, retrieval.ErrNoIndex) {
		b.t.Fatal(err)
	}
	for _, d := range diffs {
		b.t.Errorf("%s: %s", d.Path, d.What)
	}
}

// search returns the paths of what a person holding these finds, in order.
func (b *bench) search(text string, holds ...acl.Principal) []string {
	b.t.Helper()
	ctx := context.Background()
	g, err := b.store.Open(ctx, "")
	must(b.t, err)
	grant := acl.NewGrant(acl.NewIdentity("user:asker", holds...), acl.AskerOnly())
	found, err := g.Search(ctx, grant, retrieval.Query{Terms: analysis.Terms(text), Depth: 50})
	must(b.t, err)
	var ids []retrieval.ChunkID
	for _, h := range found.Lexical {
		ids = append(ids, h.ID)
	}
	ps, err := g.Passages(ctx, grant, ids)
	must(b.t, err)
	var paths []string
	for _, p := range ps {
		paths = append(paths, filepath.Base(p.Path))
	}
	return slices.Compact(paths)
}

func (b *bench) states() map[string]catalog.State {
	out := map[string]catalog.State{}
	for _, r := range b.cat.List() {
		out[filepath.Base(r.Path)] = r.State
	}
	return out
}

func text(words ...string) string { return "# Title\n\n" + strings.Join(words, " ") + ".\n" }

func TestIngest_StatesAndCounters(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "sub/c.txt": "gamma ray"})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	r := b.ingest(src, How{})
	if r.Published != 3 || r.Chunks != 3 || !r.Promoted || r.String() != "3 published, 0 unchanged, 0 failed, 0 refused, 0 removed\n0 of 3 chunks cut at 512 tokens\n" {
		t.Errorf("report: %+v\n%s", r, r)
	}
	if diff := cmp.Diff([]string{"b.md"}, b.search("beta", acl.Everyone)); diff != "" {
		t.Errorf("search (-want +got):\n%s", diff)
	}
	for _, rec := range b.cat.List() {
		var states []catalog.State
		for _, c := range rec.Changes {
			states = append(states, c.State)
		}
		want := []catalog.State{catalog.Queued, catalog.Extracting, catalog.Chunking, catalog.Embedding, catalog.Published}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Errorf("%s went through (-want +got):\n%s", rec.Path, diff)
		}
		if rec.Stamp != b.Stamp() || rec.Bytes == 0 || rec.Characters == 0 || rec.Chunks != 1 || rec.Serving != rec.Revision || len(rec.ID) != 12 {
			t.Errorf("record %+v", rec)
		}
	}
}

func TestIngest_SameBytesDoNothing(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	embedded, records := b.model.Passages(), b.cat.List()
	b.close()
	b = open(t, dir, b.model)
	before := sizes(t, dir)
	r := b.ingest(src, How{})
	if r.Unchanged != 2 || r.Published != 0 || b.model.Passages() != embedded {
		t.Errorf("second run: %+v, %d embedded, want %d", r, b.model.Passages(), embedded)
	}
	if diff := cmp.Diff(records, b.cat.List()); diff != "" {
		t.Errorf("records changed (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, sizes(t, dir)); diff != "" {
		t.Errorf("files grew (-before +after):\n%s", diff)
	}
}

// sizes maps the files of the data directory to their lengths.
func sizes(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[strings.TrimPrefix(path, dir)] = info.Size()
		}
		return err
	}))
	return out
}

func TestIngest_SameContentTwiceSharesEmbeddings(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"d1/same.md": text("alpha beta"), "d2/same.md": text("alpha beta")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	r := b.ingest(src, How{})
	if r.Published != 2 || b.model.Passages() != 1 {
		t.Errorf("published %d with %d texts embedded, want 2 with 1", r.Published, b.model.Passages())
	}
	if rs := b.cat.List(); rs[0].ID == rs[1].ID || rs[0].Revision != rs[1].Revision {
		t.Errorf("want two documents of one revision: %+v", rs)
	}
	// The cache outlives the index.
	b.close()
	must(t, os.RemoveAll(filepath.Join(dir, "generations")))
	must(t, os.Remove(filepath.Join(dir, "current")))
	b = open(t, dir, b.model)
	if r := b.ingest(src, How{}); r.Published != 2 || b.model.Passages() != 1 {
		t.Errorf("after the index was lost: %+v, %d embedded", r, b.model.Passages())
	}
}

func TestIngest_Truncated(t *testing.T) {
	t.Parallel()
	long := "word " + strings.Repeat("veryveryverylong.", 4)
	src := newFolder(t, map[string]string{"a.md": "# T\n\n" + long + "\n", "b.md": "# T\n\nshort\n"})
	b := open(t, t.TempDir(), modelstest.NewEmbedder(modelstest.WithWindow(32)), func(o *Options) { o.Chunk.Budget = 100 })
	for _, want := range []string{"0 of 2 chunks cut at 32 tokens", "1 of 1 chunks cut at 32 tokens"} {
		if r := b.ingest(src, How{}); !strings.Contains(r.String(), want) {
			t.Errorf("report %q, want %q in it", r, want)
		}
		src.write(t, "a.md", "# T\n\n"+strings.Repeat(long+" ", 4)+"\n")
	}
	rec, _ := b.cat.At(src.path("a.md"))
	if rec.Truncated != 1 || rec.Chunks != 1 {
		t.Errorf("record: %d of %d cut, want 1 of 1", rec.Truncated, rec.Chunks)
	}
}

func TestIngest_OneBadDocumentStopsNoOther(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{
		"ok1.md": text("alpha"), "ok2.md": text("alpha"), "empty.md": "", "blank.txt": " \n\n ", "panics.md": text("boom"), "big.md": text("big"), "unread.md": text("u"), "odd.xyz": "alpha",
		"front.md": "---\naccess: [no good]\n---\n" + text("alpha"), "nolist.md": text("alpha"), "none.md": "---\naccess: []\n---\n" + text("alpha"),
	})
	src.access["nolist.md"] = acl.List{}
	src.faults["big.md"] = &Fault{Reason: "the file is too large: 200.0 MB"}
	src.reads["unread.md"] = errors.New("input/output error")
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.extract = func(ctx context.Context, s extract.Source) (doctree.Tree, error) {
		if filepath.Base(s.Path) == "panics.md" {
			panic("index out of range")
		}
		return extract.Extract(ctx, s)
	}
	r := b.ingest(src, How{})
	got := map[string]string{}
	for _, x := range append(slices.Clone(r.Failed), r.Refused...) {
		reason, _, _ := strings.Cut(x.Reason, ":")
		got[filepath.Base(x.Path)] = fmt.Sprintf("%t %s", x.Retryable, reason)
	}
	want := map[string]string{
		"empty.md":  "false no text found",
		"blank.txt": "false no text found",
		"panics.md": "false the parser failed on this file (index out of range); please report it",
		"big.md":    "false the file is too large",
		"unread.md": "true the document could not be read",
		"odd.xyz":   "false unsupported format .xyz",
		"front.md":  "false the access list of its front matter cannot be used",
		"none.md":   "false the access list of its front matter cannot be used",
		"nolist.md": "false no access list",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	if r.Published != 2 || len(r.Refused) != 3 || !slices.IsSortedFunc(r.Failed, func(a, b Trouble) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("report: %+v", r)
	}
	if diff := cmp.Diff([]string{"ok1.md", "ok2.md"}, b.search("alpha", acl.Everyone), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("search (-want +got):\n%s", diff)
	}
}

// A parser that neither returns nor looks at ctx fails its document, and the
// last good revision stays.
func TestIngest_Deadline(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	src.write(t, "a.md", text("beta"))
	hang := make(chan struct{})
	defer close(hang)
	b.options.Timeout = time.Millisecond
	b.extract = func(context.Context, extract.Source) (doctree.Tree, error) {
		<-hang
		return doctree.Tree{}, nil
	}
	r := b.ingest(src, How{})
	if len(r.Failed) != 1 || !r.Failed[0].Retryable || r.Failed[0].Reason != "reading it took longer than 1ms; split it, or raise ingest.extract.seconds" {
		t.Errorf("report: %+v", r)
	}
	if got := b.search("alpha", acl.Everyone); len(got) != 1 || b.states()["a.md"] != catalog.Failed {
		t.Errorf("found %v, states %v", got, b.states())
	}
}

// TestCase_S8: what waits is queued and not timed; a run that ended in any
// state goes on with what is left, and embeds nothing twice.
func TestCase_S8(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta")})
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var b *bench
	stop := true
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b = open(t, t.TempDir(), modelstest.NewEmbedder(), func(o *Options) {
		o.Workers = 1
		o.Now = func() time.Time { return now }
		o.Progress = func(e Event) {
			if stop && e.State == catalog.Published {
				cancel()
			}
		}
	})
	if _, err := b.Ingest(ctx, src, How{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("the stopped run: %v", err)
	}
	stop = false
	now = now.Add(100 * time.Hour) // longer than any time limit
	b.ingest(src, How{})
	if s := b.states(); s["a.md"] != catalog.Published || s["b.md"] != catalog.Published || b.model.Passages() != 2 {
		t.Errorf("states %v, %d texts embedded", s, b.model.Passages())
	}
}

// TestCase_X1: what has no text is never published with zero chunks.
func TestCase_X1(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"zero.txt": "", "front.md": "---\ntitle: x\n---\n", "marks.html": "<html><body><img src=x></body></html>", "ok.md": text("ok")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	r := b.ingest(src, How{})
	if len(r.Failed) != 3 || r.Published != 1 {
		t.Fatalf("report: %+v", r)
	}
	for _, f := range r.Failed {
		if !strings.HasPrefix(f.Reason, "no text found") {
			t.Errorf("%s: %s", f.Path, f.Reason)
		}
	}
	// A document that loses its text loses its place.
	src.write(t, "ok.md", "")
	if r := b.ingest(src, How{}); len(r.Failed) != 4 || len(b.search("ok", acl.Everyone)) != 0 {
		t.Errorf("after it was emptied: %+v", r)
	}
}

// TestCase_P9: documents without an access list are counted and named, never
// silently left out or opened.
func TestCase_P9(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "own.md": "---\naccess: security\n---\n" + text("alpha"), "b.md": text("alpha")})
	src.access[""] = acl.List{}
	src.access["a.md"] = everyone
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	r := b.ingest(src, How{})
	if len(r.Refused) != 1 || !strings.HasPrefix(r.Refused[0].Reason, "no access list") || !strings.Contains(r.String(), "1 refused") {
		t.Errorf("report: %+v", r)
	}
	for _, tc := range []struct {
		holds []acl.Principal
		want  []string
	}{{[]acl.Principal{acl.Everyone}, []string{"a.md"}}, {[]acl.Principal{acl.Everyone, acl.Group("security")}, []string{"a.md", "own.md"}}, {nil, nil}} {
		if diff := cmp.Diff(tc.want, b.search("alpha", tc.holds...), cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.holds, diff)
		}
	}
}

// TestCase_S4: after updates of one document only its latest text is found.
func TestCase_S4(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("version0")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	first := b.cat.List()[0]
	for i := 1; i <= 2; i++ {
		src.write(t, "a.md", text(fmt.Sprintf("version%d", i)))
		b.ingest(src, How{})
	}
	for range 20 {
		if old, now := b.search("version0 version1", acl.Everyone), b.search("version2", acl.Everyone); len(old) != 0 || len(now) != 1 {
			t.Fatalf("old text found in %v, new in %v", old, now)
		}
	}
	if rs := b.cat.List(); len(rs) != 1 || rs[0].ID != first.ID || rs[0].Revision == first.Revision {
		t.Errorf("want the same document with a new revision: %+v", rs)
	}
}

// TestCase_S1: what is deleted is gone from every generation at return.
func TestCase_S1(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("alpha")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	rec, _ := b.cat.At(src.path("a.md"))
	must(t, b.Remove(context.Background(), rec.ID))
	b.consistent()
	if got := b.search("alpha", acl.Everyone); !slices.Equal(got, []string{"b.md"}) {
		t.Errorf("found %v", got)
	}
	g, err := b.store.Open(context.Background(), "")
	must(t, err)
	if _, err := g.Document(context.Background(), system.Grant(), rec.ID, rec.Revision); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("its text: %v, want not found", err)
	}
	if err := b.Remove(context.Background(), "nobody"); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("removing the unknown: %v", err)
	}
	// The file is still there: asked again, it comes back as itself.
	b.ingest(src, How{})
	if again, _ := b.cat.At(src.path("a.md")); again.ID != rec.ID || again.State != catalog.Published {
		t.Errorf("came back as %+v", again)
	}
}

// TestCase_S6: a deleted folder leaves the index when asked, and only that.
func TestCase_S6(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"keep.md": text("alpha"), "d/x.md": text("alpha x"), "d/y.md": text("alpha y"), "shut/z.md": text("alpha z")})
	other := newFolder(t, map[string]string{"other.md": text("alpha o")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	b.ingest(other, How{})
	must(t, os.RemoveAll(src.path("d")))
	src.faults["shut"] = &Fault{Reason: "the folder could not be read", Retryable: true}
	r := b.ingest(src, How{})
	if diff := cmp.Diff([]string{src.path("d/x.md"), src.path("d/y.md")}, r.Missing); diff != "" || len(b.search("alpha", acl.Everyone)) != 5 {
		t.Errorf("without prune: missing (-want +got):\n%s", diff)
	}
	r = b.ingest(src, How{Prune: true})
	if r.Removed != 2 || len(r.Missing) != 0 {
		t.Errorf("with prune: %+v", r)
	}
	if diff := cmp.Diff([]string{"keep.md", "other.md", "z.md"}, b.search("alpha", acl.Everyone), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("search (-want +got):\n%s", diff)
	}
	if s := b.states(); s["x.md"] != catalog.Removed || s["z.md"] != catalog.Published {
		t.Errorf("states: %v", s)
	}
	// A source that cannot be listed removes nothing.
	must(t, os.RemoveAll(src.root))
	if _, err := b.Ingest(context.Background(), src, How{Prune: true}); err == nil {
		t.Error("a missing root was taken for an empty one")
	}
	b.consistent()
}

func TestIngest_Moved(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "twin.md": text("twin"), "own.md": "---\naccess: everyone\n---\n" + text("own")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	id := func(rel string) retrieval.DocumentID { r, _ := b.cat.At(src.path(rel)); return r.ID }
	a, twin, own := id("a.md"), id("twin.md"), id("own.md")
	must(t, os.MkdirAll(src.path("d"), 0o700))
	must(t, os.Rename(src.path("a.md"), src.path("d/b.md")))
	must(t, os.Rename(src.path("own.md"), src.path("d/own.md")))
	src.write(t, "copy.md", text("twin"))
	src.access["d/b.md"] = acl.NewList(acl.Group("ops"))
	src.access["d/own.md"] = acl.List{}
	embedded := b.model.Passages()
	r := b.ingest(src, How{})
	if r.Moved != 2 || r.Published != 3 || len(r.Missing) != 0 {
		t.Errorf("report: %+v", r)
	}
	if b.model.Passages() != embedded {
		t.Errorf("%d texts embedded again", b.model.Passages()-embedded)
	}
	if id("d/b.md") != a || id("d/own.md") != own || id("twin.md") != twin || id("copy.md") == twin || id("a.md") != "" {
		t.Errorf("ids: %v", b.cat.List())
	}
	if got := b.search("alpha", acl.Everyone); len(got) != 0 {
		t.Errorf("the new folder's list is not in force: %v", got)
	}
	if got := b.search("alpha", acl.Group("ops")); !slices.Equal(got, []string{"b.md"}) {
		t.Errorf("at its new path: %v", got)
	}
}

func TestIngest_AccessChangeEmbedsNothing(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "own.md": "---\naccess: everyone\n---\n" + text("alpha")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	embedded := b.model.Passages()
	src.access[""] = acl.NewList(acl.Group("ops"))
	r := b.ingest(src, How{})
	if r.AccessChanged != 1 || r.Unchanged != 2 || b.model.Passages() != embedded {
		t.Errorf("report: %+v, %d embedded", r, b.model.Passages()-embedded)
	}
	if got := b.search("alpha", acl.Everyone); !slices.Equal(got, []string{"own.md"}) {
		t.Errorf("everyone finds %v", got)
	}
	// No list any more: refused and gone, without being read as public.
	src.access[""] = acl.List{}
	if r := b.ingest(src, How{}); len(r.Refused) != 1 || len(b.search("alpha", acl.Group("ops"))) != 0 {
		t.Errorf("without a list: %+v", r)
	}
	src.access[""] = everyone
	if r := b.ingest(src, How{}); r.Published != 1 || len(b.search("alpha", acl.Everyone)) != 2 {
		t.Errorf("with a list again: %+v", r)
	}
}

// failing is an embedder that fails as long as fails is positive.
type failing struct {
	*modelstest.Embedder
	fails atomic.Int64
	calls atomic.Int64
}

func (f *failing) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	f.calls.Add(1)
	if f.fails.Add(-1) >= 0 {
		return nil, errors.New("503 service unavailable")
	}
	return f.Embedder.EmbedPassages(ctx, texts)
}

// TestCase_S9: two failures of the model, then success: the document is
// published in the same run. A model that stays away fails each document as
// retryable without waiting for each, and the next run completes.
func TestCase_S9(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "c.md": text("gamma")})
	model := &failing{Embedder: modelstest.NewEmbedder()}
	var waits []int
	b := open(t, t.TempDir(), model, func(o *Options) {
		o.Wait = func(_ context.Context, n int) error { waits = append(waits, n); return nil }
	})
	model.fails.Store(1000)
	if r := b.ingest(src, How{}); len(r.Failed) != 3 || !r.Failed[0].Retryable || !strings.Contains(r.Failed[0].Reason, "503") || r.Promoted {
		t.Errorf("model away: %+v", r)
	}
	if diff := cmp.Diff([]int{1, 2}, waits); diff != "" || model.calls.Load() != 5 {
		t.Errorf("%d calls, waits (-want +got):\n%s", model.calls.Load(), diff)
	}
	model.fails.Store(2)
	if r := b.ingest(src, How{}); r.Published != 3 || !r.Promoted {
		t.Errorf("model back after two failures: %+v", r)
	}
}

// While the new content cannot be embedded the old one is served, but only to
// those who may also read the new.
func TestIngest_ChangedContentNarrowsAtOnce(t *testing.T) {
	t.Parallel()
	doc := func(access, word string) string { return "---\naccess: [" + access + "]\n---\n" + text(word) }
	for _, tc := range []struct {
		name, before, after string
		everyone, ops       bool // finds the old text
	}{
		{"narrower", "everyone, ops", "ops", false, true},
		{"disjoint", "everyone", "ops", false, false},
		{"wider does not open the old text", "ops", "everyone, ops", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := newFolder(t, map[string]string{"a.md": doc(tc.before, "old")})
			model := &failing{Embedder: modelstest.NewEmbedder()}
			b := open(t, t.TempDir(), model)
			b.ingest(src, How{})
			src.write(t, "a.md", doc(tc.after, "new"))
			model.fails.Store(1000)
			if r := b.ingest(src, How{}); len(r.Failed) != 1 {
				t.Fatalf("report: %+v", r)
			}
			if got := len(b.search("old", acl.Everyone)) > 0; got != tc.everyone {
				t.Errorf("everyone finds the old text: %t", got)
			}
			if got := len(b.search("old", acl.Group("ops"))) > 0; got != tc.ops {
				t.Errorf("ops finds the old text: %t", got)
			}
			model.fails.Store(0)
			b.ingest(src, How{})
			if len(b.search("old", acl.Everyone, acl.Group("ops"))) != 0 || len(b.search("new", acl.Group("ops"))) != 1 {
				t.Error("after the model came back the new text is not the only one")
			}
		})
	}
}

func TestIngest_Cancelled(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("%02d.md", i)] = text("alpha", fmt.Sprint("n", i))
	}
	src := newFolder(t, files)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := open(t, t.TempDir(), modelstest.NewEmbedder(), func(o *Options) {
		o.Progress = func(e Event) {
			if e.State == catalog.Published && e.Done == 5 {
				cancel()
			}
		}
	})
	r, err := b.Ingest(ctx, src, How{})
	if !errors.Is(err, context.Canceled) || r.Published < 5 || r.Published == 30 {
		t.Fatalf("cancelled run: %v, %d published", err, r.Published)
	}
	b.options.Progress = nil
	published := r.Published
	if r := b.ingest(src, How{}); r.Unchanged != published || r.Published+r.Unchanged != 30 {
		t.Errorf("the next run: %+v after %d", r, published)
	}
	if n := len(b.search("alpha", acl.Everyone)); n != 30 {
		t.Errorf("%d found", n)
	}
}

func TestIngest_Progress(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": "", "c.md": text("gamma")})
	var last Event
	settled := map[string]catalog.State{}
	b := open(t, t.TempDir(), modelstest.NewEmbedder(), func(o *Options) {
		o.Progress = func(e Event) {
			if e.Done < last.Done || e.Total != 3 {
				t.Errorf("event %+v after %+v", e, last)
			}
			last = e
			settled[filepath.Base(e.Path)] = e.State
		}
	})
	b.ingest(src, How{})
	want := map[string]catalog.State{"a.md": catalog.Published, "b.md": catalog.Failed, "c.md": catalog.Published}
	if diff := cmp.Diff(want, settled); diff != "" || last.Done != 3 {
		t.Errorf("last %+v (-want +got):\n%s", last, diff)
	}
}
