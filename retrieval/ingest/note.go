package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/notes"
)

// noteTokens is kept of a chunk's budget for its note.
const noteTokens = 64

// noteRoom is how many tokens a note may have beside a chunk of this budget
// before.
func noteRoom(budget int) int { return min(noteTokens, budget/4) }

// errAsItWas says that a document was settled as it had been.
var errAsItWas = errors.New("nothing about the document was completed")

// annotate is the stage that puts notes before the texts of a document's chunks. If
// the model cannot write them now, the document goes on without, and is stale,
// so that a later run completes it: what can be found badly is better than what
// cannot be found. The terms of the lexical leg stay the document's own words.
//
// SECURITY: it comes after admit, so that no text of a refused document is sent
// anywhere.
func (r *run) annotate(ctx context.Context, j *job) error {
	written, err := r.notes.Document(ctx, j.pub.Document, bare(j.pub.Chunks))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && j.completes != nil:
		r.lacking(err)
		return r.asItWas(ctx, j)
	case err != nil:
		j.unnoted = true
		j.rec.Warnings = append(j.rec.Warnings, fmt.Sprintf("its chunks have no notes yet: %v; the next run writes them", err))
		r.lacking(err)
		return nil
	}
	room := noteRoom(r.options.Chunk.Budget + r.noteRoom)
	for i := range j.pub.Chunks {
		n := notes.Fit(written[i], func(s string) bool { return r.embedder.CountTokens(s) < room })
		if c := &j.pub.Chunks[i].Chunk; n != "" {
			c.Text = n + "\n" + c.Text
		}
	}
	return nil
}

// lacking counts a document that is published and has no notes yet, and says why
// of the first.
func (r *run) lacking(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Unnoted++; r.report.Unnoted == 1 {
		r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("documents are published without notes: %v", err))
	}
}

func bare(chunks []retrieval.IndexedChunk) []retrieval.Chunk {
	out := make([]retrieval.Chunk, len(chunks))
	for i, c := range chunks {
		out[i] = c.Chunk
	}
	return out
}

// unnoted is the stamp of what lacks nothing but its notes.
func (r *run) unnoted() catalog.Stamp {
	s := r.stamp
	s.Notes = ""
	return s
}

// lacksNotes reports that the target holds these bytes, made by this pipeline
// but for the notes.
func (r *run) lacksNotes(rec catalog.Record, rev retrieval.Revision) bool {
	return r.notes != nil && rec.Stamp == r.unnoted() && r.holds(rec, rev)
}

// incomplete returns the record of a document that is there and lacks nothing but
// notes, nil otherwise. Its access list is brought up to date at once.
func (r *run) incomplete(ctx context.Context, it Item, rec catalog.Record, rev retrieval.Revision) (*catalog.Record, error) {
	if !r.lacksNotes(rec, rev) {
		return nil, nil
	}
	if list, fault := r.effective(rec.Declared, it); fault == nil {
		_, err := r.setAccess(ctx, rec.ID, list)
		return &rec, err
	}
	return nil, nil // admit refuses it
}

// asItWas settles a document that was only to get its notes, and got none. It
// ends with an error, errAsItWas if there is no other.
func (r *run) asItWas(ctx context.Context, j *job) error {
	if err := r.catalog.Put(*j.completes); err != nil {
		return err
	}
	return cmp.Or(r.unchanged(ctx, *j.completes, j.item), errAsItWas)
}

// noted reports what was done.
func (r *run) noted() {
	if r.notes == nil {
		return
	}
	t := r.notes.Tally()
	r.report.Notes, r.report.NotesKept, r.report.NoNote = t.Asked, t.Kept, t.None
}
