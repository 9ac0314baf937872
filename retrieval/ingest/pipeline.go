package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/catalog"
	"footnote/retrieval/chunk"
	"footnote/retrieval/doctree"
	"footnote/retrieval/extract"
	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/tika"
	"footnote/retrieval/ingest/notes"
)

// Version changes whenever this package would publish the same chunks in
// another way.
const Version = "1"

// Options tune a pipeline. The zero value of a field is its default.
type Options struct {
	Chunk    chunk.Options                    // Count and, if 0, Budget are filled from the embedder
	Cache    *Cache                           // of the same embedder; nil: every text is embedded
	Notes    *notes.Writer                    // says of each chunk what it is about; nil: nobody
	Others   []Source                         // that documents of the present index may be of, besides the one that a run is over
	Hands    Hands                            // others who extract, embed and publish; nil: this pipeline does
	Own      func(path string) bool           // what is not given to Hands; nil: nothing
	Workers  int                              // that extract: one less than there are processors, at least 2
	Timeout  time.Duration                    // for extracting and chunking one document: 2 minutes
	Limits   bounds.Limits                    // of what one document may unfold to
	Tika     *tika.Server                     // reads what no format of ours does; nil: nobody
	Password func(path string) string         // opens encrypted documents; nil: none does
	Progress func(Event)                      // called one at a time, must not block
	Now      func() time.Time                 // time.Now
	Wait     func(context.Context, int) error // before repeating a failed embedding for the nth time: 0.5 s, then 2 s
}

// budgetReserve is kept of the window for prefix and special tokens.
const budgetReserve = 12

