package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/notes"
)

const (
	aheadDocuments = 16       // extracted documents that may wait for the embedder
	inFlightBytes  = 64 << 20 // source bytes read and not yet settled, apart from one document
)

// run is one pass over one source.
type run struct {
	*Pipeline
	src    Source
	how    How
	items  []Item
	listed map[string]bool                               // paths of the source's own items
	closed map[string]bool                               // of those, the faulted: what lies below is unknown
	owned  int                                           // published documents of the source at the start
	held   bool                                          // nothing that is missing is removed
	served map[retrieval.Revision][]retrieval.DocumentID // of the catalog at the start: what may have moved

	target     retrieval.Generation // written
	targetName string
	current    retrieval.Generation // asked; nil if there is none, may be target
	inFlight   *semaphore.Weighted

	first    sync.Mutex // held by promoteFirst
	mu       sync.Mutex
	there    map[retrieval.DocumentID]retrieval.DocumentInfo // in target
	before   map[retrieval.DocumentID]retrieval.DocumentInfo // in current at the start
	left     map[retrieval.DocumentID]bool                   // of before: failed, may pass; they keep current in use
	promoted bool
	kept     bool                          // the current generation stays, though it was made otherwise
	handed   map[retrieval.DocumentID]bool // that other hands had a task for at the start
	told     func(catalog.State)           // of a task: who is told instead of the catalog
	notes    *notes.Run                    // nil: none are written
	settled  int
	settling int // items that are to be settled
	report   Report
}

// start chooses the generation, corrects the catalog by the index, and lists
// what there is to do.
func (p *Pipeline) start(ctx context.Context, src Source, how How, items []Item) (*run, error) {
	r := p.newRun(src, how, items)
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	if err := r.reconcile(ctx); err != nil {
		return nil, err
	}
	if err := r.review(ctx); err != nil {
		return nil, err
	}
	r.arrange()
	r.assess()
	r.takeOver()
	r.report.Window, r.report.Generation = p.manifest.Embedder.Window, r.targetName
	return r, nil
}

func (p *Pipeline) newRun(src Source, how How, items []Item) *run {
	r := &run{
		Pipeline: p, src: src, how: how, items: items,
		listed: map[string]bool{}, closed: map[string]bool{}, left: map[retrieval.DocumentID]bool{},
		inFlight: semaphore.NewWeighted(inFlightBytes),
	}
	if p.options.Notes != nil {
		r.notes = p.options.Notes.Begin()
	}
	for _, it := range items {
		r.listed[it.Path] = true
		if it.Fault != nil {
			r.closed[it.Path] = true
		}
	}
	return r
}

// choose finds the generation to write: the current one if it was made alike,
// else an unfinished one that was, else a new one.
func (r *run) choose(ctx context.Context) error {
	current, err := r.store.Open(ctx, "")
	switch {
	case err == nil:
		r.current = current
	case errors.Is(err, retrieval.ErrNoIndex):
	case r.how.Rebuild && (errors.Is(err, retrieval.ErrCorrupt) || errors.Is(err, retrieval.ErrFormat)):
		r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("the present index is left aside: %v", err))
	default:
		return fmt.Errorf("opening the index: %w", err)
	}
	if r.current != nil && !r.how.Rebuild && alike(r.current.Manifest(), r.manifest) {
		r.target, r.targetName, r.promoted = r.current, r.current.Manifest().Name, true
		r.report.Promoted = true
		return nil
	}
	if r.kept, err = r.keeps(ctx); err != nil {
		return err
	}
	return r.shadow(ctx)
}

// shadow goes on with the newest generation that was made alike and is not
// in use, or makes one.
func (r *run) shadow(ctx context.Context) error {
	all, _, _ := r.store.Generations(ctx) // those that cannot be read are of no use here
	for _, m := range slices.Backward(all) {
		if r.how.Rebuild || !alike(m, r.manifest) {
			continue
		}
		if g, err := r.store.Open(ctx, m.Name); err == nil {
			r.target, r.targetName = g, m.Name
			return nil
		}
	}
	g, err := r.store.Create(ctx, r.manifest)
	if err != nil {
		return fmt.Errorf("making a generation: %w", err)
	}
	r.target, r.targetName = g, g.Manifest().Name
	return nil
}

// alike reports that two manifests name the same making.
func alike(a, b retrieval.Manifest) bool {
	return a.Extractor == b.Extractor && a.Chunker == b.Chunker && a.Analysis == b.Analysis && a.Notes == b.Notes && a.Embedder == b.Embedder
}

// list reads a generation's documents.
//
// SECURITY: ingestion must see all of them; nothing here reaches an asker.
func list(ctx context.Context, g retrieval.Generation) (map[retrieval.DocumentID]retrieval.DocumentInfo, error) {
	out := map[retrieval.DocumentID]retrieval.DocumentInfo{}
	if g == nil {
		return out, nil
	}
	infos, err := g.Documents(ctx, system.Grant())
	if err != nil {
		return nil, fmt.Errorf("listing the index: %w", err)
	}
	for _, d := range infos {
		out[d.ID] = d
	}
	return out, nil
}

// takeOver adds to a shadow's work what the current generation holds beyond
// the source, under the access lists in force.
func (r *run) takeOver() {
	if r.promoted {
		return
	}
	var more []Item
	for _, rec := range r.catalog.List() {
		info, served := r.before[rec.ID]
		lost := r.current == nil && rec.State == catalog.Queued && rec.Access != nil
		if r.kept && r.asServed(rec) {
			continue // the run over its own source keeps it up to date
		}
		if r.listed[rec.Path] || r.prunes() && r.owns(rec) || !served && !lost {
			continue
		}
		it := Item{Path: rec.Path, Access: info.Access, takenOver: rec.ID}
		if lost {
			it.Access = listOf(rec.Access)
		}
		more = append(more, it)
	}
	r.items = append(slices.Clone(r.items), more...)
}

