package ingest

import (
	"context"
	"fmt"
	"slices"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// reconcile corrects the catalog by the index after whatever ended the last
// run.
func (r *run) reconcile(ctx context.Context) (err error) {
	if r.there, err = list(ctx, r.target); err != nil {
		return err
	}
	r.before = r.there
	if r.current != r.target {
		if r.before, err = list(ctx, r.current); err != nil {
			return err
		}
	}
	var changed []catalog.Record
	for _, rec := range r.catalog.List() {
		fixed, differs, err := r.correct(ctx, rec)
		if err != nil {
			return err
		}
		if differs {
			changed = append(changed, fixed)
		}
	}
	changed = append(changed, r.unknown()...)
	return r.catalog.Put(changed...)
}

// correct compares one record with the index.
func (r *run) correct(ctx context.Context, rec catalog.Record) (catalog.Record, bool, error) {
	info, served := r.there[rec.ID]
	inTarget := served
	if !served {
		info, served = r.before[rec.ID]
	}
	switch {
	case served && (rec.State == catalog.Removed || rec.State == catalog.Refused):
		// SECURITY: it was decided that nobody reads it. The catalog is written
		// after the index, so an old copy of the index must have come back.
		err := r.expel(ctx, rec.ID)
		return rec, false, err
	case inTarget && rec.State == catalog.Embedding && (rec.Stamp == r.stamp || r.notes != nil && rec.Stamp == r.unnoted()) && info.Revision == rec.Revision && info.Chunks == rec.Chunks:
		// Killed between the publication and the note of it.
		rec.Serving = rec.Revision
		rec.Enter(catalog.Published, r.options.Now())
		return rec, true, nil
	case !rec.State.Settled() || rec.State == catalog.Published && !served:
		fixed := rec
		fixed.Serving, fixed.Stamp = info.Revision, catalog.Stamp{}
		// Declared is of Revision, and set only once that was extracted.
		fixed.Own = served && (rec.Governed() || rec.Declared != nil && rec.Revision == info.Revision)
		if rec.State != catalog.Queued {
			fixed.Enter(catalog.Queued, r.options.Now())
		}
		return fixed, rec.State != catalog.Queued || fixed.Serving != rec.Serving, nil
	case rec.Serving != info.Revision:
		rec.Serving, rec.Stamp = info.Revision, catalog.Stamp{}
		return rec, true, nil
	}
	return rec, false, nil
}

func (r *run) expel(ctx context.Context, id retrieval.DocumentID) error {
	for g, docs := range r.generations() {
		if err := g.Remove(ctx, id); err != nil {
			return fmt.Errorf("removing %s: %w", id, err)
		}
		delete(docs, id)
	}
	return nil
}

// unknown makes records of what the index holds and the catalog does not. They
// carry no stamp, so that the next reading completes them.
func (r *run) unknown() []catalog.Record {
	var out []catalog.Record
	for _, docs := range r.generations() {
		for id, info := range docs {
			if _, known := r.catalog.Get(id); known || slices.ContainsFunc(out, func(o catalog.Record) bool { return o.ID == id }) {
				continue
			}
			rec := catalog.Record{ID: id, Path: info.Path, Revision: info.Revision, Serving: info.Revision, Access: texts(info.Access), Characters: info.Runes, Chunks: info.Chunks}
			rec.Enter(catalog.Published, r.options.Now())
			out = append(out, rec)
		}
	}
	return out
}

// Difference is a document of which catalog and index say different things.
type Difference struct {
	ID   retrieval.DocumentID
	Path string
	What string
}

// Verify recounts the current generation and says where the catalog differs.
func (p *Pipeline) Verify(ctx context.Context) ([]Difference, error) {
	g, err := p.store.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	return Compare(ctx, g, p.catalog)
}

// Compare says where the catalog differs from a generation. Of a document that
// was published since in a generation made otherwise, only access is compared.
func Compare(ctx context.Context, g retrieval.Generation, c *catalog.Catalog) ([]Difference, error) {
	docs, err := list(ctx, g)
	if err != nil {
		return nil, err
	}
	var out []Difference
	for _, rec := range c.List() {
		info, in := docs[rec.ID]
		delete(docs, rec.ID)
		if what := differs(g.Manifest(), rec, info, in); what != "" {
			out = append(out, Difference{rec.ID, rec.Path, what})
		}
	}
	for id, info := range docs {
		out = append(out, Difference{id, info.Path, "it is in the index and unknown to the catalog"})
	}
	return out, nil
}

func differs(m retrieval.Manifest, rec catalog.Record, info retrieval.DocumentInfo, in bool) string {
	elsewhere := rec.Stamp != (catalog.Stamp{}) && madeOtherwise(m, rec.Stamp)
	switch {
	case elsewhere && rec.Serving != "":
		return wider(rec, info)
	case !in && rec.Serving != "":
		return fmt.Sprintf("the catalog says that revision %s is published, the index lacks it", rec.Serving)
	case in && rec.Serving == "":
		return fmt.Sprintf("the catalog says %s, the index holds revision %s", rec.State, info.Revision)
	case !in:
		return ""
	case rec.Serving != info.Revision:
		return fmt.Sprintf("the catalog names revision %s, the index %s", rec.Serving, info.Revision)
	case rec.State != catalog.Published:
		return "" // the counters are those of a later attempt
	case rec.Stamp != (catalog.Stamp{}) && (rec.Chunks != info.Chunks || rec.Characters != info.Runes):
		return fmt.Sprintf("the catalog counts %d chunks and %d characters, the index %d and %d", rec.Chunks, rec.Characters, info.Chunks, info.Runes)
	case rec.Path != info.Path:
		return fmt.Sprintf("the index places it at %s", info.Path)
	case !slices.Equal(rec.Access, texts(info.Access)):
		return fmt.Sprintf("the catalog has the access list %v, the index %s", rec.Access, info.Access)
	}
	return ""
}
