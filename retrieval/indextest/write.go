package indextest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
)

func caseS1(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p, q := Publication("gone", "r1", everyone(), "gone shared", "gone again"), Publication("stays", "r1", everyone(), "stays shared")
	publish(t, g, p, q)
	expect(t, g, system.Grant(), p, all)
	fatal(t, g.Remove(t.Context(), "gone"))
	for _, grant := range []acl.Grant{system.Grant(), person("ada", acl.Everyone)} {
		expect(t, g, grant, p, none)
		expect(t, g, grant, q, all)
		if _, err := g.Document(t.Context(), grant, "gone", "r1"); !errors.Is(err, retrieval.ErrNotFound) {
			t.Errorf("the removed revision gives %v", err)
		}
	}
	fatal(t, g.Remove(t.Context(), "gone"))
	fatal(t, g.Remove(t.Context(), "neverthere"))
	diff(t, "counts", retrieval.Counts{Documents: 1, Chunks: 1}, g.Counts())
	publish(t, g, Publication("gone", "r2", everyone(), "gone shared"))
	if _, err := g.Document(t.Context(), system.Grant(), "gone", "r1"); !errors.Is(err, retrieval.ErrNotFound) {
		t.Errorf("a revision from before the removal gives %v", err)
	}
}

func caseS4(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	publish(t, g, Publication("doc", "r1", everyone(), "price ten", "old words"),
		Publication("doc", "r2", everyone(), "price twelve"), Publication("doc", "r3", everyone(), "price thirteen", "more"))
	for range 20 {
		c := search(t, g, system.Grant(), ask("price ten twelve thirteen old"))
		for _, h := range c.Lexical {
			if h.ID.Revision != "r3" {
				t.Fatalf("found %s", h.ID)
			}
		}
		if len(c.Lexical) != 1 || len(c.Dense) != 2 {
			t.Fatalf("%d lexical and %d dense hits", len(c.Lexical), len(c.Dense))
		}
		diff(t, "missing", []string{"ten", "twelve", "old"}, c.Missing)
	}
	diff(t, "counts", retrieval.Counts{Documents: 1, Chunks: 2}, g.Counts())
}

func caseQ11(t *testing.T, s retrieval.Store) {
	if _, err := s.Open(t.Context(), ""); !errors.Is(err, retrieval.ErrNoIndex) {
		t.Errorf("opening without an index gives %v", err)
	}
	g := create(t, s)
	for _, grant := range []acl.Grant{{}, system.Grant(), person("ada", acl.Everyone)} {
		c := search(t, g, grant, ask("anything at all"))
		if len(c.Lexical)+len(c.Dense) != 0 {
			t.Errorf("hits in an empty index: %v", c)
		}
		diff(t, "missing", []string{"anything", "at", "all"}, c.Missing)
		infos, err := g.Documents(t.Context(), grant)
		if len(infos) != 0 || err != nil {
			t.Errorf("Documents gives %v, %v", infos, err)
		}
	}
	diff(t, "counts", retrieval.Counts{}, g.Counts())
}

func caseQ14(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	publish(t, g, Publication("doc", "r1", everyone(), "doc shared"))
	nan := float32(math.NaN())
	for name, v := range map[string][]float32{
		"too long": {1, 0, 0, 0}, "too short": {1, 0}, "empty": {}, "zero": {0, 0, 0}, "not normalised": {1, 1, 0},
		"almost normalised": {1.002, 0, 0}, "NaN": {nan, 0, 0}, "infinite": {float32(math.Inf(1)), 0, 0},
	} {
		p := Publication("doc", "r2", everyone(), "fresh", "words")
		p.Chunks[1].Vector = v
		if err := g.Publish(t.Context(), p); err == nil {
			t.Errorf("publishing a vector that is %s succeeds", name)
		}
		q := ask("doc")
		q.Vector = v
		if _, err := g.Search(t.Context(), system.Grant(), q); err == nil {
			t.Errorf("searching with a vector that is %s succeeds", name)
		}
	}
	q := ask("doc")
	q.Vector = []float32{1, 0, 0, 0}
	if _, err := g.Search(t.Context(), system.Grant(), q); !errors.Is(err, retrieval.ErrModelMismatch) {
		t.Errorf("a vector of another length gives %v, want ErrModelMismatch", err)
	}
	p := Publication("near", "r1", everyone(), "near")
	p.Chunks[0].Vector = []float32{1.0005, 0, 0}
	publish(t, g, p)
}

