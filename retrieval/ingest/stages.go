package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"

	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/catalog"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
)

// parse extracts and chunks one document and settles who may read it.
func (r *run) parse(ctx context.Context, j *job) error {
	if err := r.enter(&j.rec, catalog.Extracting); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	tree, err := guarded(limited, func() (doctree.Tree, error) {
		return r.extract(limited, extract.Source{
			Path: cmp.Or(j.content.Name, j.rec.Path), Data: j.content.Data,
			Password: r.options.Password(j.rec.Path), Limits: r.options.Limits, Tika: r.options.Tika,
		})
	})
	if err != nil {
		return r.extractFault(limited, err)
	}
	tree.Title = cmp.Or(j.content.Title, tree.Title)
	if err := r.admit(ctx, j, tree); err != nil {
		return err
	}
	if err := r.enter(&j.rec, catalog.Chunking); err != nil {
		return err
	}
	chunks, err := guarded(limited, func() ([]retrieval.IndexedChunk, error) { return r.cut(j.rec, tree) })
	if err != nil {
		return r.extractFault(limited, err)
	}
	j.pub.Chunks = chunks
	return nil
}

// guarded runs fn so that neither a panic nor an endless loop in it takes the
// run down. What does not return in time is left behind and its result
// dropped.
func guarded[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var res result
		defer func() {
			if p := recover(); p != nil {
				res.err = &Fault{Reason: fmt.Sprintf("the parser failed on this file (%v); please report it", p)}
			}
			done <- res
		}()
		res.value, res.err = fn()
	}()
	select {
	case res := <-done:
		return res.value, res.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// extractFault turns an error of extraction into the document's fault. The
// end of the whole run is seen by the stage, not here.
func (r *run) extractFault(ctx context.Context, err error) error {
	var known *extract.Error
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &known):
		reason, _, _ := strings.Cut(known.Reason, "\n")
		return &Fault{Reason: reason, Retryable: known.Retryable}
	case ctx.Err() != nil:
		return &Fault{Reason: fmt.Sprintf("reading it took longer than %v; split it, or raise ingest.extract.seconds", r.options.Timeout), Retryable: true}
	}
	return &Fault{Reason: "the document could not be read", Cause: err}
}

// admit settles the access list and narrows what is served to it.
//
// SECURITY: before this no text of the document has left the extractor.
func (r *run) admit(ctx context.Context, j *job, tree doctree.Tree) error {
	list, fault := r.effective(tree.Access, j.item)
	if fault != nil {
		return fault
	}
	if j.rec.Serving != "" {
		if err := r.narrow(ctx, j.rec.ID, list); err != nil {
			return err
		}
	}
	if tree.Access != nil {
		j.rec.Declared = texts(list)
	}
	j.rec.Warnings, j.rec.Facts, j.rec.Access = tree.Warnings, tree.Facts, texts(list)
	j.pub.Access = list
	j.pub.Document = retrieval.Document{
		ID: j.rec.ID, Revision: j.rec.Revision, Path: j.rec.Path, Link: j.content.Link, Title: tree.Title, Format: tree.Format,
		Language: tree.Language, Modified: j.content.Modified, Canonical: tree.Canonical,
	}
	j.content.Data = nil
	return nil
}

// cut makes the chunks of a tree, named and analysed, without vectors.
func (r *run) cut(rec catalog.Record, tree doctree.Tree) ([]retrieval.IndexedChunk, error) {
	chunks, err := chunk.Split(tree, r.options.Chunk)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, &Fault{Reason: "no text found: nothing in it can be searched"}
	}
	out := make([]retrieval.IndexedChunk, len(chunks))
	for i, c := range chunks {
		c.ID = retrieval.ChunkID{Document: rec.ID, Revision: rec.Revision, Ordinal: i}
		out[i] = retrieval.IndexedChunk{Chunk: c, Terms: analysis.Terms(c.Text)}
	}
	return out, nil
}

const embedAttempts = 3

// embedBatch is how many chunks are embedded together and then kept: enough for
// all processors, few enough that an interrupted run loses little.
var embedBatch = max(8, 2*runtime.GOMAXPROCS(0))

// embedding is the embedding stage. It is used by one goroutine.
type embedding struct {
	*run
	failing  bool // the last document failed here: no waiting for this one
	uncached bool // the cache failed: it is not written again in this run
}

