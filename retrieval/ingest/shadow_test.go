package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models/modelstest"
	"footnote/retrieval/catalog"
)

// another is a recipe that differs in how it chunks.
func another(o *Options) { o.Chunk.Budget = 100 }

// serves lists the access lists of the generation in use, by name.
func (b *bench) serves() map[string]string {
	b.t.Helper()
	g, err := b.store.Open(context.Background(), "")
	must(b.t, err)
	docs, err := list(context.Background(), g)
	must(b.t, err)
	out := map[string]string{}
	for _, d := range docs {
		out[filepath.Base(d.Path)] = d.Access.String()
	}
	return out
}

// cut ingests by another recipe and ends at the nth event, as far as a killed
// process gets: what is in its hands then is never settled. It reports whether
// the run was whole before that.
func cut(t testing.TB, dir string, src Source, n int) (whole bool) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	events := 0
	b := open(t, dir, modelstest.NewEmbedder(), another, func(o *Options) {
		o.Progress = func(Event) {
			if events++; events == n {
				end()
			}
		}
	})
	defer b.close()
	r, err := b.Ingest(ctx, src, How{Prune: true})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return err == nil && r.Promoted
}

// A shadow build that ends at any step, however often, leaves what is served as
// it was; the build that is whole serves the same under the same lists.
func TestShadow_CutOffAtEachStep(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		rules map[string]acl.List // besides everyone
	}{
		{"a list in the front matter that the rules do not name", map[string]string{"a.md": "---\naccess: [seoul]\n---\n" + text("alpha")}, nil},
		{"a list in the front matter that is wider than the rules", map[string]string{"a.md": "---\naccess: [everyone, guests]\n---\n" + text("alpha")}, nil},
		{"a list by an access file", map[string]string{"a.md": text("alpha")}, map[string]acl.List{"a.md": acl.NewList(acl.Group("ops"))}},
		{"a list that was given for all", map[string]string{"a.md": text("alpha")}, nil},
		{"all of them", map[string]string{
			"a.md": "---\naccess: [seoul]\n---\n" + text("alpha"), "b.md": "---\naccess: [everyone, guests]\n---\n" + text("beta"),
			"c.md": text("gamma"), "d.md": text("delta"),
		}, map[string]acl.List{"c.md": acl.NewList(acl.Group("ops"))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			src := newFolder(t, tc.files)
			for rel, l := range tc.rules {
				src.access[rel] = l
			}
			for n, whole := 1, false; !whole; n++ {
				dir := t.TempDir()
				b := open(t, dir, modelstest.NewEmbedder())
				b.ingest(src, How{})
				want, first := b.serves(), b.current()
				b.close()
				for times := 1; times <= 3 && !whole; times++ {
					whole = cut(t, dir, src, n)
					b = open(t, dir, modelstest.NewEmbedder(), another)
					if diff := cmp.Diff(want, b.serves()); diff != "" {
						t.Fatalf("cut off %d times at event %d (-before +after):\n%s", times, n, diff)
					}
					if !whole && b.current() != first {
						t.Fatalf("cut off at event %d: generation %s is in use", n, b.current())
					}
					b.close()
				}
				b = open(t, dir, modelstest.NewEmbedder(), another)
				b.ingest(src, How{})
				if diff := cmp.Diff(want, b.serves()); diff != "" || b.current() == first {
					t.Fatalf("whole after event %d, in generation %s of %s (-before +after):\n%s", n, b.current(), first, diff)
				}
				b.close()
			}
		})
	}
}

// What the source takes away after that is in force at once, in the generation
// in use, whatever the build came to and whether it goes on.
func TestShadow_NarrowedAfterACut(t *testing.T) {
	t.Parallel()
	ops, both := acl.NewList(acl.Group("ops")), acl.NewList(acl.Everyone, acl.Group("ops"))
	for n := 1; n <= 15; n++ {
		t.Run(fmt.Sprint("event ", n), func(t *testing.T) {
			t.Parallel()
			src, dir := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "own.md": "---\naccess: [seoul]\n---\n" + text("gamma")}), t.TempDir()
			src.access["a.md"], src.access["b.md"] = both, both
			b := open(t, dir, modelstest.NewEmbedder())
			b.ingest(src, How{})
			b.close()
			cut(t, dir, src, n)
			src.access["a.md"], src.access["b.md"] = ops, acl.NewList(acl.Group("hr"))
			model := &failing{Embedder: modelstest.NewEmbedder()}
			model.fails.Store(1000)
			b = open(t, dir, model, another)
			_, err := b.Ingest(context.Background(), src, How{})
			must(t, err)
			got := b.serves()
			delete(got, "b.md") // nobody may read both: gone, or published again to its new readers
			if diff := cmp.Diff(map[string]string{"a.md": ops.String(), "own.md": "group:seoul"}, got); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
			if found := b.search("beta", acl.Everyone, acl.Group("ops")); len(found) != 0 {
				t.Errorf("those who lost it find %v", found)
			}
		})
	}
}

// A document that cannot be extracted for now stays under the list of the
// revision that is served, however often it is tried: its own front matter's,
// or that of the rules as they are now.
func TestShadow_FailingKeepsTheListOfWhatIsServed(t *testing.T) {
	t.Parallel()
	ops := acl.NewList(acl.Group("ops"))
	src, dir := newFolder(t, map[string]string{"own.md": "---\naccess: [seoul]\n---\n" + text("alpha"), "ruled.md": text("beta")}), t.TempDir()
	src.access["ruled.md"] = acl.NewList(acl.Everyone, acl.Group("ops"))
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	b.close()

	// New bytes, extracted and then failing: the second has front matter now.
	src.write(t, "own.md", "---\naccess: [seoul, ops]\n---\n"+text("alpha", "more"))
	src.write(t, "ruled.md", "---\naccess: [everyone, ops, guests]\n---\n"+text("beta", "more"))
	model := &failing{Embedder: modelstest.NewEmbedder()}
	model.fails.Store(1000)
	b = open(t, dir, model)
	want := map[string]string{"own.md": "group:seoul", "ruled.md": src.access["ruled.md"].String()}
	for times := 1; times <= 3; times++ {
		_, err := b.Ingest(context.Background(), src, How{})
		must(t, err)
		if diff := cmp.Diff(want, b.serves()); diff != "" {
			t.Errorf("failed %d times (-want +got):\n%s", times, diff)
		}
	}
	src.access["ruled.md"], want["ruled.md"] = ops, ops.String()
	_, err := b.Ingest(context.Background(), src, How{})
	must(t, err)
	if diff := cmp.Diff(want, b.serves()); diff != "" {
		t.Errorf("after the rules became narrower (-want +got):\n%s", diff)
	}
}

// Killed between the publication of a first revision and the note of it, then
// built by another recipe: the list in the front matter is known all the same.
func TestShadow_AfterAPublicationWithoutItsNote(t *testing.T) {
	t.Parallel()
	src, dir := newFolder(t, map[string]string{"a.md": "---\naccess: [seoul]\n---\n" + text("alpha")}), t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	b.ingest(src, How{})
	want := b.serves()
	rec := b.cat.List()[0]
	rec.Serving = ""
	rec.Enter(catalog.Embedding, b.options.Now())
	must(t, b.cat.Put(rec))
	b.close()
	for n := 1; n <= 2; n++ {
		cut(t, dir, src, n)
		b = open(t, dir, modelstest.NewEmbedder(), another)
		if diff := cmp.Diff(want, b.serves()); diff != "" {
			t.Errorf("cut off at event %d (-before +after):\n%s", n, diff)
		}
		b.close()
	}
}
