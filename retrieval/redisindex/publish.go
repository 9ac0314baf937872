package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/redislink"
)

// batch is how many chunks go to the server at once: it answers nobody else
// while it indexes them, about 0.4 ms each.
const batch = 100

// cleaning is how long deleting what is superseded may take after a change is
// in force.
const cleaning = time.Minute

// Publish writes the chunks hidden, in batches, then makes them the document's
// visible ones in one step, and deletes those before.
func (g *Generation) Publish(ctx context.Context, p retrieval.Publication) error {
	return g.publishUnder(ctx, "", p)
}

func (g *Generation) publishUnder(ctx context.Context, fence string, p retrieval.Publication) error {
	err := p.Check(g.manifest.Embedder.Dimensions)
	if err == nil {
		err = checkText(p)
	}
	if err == nil {
		err = g.publish(ctx, fence, p)
	}
	return failed(ctx, fmt.Sprintf("publishing %s", p.Document.ID), err)
}

func (g *Generation) publish(ctx context.Context, fence string, p retrieval.Publication) error {
	r := newRecord(p)
	old, err := g.stage(ctx, p, r.pub)
	if err != nil {
		g.discard(ctx, r.pub, true) // best effort; what stays hidden is for Sweep
		return err
	}
	// An error from here on may hide that it is done: nothing is deleted.
	return g.show(ctx, fence, p.Document.ID, old, r)
}

func newRecord(p retrieval.Publication) *record {
	d := p.Document
	r := &record{
		pub: newPublication(), list: p.Access, Runes: utf8.RuneCountInString(d.Canonical), Chunks: len(p.Chunks),
		meta: meta{Revision: d.Revision, Path: d.Path, Title: d.Title, Link: d.Link, Format: d.Format, Language: d.Language, Modified: d.Modified.UTC()},
	}
	for _, c := range p.Chunks {
		r.Length += min(len(c.Terms), saturated)
	}
	return r
}

// postings are the chunks of a publication that hold a term, packed.
type postings struct {
	packed []byte
	last   int // ordinal
}

// countTerms packs the postings of each token of a publication.
func countTerms(chunks []retrieval.IndexedChunk) map[string][]byte {
	all, counts := map[string]*postings{}, map[string]int{}
	for i, c := range chunks {
		clear(counts)
		for _, t := range c.Terms {
			counts[t]++
		}
		for t, n := range counts {
			p := all[t]
			if p == nil {
				p = &postings{last: -1}
				all[t] = p
			}
			p.packed = encodePostings(p.packed, p.last, i, n, min(len(c.Terms), saturated))
			p.last = i
		}
	}
	packed := make(map[string][]byte, len(all))
	for t, p := range all {
		packed[token(t)] = p.packed
	}
	return packed
}

// stage writes a publication, hidden, and returns the document's record as it
// was. Chunks and lists of terms go by two connections, so that this process
// counts while the server indexes.
func (g *Generation) stage(ctx context.Context, p retrieval.Publication, pub string) (*record, error) {
	// The contents come first, so that what a crash leaves can be deleted.
	before, err := stageScript.Run(ctx, g.client, []string{g.keys.version, g.keys.log, g.keys.overlay, g.keys.names, g.keys.contents + pub, g.keys.documents},
		newVersion(), pub, hidden(g.o.now()), encodeName(p.Document.ID, p.Document.Revision), encodeContents(len(p.Chunks), nil), string(p.Document.ID)).Text()
	if err != nil {
		return nil, err
	}
	var lists error
	var wg sync.WaitGroup
	wg.Go(func() { lists = g.stageTerms(ctx, p, pub) })
	for from := 0; from < len(p.Chunks) && err == nil; from += batch {
		err = g.stageChunks(ctx, p, pub, from, min(from+batch, len(p.Chunks)))
	}
	wg.Wait()
	if err := cmp.Or(err, lists); err != nil {
		return nil, err
	}
	return decodeRecord(before)
}

