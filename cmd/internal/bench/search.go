package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/memindex"
)

// searching compares both legs and prints what a filter, a whole question and
// a chunk cost.
func searching(ctx context.Context, s settings, c *corpus) (err error) {
	dir := filepath.Join(s.cache, "index")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	store, g, perChunk, err := build(ctx, dir, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	all := system.Grant()
	search := func(grant acl.Grant, dense bool) contender {
		return func() (time.Duration, error) {
			return timed(s.queries, func(i int) error {
				q := retrieval.Query{Terms: c.questions[i], Depth: atOnce}
				if dense {
					q = retrieval.Query{Vector: c.asked[i], Depth: atOnce}
				}
				_, err := g.Search(ctx, grant, q)
				return err
			})
		}
	}
	if err := againstPeers(s, c, search(all, false), search(all, true)); err != nil {
		return err
	}
	member := acl.NewGrant(acl.NewIdentity(acl.User("ada"), memberships()...), acl.AskerOnly())
	for _, leg := range []struct {
		name  string
		dense bool
	}{{"BM25", false}, {"dense", true}} {
		if err := compare(s.rounds, leg.name+" inside a filter of 50 groups", "without a filter", 1.2, search(member, leg.dense), search(all, leg.dense)); err != nil {
			return err
		}
	}
	fmt.Printf("%-34s %7.0f B   beyond its vector, target 4096\n", "memory of a chunk", perChunk)
	return whole(ctx, s, c, g, member)
}

func memberships() (out []acl.Principal) {
	for i := range groups {
		out = append(out, acl.Group(fmt.Sprintf("g%02d", i)))
	}
	return out
}

// build publishes the corpus, each document for one group, and opens it anew:
// the memory and the time are those of a program that starts.
func build(ctx context.Context, dir string, c *corpus) (*memindex.Store, retrieval.Generation, float64, error) {
	store, err := memindex.Open(dir)
	if err != nil {
		return nil, nil, 0, err
	}
	g, err := store.Create(ctx, retrieval.Manifest{Embedder: models.EmbedderInfo{Name: "bench", Dimensions: dims}})
	if err != nil {
		return nil, nil, 0, err
	}
	for first := 0; first < len(c.texts); first += perDoc {
		if err := g.Publish(ctx, c.publication(first)); err != nil {
			return nil, nil, 0, err
		}
	}
	name := g.Manifest().Name
	if err := errors.Join(store.Promote(ctx, name), store.Close()); err != nil {
		return nil, nil, 0, err
	}
	before := heap()
	start := time.Now()
	if store, err = memindex.Open(dir); err != nil {
		return nil, nil, 0, err
	}
	opened, err := store.Open(ctx, "")
	if err != nil {
		return nil, nil, 0, err
	}
	fmt.Printf("%-34s %10s   target 2s\n", fmt.Sprintf("opening %d chunks", len(c.texts)), round(time.Since(start)))
	perChunk := float64(heap()-before)/float64(len(c.texts)) - 4*dims
	return store, opened, perChunk, nil
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (c *corpus) publication(first int) retrieval.Publication {
	d := retrieval.Document{ID: retrieval.DocumentID(fmt.Sprintf("doc-%06d", first)), Revision: "0123456789abcdef", Path: fmt.Sprintf("docs/%06d.md", first), Title: "Bench", Format: "text", Language: "en"}
	p := retrieval.Publication{Access: acl.NewList(acl.Group(fmt.Sprintf("g%02d", first/perDoc%groups)))}
	for i := range min(perDoc, len(c.texts)-first) {
		text := strings.Join(c.texts[first+i], " ")
		from := len(d.Canonical)
		d.Canonical += text
		span := retrieval.Span{From: from, To: len(d.Canonical), FromByte: from, ToByte: len(d.Canonical), SourceFrom: from, SourceTo: len(d.Canonical)}
		p.Chunks = append(p.Chunks, retrieval.IndexedChunk{
			Chunk: retrieval.Chunk{ID: retrieval.ChunkID{Document: d.ID, Revision: d.Revision, Ordinal: i}, Kind: "text", Span: span, Content: text, Text: text},
			Terms: c.texts[first+i], Vector: c.vectors[first+i],
		})
	}
	p.Document = d
	return p
}

func againstPeers(s settings, c *corpus, lexical, dense contender) error {
	for _, r := range []struct {
		name   string
		target float64
		ours   contender
	}{{"faiss", 1.5, dense}, {"tantivy", 2, lexical}} {
		p, err := startPeer(s.python, "cmd/internal/bench/peers.py", r.name, s.cache, fmt.Sprint(atOnce))
		if err != nil {
			return err
		}
		label := map[string]string{"faiss": "exact dense search, one thread", "tantivy": "BM25, top 100"}[r.name]
		if err := errors.Join(compare(s.rounds, label, r.name, r.target, r.ours, p.round), p.close()); err != nil {
			return err
		}
	}
	rival, err := bleveIndex(c)
	if err != nil {
		return err
	}
	theirs := func() (time.Duration, error) {
		return timed(s.queries, func(i int) error {
			_, err := rival.Search(bleve.NewSearchRequestOptions(bleve.NewMatchQuery(strings.Join(c.questions[i], " ")), atOnce, 0, false))
			return err
		})
	}
	return errors.Join(compare(s.rounds, "BM25, top 100", "bleve", 1, lexical, theirs), rival.Close())
}

// bleveIndex holds the same texts in bleve, in memory, with BM25.
func bleveIndex(c *corpus) (bleve.Index, error) {
	m := bleve.NewIndexMapping()
	if err := m.AddCustomAnalyzer("words", map[string]any{"type": custom.Name, "tokenizer": whitespace.Name}); err != nil {
		return nil, err
	}
	m.DefaultAnalyzer = "words"
	m.ScoringModel = "bm25"
	m.StoreDynamic = false
	index, err := bleve.NewMemOnly(m)
	if err != nil {
		return nil, err
	}
	batch := index.NewBatch()
	for i, t := range c.texts {
		if err := batch.Index(fmt.Sprint(i), map[string]string{"text": strings.Join(t, " ")}); err != nil {
			return nil, err
		}
		if batch.Size() == 5000 {
			if err := index.Batch(batch); err != nil {
				return nil, err
			}
			batch.Reset()
		}
	}
	return index, index.Batch(batch)
}

// whole times all of a search but the models: both legs, fusion and the
// passages, with an embedder that knows the answer.
func whole(ctx context.Context, s settings, c *corpus, g retrieval.Generation, grant acl.Grant) error {
	r := retrieval.NewSearcher(&known{c: c}, nil, strings.Fields, func(string) string { return "en" }, retrieval.Options{})
	var took []time.Duration
	for range s.rounds {
		for i := range s.queries {
			start := time.Now()
			if _, err := r.Search(ctx, g, grant, fmt.Sprintf("%s #%d", strings.Join(c.questions[i], " "), i)); err != nil {
				return err
			}
			took = append(took, time.Since(start))
		}
	}
	fmt.Printf("%-34s %10s   p95 %s\n", "a whole search without models, p50", round(quantile(took, .5)), round(quantile(took, .95)))
	return nil
}

// known is an embedder that costs nothing: the number after # is the question.
type known struct{ c *corpus }

func (k *known) Info() models.EmbedderInfo {
	return models.EmbedderInfo{Name: "bench", Dimensions: dims}
}

func (k *known) EmbedQuery(_ context.Context, text string) (models.Embedding, error) {
	var n int
	if _, err := fmt.Sscanf(text[strings.LastIndexByte(text, '#'):], "#%d", &n); err != nil {
		return models.Embedding{}, err
	}
	return models.Embedding{Vector: k.c.asked[n]}, nil
}

func (k *known) EmbedPassages(context.Context, []string) ([]models.Embedding, error) {
	return nil, errors.New("nothing is embedded here")
}

func (k *known) CountTokens(text string) int { return len(strings.Fields(text)) }
