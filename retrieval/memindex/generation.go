package memindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/journal"
)

// Generation is one generation, open for reading and writing. It is safe for
// concurrent use.
type Generation struct {
	manifest retrieval.Manifest

	writing sync.Mutex // one change after another; taken before mu
	log     *journal.Log

	mu    sync.RWMutex // readers hold it while they use state or log parts
	state *state

	views  views
	scores sync.Pool // *[]float64, zeroed
}

func openGeneration(path string, m retrieval.Manifest) (*Generation, error) {
	// A generation gets its name once its log is whole: a log that is absent or
	// empty was lost, and a new one in its place would answer that there is nothing.
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, storage(fmt.Errorf("%w: %s is gone or empty", journal.ErrCorrupt, path))
	}
	g := &Generation{manifest: m, state: newState(m.Embedder.Dimensions)}
	log, err := journal.Open(path, func(r journal.Record, head []byte) error {
		if err := g.state.apply(r, head); err != nil {
			return fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
		}
		return nil
	})
	if err != nil {
		return nil, storage(err)
	}
	g.log = log
	g.state.squeeze()
	if g.wasteful() {
		// A full disk or one damaged text is no reason not to open: the log
		// stays as it was, and an explicit Compact says what is wrong.
		_ = g.Compact(context.Background())
	}
	return g, nil
}

func (g *Generation) close() error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.log.Close()
}

// Manifest says what made the generation.
func (g *Generation) Manifest() retrieval.Manifest { return g.manifest }

// Counts says what lies in the generation now.
func (g *Generation) Counts() retrieval.Counts {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return retrieval.Counts{Documents: len(g.state.live), Chunks: len(g.state.owners) - g.state.dead}
}

// Search runs both legs inside the grant.
func (g *Generation) Search(ctx context.Context, grant acl.Grant, q retrieval.Query) (c retrieval.Candidates, err error) {
	if q.Vector != nil {
		if err := retrieval.CheckVector(q.Vector, g.manifest.Embedder.Dimensions); err != nil {
			return c, fmt.Errorf("searching: %w", err)
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.views.of(g.state, grant)
	found, missing := g.state.weigh(v, q.Terms)
	c.Missing = missing
	c.Chunks, c.Holding = v.chunks, g.state.holding(v, q.Count)
	if q.Depth < 1 {
		return c, ctx.Err()
	}
	if len(found) > 0 {
		if c.Lexical, err = g.lexical(ctx, v, found, q.Depth); err != nil {
			return retrieval.Candidates{}, err
		}
	}
	if q.Vector != nil {
		if c.Dense, err = g.state.dense(ctx, v, q.Vector, q.Depth); err != nil {
			return retrieval.Candidates{}, err
		}
		c.Distances = g.state.distances(q.Vector, c.Lexical, c.Dense)
	}
	return c, ctx.Err()
}

// lexical lends the leg its scratch.
func (g *Generation) lexical(ctx context.Context, v *view, found []weighted, depth int) ([]retrieval.LexicalHit, error) {
	n := len(g.state.owners)
	scratch, _ := g.scores.Get().(*[]float64)
	if scratch == nil || cap(*scratch) < n {
		scratch = new(make([]float64, n+n/8))
	}
	defer g.scores.Put(scratch)
	scores := (*scratch)[:n]
	defer clear(scores)
	return g.state.lexical(ctx, v, found, scores, depth)
}

// admitted returns the document if it is there and the grant admits it.
// The caller holds mu.
//
// SECURITY: every read of a document or its text passes here.
func (g *Generation) admitted(grant acl.Grant, id retrieval.DocumentID) *document {
	doc := g.state.docs[id]
	if doc == nil || !grant.Admits(g.state.classes[doc.class]) {
		return nil
	}
	return doc
}

// holder returns the document that has the chunk in its visible revision, if
// the grant admits it. The caller holds mu.
func (g *Generation) holder(grant acl.Grant, id retrieval.ChunkID) *document {
	doc := g.admitted(grant, id.Document)
	if doc == nil || doc.revision != id.Revision || id.Ordinal < 0 || id.Ordinal >= doc.chunks {
		return nil
	}
	return doc
}

// Passages loads chunks in the order asked.
func (g *Generation) Passages(ctx context.Context, grant acl.Grant, ids []retrieval.ChunkID) ([]retrieval.Passage, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]retrieval.Passage, 0, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc := g.holder(grant, id)
		if doc == nil {
			continue
		}
		c, err := g.chunk(doc, id)
		if err != nil {
			return nil, fmt.Errorf("loading chunk %s: %w", id, err)
		}
		out = append(out, retrieval.Passage{
			Chunk: c, Title: doc.title, Path: doc.path, Link: doc.link, Format: doc.format, Language: doc.language, Modified: doc.modified,
		})
	}
	return out, nil
}

func (g *Generation) chunk(doc *document, id retrieval.ChunkID) (retrieval.Chunk, error) {
	raw, err := g.log.Read(doc.passages[id.Ordinal])
	if err != nil {
		return retrieval.Chunk{}, storage(err)
	}
	c, err := decodePassage(raw, id)
	if err != nil {
		return retrieval.Chunk{}, fmt.Errorf("%w: %w", retrieval.ErrCorrupt, err)
	}
	return c, nil
}