func (o Options) filled(e models.Embedder) Options {
	o.Chunk.Count = e.CountTokens
	if o.Chunk.Budget == 0 {
		o.Chunk.Budget = min(chunk.DefaultBudget, e.Info().Window-budgetReserve)
	}
	if o.Workers < 1 {
		o.Workers = max(2, runtime.GOMAXPROCS(0)-1)
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Password == nil {
		o.Password = func(string) string { return "" }
	}
	if o.Own == nil {
		o.Own = func(string) bool { return false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = backOff
	}
	return o
}

// backOff waits half a second, then four times as long each time.
func backOff(ctx context.Context, n int) error {
	t := time.NewTimer(500 * time.Millisecond << (2 * (n - 1)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Pipeline ingests into one store with one embedder. It is safe for
// concurrent use; runs take turns.
type Pipeline struct {
	store    retrieval.Store
	catalog  *catalog.Catalog
	embedder models.Embedder
	options  Options
	manifest retrieval.Manifest
	stamp    catalog.Stamp
	noteRoom int // tokens of a chunk that are its note's

	// extract is extract.Extract; tests put others in its place.
	extract func(context.Context, extract.Source) (doctree.Tree, error)

	turn sync.Mutex
	seen map[string]sight // by path; used by the reader of the run whose turn it is
}

// sight is what was read at a path.
type sight struct {
	mark     string
	revision retrieval.Revision
}

// New makes a pipeline. It takes over none of its arguments: the caller
// closes them after the last run.
func New(store retrieval.Store, cat *catalog.Catalog, embedder models.Embedder, o Options) *Pipeline {
	o = o.filled(embedder)
	p := &Pipeline{store: store, catalog: cat, embedder: embedder, options: o, extract: extract.Extract, seen: map[string]sight{}}
	recipe := ""
	if o.Notes != nil {
		recipe, p.noteRoom = o.Notes.Recipe(), noteRoom(o.Chunk.Budget)
	}
	p.stamp = StampOf(o.Chunk, recipe, embedder.Info())
	p.options.Chunk.Budget -= p.noteRoom
	p.manifest = retrieval.Manifest{Extractor: p.stamp.Extractor, Chunker: p.stamp.Chunker, Analysis: p.stamp.Analysis, Notes: recipe, Embedder: p.stamp.Embedder}
	return p
}

// StampOf is what a pipeline with these options, notes of this recipe ("": none)
// and this embedder puts on what it publishes.
func StampOf(o chunk.Options, recipe string, info models.EmbedderInfo) catalog.Stamp {
	if o.Budget == 0 {
		o.Budget = min(chunk.DefaultBudget, info.Window-budgetReserve)
	}
	if recipe != "" {
		o.Budget -= noteRoom(o.Budget)
	}
	chunker := fmt.Sprintf("%s %s budget=%d size=%d overlap=%d", chunk.Version, o.Strategy, o.Budget, o.Size, o.Overlap)
	return catalog.Stamp{Pipeline: Version, Extractor: extract.Version, Chunker: chunker, Analysis: analysis.Version, Notes: recipe, Embedder: info}
}

// Stamp is what this pipeline puts on what it publishes; a record with
// another one is stale.
func (p *Pipeline) Stamp() catalog.Stamp { return p.stamp }

// How says how a run treats what is already there.
type How struct {
	Prune   bool // withdraw what lies under the source's root and is no longer listed
	Rebuild bool // build a new generation whatever there is, even over a damaged one

	// Name is the source's. Documents remember it, so that of two sources
	// with nested roots neither withdraws what is the other's. "": no name.
	Name string
	// MaxRemoved is the greatest share of the source's documents, from 0 to 1,
	// that a pruning run removes. One or two documents are always removed,
	// unless nothing else is left: then the folder is more likely not mounted.
	// 0: no bound.
	MaxRemoved float64
	// Keep leaves a generation in use that a person promoted, though it was made
	// otherwise: what the run makes is finished, and not gone over to.
	Keep bool
	// Only limits the run to what lies at these paths or below them; nil: all.
	// A run that builds a new generation is not limited.
	Only []string
	// Again says whether a document that failed or was refused is tried again
	// although nothing about it has changed; nil: always.
	Again func(catalog.Record) bool
	// Told is called like Options.Progress, for this run.
	Told func(Event)
}

// Ingest brings the index up to date with the source. Troubles of documents
// are in the report; the error is one of the run as a whole (the source could
// not be listed, the catalog not be written, ctx ended), after which the report
// says what was done until then and the next run goes on from there.
func (p *Pipeline) Ingest(ctx context.Context, src Source, how How) (Report, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	items, err := src.Items(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("listing %s: %w", src.Root(), err)
	}
	r, err := p.start(ctx, src, how, items)
	if err != nil {
		return Report{}, err
	}
	if err = r.ahead(ctx); err == nil {
		err = r.flow(ctx)
	}
	if err == nil {
		err = r.finish(ctx)
	}
	r.noted()
	r.report.sort()
	return r.report, err
}

// Remove withdraws a document from every generation that can be opened, so
// that no rollback brings it back.
func (p *Pipeline) Remove(ctx context.Context, id retrieval.DocumentID) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	rec, ok := p.catalog.Get(id)
	if !ok {
		return fmt.Errorf("removing %s: %w", id, retrieval.ErrNotFound)
	}
	all, _, listErr := p.store.Generations(ctx)
	if len(all) == 0 && listErr != nil {
		return fmt.Errorf("removing %s: %w", id, listErr)
	}
	for _, m := range all {
		g, err := p.store.Open(ctx, m.Name)
		if errors.Is(err, retrieval.ErrCorrupt) || errors.Is(err, retrieval.ErrFormat) {
			continue // nobody is answered from it either
		}
		if err == nil {
			err = g.Remove(ctx, id)
		}
		if err != nil {
			return fmt.Errorf("removing %s from generation %s: %w", id, m.Name, err)
		}
	}
	rec.Enter(catalog.Removed, p.options.Now())
	rec.Serving, rec.Access = "", nil
	return p.catalog.Put(rec)
}

// RevisionOf names a content.
func RevisionOf(data []byte) retrieval.Revision {
	sum := sha256.Sum256(data)
	return retrieval.Revision(hex.EncodeToString(sum[:8]))
}
