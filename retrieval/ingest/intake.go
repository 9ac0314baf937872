package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/doctree"
)

// job is a document on its way through the stages. One stage at a time has it.
type job struct {
	item    Item
	rec     catalog.Record
	content Content
	moved   bool

	completes *catalog.Record // as it was, if it only lacks notes
	unnoted   bool            // it goes on without notes

	pub     retrieval.Publication
	release func() // gives its share of inFlightBytes back
}

// readAll decides about each item in order and sends on what needs work.
func (r *run) readAll(ctx context.Context, out chan<- *job) error {
	for _, it := range r.items {
		j, err := r.intake(ctx, it)
		if err != nil {
			return err
		}
		if j == nil {
			if err := r.settledHere(ctx, it); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case out <- j:
		}
	}
	return nil
}

// intake settles an item that needs no work, or returns its job.
func (r *run) intake(ctx context.Context, it Item) (*job, error) {
	rec, known := r.catalog.At(it.Path)
	if it.takenOver != "" && rec.ID != it.takenOver {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled++
		return nil, ctx.Err() // it has moved, and came in under its new path
	}
	if !known {
		rec = catalog.Record{ID: r.catalog.NewID(it.Path), Path: it.Path}
	}
	if it.Fault != nil {
		return nil, r.fail(ctx, it, &rec, it.Fault)
	}
	if known {
		if done, err := r.asSeen(ctx, it, rec); done || err != nil {
			return nil, err
		}
	}
	content, fault, err := r.read(ctx, it.Path)
	if err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, r.fail(ctx, it, &rec, fault)
	}
	rev := content.revision()
	r.seen[it.Path] = sight{it.Mark, rev}
	if done, err := r.asBefore(ctx, it, rec, rev); done || err != nil {
		return nil, err
	}
	completes, err := r.incomplete(ctx, it, rec, rev)
	if err != nil {
		return nil, err
	}
	moved, err := r.adopt(&rec, rev)
	if err != nil {
		return nil, err
	}
	if rec.Serving != "" && (!rec.Governed() || r.bounds(it.Path)) {
		if err := r.narrow(ctx, rec.ID, it.Access); err != nil {
			return nil, err
		}
	}
	j, err := r.queue(ctx, it, rec, content, moved)
	if err == nil {
		j.completes = completes
	}
	return j, err
}

// sourceOf is the source that answers for the path: this run's, or the one
// of the others that it lies under.
func (r *run) sourceOf(path string) Source {
	for _, s := range r.options.Others {
		if s.Root() != r.src.Root() && below(s.Root(), path) {
			return s
		}
	}
	return r.src
}

func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

func (r *run) bounds(path string) bool {
	b, ok := r.sourceOf(path).(Bounding)
	return ok && b.BoundsAccess(path)
}

// asSeen settles an item whose mark says that it holds what was read before.
func (r *run) asSeen(ctx context.Context, it Item, rec catalog.Record) (done bool, err error) {
	last := r.seen[it.Path]
	if it.Mark == "" || it.Mark != last.mark {
		return false, nil
	}
	return r.asBefore(ctx, it, rec, last.revision)
}

// asBefore settles an item that is up to date, and one that failed or was
// refused with the same bytes and rules and need not be tried again.
func (r *run) asBefore(ctx context.Context, it Item, rec catalog.Record, rev retrieval.Revision) (done bool, err error) {
	if r.upToDate(rec, rev) {
		return true, r.unchanged(ctx, rec, it)
	}
	if r.lacksNotes(rec, rev) {
		if err := r.notes.Ended(); err != nil {
			r.lacking(err)
			return true, r.unchanged(ctx, rec, it)
		}
	}
	ended := rec.State == catalog.Failed || rec.State == catalog.Refused
	replacing := r.current != nil && !r.promoted && !r.kept // by another recipe, which may succeed
	if !ended || r.how.Again == nil || replacing || rec.Revision != rev || !slices.Equal(rec.Rules, texts(it.Access)) || r.how.Again(rec) {
		return false, nil
	}
	r.trouble(rec)
	r.settle(rec, "")
	return true, nil
}

// read loads the source bytes.
func (r *run) read(ctx context.Context, path string) (Content, *Fault, error) {
	content, err := r.sourceOf(path).Read(ctx, path)
	var fault *Fault
	switch {
	case err == nil:
		return content, nil, nil
	case ctx.Err() != nil:
		return Content{}, nil, ctx.Err()
	case errors.As(err, &fault):
		return Content{}, fault, nil
	}
	return Content{}, &Fault{Reason: "the document could not be read", Retryable: true, Cause: err}, nil
}

// upToDate reports that the target holds these bytes, made by this pipeline.
func (r *run) upToDate(rec catalog.Record, rev retrieval.Revision) bool {
	return rec.Stamp == r.stamp && r.holds(rec, rev)
}

// holds reports that the target holds these bytes, under the record's path.
func (r *run) holds(rec catalog.Record, rev retrieval.Revision) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, in := r.there[rec.ID]
	return in && info.Revision == rev && info.Path == rec.Path && rec.Serving == rev
}