// caseQ15: whatever is refused leaves the index as it was.
func caseQ15(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p := Publication("doc", "r1", everyone(), "doc shared", "two")
	publish(t, g, p)
	before := search(t, g, system.Grant(), ask("doc fresh"))
	for name, spoil := range map[string]func(p *retrieval.Publication){
		"no chunks":            func(p *retrieval.Publication) { p.Chunks = nil },
		"no list":              func(p *retrieval.Publication) { p.Access = acl.List{} },
		"last vector shorter":  func(p *retrieval.Publication) { p.Chunks[1].Vector = p.Chunks[1].Vector[:2] },
		"chunk of another":     func(p *retrieval.Publication) { p.Chunks[1].Chunk.ID.Document = "other" },
		"chunk out of order":   func(p *retrieval.Publication) { p.Chunks[1].Chunk.ID.Ordinal = 7 },
		"content not in text":  func(p *retrieval.Publication) { p.Chunks[1].Chunk.Content += "!" },
		"span outside of text": func(p *retrieval.Publication) { p.Chunks[1].Chunk.Span.ToByte = 1 << 40 },
		"no id":                func(p *retrieval.Publication) { p.Document.ID = "" },
	} {
		bad := Publication("doc", "r2", everyone(), "fresh", "words")
		spoil(&bad)
		if err := g.Publish(t.Context(), bad); err == nil {
			t.Errorf("%s: published", name)
		}
	}
	other := Manifest()
	other.Embedder.Dimensions = 0
	if _, err := s.Create(t.Context(), other); err == nil {
		t.Error("a generation without dimensions is made")
	}
	if _, err := s.Open(t.Context(), "no-such-generation"); err == nil {
		t.Error("a generation that is not there opens")
	}
	if err := s.Promote(t.Context(), "no-such-generation"); err == nil {
		t.Error("a generation that is not there is promoted")
	}
	diff(t, "after refusals", before, search(t, g, system.Grant(), ask("doc fresh")))
	expect(t, g, system.Grant(), p, all)
}

// replacingIsAtomic lets readers search while a document is replaced: they see
// all of one revision, never both and never none.
func replacingIsAtomic(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	texts := func(rev int) []string { // the revisions differ in their number of chunks
		all := []string{"shared first", "shared second", "shared third"}
		return all[:2+rev%2]
	}
	publish(t, g, Publication("doc", "r0", everyone(), texts(0)...), Publication("still", "r1", everyone(), "still"))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := g.Search(background, system.Grant(), ask("shared"))
				if err != nil {
					t.Error(err)
					return
				}
				revs := map[retrieval.Revision]int{}
				for _, h := range c.Lexical {
					revs[h.ID.Revision]++
				}
				dense := map[retrieval.Revision]int{}
				for _, h := range c.Dense {
					if h.ID.Document == "doc" {
						dense[h.ID.Revision]++
					}
				}
				if !oneWhole(revs, texts) || fmt.Sprint(revs) != fmt.Sprint(dense) {
					t.Errorf("a search sees chunks by revision: lexical %v, dense %v", revs, dense)
					return
				}
			}
		})
	}
	for rev := 1; rev <= 60; rev++ {
		publish(t, g, Publication("doc", fmt.Sprintf("r%d", rev), everyone(), texts(rev)...))
	}
	stop()
	wg.Wait()
}

func oneWhole(revs map[retrieval.Revision]int, texts func(int) []string) bool {
	for r, n := range revs {
		var rev int
		if _, err := fmt.Sscanf(string(r), "r%d", &rev); err != nil {
			return false
		}
		return len(revs) == 1 && n == len(texts(rev))
	}
	return false
}

func sameRevision(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	first := Publication("doc", "r1", everyone(), "doc one", "two")
	publish(t, g, first)
	again := Publication("doc", "r1", acl.NewList(acl.Group("hr")), "doc changed")
	publish(t, g, again)
	expect(t, g, person("ada", acl.Everyone), again, none)
	expect(t, g, person("eve", acl.Group("hr")), again, all)
	diff(t, "counts", retrieval.Counts{Documents: 1, Chunks: 1}, g.Counts())
	d, err := g.Document(t.Context(), system.Grant(), "doc", "r1")
	fatal(t, err)
	diff(t, "document", again.Document, d)
}

func copied(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p, twin := Publication("doc", "r1", everyone(), "doc one"), Publication("doc", "r1", everyone(), "doc one")
	publish(t, g, p)
	p.Chunks[0].Vector[0], p.Chunks[0].Terms[0], p.Chunks[0].Chunk.Section[0], p.Chunks[0].States[0] = 9, "spoilt", "spoilt", 9
	c := search(t, g, system.Grant(), retrieval.Query{Terms: []string{"doc"}, Vector: twin.Chunks[0].Vector, Depth: 9})
	if len(c.Lexical) != 1 || len(c.Dense) != 1 || c.Dense[0].Distance > 1e-6 {
		t.Errorf("the caller's changes reached the index: %v", c)
	}
	ps, err := g.Passages(t.Context(), system.Grant(), []retrieval.ChunkID{twin.Chunks[0].Chunk.ID})
	fatal(t, err)
	diff(t, "chunk", twin.Chunks[0].Chunk, ps[0].Chunk)
	states, err := g.States(t.Context(), system.Grant(), []retrieval.ChunkID{twin.Chunks[0].Chunk.ID})
	fatal(t, err)
	diff(t, "states", [][]byte{twin.Chunks[0].States}, states)
}