// stageTerms enters a publication into the lists of its terms, once the
// contents name them.
func (g *Generation) stageTerms(ctx context.Context, p retrieval.Publication, pub string) error {
	terms := countTerms(p.Chunks)
	tokens := slices.Collect(maps.Keys(terms))
	for some := range slices.Chunk(tokens, 10*batch) {
		_, err := g.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, g.keys.contents+pub, encodeContents(len(p.Chunks), tokens), 0) // is done before what follows
			for _, t := range some {
				pipe.HSet(ctx, g.keys.postings+t, pub, terms[t])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stageChunks writes some chunks and makes sure that the engine took them: it
// drops silently what it cannot index.
func (g *Generation) stageChunks(ctx context.Context, p retrieval.Publication, pub string, from, to int) error {
	var indexed *redis.FTSearchCmd
	tags := accessTags(p.Access)
	passages, states := make([]any, 0, 2*batch), make([]any, 0, 2*batch)
	_, err := g.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		if from == 0 {
			pipe.Set(ctx, g.keys.texts+pub, p.Document.Canonical, 0)
		}
		for i := from; i < to; i++ {
			c, n := p.Chunks[i], strconv.Itoa(i)
			pipe.HSet(ctx, g.keys.chunk(place{pub, i}), fieldVector, packVector(c.Vector),
				fieldAccess, tags, fieldPublication, pub, fieldState, live)
			text, err := encodePassage(c.Chunk)
			if err != nil {
				return err
			}
			passages = append(passages, n, text)
			if len(c.States) > 0 {
				states = append(states, n, c.States)
			}
		}
		pipe.HSet(ctx, g.keys.passages+pub, passages...)
		if len(states) > 0 {
			pipe.HSet(ctx, g.keys.states+pub, states...)
		}
		indexed = g.count(ctx, pipe, "@"+fieldPublication+":{"+pub+"}")
		return nil
	})
	if err != nil {
		return err
	}
	if err := partial(indexed.Val()); err != nil {
		return err
	}
	if n := indexed.Val().Total; n != to {
		return g.refused(ctx, n, to)
	}
	return nil
}

// refused says why the engine did not index all chunks.
func (g *Generation) refused(ctx context.Context, n, want int) error {
	why := "it does not say why"
	info, err := g.client.FTInfo(ctx, g.keys.index).Result()
	if err == nil && info.HashIndexingFailures > 0 {
		why = info.IndexErrors.LastIndexingError
	}
	return fmt.Errorf("the Query Engine indexed %d of %d chunks: %s", n, want, why)
}

// show makes a staged publication the document's visible one. old is the record
// that it may have now.
func (g *Generation) show(ctx context.Context, fence string, id retrieval.DocumentID, old, r *record) error {
	var replaced *record
	var dropped []string
	_, err := g.changeFrom(ctx, fence, id, old, func(old *record) (*record, error) {
		if old != nil && old.pub == r.pub {
			return nil, errDone // the answer was lost, and the client sent the script again
		}
		replaced, r.Past, dropped = old, nil, nil
		if old != nil {
			r.Past, dropped = supersede(old, r.Revision)
		}
		return r, nil
	})
	if errors.Is(err, retrieval.ErrFenced) && !slices.ContainsFunc(r.Past, func(p past) bool { return p.Publication == r.pub }) {
		g.discard(ctx, r.pub, true) // it never was visible
	}
	if err != nil && !errors.Is(err, errDone) {
		return err
	}
	g.clean(ctx, replaced, dropped)
	return nil
}

var errDone = errors.New("the publication is visible already")

// supersede gives the revisions whose texts are kept when rev replaces old, and
// the publications whose texts are not.
func supersede(old *record, rev retrieval.Revision) (kept []past, dropped []string) {
	for _, p := range append(slices.Clone(old.Past), past{old.pub, old.meta}) {
		if p.Revision == rev {
			dropped = append(dropped, p.Publication)
		} else {
			kept = append(kept, p)
		}
	}
	for len(kept) > keptRevisions {
		dropped = append(dropped, kept[0].Publication)
		kept = kept[1:]
	}
	return kept, dropped
}