// unchanged brings the access list up to date and nothing else.
func (r *run) unchanged(ctx context.Context, rec catalog.Record, it Item) error {
	list, fault := r.effective(rec.Declared, it)
	if fault != nil {
		return r.fail(ctx, it, &rec, fault)
	}
	changed, err := r.setAccess(ctx, rec.ID, list)
	if err != nil {
		return err
	}
	changed = changed || !slices.Equal(rec.Access, texts(list)) // narrowed before
	foreign := r.how.Name != "" && rec.Source != r.how.Name
	if changed || foreign || rec.State != catalog.Published {
		rec.Access, rec.Source = texts(list), cmp.Or(r.how.Name, rec.Source)
		rec.Enter(catalog.Published, r.options.Now())
		if err := r.catalog.Put(rec); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.report.Unchanged++
	if changed {
		r.report.AccessChanged++
	}
	r.mu.Unlock()
	effect := Effect("")
	if changed {
		effect = AccessChange
	}
	r.settle(rec, effect)
	return nil
}

// adopt finds out whether the content of an unknown path is a known document
// that has moved: same bytes, and nothing lies at its old path any more. Then
// rec becomes that document's. One that was removed in between comes back.
func (r *run) adopt(rec *catalog.Record, rev retrieval.Revision) (bool, error) {
	if rec.Serving != "" {
		return false, nil
	}
	old, found := r.moved(*rec, rev)
	if !found {
		return false, nil
	}
	path, now := rec.Path, r.options.Now()
	if _, known := r.catalog.Get(rec.ID); known {
		rec.Enter(catalog.Removed, now)
		if err := r.catalog.Put(*rec); err != nil {
			return false, err
		}
	}
	old.Path = path
	*rec = old
	return true, nil
}

// queue makes the job, when there is room for its bytes.
func (r *run) queue(ctx context.Context, it Item, rec catalog.Record, content Content, moved bool) (*job, error) {
	weight := min(int64(len(content.Data)), inFlightBytes)
	if err := r.inFlight.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	rev := content.revision()
	if rec.State != catalog.Failed || rec.Revision != rev {
		rec.Attempts = 0
	}
	rec.Revision, rec.Bytes, rec.Own, rec.Declared = rev, len(content.Data), rec.Serving != "" && rec.Governed(), nil
	rec.Rules, rec.Source = texts(it.Access), cmp.Or(r.how.Name, rec.Source)
	rec.Stamp, rec.Characters, rec.Chunks, rec.Truncated, rec.Warnings, rec.Facts = catalog.Stamp{}, 0, 0, 0, nil, doctree.Facts{}
	j := &job{item: it, rec: rec, content: content, moved: moved, release: func() { r.inFlight.Release(weight) }}
	return j, r.enter(&j.rec, catalog.Queued)
}

// enter writes a state on the way.
func (r *run) enter(rec *catalog.Record, s catalog.State) error {
	rec.Enter(s, r.options.Now())
	if r.told != nil {
		r.told(s)
		return nil
	}
	if err := r.catalog.Put(*rec); err != nil {
		return err
	}
	r.say(*rec, "")
	return nil
}

// effective joins the two places where access is given.
//
// SECURITY: the front matter goes before the source's rules; a list that was
// given but cannot be used refuses, and so does none at all. A source that
// bounds access is not widened by what somebody wrote into a document.
func (r *run) effective(declared []string, it Item) (acl.List, *Fault) {
	list, fault := effective(declared, it.Access)
	if fault == nil && r.bounds(it.Path) {
		for _, p := range list.Principals() {
			if !slices.Contains(it.Access.Principals(), p) {
				return acl.List{}, &Fault{Refused: true, Reason: fmt.Sprintf("its front matter gives access to %s, and the list that it was sent with does not; name them there as well, or take access: out of the front matter", p)}
			}
		}
	}
	return list, fault
}

func effective(declared []string, rules acl.List) (acl.List, *Fault) {
	if declared != nil {
		list, err := acl.ParseList(declared)
		if err != nil {
			return acl.List{}, &Fault{Refused: true, Reason: fmt.Sprintf("the access list of its front matter cannot be used: %v", err)}
		}
		return list, nil
	}
	if rules.IsZero() {
		return acl.List{}, &Fault{Refused: true, Reason: "no access list: nobody may read it; add access: to its front matter or an access file to its folder, or give --access"}
	}
	return rules, nil
}

// setAccess puts the list in force wherever the document is served.
//
// SECURITY: another revision of it, in a generation that is still in use, is
// opened to nobody that it was not open to.
func (r *run) setAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) (changed bool, err error) {
	for g, docs := range r.generations() {
		r.mu.Lock()
		info, in := docs[id]
		r.mu.Unlock()
		if !in || info.Access.Equal(list) || r.otherThanTarget(info) {
			continue
		}
		if err := g.SetAccess(ctx, id, list); err != nil {
			return changed, fmt.Errorf("changing access to %s: %w", id, err)
		}
		info.Access = list
		r.mu.Lock()
		docs[id] = info
		r.mu.Unlock()
		changed = true
	}
	return changed, r.narrow(ctx, id, list)
}