func cancelled(t *testing.T, s retrieval.Store) {
	g := create(t, s)
	p := Publication("doc", "r1", everyone(), "doc")
	publish(t, g, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, searchErr := g.Search(ctx, system.Grant(), ask("doc"))
	_, passagesErr := g.Passages(ctx, system.Grant(), []retrieval.ChunkID{p.Chunks[0].Chunk.ID})
	_, statesErr := g.States(ctx, system.Grant(), []retrieval.ChunkID{p.Chunks[0].Chunk.ID})
	_, documentErr := g.Document(ctx, system.Grant(), "doc", "")
	_, documentsErr := g.Documents(ctx, system.Grant())
	for name, err := range map[string]error{
		"Search": searchErr, "Passages": passagesErr, "States": statesErr, "Document": documentErr, "Documents": documentsErr,
		"Publish":   g.Publish(ctx, Publication("doc", "r2", everyone(), "fresh")),
		"Remove":    g.Remove(ctx, "doc"),
		"SetAccess": g.SetAccess(ctx, "doc", acl.NewList(acl.Group("hr"))),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	expect(t, g, person("ada", acl.Everyone), p, all)
}

func generations(t *testing.T, s retrieval.Store) {
	a, b := create(t, s), create(t, s)
	if a.Manifest().Name == b.Manifest().Name {
		t.Fatalf("two generations are named %s", a.Manifest().Name)
	}
	m := a.Manifest()
	if m.Name == "" || m.Format == "" || m.Created.IsZero() {
		t.Errorf("the store left fields empty: %+v", m)
	}
	m.Name, m.Format, m.Created = "", "", Manifest().Created
	diff(t, "manifest", Manifest(), m)
	publish(t, a, Publication("old", "r1", everyone(), "old"))
	publish(t, b, Publication("new", "r1", everyone(), "new"))

	current := func(want string) {
		t.Helper()
		list, name, err := s.Generations(t.Context())
		fatal(t, err)
		diff(t, "generations", []retrieval.Manifest{a.Manifest(), b.Manifest()}, list)
		diff(t, "current", want, name)
	}
	current("")
	for _, g := range []retrieval.Generation{a, b, a} { // there and back
		fatal(t, s.Promote(t.Context(), g.Manifest().Name))
		current(g.Manifest().Name)
		now, err := s.Open(t.Context(), "")
		fatal(t, err)
		diff(t, "opened", g.Manifest(), now.Manifest())
		diff(t, "search", search(t, g, system.Grant(), ask("old new")), search(t, now, system.Grant(), ask("old new")))
	}
	shadow, err := s.Open(t.Context(), b.Manifest().Name)
	fatal(t, err)
	publish(t, shadow, Publication("later", "r1", everyone(), "later"))
	diff(t, "shadow", retrieval.Counts{Documents: 2, Chunks: 2}, b.Counts())
	diff(t, "current one", retrieval.Counts{Documents: 1, Chunks: 1}, a.Counts())
}

func unfinished(t *testing.T, s retrieval.Store) {
	whole, half := create(t, s).Manifest().Name, create(t, s).Manifest().Name
	fatal(t, s.Finish(t.Context(), whole))
	fatal(t, s.Finish(t.Context(), whole))
	fatal(t, s.PromoteByHand(t.Context(), whole))
	if err := s.PromoteByHand(t.Context(), half); !errors.Is(err, retrieval.ErrUnfinished) {
		t.Errorf("promoting half a generation: %v", err)
	}
	for _, name := range []string{"no-such-generation", "../etc"} {
		if s.Finish(t.Context(), name) == nil || s.PromoteByHand(t.Context(), name) == nil {
			t.Errorf("%s was finished or promoted", name)
		}
	}
	marked(t, s, whole, retrieval.Marks{Unfinished: map[string]bool{half: true}, ByHand: true})
	fatal(t, s.Promote(t.Context(), half)) // the first of all is, with its first document
	marked(t, s, half, retrieval.Marks{Unfinished: map[string]bool{half: true}})
	fatal(t, s.Finish(t.Context(), half))
	fatal(t, s.PromoteByHand(t.Context(), half))
	marked(t, s, half, retrieval.Marks{Unfinished: map[string]bool{}, ByHand: true})
}

func byHand(t *testing.T, s retrieval.Store) {
	marked(t, s, "", retrieval.Marks{Unfinished: map[string]bool{}})
	a, b := create(t, s).Manifest().Name, create(t, s).Manifest().Name
	for _, name := range []string{a, b} {
		fatal(t, s.Finish(t.Context(), name))
	}
	for _, step := range []struct {
		name    string
		promote func(context.Context, string) error
		byHand  bool
	}{{a, s.Promote, false}, {b, s.PromoteByHand, true}, {b, s.PromoteByHand, true}, {a, s.PromoteByHand, true}, {a, s.Promote, false}, {b, s.PromoteByHand, true}, {a, s.Promote, false}, {b, s.Promote, false}} {
		fatal(t, step.promote(t.Context(), step.name))
		marked(t, s, step.name, retrieval.Marks{Unfinished: map[string]bool{}, ByHand: step.byHand})
	}
}

func marked(t *testing.T, s retrieval.Store, current string, want retrieval.Marks) {
	t.Helper()
	_, name, err := s.Generations(t.Context())
	fatal(t, err)
	diff(t, "current", current, name)
	got, err := s.Marks(t.Context())
	fatal(t, err)
	diff(t, "marks", want, got)
}