// States loads the token states of chunks in the order asked.
func (g *Generation) States(ctx context.Context, grant acl.Grant, ids []retrieval.ChunkID) ([][]byte, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([][]byte, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc := g.holder(grant, id)
		if doc == nil || doc.states[id.Ordinal].Len == 0 {
			continue
		}
		raw, err := g.log.Read(doc.states[id.Ordinal])
		if err != nil {
			return nil, fmt.Errorf("loading token states of chunk %s: %w", id, storage(err))
		}
		out[i] = raw
	}
	return out, nil
}

// Document loads one revision with its canonical text.
func (g *Generation) Document(ctx context.Context, grant acl.Grant, id retrieval.DocumentID, rev retrieval.Revision) (retrieval.Document, error) {
	if err := ctx.Err(); err != nil {
		return retrieval.Document{}, err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	doc := g.admitted(grant, id)
	if doc == nil {
		return retrieval.Document{}, retrieval.ErrNotFound
	}
	r, ok := doc.find(rev)
	if !ok {
		return retrieval.Document{}, retrieval.ErrNotFound
	}
	text, err := g.log.Read(r.text)
	if err != nil {
		return retrieval.Document{}, fmt.Errorf("loading document %s: %w", id, storage(err))
	}
	return retrieval.Document{
		ID: r.id, Revision: r.revision, Path: r.path, Link: r.link, Title: r.title, Format: r.format,
		Language: r.language, Modified: r.modified, Canonical: string(text),
	}, nil
}

// find returns the revision asked for, "" for the visible one.
func (d *document) find(rev retrieval.Revision) (revision, bool) {
	if rev == "" || rev == d.revision {
		return revision{d.meta, d.text}, true
	}
	i := slices.IndexFunc(d.past, func(r revision) bool { return r.revision == rev })
	if i < 0 {
		return revision{}, false
	}
	return d.past[i], true
}

// Documents lists what the grant admits, ordered by path.
func (g *Generation) Documents(ctx context.Context, grant acl.Grant) ([]retrieval.DocumentInfo, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	v := g.views.of(g.state, grant)
	out := []retrieval.DocumentInfo{}
	for _, doc := range g.state.live {
		// SECURITY: the decision of Grant.Admits on the document's list.
		if !v.classes[doc.class] {
			continue
		}
		out = append(out, retrieval.DocumentInfo{
			ID: doc.id, Revision: doc.revision, Path: doc.path, Title: doc.title, Format: doc.format,
			Modified: doc.modified, Chunks: doc.chunks, Runes: doc.runes, Access: g.state.classes[doc.class],
		})
	}
	slices.SortFunc(out, func(a, b retrieval.DocumentInfo) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
	})
	return out, ctx.Err()
}

// Publish makes a revision visible and durable in one step.
func (g *Generation) Publish(ctx context.Context, p retrieval.Publication) error {
	if err := p.Check(g.manifest.Embedder.Dimensions); err != nil {
		return fmt.Errorf("publishing %s: %w", p.Document.ID, err)
	}
	parts := [][]byte{[]byte(p.Document.Canonical)}
	for _, c := range p.Chunks {
		parts = append(parts, encodePassage(c.Chunk))
	}
	for _, c := range p.Chunks {
		parts = append(parts, c.States)
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	if err := g.change(ctx, g.publish(p), parts...); err != nil {
		return fmt.Errorf("publishing %s: %w", p.Document.ID, err)
	}
	return nil
}

// publish makes the head of a publish record. The caller holds writing, which
// keeps the term numbers still.
func (g *Generation) publish(p retrieval.Publication) []byte {
	d := p.Document
	rec := published{
		meta: meta{
			id: d.ID, revision: d.Revision, path: d.Path, link: d.Link, title: d.Title, format: d.Format,
			language: d.Language, modified: d.Modified, runes: utf8.RuneCountInString(d.Canonical),
		},
		access: p.Access,
	}
	n := numberer{state: g.state, fresh: map[string]uint32{}}
	for _, c := range p.Chunks {
		ids := make([]uint32, len(c.Terms))
		for i, t := range c.Terms {
			ids[i] = n.number(t)
		}
		rec.chunks = append(rec.chunks, countTerms(ids))
		rec.vectors = encodeVectors(rec.vectors, c.Vector)
	}
	rec.terms = n.terms
	return rec.encode()
}

// Remove takes the document out of search and reading.
func (g *Generation) Remove(ctx context.Context, id retrieval.DocumentID) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.state.docs[id] == nil {
		return ctx.Err()
	}
	e := encoder{kindRemove}
	e.string(string(id))
	if err := g.change(ctx, e); err != nil {
		return fmt.Errorf("removing %s: %w", id, err)
	}
	return nil
}

// SetAccess replaces the access list, in force when it returns.
func (g *Generation) SetAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	if list.IsZero() {
		return fmt.Errorf("changing the access to %s: the access list is empty: name who may read the document", id)
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.state.docs[id] == nil {
		return fmt.Errorf("changing the access to %s: %w", id, retrieval.ErrNotFound)
	}
	e := encoder{kindSetAccess}
	e.string(string(id))
	e.list(list)
	if err := g.change(ctx, e); err != nil {
		return fmt.Errorf("changing the access to %s: %w", id, err)
	}
	return nil
}

// change makes a record durable, then visible. The caller holds writing.
func (g *Generation) change(ctx context.Context, head []byte, parts ...[]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := g.log.Append(head, parts...)
	if err != nil {
		return storage(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.state.apply(r, head); err != nil {
		return err
	}
	g.state.squeeze()
	return nil
}