// narrow takes from a document that is about to change whoever the new list
// does not name. Nobody is added: they may read the new content only.
//
// SECURITY: in force before anything is extracted or embedded.
func (r *run) narrow(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	for g, docs := range r.generations() {
		r.mu.Lock()
		info, in := docs[id]
		r.mu.Unlock()
		if !in {
			continue
		}
		both := acl.NewList(slices.DeleteFunc(info.Access.Principals(), func(p acl.Principal) bool { return !slices.Contains(list.Principals(), p) })...)
		var err error
		switch {
		case both.Equal(info.Access):
			continue
		case both.IsZero():
			err = g.Remove(ctx, id)
		default:
			err = g.SetAccess(ctx, id, both)
		}
		if err != nil {
			return fmt.Errorf("narrowing access to %s: %w", id, err)
		}
		r.mu.Lock()
		if info.Access = both; both.IsZero() {
			delete(docs, id)
		} else {
			docs[id] = info
		}
		r.mu.Unlock()
	}
	return nil
}

// generations are those that hold published documents, with what they hold.
func (r *run) generations() map[retrieval.Generation]map[retrieval.DocumentID]retrieval.DocumentInfo {
	all := map[retrieval.Generation]map[retrieval.DocumentID]retrieval.DocumentInfo{r.target: r.there}
	if r.current != nil && r.current != r.target {
		all[r.current] = r.before
	}
	return all
}

// fail settles a document that is not taken in. What may pass leaves the last
// good revision in place, and so does every failure of a document of another
// source, whose limits are not known here; the rest withdraws it.
func (r *run) fail(ctx context.Context, it Item, rec *catalog.Record, fault *Fault) error {
	state := catalog.Failed
	if fault.Refused {
		state = catalog.Refused
	}
	if fault.Refused || !fault.Retryable && it.takenOver == "" {
		if err := r.withdraw(ctx, rec, state, fault); err != nil {
			return err
		}
	} else if err := r.keep(rec, fault); err != nil {
		return err
	}
	r.trouble(*rec)
	r.settle(*rec, "")
	return nil
}

// trouble reports a document that was not taken in.
func (r *run) trouble(rec catalog.Record) {
	t := Trouble{ID: rec.ID, Path: rec.Path, Reason: rec.Reason, Retryable: rec.Retryable}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.State == catalog.Refused {
		r.report.Refused = append(r.report.Refused, t)
	} else {
		r.report.Failed = append(r.report.Failed, t)
	}
}

// withdraw takes the document out of the index, then says so in the catalog:
// the other order could leave it readable after a crash.
func (r *run) withdraw(ctx context.Context, rec *catalog.Record, s catalog.State, fault *Fault) error {
	for g, docs := range r.generations() {
		if err := g.Remove(ctx, rec.ID); err != nil {
			return fmt.Errorf("removing %s: %w", rec.ID, err)
		}
		r.mu.Lock()
		delete(docs, rec.ID)
		r.mu.Unlock()
	}
	rec.Serving, rec.Access, rec.Own = "", nil, false
	return r.note(rec, s, fault)
}

// keep notes a failure that may pass.
func (r *run) keep(rec *catalog.Record, fault *Fault) error {
	r.mu.Lock()
	before, served := r.before[rec.ID]
	info, there := r.there[rec.ID]
	if !there {
		info = before
	}
	rec.Serving, rec.Access, rec.Own = info.Revision, texts(info.Access), rec.Governed()
	if served && !r.promoted {
		r.left[rec.ID] = true
	}
	r.mu.Unlock()
	return r.note(rec, catalog.Failed, fault)
}

// note writes the end of a document's run, unless it ended so before.
func (r *run) note(rec *catalog.Record, s catalog.State, fault *Fault) error {
	reason := fault.Error()
	if old, known := r.catalog.Get(rec.ID); known && old.State == s && old.Reason == reason && old.Serving == rec.Serving && old.Path == rec.Path {
		*rec = old
		return nil
	}
	rec.Enter(s, r.options.Now())
	rec.Reason, rec.Retryable = reason, fault.Retryable
	if rec.Source = cmp.Or(r.how.Name, rec.Source); s == catalog.Failed {
		rec.Attempts++
	}
	return r.catalog.Put(*rec)
}

// settle counts a document as done and tells so.
func (r *run) settle(rec catalog.Record, e Effect) {
	r.mu.Lock()
	r.settled++
	r.mu.Unlock()
	r.say(rec, e)
}

// say reports progress, one event at a time.
func (r *run) say(rec catalog.Record, e Effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, to := range []func(Event){r.options.Progress, r.how.Told} {
		if to != nil {
			to(Event{ID: rec.ID, Path: rec.Path, State: rec.State, Reason: rec.Reason, Effect: e, Done: r.settled, Total: r.settling})
		}
	}
}

func texts(l acl.List) []string {
	var out []string
	for _, p := range l.Principals() {
		out = append(out, string(p))
	}
	return out
}

// listOf is the list of a record; what cannot be read is nobody.
func listOf(entries []string) acl.List {
	l, err := acl.ParseList(entries)
	if err != nil {
		return acl.List{}
	}
	return l
}