// Remove takes the document out of search and reading.
func (g *Generation) Remove(ctx context.Context, id retrieval.DocumentID) error {
	// Before it is known to be absent: a writer may be about to publish it.
	if err := g.client.HDel(ctx, g.keys.fences, string(id)).Err(); err != nil {
		return failed(ctx, fmt.Sprintf("removing %s", id), err)
	}
	return g.removeUnder(ctx, "", id)
}

func (g *Generation) removeUnder(ctx context.Context, fence string, id retrieval.DocumentID) error {
	old, err := g.change(ctx, fence, id, func(*record) (*record, error) { return nil, nil })
	if err == nil && old != nil {
		texts := []string{old.pub}
		for _, p := range old.Past {
			texts = append(texts, p.Publication)
		}
		g.clean(ctx, old, texts)
	}
	return failed(ctx, fmt.Sprintf("removing %s", id), err)
}

// SetAccess replaces the access list. It is in force with the first step; the
// tags of the chunks follow.
func (g *Generation) SetAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	return g.setAccessUnder(ctx, "", id, list)
}

func (g *Generation) setAccessUnder(ctx context.Context, fence string, id retrieval.DocumentID, list acl.List) error {
	doing := fmt.Sprintf("changing the access to %s", id)
	if list.IsZero() {
		return fmt.Errorf("%s: the access list is empty: name who may read the document", doing)
	}
	old, err := g.change(ctx, fence, id, func(old *record) (*record, error) {
		if old == nil {
			return nil, retrieval.ErrNotFound
		}
		r := *old
		r.list = list
		return &r, nil
	})
	if err != nil {
		return failed(ctx, doing, err)
	}
	// The list is in force, also if this ends early: then the overlay stays
	// until the next change or Sweep.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer cancel()
	_ = g.retag(after, old.pub, list)
	return nil
}

// change replaces a document's record by what next makes of it (nil: none), in
// one step for readers, and returns what it was. next is called again if
// another change came in between.
func (g *Generation) change(ctx context.Context, fence string, id retrieval.DocumentID, next func(old *record) (*record, error)) (*record, error) {
	old, err := g.record(ctx, id)
	if err != nil {
		return nil, err
	}
	return g.changeFrom(ctx, fence, id, old, next)
}

// changeFrom is change, where the record was old a moment ago.
func (g *Generation) changeFrom(ctx context.Context, fence string, id retrieval.DocumentID, old *record, next func(old *record) (*record, error)) (*record, error) {
	for range attempts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := next(old)
		if err != nil {
			return old, err
		}
		done := old == nil && r == nil
		if !done {
			done, err = g.swap(ctx, fence, id, old, r)
		}
		if err == nil && done {
			err = g.received(ctx)
		}
		if err != nil || done {
			return old, err
		}
		if old, err = g.record(ctx, id); err != nil {
			return nil, err
		}
	}
	return nil, errRestless
}

// received waits until a replica has the change, where one follows.
//
// SECURITY: a narrowed access list or a removal that is acknowledged stays in
// force when a replica takes over. One that is slow is not waited for for long.
func (g *Generation) received(ctx context.Context) error {
	return g.client.Watch(ctx, func(tx *redis.Tx) error {
		_, err := redislink.Received(ctx, tx, g.keys.touch)
		return err
	})
}

