package inboxtest

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"slices"
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
	"footnote/retrieval/ingest/unpack"
)

// world is an inbox that is ingested into an index.
type world struct {
	t     *testing.T
	box   *inbox.Inbox
	src   ingest.Source // the inbox with what its mails and archives hold
	store retrieval.Store
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
		select {
		case g.reached <- struct{}{}:
		case <-g.open:
		}
		<-g.open
	}
	return g.Embedder.EmbedPassages(ctx, texts)
}

// OpenIndex opens an empty index and an inbox whose paths begin with "push:". place
// is an empty directory which no other test has.
type OpenIndex func(t testing.TB, place string) (retrieval.Store, *inbox.Inbox)

// RunGuard runs the suite of what inbox and index do together.
func RunGuard(t *testing.T, open OpenIndex) {
	for name, test := range map[string]func(*testing.T, OpenIndex){
		"changes reach the index":               changesReachTheIndex,
		"what an archive holds":                 whatAnArchiveHolds,
		"an archive becomes a text":             anArchiveBecomesAText,
		"no i d lies in an archive":             noIDLiesInAnArchive,
		"taken back in the middle of a run":     takenBackInTheMiddleOfARun,
		"front matter narrows and never widens": frontMatterNarrowsAndNeverWidens,
		"enforce all after a start":             enforceAllAfterAStart,
		"taken over into a new generation":      takenOverIntoANewGeneration,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

func newWorld(t *testing.T, open OpenIndex) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, model: &gated{Embedder: modelstest.NewEmbedder()}}
	w.store, w.box = open(t, dir)
	var err error
	w.cat, err = catalog.Open(dir)
	must(t, err)
	w.src = unpack.New(w.box, unpack.Options{})
	t.Cleanup(func() { must(t, w.cat.Close()) })
	guarded := inbox.Guard(w.store, func(id retrieval.DocumentID) string {
		rec, _ := w.cat.Get(id)
		return rec.Path
	}, w.box)
	w.pipe = ingest.New(guarded, w.cat, w.model, ingest.Options{Others: []ingest.Source{w.src}, Wait: func(context.Context, int) error { return nil }})
	return w
}

func (w *world) put(id, content string, access ...string) []string {
	w.t.Helper()
	return w.send(inbox.Meta{ID: id, Name: "a.md", Access: access}, content)
}

// send puts a document and returns what came in force before any run.
func (w *world) send(m inbox.Meta, content string) []string {
	w.t.Helper()
	_, change, err := w.box.Put(w.t.Context(), m, strings.NewReader(content), inbox.Condition{})
	must(w.t, err)
	if change == inbox.Same {
		return nil
	}
	return w.enforce(m.ID)
}

func (w *world) delete(id string) []string {
	w.t.Helper()
	must(w.t, w.box.Delete(w.t.Context(), id, inbox.Condition{}))
	return w.enforce(id)
}

func (w *world) enforce(id string) []string {
	w.t.Helper()
	rec, _ := w.cat.At(w.box.PathOf(id))
	events, err := w.box.Enforce(w.t.Context(), w.store, rec, id)
	must(w.t, err)
	var out []string
	for _, e := range events {
		out = append(out, string(e.Effect)+" "+e.Path)
	}
	return out
}

func (w *world) ingest() ingest.Report {
	w.t.Helper()
	r, err := w.pipe.Ingest(w.t.Context(), w.src, ingest.How{Prune: true})
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

func changesReachTheIndex(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
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

// zipped makes an archive of names and contents in turn.
func zipped(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		f, err := z.Create(parts[i])
		must(t, err)
		_, err = f.Write([]byte(parts[i+1]))
		must(t, err)
	}
	must(t, z.Close())
	return b.String()
}

// members are the paths below the archive that the index serves, with the access
// list of each.
func (w *world) members(archive string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for path, text := range w.served() {
		if rest, ok := strings.CutPrefix(path, archive+"/"); ok {
			out[rest] = text
		}
	}
	return out
}

// What an archive holds has the access of the archive, and goes with it, whether
// its id ends as archives do or not.
func whatAnArchiveHolds(t *testing.T, open OpenIndex) {
	for _, id := range []string{"wiki/files.zip", "wiki/7"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open)
			at := w.box.PathOf(id)
			send := func(content string, access ...string) []string {
				return w.send(inbox.Meta{ID: id, Name: "files.zip", Link: "https://x.example/7", Access: access}, content)
			}
			wants := func(when string, want map[string]string) {
				t.Helper()
				if diff := cmp.Diff(want, w.members(at)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}
			inForce := func(when string, got []string, want ...string) {
				t.Helper()
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: in force (-want +got):\n%s", when, diff)
				}
			}
			content := zipped(t, "in/leave.md", "Thirty days.", "old.zip", zipped(t, "pay.txt", "On Fridays."), "logo.bmp", "no text")
			w.put("wiki/beside", "Other text.", "everyone")
			send(content, "everyone", "group:hr")
			w.ingest()
			wants("put", map[string]string{"in/leave.md": "everyone, group:hr: Thirty days.", "old.zip": "everyone, group:hr: pay.txt", "old.zip/pay.txt": "everyone, group:hr: On Fridays."})
			rec, _ := w.cat.At(at + "/in/leave.md")
			g, err := w.store.Open(t.Context(), "")
			must(t, err)
			doc, err := g.Document(t.Context(), system.Grant(), rec.ID, "")
			must(t, err)
			if doc.Link != "https://x.example/7" || doc.Format != "markdown" {
				t.Errorf("published as %s with the link %q", doc.Format, doc.Link)
			}

			inForce("narrower", send(content, "group:hr"), "access "+at, "access "+at+"/in/leave.md", "access "+at+"/old.zip", "access "+at+"/old.zip/pay.txt")
			wants("narrower, before any run", map[string]string{"in/leave.md": "group:hr: Thirty days.", "old.zip": "group:hr: pay.txt", "old.zip/pay.txt": "group:hr: On Fridays."})
			w.ingest()
			inForce("wider and less in it", send(zipped(t, "in/leave.md", "Thirty days."), "everyone", "group:hr"))
			w.ingest()
			wants("wider and less in it", map[string]string{"in/leave.md": "everyone, group:hr: Thirty days."})
			inForce("deleted", w.delete(id), "removal "+at, "removal "+at+"/in/leave.md")
			wants("deleted, before any run", map[string]string{})
			inForce("deleted again", w.enforce(id))
			w.ingest()
			wants("deleted", map[string]string{})
			if got := w.served()["push:/wiki/beside"]; got != "everyone: Other text." {
				t.Errorf("what lies beside is %q", got)
			}
		})
	}
}

