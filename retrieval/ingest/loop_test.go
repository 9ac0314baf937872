package ingest

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models/modelstest"
	"footnote/retrieval/catalog"
)

func TestIngest_HoldsMassRemoval(t *testing.T) {
	t.Parallel()
	files := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[string(rune('a'+i))+".md"] = text("alpha", string(rune('a'+i)), "word")
		}
		return out
	}
	for _, tc := range []struct {
		name       string
		documents  int
		gone       int
		max        float64
		moved      bool // what is gone lies elsewhere in the folder
		held       bool
		wantRemove int
	}{
		{"below the share", 10, 3, .3, false, false, 3},
		{"above the share", 10, 4, .3, false, true, 0},
		{"above the share, but few", 4, 2, .3, false, false, 2},
		{"all of few", 2, 2, .3, false, true, 0},
		{"the only one", 1, 1, .3, false, true, 0},
		{"above the share, but moved", 10, 8, .3, true, false, 0},
		{"all, without a bound", 5, 5, 0, false, false, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := newFolder(t, files(tc.documents))
			b := open(t, t.TempDir(), modelstest.NewEmbedder())
			b.ingest(src, How{Prune: true})
			for i := range tc.gone {
				name := string(rune('a'+i)) + ".md"
				if tc.moved {
					must(t, os.MkdirAll(src.path("sub"), 0o700))
					must(t, os.Rename(src.path(name), src.path("sub/"+name)))
				} else {
					must(t, os.Remove(src.path(name)))
				}
			}
			r := b.ingest(src, How{Prune: true, MaxRemoved: tc.max})
			var want *Held
			if tc.held {
				want = &Held{Missing: tc.gone, Of: tc.documents}
			}
			if d := cmp.Diff(want, r.Held); d != "" || r.Removed != tc.wantRemove {
				t.Errorf("%d removed, held (-want +got):\n%s", r.Removed, d)
			}
			left := tc.documents - tc.wantRemove
			if got := b.search("alpha", acl.Everyone); len(got) != left {
				t.Errorf("%d of %d documents are found", len(got), left)
			}
		})
	}
}

// A pass over some paths settles those, and what lies below them, alone.
func TestIngest_Only(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "sub/c.md": text("gamma"), "sub/d.md": text("delta"), "subway.md": text("eta")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{Prune: true})
	for _, name := range []string{"a.md", "b.md", "sub/c.md", "subway.md"} {
		src.write(t, name, text("omega"))
	}
	must(t, os.Remove(src.path("sub/d.md")))
	must(t, os.Remove(src.path("subway.md")))
	var told []string
	r := b.ingest(src, How{Prune: true, Only: []string{src.path("sub"), src.path("a.md")}, Told: func(e Event) {
		if e.Effect != "" {
			told = append(told, string(e.Effect))
		}
	}})
	if r.Published != 2 || r.Removed != 1 || r.Unchanged != 0 {
		t.Errorf("report: %+v", r)
	}
	if d := cmp.Diff([]string{"removal", "content", "content"}, told); d != "" {
		t.Errorf("what came in force, removals first (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"b.md"}, b.search("beta", acl.Everyone)); d != "" {
		t.Errorf("what the run was not about (-want +got):\n%s", d)
	}
}

// What failed is left alone until something about it changes, or it is to be
// tried again.
func TestIngest_Again(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"empty.md": "", "closed.md": text("alpha")})
	src.access = map[string]acl.List{"empty.md": everyone}
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{})
	attempts := func() (out []int) {
		for _, r := range b.cat.List() {
			out = append(out, len(r.Changes), r.Attempts)
		}
		return out
	}
	first := attempts()
	again := false
	how := How{Again: func(catalog.Record) bool { return again }}
	if r := b.ingest(src, how); len(r.Failed) != 1 || len(r.Refused) != 1 {
		t.Errorf("report: %+v", r)
	}
	if d := cmp.Diff(first, attempts()); d != "" {
		t.Errorf("left alone (-want +got):\n%s", d)
	}
	again = true
	b.ingest(src, how)
	if d := cmp.Diff([]int{6, 0, 6, 2}, attempts()); d != "" {
		t.Errorf("tried again: changes and attempts of each (-want +got):\n%s", d)
	}
	again = false
	src.access["closed.md"] = everyone
	src.write(t, "empty.md", text("beta"))
	if r := b.ingest(src, how); r.Published != 2 {
		t.Errorf("access and bytes have changed: %+v", r)
	}
}

// A run with another name leaves alone what a named source took in.
func TestIngest_SourcesKeepTheirOwn(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	b.ingest(src, How{Name: "one", Prune: true})
	src.faults["x"] = nil
	must(t, os.Remove(src.path("a.md")))
	if r := b.ingest(src, How{Name: "two", Prune: true}); r.Removed != 0 {
		t.Errorf("another source removes: %+v", r)
	}
	if r := b.ingest(src, How{Name: "one", Prune: true}); r.Removed != 1 {
		t.Errorf("its own source: %+v", r)
	}
}

// Plan says what a run then does, and changes nothing.
func TestPlan(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "c.md": text("gamma"), "d.md": text("delta"), "e.md": text("eta")})
	b := open(t, t.TempDir(), modelstest.NewEmbedder())
	if p, err := b.Plan(t.Context(), src, How{}); err != nil || len(p.Steps) != 5 || p.Steps[0].Do != Add {
		t.Errorf("without an index: %+v, %v", p, err)
	}
	b.ingest(src, How{})
	before := b.cat.List()
	src.write(t, "a.md", text("omega"))
	must(t, os.Rename(src.path("b.md"), src.path("z.md")))
	must(t, os.Remove(src.path("c.md")))
	src.access["d.md"] = acl.NewList(acl.Group("hr"))
	src.write(t, "new.md", text("theta"))
	p, err := b.Plan(t.Context(), src, How{Prune: true})
	must(t, err)
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.Do)+" "+s.Path[len(src.root)+1:])
	}
	if d := cmp.Diff([]string{"replace a.md", "remove c.md", "access d.md", "add new.md", "move z.md"}, got); d != "" || p.Unchanged != 1 {
		t.Errorf("%d unchanged, steps (-want +got):\n%s", p.Unchanged, d)
	}
	if d := cmp.Diff(before, b.cat.List()); d != "" {
		t.Errorf("the plan has changed the catalog:\n%s", d)
	}
	if r := b.ingest(src, How{Prune: true}); r.Published != 3 || r.Moved != 1 || r.Removed != 1 || r.AccessChanged != 1 || r.Unchanged != 2 {
		t.Errorf("the run does: %+v", r)
	}
}
