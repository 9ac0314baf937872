package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/acl"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

func (b *bench) current() string {
	b.t.Helper()
	_, current, err := b.store.Generations(context.Background())
	must(b.t, err)
	return current
}

// TestCase_S7: another model means a new generation with everything in it,
// also what other sources brought; the old one answers until it is whole.
func TestCase_S7(t *testing.T) {
	t.Parallel()
	ops := acl.NewList(acl.Group("ops"))
	one := newFolder(t, map[string]string{"a.md": text("alpha one"), "b.md": text("alpha two")})
	two := newFolder(t, map[string]string{"c.md": text("alpha three"), "own.md": "---\naccess: security\n---\n" + text("alpha four")})
	two.access[""] = ops
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(one, How{})
	b.ingest(two, How{})
	old := b.current()
	b.close()

	b = open(t, dir, modelstest.NewEmbedder(modelstest.WithName("other"), modelstest.WithDimensions(32)))
	for _, rec := range b.cat.List() {
		if rec.Stamp == b.Stamp() {
			t.Errorf("%s is not seen as stale", rec.Path)
		}
	}
	// A document of the other source is away: the old generation stays in use.
	must(t, os.Rename(two.path("c.md"), two.path("c.away")))
	r, err := b.Ingest(context.Background(), one, How{})
	must(t, err)
	if r.Promoted || r.Withheld == "" || b.current() != old || len(r.Failed) != 1 {
		t.Errorf("with a document away: %+v", r)
	}
	if got := b.search("alpha", acl.Everyone, acl.Group("ops"), acl.Group("security")); len(got) != 4 {
		t.Errorf("the old generation answers with %v", got)
	}
	must(t, os.Rename(two.path("c.away"), two.path("c.md")))
	embedded := b.model.Passages()
	r = b.ingest(one, How{})
	if !r.Promoted || r.Withheld != "" || b.current() == old || r.Published != 1 || b.model.Passages() != embedded+1 {
		t.Errorf("when it is back: %+v, %d embedded", r, b.model.Passages()-embedded)
	}
	for _, tc := range []struct {
		holds []acl.Principal
		want  []string
	}{
		{[]acl.Principal{acl.Everyone}, []string{"a.md", "b.md"}},
		{[]acl.Principal{acl.Group("ops")}, []string{"c.md"}},
		{[]acl.Principal{acl.Group("security")}, []string{"own.md"}},
	} {
		if diff := cmp.Diff(tc.want, b.search("alpha", tc.holds...), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.holds, diff)
		}
	}
	for _, rec := range b.cat.List() {
		if rec.Stamp != b.Stamp() {
			t.Errorf("%s is still stale", rec.Path)
		}
	}
}

// Going back to the first model uses its generation again, without what was
// removed and with the access lists of today.
func TestIngest_BackToAnOlderGeneration(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("alpha"), "c.md": text("alpha")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	first := b.current()
	b.close()

	b = open(t, dir, modelstest.NewEmbedder(modelstest.WithName("other")))
	b.ingest(src, How{})
	must(t, os.Remove(src.path("b.md")))
	src.access["c.md"] = acl.NewList(acl.Group("ops"))
	src.write(t, "new.md", text("alpha"))
	b.ingest(src, How{Prune: true})
	b.close()

	b = open(t, dir, modelstest.NewEmbedder())
	r := b.ingest(src, How{})
	if b.current() != first || !r.Promoted {
		t.Errorf("generation %s, want %s: %+v", b.current(), first, r)
	}
	if got := b.search("alpha", acl.Everyone); !slices.Equal(sorted(got), []string{"a.md", "new.md"}) {
		t.Errorf("everyone finds %v", got)
	}
	if got := b.search("alpha", acl.Group("ops")); !slices.Equal(got, []string{"c.md"}) {
		t.Errorf("ops finds %v", got)
	}
}

// A build is unfinished from its begin until a run has ended it, whether the
// generation is the first or a shadow.
func TestIngest_Unfinished(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		before bool // there is a generation of another model
	}{{"first generation", false}, {"shadow", true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "c.md": text("gamma")})
			dir := t.TempDir()
			if tc.before {
				b := open(t, dir, modelstest.NewEmbedder(modelstest.WithName("other")))
				b.ingest(src, How{})
				b.close()
			}
			b := open(t, dir, modelstest.NewEmbedder())
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			r, err := b.Ingest(ctx, src, How{Told: func(e Event) {
				if e.Effect == Renewal {
					kill()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("the run was not ended: %v", err)
			}
			b.marks(map[string]bool{r.Generation: true})
			r = b.ingest(src, How{Only: []string{src.path("a.md")}})
			if !tc.before { // a shadow's run is over everything
				b.marks(map[string]bool{r.Generation: true})
				r = b.ingest(src, How{})
			}
			b.marks(map[string]bool{})
			if b.current() != r.Generation || len(b.search("gamma", acl.Everyone)) != 1 {
				t.Errorf("current is %s, built was %s", b.current(), r.Generation)
			}
		})
	}
}

