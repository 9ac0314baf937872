package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl/system"
	"footnote/models"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/memindex"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is an inbox that is ingested into an index.
type world struct {
	t     *testing.T
	box   *inbox.Inbox
	store *memindex.Store
	cat   *catalog.Catalog
	model *gated
	pipe  *ingest.Pipeline
}

// gated is an embedder that waits, so that a test can act in the middle of a run.
type gated struct {
	models.Embedder
	reached, open chan struct{} // nil: no waiting
}

func (g *gated) EmbedPassages(ctx context.Context, texts []string) ([]models.Embedding, error) {
	if g.reached != nil {
		g.reached <- struct{}{}
		<-g.open
	}
	return g.Embedder.EmbedPassages(ctx, texts)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, model: &gated{Embedder: modelstest.NewEmbedder()}}
	var err error
	w.store, err = memindex.Open(dir)
	must(t, err)
	w.cat, err = catalog.Open(dir)
	must(t, err)
	w.box, err = inbox.Open(dir+"/push", "push:", inbox.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(w.cat.Close(), w.store.Close())) })
	guarded := w.box.Guard(w.store, func(id retrieval.DocumentID) string {
		rec, _ := w.cat.Get(id)
		return rec.Path
	})
	w.pipe = ingest.New(guarded, w.cat, w.model, ingest.Options{Others: []ingest.Source{w.box}, Wait: func(context.Context, int) error { return nil }})
	return w
}

func (w *world) put(id, content string, access ...string) {
	w.t.Helper()
	_, change, err := w.box.Put(w.t.Context(), inbox.Meta{ID: id, Name: "a.md", Access: access}, strings.NewReader(content), inbox.Condition{})
	must(w.t, err)
	if rec, known := w.cat.At(w.box.PathOf(id)); known && change != inbox.Same {
		must(w.t, w.box.Enforce(w.t.Context(), w.store, rec, id))
	}
}

func (w *world) delete(id string) {
	w.t.Helper()
	must(w.t, w.box.Delete(id, inbox.Condition{}))
	if rec, known := w.cat.At(w.box.PathOf(id)); known {
		must(w.t, w.box.Enforce(w.t.Context(), w.store, rec, id))
	}
}

func (w *world) ingest() ingest.Report {
	w.t.Helper()
	r, err := w.pipe.Ingest(w.t.Context(), w.box, ingest.How{Prune: true})
	must(w.t, err)
	diffs, err := w.pipe.Verify(w.t.Context())
	if !errors.Is(err, retrieval.ErrNoIndex) {
		must(w.t, err)
	}
	for _, d := range diffs {
		w.t.Errorf("%s: %s", d.Path, d.What)
	}
	return r
}

// served is what the index holds: path to access list and text.
func (w *world) served() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	g, err := w.store.Open(w.t.Context(), "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		return out
	}
	must(w.t, err)
	docs, err := g.Documents(w.t.Context(), system.Grant())
	must(w.t, err)
	for _, d := range docs {
		doc, err := g.Document(w.t.Context(), system.Grant(), d.ID, "")
		must(w.t, err)
		out[d.Path] = d.Access.String() + ": " + doc.Canonical
	}
	return out
}

func (w *world) wants(when string, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.served()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestChangesReachTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "First text.", "everyone", "group:hr")
	w.put("b/c", "Other text.", "group:it")
	w.ingest()
	w.wants("put", map[string]string{"push:/a": "everyone, group:hr: First text.", "push:/b/c": "group:it: Other text."})

	w.put("a", "First text.", "group:hr")
	w.wants("narrower, before any run", map[string]string{"push:/a": "group:hr: First text.", "push:/b/c": "group:it: Other text."})
	w.put("a", "Second text.", "everyone", "group:hr")
	w.wants("wider with new text, before any run", map[string]string{"push:/a": "group:hr: First text.", "push:/b/c": "group:it: Other text."})
	w.ingest()
	w.wants("wider with new text", map[string]string{"push:/a": "everyone, group:hr: Second text.", "push:/b/c": "group:it: Other text."})
	w.put("a", "Second text.", "group:it", "group:hr")
	w.wants("for some others, the same text, before any run", map[string]string{"push:/a": "group:hr, group:it: Second text.", "push:/b/c": "group:it: Other text."})
	w.put("a", "Third text.", "group:ops")
	w.wants("for others with new text, before any run", map[string]string{"push:/b/c": "group:it: Other text."})
	w.delete("b/c")
	w.wants("deleted, before any run", map[string]string{})
	w.ingest()
	w.wants("for others", map[string]string{"push:/a": "group:ops: Third text."})
}

