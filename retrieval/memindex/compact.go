package memindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"footnote/retrieval/journal"
)

const (
	keptRevisions = 5        // superseded ones of each document
	worthwhile    = 64 << 20 // dead bytes below which a log is left alone
)

// wasteful reports that most of the log, and much, is dead.
func (g *Generation) wasteful() bool {
	dead, total := g.Dead()
	return dead >= worthwhile && dead > total/2
}

// Dead is how many bytes of the log compaction would give back, and how many
// the log has.
func (g *Generation) Dead() (dead, total int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	used := int64(0)
	for _, doc := range g.state.live {
		used += doc.size
		for _, r := range doc.kept() {
			used += int64(r.text.Len)
		}
	}
	return g.log.Size() - used, g.log.Size()
}

func (d *document) kept() []revision { return d.past[max(0, len(d.past)-keptRevisions):] }

// Compact writes the log anew without what was removed or replaced, but for
// the texts of the last superseded revisions. Searches go on meanwhile,
// changes wait.
func (g *Generation) Compact(ctx context.Context) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	w, err := g.log.Rewrite()
	if err != nil {
		return err
	}
	fresh := newState(g.state.dims)
	for _, doc := range g.state.live {
		if err = ctx.Err(); err == nil {
			err = g.copy(w, fresh, doc)
		}
		if err != nil {
			w.Discard()
			return fmt.Errorf("copying %s: %w", doc.id, storage(err))
		}
	}
	if err := w.Sync(); err != nil {
		w.Discard()
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// A view of the old state must not pass for one of the new.
	fresh.version += g.state.version
	err = w.Commit()
	if err == nil || errors.Is(err, journal.ErrBroken) { // then the new log stands too
		g.state, g.views = fresh, views{}
	}
	return err
}

// copy writes the document and its last revisions, with the term numbers of
// fresh.
func (g *Generation) copy(w *journal.Rewrite, fresh *state, doc *document) error {
	head, err := g.log.Read(doc.head)
	if err != nil {
		return err
	}
	p, err := decodePublished(head[1:], g.state.dims)
	if err != nil {
		return err
	}
	p.access = g.state.classes[doc.class]
	g.renumber(&p, fresh)
	parts := slices.Concat([]journal.Part{doc.text}, doc.passages, doc.states)
	if err := g.emit(w, fresh, p.encode(), parts); err != nil {
		return err
	}
	for _, r := range doc.kept() {
		e := encoder{kindArchive}
		e.meta(r.meta)
		if err := g.emit(w, fresh, e, []journal.Part{r.text}); err != nil {
			return err
		}
	}
	return nil
}

// renumber gives the record's terms their numbers in fresh.
func (g *Generation) renumber(p *published, fresh *state) {
	p.terms = nil
	n := numberer{state: fresh, fresh: map[string]uint32{}}
	for _, c := range p.chunks {
		for j, t := range c.terms {
			c.terms[j].term = n.number(g.state.terms[t.term])
		}
		slices.SortFunc(c.terms, func(a, b termCount) int { return cmp.Compare(a.term, b.term) })
	}
	p.terms = n.terms
}

// emit copies a record and applies it to fresh.
func (g *Generation) emit(w *journal.Rewrite, fresh *state, head []byte, parts []journal.Part) error {
	texts := make([][]byte, len(parts))
	for i, p := range parts {
		b, err := g.log.Read(p)
		if err != nil {
			return err
		}
		texts[i] = b
	}
	r, err := w.Append(head, texts...)
	if err != nil {
		return err
	}
	return fresh.apply(r, head)
}