// marks compares which generations are unfinished.
func (b *bench) marks(want map[string]bool) {
	b.t.Helper()
	m, err := b.store.Marks(context.Background())
	must(b.t, err)
	if diff := cmp.Diff(want, m.Unfinished); diff != "" {
		b.t.Errorf("unfinished (-want +got):\n%s", diff)
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

// While a shadow is built, what is refused or removed is gone from the
// generation in use as well.
func TestIngest_RevocationReachesTheGenerationInUse(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("alpha"), "c.md": text("alpha")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	b.close()
	model := &failing{Embedder: modelstest.NewEmbedder(modelstest.WithName("other"))}
	model.fails.Store(1000)
	b = open(t, dir, model)
	src.access["a.md"] = acl.List{}
	src.access["b.md"] = acl.NewList(acl.Group("ops"))
	r, err := b.Ingest(context.Background(), src, How{})
	must(t, err)
	if r.Promoted || len(r.Failed) != 2 || len(r.Refused) != 1 {
		t.Errorf("report: %+v", r)
	}
	// b was open to everyone and is now open to ops: nobody may read both.
	if got := b.search("alpha", acl.Everyone, acl.Group("ops")); !slices.Equal(got, []string{"c.md"}) {
		t.Errorf("found %v", got)
	}
}

// A damaged index is refused, and rebuilt from all sources when asked.
func TestIngest_Rebuild(t *testing.T) {
	t.Parallel()
	one, two := newFolder(t, map[string]string{"a.md": text("alpha")}), newFolder(t, map[string]string{"b.md": text("alpha")})
	two.access[""] = acl.NewList(acl.Group("ops"))
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(one, How{})
	b.ingest(two, How{})
	old := b.current()
	b.close()
	log := filepath.Join(dir, "generations", old, "index.log")
	data, err := os.ReadFile(log)
	must(t, err)
	data[100] ^= 0xff
	must(t, os.WriteFile(log, data, 0o600))

	b = open(t, dir, modelstest.NewEmbedder())
	if _, err := b.Ingest(context.Background(), one, How{}); !errors.Is(err, retrieval.ErrCorrupt) {
		t.Fatalf("damaged: %v", err)
	}
	r := b.ingest(one, How{Rebuild: true})
	if !r.Promoted || r.Published != 2 || len(r.Warnings) != 1 || b.current() == old {
		t.Errorf("rebuild: %+v", r)
	}
	if got := b.search("alpha", acl.Everyone); !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("everyone finds %v", got)
	}
	if got := b.search("alpha", acl.Group("ops")); !slices.Equal(got, []string{"b.md"}) {
		t.Errorf("ops finds %v", got)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the damaged generation was destroyed: %v", err)
	}
}

func TestReconcile_CatalogLost(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": "---\naccess: ops\n---\n" + text("alpha"), "b.md": text("beta")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	want := b.cat.List()
	b.close()
	must(t, os.Remove(filepath.Join(dir, catalog.File)))
	b = open(t, dir, b.model)
	embedded := b.model.Passages()
	b.ingest(src, How{})
	if b.model.Passages() != embedded {
		t.Error("known texts were embedded again")
	}
	if diff := cmp.Diff(want, b.cat.List(), cmpopts.IgnoreFields(catalog.Record{}, "Changes")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// Every state in which a crash can leave a record, against an index that
// holds, lacks, or holds another revision of the document.
func TestReconcile_AfterACrash(t *testing.T) {
	t.Parallel()
	states := []catalog.State{catalog.Queued, catalog.Extracting, catalog.Chunking, catalog.Embedding, catalog.Published, catalog.Failed, catalog.Refused, catalog.Removed}
	for _, state := range states {
		for _, held := range []string{"same", "none", "other"} {
			t.Run(string(state)+" "+held, func(t *testing.T) {
				t.Parallel()
				src := newFolder(t, map[string]string{"a.md": text("alpha")})
				b := open(t, t.TempDir(), modelstest.NewEmbedder())
				b.ingest(src, How{})
				rec := b.cat.List()[0]
				g, err := b.store.Open(context.Background(), "")
				must(t, err)
				switch held {
				case "none":
					must(t, g.Remove(context.Background(), rec.ID))
				case "other":
					src.write(t, "a.md", text("beta"))
					rec.Revision = "0123456789abcdef"
				}
				rec.Enter(state, b.options.Now())
				must(t, b.cat.Put(rec))
				b.ingest(src, How{})
				word := map[string]string{"same": "alpha", "none": "alpha", "other": "beta"}[held]
				if got := b.search(word, acl.Everyone); !slices.Equal(got, []string{"a.md"}) {
					t.Errorf("found %v", got)
				}
				if rs := b.cat.List(); len(rs) != 1 || rs[0].State != catalog.Published {
					t.Errorf("records: %+v", rs)
				}
				if held == "same" && b.model.Passages() != 1 {
					t.Errorf("%d texts embedded", b.model.Passages())
				}
			})
		}
	}
}
