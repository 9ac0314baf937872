package ingest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// fewRemoved documents are always removed: of a small folder they would soon
// be a large share.
const fewRemoved = 2

// arrange limits the work to How.Only and puts first what takes no time and
// must not wait: faults, which may close what is open, then known documents,
// whose access may have changed, then new ones.
func (r *run) arrange() {
	if !r.promoted {
		r.how.Only = nil
	}
	r.items = slices.DeleteFunc(slices.Clone(r.items), func(it Item) bool { return !r.within(it.Path) })
	ranks := make(map[string]int, len(r.items))
	for _, it := range r.items {
		ranks[it.Path] = r.rank(it)
	}
	slices.SortStableFunc(r.items, func(a, b Item) int { return ranks[a.Path] - ranks[b.Path] })
	r.served = map[retrieval.Revision][]retrieval.DocumentID{}
	for _, rec := range r.catalog.List() {
		if rec.State == catalog.Removed {
			r.served[rec.Revision] = append(r.served[rec.Revision], rec.ID)
		} else if rec.Serving != "" {
			// Before the removed ones: what is there goes before what comes back.
			r.served[rec.Serving] = slices.Insert(r.served[rec.Serving], 0, rec.ID)
		}
	}
}

func (r *run) rank(it Item) int {
	rec, known := r.catalog.At(it.Path)
	switch {
	case it.Fault != nil:
		return 0
	case known && rec.Serving != "":
		return 1
	}
	return 2
}

// within reports that the run is about the path.
func (r *run) within(path string) bool {
	return r.how.Only == nil || slices.ContainsFunc(r.how.Only, func(o string) bool {
		return path == o || strings.HasPrefix(path, strings.TrimSuffix(o, string(filepath.Separator))+string(filepath.Separator))
	})
}

// prunes reports that what is missing is removed.
func (r *run) prunes() bool { return r.how.Prune && !r.held }

// assess decides whether so much is missing that nothing is removed. What may
// have moved is not counted yet.
func (r *run) assess() {
	r.count()
	gone := 0
	moved := r.mayHaveMoved()
	for _, rec := range r.missing() {
		if rec.Serving != "" && !moved(rec) {
			gone++
		}
	}
	r.held = r.tooMany(gone)
}

func (r *run) count() {
	for _, rec := range r.catalog.List() {
		if rec.Serving != "" && r.owns(rec) {
			r.owned++
		}
	}
}

// tooMany reports that a run may not remove n documents unasked.
func (r *run) tooMany(n int) bool {
	few := n <= fewRemoved && len(r.listed) > 0
	return r.how.Prune && r.how.MaxRemoved > 0 && n > 0 && !few && float64(n) > r.how.MaxRemoved*float64(r.owned)
}

// missing lists the documents of the source that it no longer lists.
func (r *run) missing() []catalog.Record {
	return slices.DeleteFunc(r.catalog.List(), func(rec catalog.Record) bool {
		return rec.State == catalog.Removed || r.listed[rec.Path] || !r.within(rec.Path) || !r.owns(rec)
	})
}

// mayHaveMoved finds out whether a new item can hold the bytes of a document,
// so that the document is not given up before that item was read.
func (r *run) mayHaveMoved() func(catalog.Record) bool {
	sizes := map[int64]bool{}
	for _, it := range r.items {
		if it.Fault == nil && r.rank(it) == 2 {
			sizes[it.Bytes] = true
		}
	}
	return func(rec catalog.Record) bool {
		return sizes[0] || sizes[int64(rec.Bytes)] || len(sizes) > 0 && rec.Revision != rec.Serving
	}
}

// ahead does first what makes documents less readable: it must not wait for
// the extraction and embedding of others.
//
// SECURITY: narrower lists and removals are in force once the source is listed
// and the documents with another list were read.
func (r *run) ahead(ctx context.Context) error {
	r.settling = len(r.items)
	rest := r.items[:0]
	for _, it := range r.items {
		done, err := r.reopen(ctx, it)
		if err != nil {
			return err
		}
		if !done {
			rest = append(rest, it)
		}
	}
	r.items = rest
	if !r.prunes() {
		return nil
	}
	moved := r.mayHaveMoved()
	for _, rec := range r.missing() {
		if moved(rec) {
			continue
		}
		if err := r.remove(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// reopen settles an item of which only the access list has changed. If the
// bytes have, too, the old ones are narrowed and wait for the new.
func (r *run) reopen(ctx context.Context, it Item) (done bool, err error) {
	rec, known := r.catalog.At(it.Path)
	readable := known && rec.Serving != "" && it.Fault == nil
	if !readable || rec.Governed() || it.takenOver != "" || slices.Equal(rec.Access, texts(it.Access)) {
		return false, nil
	}
	if done, err := r.asSeen(ctx, it, rec); done || err != nil {
		return done, err
	}
	content, fault, err := r.read(ctx, it.Path)
	if err != nil {
		return false, err
	}
	if fault == nil {
		if done, err := r.asBefore(ctx, it, rec, content.revision()); done || err != nil {
			return done, err
		}
		if rec, err := r.incomplete(ctx, it, rec, content.revision()); rec != nil || err != nil {
			return false, err
		}
	}
	return false, r.narrow(ctx, rec.ID, it.Access)
}

// unlisted deals at the end with what is still missing.
func (r *run) unlisted(ctx context.Context) error {
	missing := r.missing()
	gone := 0
	for _, rec := range missing {
		if rec.Serving != "" {
			gone++
		}
	}
	if r.held = r.held || r.tooMany(r.report.Removed+gone); r.held {
		r.report.Held = &Held{Missing: gone, Of: r.owned}
	}
	for _, rec := range missing {
		if rec.Serving != "" && !r.prunes() {
			r.report.Missing = append(r.report.Missing, rec.Path)
			continue
		}
		if err := r.remove(ctx, rec); err != nil {
			return err
		}
	}
	return nil
}

// remove withdraws a document that its source no longer has.
func (r *run) remove(ctx context.Context, rec catalog.Record) error {
	served := rec.Serving != ""
	if err := r.withdraw(ctx, &rec, catalog.Removed, &Fault{}); err != nil {
		return err
	}
	delete(r.seen, rec.Path)
	effect := Effect("")
	if served {
		r.report.Removed++
		effect = Removal
	}
	r.say(rec, effect)
	return nil
}