// What is taken back while a run works on the old listing is not published by
// that run, and the next one settles it.
func TestTakenBackInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		before      string // "" not there
		act         func(*world)
		during, end map[string]string
	}{
		{"new, deleted", "", func(w *world) { w.delete("a") }, map[string]string{}, map[string]string{}},
		{"new, then narrower", "", func(w *world) { w.put("a", "New text.", "group:hr") },
			map[string]string{"push:/a": "group:hr: New text."}, map[string]string{"push:/a": "group:hr: New text."}},
		{"new, then for others", "", func(w *world) { w.put("a", "New text.", "group:it") },
			map[string]string{}, map[string]string{"push:/a": "group:it: New text."}},
		{"changed, deleted", "Old text.", func(w *world) { w.delete("a") }, map[string]string{}, map[string]string{}},
		{"changed, then narrower", "Old text.", func(w *world) { w.put("a", "Third text.", "group:hr") },
			map[string]string{"push:/a": "group:hr: New text."}, map[string]string{"push:/a": "group:hr: Third text."}},
		{"changed, then wider", "Old text.", func(w *world) { w.put("a", "Third text.", "everyone", "group:hr", "group:it") },
			map[string]string{"push:/a": "everyone, group:hr: New text."}, map[string]string{"push:/a": "everyone, group:hr, group:it: Third text."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.before != "" {
				w.put("a", c.before, "everyone", "group:hr")
				w.ingest()
			}
			w.put("a", "New text.", "everyone", "group:hr")
			w.model.reached, w.model.open = make(chan struct{}), make(chan struct{})
			done := make(chan error)
			go func() {
				_, err := w.pipe.Ingest(context.WithoutCancel(t.Context()), w.box, ingest.How{Prune: true})
				done <- err
			}()
			<-w.model.reached
			c.act(w)
			close(w.model.open)
			must(t, <-done)
			w.wants("after the run that was under way", c.during)
			w.model.reached = nil
			w.ingest()
			w.wants("after the next", c.end)
		})
	}
}

func TestFrontMatterNarrowsAndNeverWidens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("narrows", "---\naccess: [group:hr]\n---\nText.", "group:hr", "group:it")
	w.put("widens", "---\naccess: [everyone]\n---\nText.", "group:hr")
	r := w.ingest()
	w.wants("published", map[string]string{"push:/narrows": "group:hr: ---\naccess: [group:hr]\n---\nText."})
	if len(r.Refused) != 1 || r.Refused[0].Path != "push:/widens" || !strings.Contains(r.Refused[0].Reason, "everyone") {
		t.Errorf("refused %v", r.Refused)
	}
	w.put("narrows", "---\naccess: [group:hr]\n---\nText.", "group:it")
	w.wants("its list no longer names whom the front matter names", map[string]string{})
	if r := w.ingest(); len(r.Refused) != 2 {
		t.Errorf("refused %v", r.Refused)
	}
	w.wants("refused", map[string]string{})
}

// An old copy of the index must not show what was taken back since.
func TestEnforceAllAfterAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("gone", "Text one.", "everyone")
	w.put("narrower", "Text two.", "everyone", "group:hr")
	w.put("same", "Text three.", "everyone")
	w.ingest()
	must(t, w.box.Delete("gone", inbox.Condition{}))
	_, _, err := w.box.Put(t.Context(), inbox.Meta{ID: "narrower", Name: "a.md", Access: []string{"group:hr"}}, strings.NewReader("Text two."), inbox.Condition{})
	must(t, err)
	must(t, w.box.EnforceAll(t.Context(), w.store))
	w.wants("after the start", map[string]string{"push:/narrower": "group:hr: Text two.", "push:/same": "everyone: Text three."})
	w.ingest()
}

// A run over another source that builds a new generation takes pushed
// documents over, under their own names and lists.
func TestTakenOverIntoANewGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, _, err := w.box.Put(t.Context(), inbox.Meta{ID: "a", Name: "a.html", Title: "Given", Link: "https://x.example/a", Access: []string{"group:hr"}}, strings.NewReader("<p>A page.</p>"), inbox.Condition{})
	must(t, err)
	w.ingest()
	other, err := inbox.Open(t.TempDir(), "chat:", inbox.Options{})
	must(t, err)
	r, err := w.pipe.Ingest(t.Context(), other, ingest.How{Rebuild: true, Prune: true})
	must(t, err)
	if !r.Promoted || r.Withheld != "" {
		t.Fatalf("not promoted: %s", r)
	}
	w.wants("taken over", map[string]string{"push:/a": "group:hr: A page."})
	g, err := w.store.Open(t.Context(), "")
	must(t, err)
	rec, _ := w.cat.At("push:/a")
	d, err := g.Document(t.Context(), system.Grant(), rec.ID, "")
	must(t, err)
	if d.Title != "Given" || d.Link != "https://x.example/a" || d.Format != "html" {
		t.Errorf("taken over as %+v", d)
	}
}
