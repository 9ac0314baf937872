package memindex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) retrieval.Store { return openStore(t, t.TempDir()) })
}

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func create(t *testing.T, s *Store) *Generation {
	t.Helper()
	g, err := s.Create(t.Context(), indextest.Manifest())
	if err != nil {
		t.Fatal(err)
	}
	return g.(*Generation)
}

// started is a store in a directory of its own, with one generation, which is
// the current one.
func started(t *testing.T) (dir string, s *Store, g *Generation) {
	t.Helper()
	dir = t.TempDir()
	s = openStore(t, dir)
	g = create(t, s)
	must(t, s.Promote(t.Context(), g.Manifest().Name))
	return dir, s, g
}

func newGeneration(t *testing.T) *Generation {
	t.Helper()
	return create(t, openStore(t, t.TempDir()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func docID(s string) retrieval.DocumentID { return retrieval.DocumentID(s) }
func group(i int) acl.Principal           { return acl.Group(fmt.Sprintf("g%d", i)) }

func TestDirectoryOpenedTwice(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(dir)
	must(t, err)
	_, err = Open(dir)
	if want := fmt.Sprintf("in use by pid %d;", os.Getpid()); !errors.Is(err, retrieval.ErrInUse) || !strings.Contains(err.Error(), want) {
		t.Fatalf("second Open gives %v, want ErrInUse with %q", err, want)
	}
	must(t, s.Close())
	must(t, s.Close())
	openStore(t, dir)
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s, err := Open(t.TempDir())
	must(t, err)
	g := create(t, s)
	must(t, g.Publish(t.Context(), indextest.Publication("a", "1", acl.NewList(acl.Everyone), "x")))
	must(t, s.Close())
	if _, err := s.Create(t.Context(), retrieval.Manifest{Embedder: models.EmbedderInfo{Dimensions: 2}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Create gives %v", err)
	}
	if err := g.Publish(t.Context(), indextest.Publication("b", "1", acl.NewList(acl.Everyone), "x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Publish gives %v", err)
	}
	if _, err := g.Document(t.Context(), system.Grant(), "a", ""); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Document gives %v", err)
	}
}

// everything is all that a generation shows, for comparing two states of it.
type everything struct {
	Documents  []retrieval.DocumentInfo
	Passages   []retrieval.Passage
	States     [][]byte
	Canonical  []retrieval.Document
	Candidates retrieval.Candidates
	Counts     retrieval.Counts
}

func show(t *testing.T, g retrieval.Generation) everything {
	t.Helper()
	e, err := readAll(g)
	must(t, err)
	return e
}

func readAll(g retrieval.Generation) (e everything, err error) {
	ctx := context.Background()
	if e.Documents, err = g.Documents(ctx, system.Grant()); err != nil {
		return e, err
	}
	for _, d := range e.Documents {
		doc, err := g.Document(ctx, system.Grant(), d.ID, "")
		if err != nil {
			return e, err
		}
		e.Canonical = append(e.Canonical, doc)
		var ids []retrieval.ChunkID
		for i := range d.Chunks {
			ids = append(ids, retrieval.ChunkID{Document: d.ID, Revision: d.Revision, Ordinal: i})
		}
		ps, err := g.Passages(ctx, system.Grant(), ids)
		if err != nil {
			return e, err
		}
		e.Passages = append(e.Passages, ps...)
		states, err := g.States(ctx, system.Grant(), ids)
		if err != nil {
			return e, err
		}
		e.States = append(e.States, states...)
	}
	e.Counts = g.Counts()
	words := []string{"common", "w1", "w2", "nowhere"}
	q := retrieval.Query{Terms: words, Vector: indextest.Vector(0), Depth: 1000, Count: words}
	e.Candidates, err = g.Search(ctx, system.Grant(), q)
	return e, err
}

// busy makes a generation with replaced, removed and re-listed documents.
func busy(t *testing.T, g *Generation) {
	t.Helper()
	list := acl.NewList(group(1), acl.Everyone)
	for i := range 40 {
		id := fmt.Sprintf("doc%02d", i)
		for rev := range 1 + i%4 {
			must(t, g.Publish(t.Context(), indextest.Publication(id, fmt.Sprint(rev), list, "common w1 w1", fmt.Sprintf("only%d w%d rev%d", i, i%5, rev))))
		}
		if i%5 == 0 {
			must(t, g.SetAccess(t.Context(), docID(id), acl.NewList(group(i))))
		}
		if i%7 == 3 {
			must(t, g.Remove(t.Context(), docID(id)))
		}
	}
}

func TestReopenShowsTheSame(t *testing.T) {
	t.Parallel()
	dir, s, g := started(t)
	busy(t, g)
	want := show(t, g)
	must(t, s.Close())

	again, err := openStore(t, dir).Open(t.Context(), "")
	must(t, err)
	if diff := cmp.Diff(want, show(t, again)); diff != "" {
		t.Errorf("after reopening (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(g.Manifest(), again.Manifest()); diff != "" {
		t.Errorf("manifest (-before +after):\n%s", diff)
	}
}

func TestSqueezeShowsTheSame(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	list := acl.NewList(acl.Everyone)
	texts := slices.Repeat([]string{"common w1"}, 300)
	must(t, g.Publish(t.Context(), indextest.Publication("stays", "1", list, "common w2", "w1 w1")))
	for rev := range 5 { // dead: 300, 600, 900, then squeezed at 1,200 and again
		must(t, g.Publish(t.Context(), indextest.Publication("changes", fmt.Sprint(rev), list, texts...)))
		must(t, g.Publish(t.Context(), indextest.Publication(fmt.Sprint("later", rev), "1", list, fmt.Sprintf("w%d common", rev))))
	}
	if g.state.dead >= 1024 || len(g.state.owners) != g.state.vecs.n {
		t.Fatalf("not squeezed: %d dead, %d owners, %d vectors", g.state.dead, len(g.state.owners), g.state.vecs.n)
	}
	plain := newGeneration(t)
	must(t, plain.Publish(t.Context(), indextest.Publication("stays", "1", list, "common w2", "w1 w1")))
	must(t, plain.Publish(t.Context(), indextest.Publication("changes", "4", list, texts...)))
	for rev := range 5 {
		must(t, plain.Publish(t.Context(), indextest.Publication(fmt.Sprint("later", rev), "1", list, fmt.Sprintf("w%d common", rev))))
	}
	if diff := cmp.Diff(show(t, plain), show(t, g)); diff != "" {
		t.Errorf("squeezed (-plain +squeezed):\n%s", diff)
	}
}

func TestCompactionShowsTheSameInLess(t *testing.T) {
	t.Parallel()
	dir, s, g := started(t)
	busy(t, g)
	for rev := range 9 {
		must(t, g.Publish(t.Context(), indextest.Publication("often", fmt.Sprint(rev), acl.NewList(acl.Everyone), "secretword", "common")))
	}
	must(t, g.Publish(t.Context(), indextest.Publication("gone", "1", acl.NewList(acl.Everyone), "vanishedword")))
	must(t, g.Remove(t.Context(), "gone"))
	want, size := show(t, g), g.log.Size()
	must(t, g.Compact(t.Context()))
	if g.log.Size() >= size {
		t.Errorf("the log has %d bytes, before %d", g.log.Size(), size)
	}
	raw, err := os.ReadFile(s.path(g.manifest.Name, logFile))
	must(t, err)
	if strings.Contains(string(raw), "vanishedword") {
		t.Error("the log still holds a word of the removed document")
	}
	check := func(g retrieval.Generation) {
		t.Helper()
		if diff := cmp.Diff(want, show(t, g)); diff != "" {
			t.Errorf("compacted (-before +after):\n%s", diff)
		}
		for rev := range 8 { // 8 is the visible one; 3 to 7 are kept
			_, err := g.Document(t.Context(), system.Grant(), "often", retrieval.Revision(fmt.Sprint(rev)))
			if kept := rev >= 3; kept != (err == nil) || err != nil && !errors.Is(err, retrieval.ErrNotFound) {
				t.Errorf("revision %d after compaction: %v", rev, err)
			}
		}
	}
	check(g)
	must(t, g.Publish(t.Context(), indextest.Publication("after", "1", acl.NewList(acl.Everyone), "w1 brandnew")))
	want = show(t, g)
	must(t, s.Close())
	again, err := openStore(t, dir).Open(t.Context(), g.Manifest().Name)
	must(t, err)
	check(again)
}

func TestCompactionIsDoneOnOpeningWhenMuchIsDead(t *testing.T) {
	t.Parallel()
	dir, s, g := started(t)
	large := strings.Repeat("x", 12<<20)
	for rev := range 12 {
		must(t, g.Publish(t.Context(), indextest.Publication("large", fmt.Sprint(rev), acl.NewList(acl.Everyone), large)))
	}
	must(t, g.Publish(t.Context(), indextest.Publication("large", "last", acl.NewList(acl.Everyone), "small")))
	for rev := range keptRevisions {
		must(t, g.Publish(t.Context(), indextest.Publication("large", fmt.Sprint("small", rev), acl.NewList(acl.Everyone), "small")))
	}
	must(t, s.Close())
	again, err := openStore(t, dir).Open(t.Context(), g.Manifest().Name)
	must(t, err)
	if size := again.(*Generation).log.Size(); size > 1<<20 {
		t.Fatalf("the log still has %d bytes", size)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	otherFormat := func(t *testing.T, s *Store, name string) {
		m, err := s.manifest(name)
		must(t, err)
		m.Format = "memindex/1"
		must(t, writeManifest(s.path(name, manifestFile), m))
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *Store, name string)
		is    error
		says  string
	}{
		{"generation of another format", otherFormat, retrieval.ErrFormat, "footnote ingest --rebuild FOLDER"},
		{"manifest of another generation", func(t *testing.T, s *Store, name string) {
			m, err := s.manifest(name)
			must(t, err)
			m.Name = "other"
			must(t, writeManifest(s.path(name, manifestFile), m))
		}, retrieval.ErrCorrupt, `holds the manifest of "other"`},
		{"manifest cut short", func(t *testing.T, s *Store, name string) {
			must(t, os.Truncate(s.path(name, manifestFile), 40))
		}, retrieval.ErrCorrupt, "manifest.json"},
		{"no such generation", func(t *testing.T, s *Store, name string) {
			must(t, os.RemoveAll(s.path(name)))
		}, os.ErrNotExist, "there is no generation"},
		{"log without its header", func(t *testing.T, s *Store, name string) {
			must(t, os.WriteFile(s.path(name, logFile), []byte("something else entirely"), 0o600))
		}, retrieval.ErrCorrupt, "footnote ingest --rebuild FOLDER"},
		{"log gone", func(t *testing.T, s *Store, name string) {
			must(t, os.Remove(s.path(name, logFile)))
		}, retrieval.ErrCorrupt, "is gone or empty"},
		{"log emptied", func(t *testing.T, s *Store, name string) {
			must(t, os.Truncate(s.path(name, logFile), 0))
		}, retrieval.ErrCorrupt, "is gone or empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, s, g := started(t)
			name := g.Manifest().Name
			c.spoil(t, s, name)
			must(t, s.Close())
			s = openStore(t, dir)
			_, err := s.Open(t.Context(), "")
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("Open gives %v, want %v with %q", err, c.is, c.says)
			}
			if _, err := os.Stat(s.path(name)); c.is != os.ErrNotExist && err != nil {
				t.Errorf("the refused generation is gone: %v", err)
			}
		})
	}
}

// Token states are not read on opening, and a change in them is noticed when
// they are.
func TestChangedTokenStates(t *testing.T) {
	t.Parallel()
	dir, s, g := started(t)
	p := indextest.Publication("doc", "r1", acl.NewList(acl.Everyone), "one", "two")
	must(t, g.Publish(t.Context(), p))
	at := g.state.docs["doc"].states[1].Offset
	// The last record is checked whole on opening; this one must not be it.
	must(t, g.Publish(t.Context(), indextest.Publication("other", "r1", acl.NewList(acl.Everyone), "three")))
	must(t, s.Close())
	file := s.path(g.manifest.Name, logFile)
	raw, err := os.ReadFile(file)
	must(t, err)
	raw[at] ^= 1
	must(t, os.WriteFile(file, raw, 0o600))
	again, err := openStore(t, dir).Open(t.Context(), g.manifest.Name)
	must(t, err)
	ids := []retrieval.ChunkID{p.Chunks[0].Chunk.ID, p.Chunks[1].Chunk.ID}
	ps, err := again.Passages(t.Context(), system.Grant(), ids)
	if len(ps) != 2 || err != nil {
		t.Errorf("%d passages, %v", len(ps), err)
	}
	states, err := again.States(t.Context(), system.Grant(), ids[:1])
	if diff := cmp.Diff([][]byte{p.Chunks[0].States}, states); diff != "" || err != nil {
		t.Errorf("states beside the changed ones: %v\n%s", err, diff)
	}
	states, err = again.States(t.Context(), system.Grant(), ids)
	if states != nil || !errors.Is(err, retrieval.ErrCorrupt) || !strings.Contains(err.Error(), "doc@r1#00001") {
		t.Errorf("changed states: %v, %v", states, err)
	}
}

func TestNamesCannotLeaveTheDirectory(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	for _, name := range []string{"..", "../x", "a/b", ".new-x", `a\b`, "a\x00"} {
		if _, err := s.Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), "not the name") {
			t.Errorf("Open(%q) gives %v", name, err)
		}
		if err := s.Promote(t.Context(), name); err == nil {
			t.Errorf("Promote(%q) succeeds", name)
		}
	}
}

func TestHalfMadeGenerationIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "generations", ".new-20260101-000000-001"), 0o700))
	s := openStore(t, dir)
	all, current, err := s.Generations(t.Context())
	if len(all) != 0 || current != "" || err != nil {
		t.Fatalf("Generations gives %v %q %v", all, current, err)
	}
	if _, err := os.Stat(s.path(".new-20260101-000000-001")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("half made generation: %v", err)
	}
}

func TestUnreadableGenerationHidesNoOther(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	good, bad := create(t, s).Manifest(), create(t, s).Manifest()
	must(t, os.WriteFile(s.path(bad.Name, manifestFile), []byte("{}"), 0o600))
	all, _, err := s.Generations(t.Context())
	if diff := cmp.Diff([]retrieval.Manifest{good}, all); diff != "" || !errors.Is(err, retrieval.ErrCorrupt) {
		t.Fatalf("Generations gives %v and (-want +got)\n%s", err, diff)
	}
}

// Searches and reads go on while the log is compacted under them.
func TestReadersBesideCompaction(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	busy(t, g)
	want := show(t, g)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				got, err := readAll(g)
				if err != nil || !cmp.Equal(want, got) {
					t.Errorf("beside compaction: %v\n%s", err, cmp.Diff(want, got))
					return
				}
			}
		})
	}
	for range 10 {
		must(t, g.Compact(t.Context()))
	}
	stop()
	wg.Wait()
}

func TestCompactionOfADamagedTextChangesNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	g := create(t, s)
	busy(t, g)
	f, err := os.OpenFile(s.path(g.manifest.Name, logFile), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0xff}, g.state.live[3].text.Offset)
	must(t, err)
	must(t, f.Close())
	size := g.log.Size()
	if err := g.Compact(t.Context()); !errors.Is(err, retrieval.ErrCorrupt) {
		t.Fatalf("Compact gives %v, want ErrCorrupt", err)
	}
	if g.log.Size() != size {
		t.Errorf("the log has %d bytes, before %d", g.log.Size(), size)
	}
	must(t, g.Publish(t.Context(), indextest.Publication("after", "1", acl.NewList(acl.Everyone), "x")))
}