// embed fills in the vectors of a document.
func (e *embedding) embed(ctx context.Context, j *job) error {
	if err := e.enter(&j.rec, catalog.Embedding); err != nil {
		return err
	}
	for from := 0; from < len(j.pub.Chunks); from += embedBatch {
		batch := j.pub.Chunks[from:min(from+embedBatch, len(j.pub.Chunks))]
		cut, err := e.batch(ctx, batch)
		if err != nil {
			e.failing = true
			return &Fault{Reason: "the embedding model failed", Retryable: true, Cause: err}
		}
		j.rec.Truncated += cut
	}
	e.failing = false
	return nil
}

// batch embeds what the cache does not hold and counts the texts that were
// cut.
func (e *embedding) batch(ctx context.Context, batch []retrieval.IndexedChunk) (cut int, err error) {
	found := make([]models.Embedding, len(batch))
	var missing []int
	var missed []string
	seen := map[string]int{}
	for i, c := range batch {
		hit := false
		if e.options.Cache != nil {
			found[i], hit = e.options.Cache.get(c.Chunk.Text)
		}
		if _, twice := seen[c.Chunk.Text]; hit || twice {
			continue
		}
		seen[c.Chunk.Text] = i
		missing, missed = append(missing, i), append(missed, c.Chunk.Text)
	}
	if len(missed) > 0 {
		fresh, err := e.patiently(ctx, missed)
		if err != nil {
			return 0, err
		}
		for k, i := range missing {
			found[i] = fresh[k]
		}
		e.remember(missed, fresh)
	}
	for i := range batch {
		if found[i].Vector == nil {
			found[i] = found[seen[batch[i].Chunk.Text]]
		}
		batch[i].Vector, batch[i].States = found[i].Vector, found[i].Coded
		if found[i].Truncated {
			cut++
		}
	}
	return cut, nil
}

// patiently tries again after a pause, unless the last document failed too.
func (e *embedding) patiently(ctx context.Context, texts []string) ([]models.Embedding, error) {
	for n := 1; ; n++ {
		out, err := e.embedder.EmbedPassages(ctx, texts)
		if err == nil && len(out) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts", len(out), len(texts))
		}
		if err == nil || ctx.Err() != nil || e.failing || n == embedAttempts {
			return out, err
		}
		if err := e.options.Wait(ctx, n); err != nil {
			return nil, err
		}
	}
}

// remember puts fresh vectors into the cache. It can only save work, so a full
// disk there is a warning.
func (e *embedding) remember(texts []string, fresh []models.Embedding) {
	if e.options.Cache == nil || e.uncached {
		return
	}
	if err := e.options.Cache.put(texts, fresh); err != nil {
		e.uncached = true
		e.mu.Lock()
		e.report.Warnings = append(e.report.Warnings, fmt.Sprintf("vectors are not kept for later runs: %v", err))
		e.mu.Unlock()
	}
}

// publish makes the revision visible. The record is completed before, so that
// a crash right after publishing loses nothing of it.
func (r *run) publish(ctx context.Context, j *job) error {
	j.rec.Stamp = r.stamp
	if j.unnoted {
		j.rec.Stamp = r.unnoted()
	}
	j.rec.Chunks = len(j.pub.Chunks)
	for range j.pub.Document.Canonical {
		j.rec.Characters++
	}
	if err := r.catalog.Put(j.rec); err != nil {
		return err
	}
	if err := r.target.Publish(ctx, j.pub); err != nil {
		j.rec.Stamp = catalog.Stamp{}
		return storeFault(err)
	}
	if err := r.published(ctx, j); err != nil {
		return err
	}
	j.release()
	r.settle(j.rec, Renewal)
	return nil
}

func (r *run) published(ctx context.Context, j *job) error {
	if err := r.promoteFirst(ctx); err != nil {
		return err
	}
	j.rec.Serving, j.rec.Attempts = j.rec.Revision, 0
	j.rec.Enter(catalog.Published, r.options.Now())
	if err := r.catalog.Put(j.rec); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := j.pub.Document
	r.there[j.rec.ID] = retrieval.DocumentInfo{ID: d.ID, Revision: d.Revision, Path: d.Path, Access: j.pub.Access}
	r.report.Published++
	r.report.Chunks += j.rec.Chunks
	r.report.Truncated += j.rec.Truncated
	if j.moved {
		r.report.Moved++
	}
	return nil
}

// storeFault says what the index's refusal to publish means.
func storeFault(err error) *Fault {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return &Fault{Reason: "the disk is full, so nothing of it was published; make room and ingest again", Retryable: true, Cause: err}
		}
	}
	return &Fault{Reason: "the index did not take it", Retryable: true, Cause: err}
}
