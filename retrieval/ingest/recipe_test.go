package ingest

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// A generation that a person went back to stays in use: runs that keep it take
// away from it what nobody may read any more, and nothing else, until a person
// takes documents in.
func TestIngest_KeepsWhatAPersonPromoted(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{
		"a.md": text("alpha"), "b.md": text("alpha"), "c.md": text("alpha"), "d.md": "---\naccess: ops\n---\n" + text("alpha"), "e.md": text("alpha"),
		"f.md": text("alpha"), "g.md": text("alpha"),
	})
	src.access["g.md"] = acl.NewList(acl.Group("ops"))
	other := newFolder(t, map[string]string{"other.md": text("alpha")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{Name: "src"})
	b.ingest(other, How{Name: "other"})
	old := b.current()
	b.close()

	b = open(t, dir, modelstest.NewEmbedder(modelstest.WithName("other")))
	b.ingest(src, How{Name: "src"})
	fresh := b.current()
	must(t, b.store.PromoteByHand(t.Context(), old))
	if got := b.differences(); len(got) > 0 {
		t.Errorf("after going back: %v", got)
	}

	src.write(t, "a.md", text("beta"))
	must(t, os.Remove(src.path("b.md")))
	src.access["c.md"] = acl.NewList(acl.Group("ops"))
	src.write(t, "d.md", text("alpha gamma")) // open to others, with another text: the old one to nobody
	src.write(t, "e.md", "---\naccess: ops\n---\n"+text("alpha gamma"))
	src.access["f.md"] = acl.NewList(acl.Everyone, acl.Group("ops"))
	src.write(t, "g.md", text("alpha gamma"))
	src.access["g.md"] = acl.NewList(acl.Everyone, acl.Group("ops")) // what it said before stays with ops
	src.write(t, "new.md", text("alpha delta"))
	for range 3 { // what was done is left alone by the next
		for _, s := range []struct {
			name string
			src  Source
		}{{"src", src}, {"other", other}} {
			r, err := b.Ingest(t.Context(), s.src, How{Name: s.name, Prune: true, Keep: true})
			must(t, err)
			if r.Promoted || r.Withheld != chosenByHand || b.current() != old {
				t.Fatalf("current is %s: %+v", b.current(), r)
			}
		}
	}
	for _, tc := range []struct {
		who  acl.Principal
		want []string
	}{{acl.Everyone, []string{"a.md", "f.md", "other.md"}}, {acl.Group("ops"), []string{"c.md", "f.md", "g.md"}}} {
		if diff := cmp.Diff(tc.want, sorted(b.search("alpha", tc.who))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.who, diff)
		}
	}
	if got := b.differences(); len(got) > 0 {
		t.Errorf("when kept: %v", got)
	}
	b.marks(map[string]bool{})

	r := b.ingest(src, How{Name: "src", Prune: true})
	if m, err := b.store.Marks(t.Context()); !r.Promoted || r.Published != 0 || r.Replaced != old || b.current() != fresh || err != nil || m.ByHand {
		t.Errorf("a person's run: current is %s, %+v, %+v, %v", b.current(), r, m, err)
	}
	if got := sorted(b.search("alpha", acl.Everyone)); !slices.Equal(got, []string{"d.md", "f.md", "g.md", "new.md", "other.md"}) {
		t.Errorf("everyone finds %v", got)
	}
	if got := b.differences(); len(got) > 0 {
		t.Errorf("at last: %v", got)
	}
}

// differences are those of the current generation.
func (b *bench) differences() []Difference {
	b.t.Helper()
	all, err := b.Verify(b.t.Context())
	must(b.t, err)
	return all
}

func TestDiffers(t *testing.T) {
	t.Parallel()
	here := catalog.Record{Serving: "r1", Revision: "r1", State: catalog.Published, Access: []string{"group:ops"}, Chunks: 3, Path: "a"}
	info := retrieval.DocumentInfo{Revision: "r1", Access: acl.NewList(acl.Group("ops")), Chunks: 3, Path: "a"}
	made := catalog.Stamp{Chunker: "one"}
	for _, tc := range []struct {
		name   string
		stamp  catalog.Stamp
		change func(*catalog.Record, *retrieval.DocumentInfo)
		absent bool
		wrong  bool
	}{
		{"same recipe, same counts", made, nil, false, false},
		{"same recipe, other counts", made, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Chunks = 9 }, false, true},
		{"same recipe, absent", made, nil, true, true},
		{"same recipe, other revision", made, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Revision = "r0" }, false, true},
		{"no recipe, other counts", catalog.Stamp{}, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Chunks = 9 }, false, false},
		{"no recipe, absent", catalog.Stamp{}, nil, true, true},
		{"no recipe, other access", catalog.Stamp{}, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Access = acl.NewList(acl.Everyone) }, false, true},
		{"other recipe, other counts", catalog.Stamp{Chunker: "two"}, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Chunks = 9 }, false, false},
		{"other recipe, absent", catalog.Stamp{Chunker: "two"}, nil, true, false},
		{"other recipe, older revision", catalog.Stamp{Chunker: "two"}, func(_ *catalog.Record, i *retrieval.DocumentInfo) { i.Revision = "r0" }, false, false},
		{"other recipe, wider access", catalog.Stamp{Chunker: "two"}, func(_ *catalog.Record, i *retrieval.DocumentInfo) {
			i.Access = acl.NewList(acl.Everyone, acl.Group("ops"))
		}, false, true},
		{"other recipe, narrower access", catalog.Stamp{Chunker: "two"}, func(r *catalog.Record, _ *retrieval.DocumentInfo) { r.Access = []string{"everyone", "group:ops"} }, false, false},
		{"other recipe, withdrawn", catalog.Stamp{Chunker: "two"}, func(r *catalog.Record, _ *retrieval.DocumentInfo) { r.Serving, r.State = "", catalog.Refused }, false, true},
	} {
		rec, i := here, info
		rec.Stamp = tc.stamp
		if tc.change != nil {
			tc.change(&rec, &i)
		}
		if tc.absent {
			i = retrieval.DocumentInfo{}
		}
		if got := differs(retrieval.Manifest{Chunker: "one"}, rec, i, !tc.absent); (got != "") != tc.wrong {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}
