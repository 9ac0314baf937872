package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
)

// errTakenBack says that a run brought what the inbox does not hold any more.
var errTakenBack = errors.New("it was taken back, or its access list changed, while it was being taken in")

// Guard is the store with every write of a document of these inboxes held to
// what they say at that moment: a run works on a listing that may be hours old.
// pathOf finds the path of a document, "" if it is not known.
//
// SECURITY: with Enforce after each change nothing is published, or opened, to
// more people than the newest list names. A write that was decided before a
// change is waited for, or refused; one that comes later sees the change.
func Guard(s retrieval.Store, pathOf func(retrieval.DocumentID) string, boxes ...*Inbox) retrieval.Store {
	return guardedStore{s, &guard{boxes, pathOf}}
}

// GuardOne is Guard for a generation and changes to the one document at a path.
func (b *Inbox) GuardOne(g retrieval.Generation, path string) retrieval.Generation {
	return guarded{g, &guard{[]*Inbox{b}, func(retrieval.DocumentID) string { return path }}}
}

type guard struct {
	boxes  []*Inbox
	pathOf func(retrieval.DocumentID) string
}

type guardedStore struct {
	retrieval.Store

	guard *guard
}

// Create makes a generation.
func (s guardedStore) Create(ctx context.Context, m retrieval.Manifest) (retrieval.Generation, error) {
	g, err := s.Store.Create(ctx, m)
	return s.guarded(g, err)
}

// Open opens one.
func (s guardedStore) Open(ctx context.Context, name string) (retrieval.Generation, error) {
	g, err := s.Store.Open(ctx, name)
	return s.guarded(g, err)
}

func (s guardedStore) guarded(g retrieval.Generation, err error) (retrieval.Generation, error) {
	if err != nil {
		return nil, err
	}
	return guarded{g, s.guard}, nil
}

// guarded is a value, so that one generation opened twice is equal to itself.
type guarded struct {
	retrieval.Generation
	guard *guard
}

// Publish publishes to those alone whom the inbox still names.
func (g guarded) Publish(ctx context.Context, p retrieval.Publication) error {
	return g.guard.bounded(ctx, p.Document.Path, p.Access, func(ctx context.Context, list acl.List) error {
		p := p
		p.Access = list
		return g.Generation.Publish(ctx, p)
	})
}

// SetAccess replaces the list by what of it the inbox still names.
func (g guarded) SetAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	return g.guard.bounded(ctx, g.guard.pathOf(id), list, func(ctx context.Context, list acl.List) error {
		return g.Generation.SetAccess(ctx, id, list)
	})
}

// bounded calls write with the part of the list that the inbox names.
func (g *guard) bounded(ctx context.Context, path string, list acl.List, write func(context.Context, acl.List) error) error {
	for _, b := range g.boxes {
		id, ours := b.IDOf(path)
		if !ours {
			continue
		}
		return b.keep.Still(ctx, candidates(id), func(ctx context.Context, held map[string]Entry) error {
			e, is := at(held, id)
			named := both(list, e.List())
			if !is || named.IsZero() {
				return errTakenBack
			}
			return write(ctx, named)
		})
	}
	return write(ctx, list)
}

// both is who is named by either list.
func both(a, b acl.List) acl.List {
	names := b.Principals()
	return acl.NewList(slices.DeleteFunc(a.Principals(), func(p acl.Principal) bool { return !slices.Contains(names, p) })...)
}

// Enforce puts in force what the inbox says of the document, and of what lies in
// it, in every generation that can be opened: gone if the inbox does not hold
// it; under its list where the very content is published that the inbox holds;
// else for nobody whom the inbox does not name, and what is new comes in with
// the next run. It does not wait for a run. rec is what the catalog says of the
// document, the zero Record if nothing; s is the store itself, not one of Guard.
// It returns what came in force, also beside an error: events with id, path and
// effect.
func (b *Inbox) Enforce(ctx context.Context, s retrieval.Store, rec catalog.Record, id string) ([]ingest.Event, error) {
	var done []ingest.Event
	err := each(ctx, s, func(g retrieval.Generation) error {
		infos, err := g.Documents(ctx, system.Grant())
		if err != nil {
			return err
		}
		for _, d := range infos {
			if d.ID != rec.ID && d.Path != b.PathOf(id) && !strings.HasPrefix(d.Path, b.PathOf(id)+"/") {
				continue
			}
			effect, err := b.enforce(ctx, g, rec, d, id)
			if err != nil {
				return err
			}
			same := func(e ingest.Event) bool { return e.ID == d.ID }
			if effect != "" && !slices.ContainsFunc(done, same) {
				done = append(done, ingest.Event{ID: d.ID, Path: d.Path, Effect: effect})
			}
		}
		return nil
	})
	return done, err
}