// swap runs changeScript from old to r, either of which may be nil.
func (g *Generation) swap(ctx context.Context, fence string, id retrieval.DocumentID, old, r *record) (bool, error) {
	before, after, staged := "", "", ""
	var pubs []any
	if old != nil {
		before = old.raw
	}
	if old != nil && (r == nil || r.pub != old.pub) {
		pubs = append(pubs, old.pub, hidden(g.o.now()), "")
	}
	if r != nil {
		var err error
		if after, err = r.encode(); err != nil {
			return false, err
		}
		shown := "" // the tags of a new publication are right
		if old != nil && old.pub == r.pub {
			shown = accessOverlay(r.list)
		} else {
			staged = r.pub
		}
		pubs = append(pubs, r.pub, shown, encodeEntry(r.share(), r.list))
	}
	keys, conditions := redislink.Standings(ctx)
	n, err := changeScript.Run(ctx, g.client, append([]string{g.keys.version, g.keys.log, g.keys.documents, g.keys.directory, g.keys.overlay, g.keys.fences}, keys...),
		slices.Concat([]any{string(id), before, after, staged, newVersion(), fence}, conditions, pubs)...).Int()
	switch n {
	case -2:
		return false, retrieval.ErrFenced
	case -1:
		return false, errors.New("it took so long that what was written of it has been swept away; publish again")
	}
	return n == 1, err
}

// retag writes the list into the chunks of a publication and takes it out of
// the overlay. It ends early when another change comes in between.
func (g *Generation) retag(ctx context.Context, pub string, list acl.List) error {
	chunks, _, err := g.contents(ctx, pub)
	if err != nil {
		return err
	}
	mine := accessOverlay(list)
	for from := 0; from < chunks; from += batch {
		keys := append([]string{g.keys.overlay}, g.chunkKeys(pub, from, min(from+batch, chunks))...)
		done, err := retagScript.Run(ctx, g.client, keys, pub, mine, accessTags(list)).Int()
		if err != nil || done == 0 {
			return err
		}
	}
	return settleScript.Run(ctx, g.client, []string{g.keys.version, g.keys.log, g.keys.overlay}, pub, mine, newVersion()).Err()
}

func (g *Generation) chunkKeys(pub string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, g.keys.chunk(place{pub, i}))
	}
	return out
}

// contents is how many chunks and which tokens a publication has; none if it is
// gone.
func (g *Generation) contents(ctx context.Context, pub string) (chunks int, tokens []string, err error) {
	raw, err := g.client.Get(ctx, g.keys.contents+pub).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, nil, err
	}
	return decodeContents(raw)
}

// clean deletes the hidden publication of old and the texts of those in
// dropped. The change is in force: what fails here is left to Sweep.
func (g *Generation) clean(ctx context.Context, old *record, dropped []string) {
	if old == nil {
		return
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer cancel()
	for _, pub := range dropped {
		if pub != old.pub {
			_ = g.client.Unlink(after, g.keys.texts+pub).Err()
		}
	}
	g.discard(after, old.pub, slices.Contains(dropped, old.pub))
}

// discard deletes a hidden publication in batches, and takes it out of the
// overlay last, so that it is never seen in part.
func (g *Generation) discard(ctx context.Context, pub string, text bool) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
	defer cancel()
	chunks, tokens, err := g.contents(after, pub)
	if err != nil || g.unlist(after, pub, tokens) != nil {
		return
	}
	for from := 0; from < chunks; from += batch {
		if g.client.Unlink(after, g.chunkKeys(pub, from, min(from+batch, chunks))...).Err() != nil {
			return
		}
	}
	rest := []string{g.keys.passages + pub, g.keys.states + pub, g.keys.contents + pub}
	if text {
		rest = append(rest, g.keys.texts+pub)
	}
	_, _ = g.client.TxPipelined(after, func(p redis.Pipeliner) error {
		p.Unlink(after, rest...)
		p.HDel(after, g.keys.names, pub)
		p.HDel(after, g.keys.overlay, pub)
		g.tell(after, p, pub)
		return nil
	})
}

// unlist takes a publication out of the lists of its tokens.
func (g *Generation) unlist(ctx context.Context, pub string, tokens []string) error {
	for some := range slices.Chunk(tokens, 10*batch) {
		_, err := g.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, t := range some {
				p.HDel(ctx, g.keys.postings+t, pub)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