// owns reports that the source answers for the document: no other one took it
// in, and it lies under the root, not under a folder that could not be read.
func (r *run) owns(rec catalog.Record) bool {
	if rec.Source != "" && r.how.Name != "" && rec.Source != r.how.Name {
		return false
	}
	path := rec.Path
	if !below(r.src.Root(), path) {
		return false
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		if r.closed[dir] {
			return false
		}
		if dir == r.src.Root() || dir == filepath.Dir(dir) {
			return true
		}
	}
}

// flow runs the stages until every item is settled or the run fails.
func (r *run) flow(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	read := make(chan *job)
	ready := make(chan *job, aheadDocuments)
	parsed := ready
	if r.notes != nil {
		parsed = make(chan *job, aheadDocuments)
		g.Go(func() error {
			defer close(ready)
			return r.each(ctx, r.options.Notes.Concurrency(), parsed, ready, r.annotate)
		})
	}
	own := read
	if r.options.Hands != nil {
		own = make(chan *job)
		g.Go(func() error {
			defer close(own)
			return r.handOut(ctx, read, own)
		})
	}
	embedded := make(chan *job, 2)
	g.Go(func() error {
		defer close(read)
		return r.readAll(ctx, read)
	})
	g.Go(func() error {
		defer close(parsed)
		return r.each(ctx, r.options.Workers, own, parsed, r.parse)
	})
	g.Go(func() error {
		defer close(embedded)
		e := embedding{run: r}
		return r.stage(ctx, ready, embedded, e.embed)
	})
	g.Go(func() error { return r.stage(ctx, embedded, nil, r.publish) })
	return g.Wait()
}

// each is a stage of n goroutines.
func (r *run) each(ctx context.Context, n int, in <-chan *job, out chan<- *job, work func(context.Context, *job) error) error {
	workers, ctx := errgroup.WithContext(ctx)
	for range n {
		workers.Go(func() error { return r.stage(ctx, in, out, work) })
	}
	return workers.Wait()
}

// stage does work on each job of in and hands it on to out. A job that fails
// with a *Fault is settled here; another error ends the run.
func (r *run) stage(ctx context.Context, in <-chan *job, out chan<- *job, work func(context.Context, *job) error) error {
	for {
		var j *job
		var ok bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case j, ok = <-in:
		}
		if !ok {
			return nil
		}
		err := work(ctx, j)
		var fault *Fault
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errAsItWas):
			err = nil
			j.release()
		case errors.As(err, &fault):
			err = r.fail(ctx, j.item, &j.rec, fault)
			j.release()
		case err == nil && out != nil:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case out <- j:
			}
		}
		if err != nil {
			return err
		}
	}
}

// finish settles what the listing lacks and promotes a shadow that is whole.
func (r *run) finish(ctx context.Context) error {
	if err := r.unlisted(ctx); err != nil {
		return err
	}
	switch {
	case r.promoted && r.how.Only != nil:
		return nil
	case r.promoted:
		return r.whole(ctx)
	case r.current == nil && len(r.there) == 0:
		return nil
	}
	return r.replaceCurrent(ctx)
}

// whole says that the target's build has ended.
func (r *run) whole(ctx context.Context) error {
	if err := r.store.Finish(ctx, r.targetName); err != nil {
		return fmt.Errorf("finishing generation %s: %w", r.targetName, err)
	}
	return nil
}

// replaceCurrent promotes the shadow unless a document that is in use would
// be lost. What the shadow holds beyond the current generation and this run is
// from before something was removed, and goes.
func (r *run) replaceCurrent(ctx context.Context) error {
	if r.held {
		r.report.Withheld = "documents are missing from its source, more than are removed unasked"
		return nil
	}
	if n := len(r.left); n > 0 {
		r.report.Withheld = fmt.Sprintf("%d documents of the present one could not be taken over; repair or remove them and ingest again", n)
		return nil
	}
	for id, info := range r.there {
		rec, ok := r.catalog.Get(id)
		if ok && rec.State == catalog.Published && rec.Serving == info.Revision {
			continue
		}
		if err := r.target.Remove(ctx, id); err != nil {
			return fmt.Errorf("clearing the new generation: %w", err)
		}
		delete(r.there, id)
	}
	if err := r.whole(ctx); err != nil {
		return err
	}
	if kept, err := r.keeps(ctx); kept || err != nil {
		r.report.Withheld = chosenByHand
		return err
	}
	return r.promote(ctx)
}

// promoteFirst promotes the first generation of all, once it has a document.
func (r *run) promoteFirst(ctx context.Context) error {
	r.first.Lock()
	defer r.first.Unlock()
	r.mu.Lock()
	done := r.promoted || r.current != nil
	r.mu.Unlock()
	if done {
		return nil
	}
	return r.promote(ctx)
}

func (r *run) promote(ctx context.Context) error {
	if err := r.store.Promote(ctx, r.targetName); err != nil {
		return fmt.Errorf("promoting generation %s: %w", r.targetName, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promoted, r.report.Promoted = true, true
	if r.current != nil && !alike(r.current.Manifest(), r.manifest) {
		r.report.Replaced = r.current.Manifest().Name
	}
	return nil
}