// enforce does so for one published document, which lies at the id or below it.
func (b *Inbox) enforce(ctx context.Context, g retrieval.Generation, rec catalog.Record, d retrieval.DocumentInfo, id string) (effect ingest.Effect, err error) {
	at, _ := b.IDOf(d.Path)
	if d.ID == rec.ID {
		at = id
	}
	// A later list is put in force after this one.
	err = b.keep.Still(ctx, candidates(at), func(ctx context.Context, held map[string]Entry) error {
		effect, err = setTo(ctx, g, d, inForce(rec, d, held, at))
		return err
	})
	return effect, err
}

// inForce is the list under which a published document may be read that is, or
// lies in, a document with the id; none: it goes.
func inForce(rec catalog.Record, d retrieval.DocumentInfo, all map[string]Entry, id string) acl.List {
	e, held := at(all, id)
	if d.ID == rec.ID {
		e, held = all[id]
	}
	rev := e.Revision()
	switch {
	case !held:
		return acl.List{}
	// Front matter may name fewer than the list. Whether there is any, the
	// catalog knows of what it calls published.
	case d.ID == rec.ID && rec.State == catalog.Published && rec.Declared == nil && rec.Revision == rev && d.Revision == rev:
		return e.List()
	}
	return both(d.Access, e.List())
}

// EnforceAll does so for all documents of the inboxes in the current generation:
// before anybody is answered after a start.
//
// SECURITY: it sees all documents; nothing here reaches an asker.
func EnforceAll(ctx context.Context, s retrieval.Store, boxes ...*Inbox) error {
	if len(boxes) == 0 {
		return nil
	}
	g, err := s.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) || errors.Is(err, retrieval.ErrCorrupt) || errors.Is(err, retrieval.ErrFormat) {
		return nil // nobody is answered from it either
	}
	var infos []retrieval.DocumentInfo
	if err == nil {
		infos, err = g.Documents(ctx, system.Grant())
	}
	for _, b := range boxes {
		if err == nil {
			err = b.enforceAll(ctx, g, infos)
		}
	}
	if err != nil {
		return fmt.Errorf("enforcing the inboxes: %w", err)
	}
	return nil
}

func (b *Inbox) enforceAll(ctx context.Context, g retrieval.Generation, infos []retrieval.DocumentInfo) error {
	var others []retrieval.DocumentInfo // than the inbox says
	err := b.keep.View(ctx, func(t *Table) {
		for _, d := range infos {
			if id, ours := b.IDOf(d.Path); ours && !inForce(catalog.Record{}, d, t.entries, id).Equal(d.Access) {
				others = append(others, d)
			}
		}
	})
	for _, d := range others {
		if err == nil {
			_, err = b.enforce(ctx, g, catalog.Record{}, d, "")
		}
	}
	return err
}

// each calls do with every generation that can be opened.
//
// SECURITY: it sees all documents; nothing here reaches an asker.
func each(ctx context.Context, s retrieval.Store, do func(retrieval.Generation) error) error {
	all, _, listErr := s.Generations(ctx)
	if len(all) == 0 && listErr != nil {
		return fmt.Errorf("enforcing the inbox: %w", listErr)
	}
	for _, m := range all {
		g, err := s.Open(ctx, m.Name)
		if errors.Is(err, retrieval.ErrCorrupt) || errors.Is(err, retrieval.ErrFormat) {
			continue // nobody is answered from it either
		}
		if err == nil {
			err = do(g)
		}
		if err != nil {
			return fmt.Errorf("enforcing the inbox in generation %s: %w", m.Name, err)
		}
	}
	return nil
}

// setTo gives the document the list, or removes it for want of one.
func setTo(ctx context.Context, g retrieval.Generation, d retrieval.DocumentInfo, list acl.List) (ingest.Effect, error) {
	switch {
	case list.Equal(d.Access):
		return "", nil
	case list.IsZero():
		return ingest.Removal, g.Remove(ctx, d.ID)
	}
	err := g.SetAccess(ctx, d.ID, list)
	if errors.Is(err, retrieval.ErrNotFound) {
		return "", nil // it was removed meanwhile
	}
	return ingest.AccessChange, err
}
