package ingest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models/modelstest"
	"footnote/models/remote"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/notes"
)

// teller is a chat model that can be away. It counts and keeps what it is asked.
type teller struct {
	mu    sync.Mutex
	away  bool
	asked []string
}

func (m *teller) Model() string { return "teller" }

func (m *teller) Complete(_ context.Context, r remote.Request) (remote.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return remote.Answer{}, fmt.Errorf("%w: status 503", remote.ErrUnavailable)
	}
	m.asked = append(m.asked, r.User)
	return remote.Answer{Text: "It tells of zebras."}, nil
}

func (m *teller) goes(away bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
	return len(m.asked)
}

// withNotes opens a data directory with notes, perRun of them in a run.
func withNotes(t *testing.T, dir string, m *teller, perRun int) *bench {
	t.Helper()
	w, err := notes.Open(notes.Options{Model: m, Dir: dir, PerRun: perRun})
	must(t, err)
	b := open(t, dir, modelstest.NewEmbedder(), func(o *Options) { o.Notes = w })
	rest := b.close
	b.close = func() { rest(); _ = w.Close() }
	t.Cleanup(b.close)
	return b
}

// chunks returns the texts and contents of what is indexed, by file.
func (b *bench) chunks(query string) map[string][2]string {
	b.t.Helper()
	ctx := context.Background()
	g, err := b.store.Open(ctx, "")
	must(b.t, err)
	found, err := g.Search(ctx, system.Grant(), retrieval.Query{Vector: b.vector(query), Depth: 50})
	must(b.t, err)
	out := map[string][2]string{}
	for _, h := range found.Dense {
		ps, err := g.Passages(ctx, system.Grant(), []retrieval.ChunkID{h.ID})
		must(b.t, err)
		out[filepath.Base(ps[0].Path)] = [2]string{ps[0].Chunk.Text, ps[0].Chunk.Content}
	}
	return out
}

func (b *bench) vector(query string) []float32 {
	e, err := b.embedder.EmbedQuery(context.Background(), query)
	must(b.t, err)
	return e.Vector
}

func TestNotes_StandBeforeTheTextAndNowhereElse(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha")})
	b := withNotes(t, t.TempDir(), &teller{}, 0)
	r := b.ingest(src, How{})
	want := map[string][2]string{"a.md": {"It tells of zebras.\n[Title]\nTitle\n\nalpha.", "# Title\n\nalpha."}}
	if d := cmp.Diff(want, b.chunks("zebras")); d != "" {
		t.Errorf("text and content (-want +got):\n%s", d)
	}
	if got := b.search("zebras", acl.Everyone); got != nil {
		t.Errorf("the note's words count as the document's: %v", got)
	}
	if !strings.Contains(r.String(), "1 notes asked for, 0 kept") {
		t.Errorf("report: %s", r)
	}
	if again := b.ingest(src, How{}); again.Unchanged != 1 || again.Notes != 0 {
		t.Errorf("the same again: %s", again)
	}
}

func TestNotes_TurningThemOnMakesAnotherGeneration(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta")})
	dir := t.TempDir()
	b := open(t, dir, modelstest.NewEmbedder())
	before := b.ingest(src, How{}).Generation
	b.close()
	m := &teller{}
	b = withNotes(t, dir, m, 0)
	on := b.ingest(src, How{})
	if on.Published != 2 || on.Generation == before || !on.Promoted || m.goes(false) != 2 {
		t.Errorf("turned on: %s, generation %s after %s", on, on.Generation, before)
	}
	b.close()
	b = open(t, dir, modelstest.NewEmbedder())
	if off := b.ingest(src, How{}); !off.Promoted || off.Generation == on.Generation || b.model.Passages() != 0 {
		t.Errorf("turned off: %s, %d texts embedded anew", off, b.model.Passages())
	}
}