// An archive that is no longer one has nothing in it.
func anArchiveBecomesAText(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
	w.send(inbox.Meta{ID: "a", Name: "a.zip", Access: []string{"everyone"}}, zipped(t, "leave.md", "Thirty days."))
	w.ingest()
	w.put("a", "A text.", "everyone")
	if got := w.members("push:/a"); len(got) != 0 {
		t.Errorf("before any run it holds %v", got)
	}
	w.ingest()
	w.wants("at last", map[string]string{"push:/a": "everyone: A text."})
}

// A path is a document or lies in one, never both.
func noIDLiesInAnArchive(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
	w.send(inbox.Meta{ID: "a", Name: "a.eml", Access: []string{"everyone"}}, "Subject: A\r\n\r\nText.")
	w.put("b", "Text.", "everyone")
	w.put("b/c", "Text.", "everyone")
	for _, m := range []inbox.Meta{{ID: "a/b", Name: "b.md"}, {ID: "a/b/c", Name: "b.zip"}, {ID: "b", Name: "b.zip"}} {
		m.Access = []string{"everyone"}
		_, _, err := w.box.Put(t.Context(), m, strings.NewReader("x"), inbox.Condition{})
		var refusal *inbox.Refusal
		if !errors.As(err, &refusal) || refusal.Field != "id" {
			t.Errorf("%s as %s: %v", m.ID, m.Name, err)
		}
	}
	must(t, w.box.Delete(t.Context(), "a", inbox.Condition{}))
	w.put("a/b", "Text.", "everyone")
}

// What is taken back while a run works on the old listing is not published by
// that run, and the next one settles it.
func takenBackInTheMiddleOfARun(t *testing.T, open OpenIndex) {
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
		{"an archive with a new member, deleted", "zip", func(w *world) { w.delete("a") }, map[string]string{}, map[string]string{}},
		{"changed, deleted", "Old text.", func(w *world) { w.delete("a") }, map[string]string{}, map[string]string{}},
		{"changed, then narrower", "Old text.", func(w *world) { w.put("a", "Third text.", "group:hr") },
			map[string]string{"push:/a": "group:hr: New text."}, map[string]string{"push:/a": "group:hr: Third text."}},
		{"changed, then wider", "Old text.", func(w *world) { w.put("a", "Third text.", "everyone", "group:hr", "group:it") },
			map[string]string{"push:/a": "everyone, group:hr: New text."}, map[string]string{"push:/a": "everyone, group:hr, group:it: Third text."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open)
			put := w.put
			if c.before == "zip" {
				put = func(id, content string, access ...string) []string {
					return w.send(inbox.Meta{ID: id, Name: "a.zip", Access: access}, zipped(t, "a.md", content))
				}
			}
			if c.before != "" {
				put("a", c.before, "everyone", "group:hr")
				w.ingest()
			}
			put("a", "New text.", "everyone", "group:hr")
			w.model.reached, w.model.open = make(chan struct{}), make(chan struct{})
			done := make(chan error)
			go func() {
				_, err := w.pipe.Ingest(context.WithoutCancel(t.Context()), w.src, ingest.How{Prune: true})
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

func frontMatterNarrowsAndNeverWidens(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
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
func enforceAllAfterAStart(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
	w.put("gone", "Text one.", "everyone")
	w.put("narrower", "Text two.", "everyone", "group:hr")
	w.put("same", "Text three.", "everyone")
	w.ingest()
	must(t, w.box.Delete(t.Context(), "gone", inbox.Condition{}))
	_, _, err := w.box.Put(t.Context(), inbox.Meta{ID: "narrower", Name: "a.md", Access: []string{"group:hr"}}, strings.NewReader("Text two."), inbox.Condition{})
	must(t, err)
	must(t, inbox.EnforceAll(t.Context(), w.store, w.box))
	w.wants("after the start", map[string]string{"push:/narrower": "group:hr: Text two.", "push:/same": "everyone: Text three."})
	w.ingest()
}

// A run over another source that builds a new generation takes pushed
// documents over, under their own names and lists.
func takenOverIntoANewGeneration(t *testing.T, open OpenIndex) {
	w := newWorld(t, open)
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
