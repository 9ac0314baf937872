package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// Step is what a run would do with a document.
type Step struct {
	Path string
	Do   Deed
	Why  string // of Fail and Refuse
}

// Deed names what is done with a document.
type Deed string

// The deeds of a plan. Whether extraction succeeds is not known beforehand.
const (
	Add     Deed = "add"
	Replace Deed = "replace" // the bytes, or what makes chunks of them, are others
	Move    Deed = "move"
	Reopen  Deed = "access" // another access list
	Remove  Deed = "remove"
	Fail    Deed = "fail"
	Refuse  Deed = "refuse"
)

// Plan is what a run would do.
type Plan struct {
	Steps     []Step // ordered by path
	Unchanged int
	Held      *Held // the removals of Steps would not be done
}

// Plan says what Ingest would do, without doing it. It reads the source and
// extracts nothing, so that access in front matter is taken as it was.
func (p *Pipeline) Plan(ctx context.Context, src Source, how How) (Plan, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	items, err := src.Items(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("listing %s: %w", src.Root(), err)
	}
	r := p.newRun(src, how, items)
	r.current, err = p.store.Open(ctx, "")
	if err != nil && !errors.Is(err, retrieval.ErrNoIndex) {
		return Plan{}, fmt.Errorf("opening the index: %w", err)
	}
	if err != nil {
		r.current = nil
	}
	r.promoted = r.current != nil && alike(r.current.Manifest(), p.manifest)
	if r.there, err = list(ctx, r.current); err != nil {
		return Plan{}, err
	}
	return r.plan(ctx)
}

func (r *run) plan(ctx context.Context) (Plan, error) {
	r.arrange()
	var out Plan
	moved := map[retrieval.DocumentID]bool{}
	for _, it := range r.items {
		s, from, err := r.step(ctx, it)
		switch {
		case err != nil:
			return Plan{}, err
		case s.Do == "":
			out.Unchanged++
			continue
		}
		moved[from] = true
		out.Steps = append(out.Steps, s)
	}
	gone := 0
	for _, rec := range r.missing() {
		if rec.Serving != "" && !moved[rec.ID] && r.how.Prune {
			gone++
			out.Steps = append(out.Steps, Step{Path: rec.Path, Do: Remove})
		}
	}
	r.count()
	if r.tooMany(gone) {
		out.Held = &Held{Missing: gone, Of: r.owned}
	}
	slices.SortFunc(out.Steps, func(a, b Step) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// step finds out what is to be done with an item; from is the document that has
// moved there.
func (r *run) step(ctx context.Context, it Item) (s Step, from retrieval.DocumentID, err error) {
	s.Path = it.Path
	var content Content
	fault := it.Fault
	if fault == nil {
		content, fault, err = r.read(ctx, it.Path)
	}
	switch {
	case err != nil:
		return s, "", err
	case fault != nil:
		return s.fault(fault), "", err
	}
	rev := content.revision()
	rec, _ := r.catalog.At(it.Path)
	switch {
	case r.promoted && r.upToDate(rec, rev):
		list, fault := r.effective(rec.Declared, it)
		switch {
		case fault != nil:
			return s.fault(fault), "", nil
		case !list.Equal(r.there[rec.ID].Access):
			s.Do = Reopen
		}
	case rec.Serving != "":
		s.Do = Replace
	default:
		s.Do = Add
		if old, ok := r.moved(rec, rev); ok {
			s.Do, from = Move, old.ID
		}
	}
	return s, from, nil
}

func (s Step) fault(f *Fault) Step {
	s.Do, s.Why = Fail, f.Error()
	if f.Refused {
		s.Do = Refuse
	}
	return s
}

// moved finds the document that has moved to an unknown path: same bytes, and
// nothing lies at its old path any more.
func (r *run) moved(rec catalog.Record, rev retrieval.Revision) (catalog.Record, bool) {
	for _, id := range r.served[rev] {
		old, _ := r.catalog.Get(id)
		was := old.Serving == rev || old.State == catalog.Removed && old.Revision == rev
		if was && old.ID != rec.ID && !r.listed[old.Path] && r.src.Gone(old.Path) {
			return old, true
		}
	}
	return catalog.Record{}, false
}