func TestNotes_ModelThatIsAway(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta")})
	m := &teller{away: true}
	b := withNotes(t, t.TempDir(), m, 0)
	r := b.ingest(src, How{})
	if r.Published != 2 || r.Unnoted != 2 || len(r.Failed) != 0 || !strings.Contains(r.String(), "without notes") {
		t.Fatalf("while it is away: %s", r)
	}
	rec, _ := b.cat.At(src.path("a.md"))
	if rec.Stamp == b.Stamp() || len(rec.Warnings) != 1 || !cmp.Equal(b.search("alpha", acl.Everyone), []string{"a.md"}) {
		t.Errorf("a document without notes must be found, and be stale: %+v", rec)
	}
	for range 2 { // as it was: nothing is published again, and the story does not grow
		if r := b.ingest(src, How{}); r.Unchanged != 2 || r.Published != 0 || r.Unnoted != 2 || strings.Count(r.String(), "published without notes") != 1 {
			t.Errorf("still away: %s", r)
		}
	}
	if now, _ := b.cat.At(src.path("a.md")); !cmp.Equal(now, rec) {
		t.Errorf("the record has changed:\n%s", cmp.Diff(rec, now))
	}
	m.goes(false)
	if r := b.ingest(src, How{}); r.Published != 2 || r.Notes != 2 || r.Unnoted != 0 {
		t.Errorf("when it is back: %s", r)
	}
	if rec, _ := b.cat.At(src.path("a.md")); rec.Stamp != b.Stamp() || rec.Warnings != nil {
		t.Errorf("completed: %+v", rec)
	}
}

// TestNotes_AccessWhileNotesAreMissing: what is only to be completed still gets
// its access list.
func TestNotes_AccessWhileNotesAreMissing(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha")})
	m := &teller{away: true}
	b := withNotes(t, t.TempDir(), m, 0)
	b.ingest(src, How{})
	src.access[""] = acl.NewList(acl.Group("hr"))
	if r := b.ingest(src, How{}); r.AccessChanged != 1 {
		t.Errorf("report: %+v", r)
	}
	if got := b.search("alpha", acl.Everyone); got != nil {
		t.Errorf("everybody still finds %v", got)
	}
	if got := b.search("alpha", acl.Group("hr")); !cmp.Equal(got, []string{"a.md"}) {
		t.Errorf("the group finds %v", got)
	}
}

func TestNotes_Budget(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": text("beta"), "c.md": text("gamma"), "d.md": text("delta"), "e.md": text("epsilon")})
	m := &teller{}
	dir := t.TempDir()
	for i, want := range []Report{{Published: 5, Notes: 2, Unnoted: 3}, {Published: 2, Unchanged: 3, Notes: 2, Unnoted: 1}, {Published: 1, Unchanged: 4, Notes: 1}, {Unchanged: 5}} {
		b := withNotes(t, dir, m, 2)
		r := b.ingest(src, How{})
		if got := (Report{Published: r.Published, Unchanged: r.Unchanged, Notes: r.Notes, Unnoted: r.Unnoted}); !cmp.Equal(got, want) {
			t.Errorf("run %d (-want +got):\n%s", i, cmp.Diff(want, got))
		}
		b.close()
	}
}

// TestNotes_RefusedDocumentIsNotSent: nobody may read it, and the model is
// somebody.
func TestNotes_RefusedDocumentIsNotSent(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": text("alpha"), "b.md": "---\naccess: []\n---\n" + text("beta")})
	src.access["a.md"] = acl.List{}
	m := &teller{}
	b := withNotes(t, t.TempDir(), m, 0)
	if r := b.ingest(src, How{}); len(r.Refused) != 2 || len(m.asked) != 0 {
		t.Errorf("refused %d, asked %q", len(r.Refused), m.asked)
	}
}

func TestNotes_FitTheWindow(t *testing.T) {
	t.Parallel()
	src := newFolder(t, map[string]string{"a.md": "# T\n\n" + strings.Repeat("Many words stand here in a row. ", 400)})
	b := withNotes(t, t.TempDir(), &teller{}, 0)
	if r := b.ingest(src, How{}); r.Truncated != 0 || r.Chunks < 3 {
		t.Errorf("report: %s", r)
	}
	rec, _ := b.cat.At(src.path("a.md"))
	if rec.State != catalog.Published || StampOf(b.options.Chunk, "", b.embedder.Info()).Chunker != rec.Stamp.Chunker {
		t.Errorf("the stamp names another budget than was used: %+v", rec.Stamp)
	}
}
