package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// errTakenBack says that a run brought what the inbox does not hold any more.
var errTakenBack = errors.New("it was taken back, or its access list changed, while it was being taken in")

// Guard is the store with every write of a document of this inbox held to what
// the inbox says at that moment: a run works on a listing that may be hours
// old. pathOf finds the path of a document, "" if it is not known.
//
// SECURITY: with Enforce after each change nothing is published, or opened, to
// more people than the newest list names. Put and Delete wait for a write that
// is under way; one that comes later sees what they changed.
func (b *Inbox) Guard(s retrieval.Store, pathOf func(retrieval.DocumentID) string) retrieval.Store {
	return guardedStore{s, &guard{b, pathOf}}
}

type guard struct {
	box    *Inbox
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
	return g.guard.box.bounded(p.Document.Path, p.Access, func(list acl.List) error {
		p.Access = list
		return g.Generation.Publish(ctx, p)
	})
}

// SetAccess replaces the list by what of it the inbox still names.
func (g guarded) SetAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	return g.guard.box.bounded(g.guard.pathOf(id), list, func(list acl.List) error {
		return g.Generation.SetAccess(ctx, id, list)
	})
}

// bounded calls write with the part of the list that the inbox names. Nothing
// of the inbox changes until write returns.
func (b *Inbox) bounded(path string, list acl.List, write func(acl.List) error) error {
	id, ok := b.IDOf(path)
	if !ok {
		return write(list)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, held := b.entries[id]
	if list = both(list, e.List()); !held || list.IsZero() {
		return errTakenBack
	}
	return write(list)
}

// both is who is named by either list.
func both(a, b acl.List) acl.List {
	names := b.Principals()
	return acl.NewList(slices.DeleteFunc(a.Principals(), func(p acl.Principal) bool { return !slices.Contains(names, p) })...)
}

// Enforce puts in force what the inbox says of the document in every generation
// that can be opened: gone if the inbox does not hold it; under its list where
// the very content is published that the inbox holds; else for nobody whom the
// inbox does not name, and what is new comes in with the next run. It does not
// wait for a run. rec is what the catalog says of the document; s is the store
// itself, not one of Guard.
func (b *Inbox) Enforce(ctx context.Context, s retrieval.Store, rec catalog.Record, id string) error {
	return b.each(ctx, s, func(g retrieval.Generation) error {
		b.mu.RLock() // a later list is put in force after this one
		defer b.mu.RUnlock()
		e, held := b.entries[id]
		if !held {
			return g.Remove(ctx, rec.ID)
		}
		infos, err := g.Documents(ctx, system.Grant())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(infos, func(d retrieval.DocumentInfo) bool { return d.ID == rec.ID })
		if i < 0 {
			return nil
		}
		list := both(infos[i].Access, e.List())
		// Front matter may name fewer than the list. Whether there is any, the
		// catalog knows of what it calls published.
		if rev := e.Revision(); rec.State == catalog.Published && rec.Declared == nil && rec.Revision == rev && infos[i].Revision == rev {
			list = e.List()
		}
		return setTo(ctx, g, infos[i], list)
	})
}

// EnforceAll does so for all documents of this inbox in the current generation:
// before anybody is answered after a start.
//
// SECURITY: it sees all documents; nothing here reaches an asker.
func (b *Inbox) EnforceAll(ctx context.Context, s retrieval.Store) error {
	g, err := s.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) || errors.Is(err, retrieval.ErrCorrupt) || errors.Is(err, retrieval.ErrFormat) {
		return nil // nobody is answered from it either
	}
	if err != nil {
		return fmt.Errorf("enforcing the inbox: %w", err)
	}
	infos, err := g.Documents(ctx, system.Grant())
	if err != nil {
		return fmt.Errorf("enforcing the inbox: %w", err)
	}
	for _, d := range infos {
		id, ok := b.IDOf(d.Path)
		if !ok {
			continue
		}
		e, _ := b.Get(id)
		if err := setTo(ctx, g, d, both(d.Access, e.List())); err != nil {
			return fmt.Errorf("enforcing the inbox: %w", err)
		}
	}
	return nil
}

// each calls do with every generation that can be opened.
//
// SECURITY: it sees all documents; nothing here reaches an asker.
func (b *Inbox) each(ctx context.Context, s retrieval.Store, do func(retrieval.Generation) error) error {
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
func setTo(ctx context.Context, g retrieval.Generation, d retrieval.DocumentInfo, list acl.List) error {
	switch {
	case list.Equal(d.Access):
		return nil
	case list.IsZero():
		return g.Remove(ctx, d.ID)
	}
	err := g.SetAccess(ctx, d.ID, list)
	if errors.Is(err, retrieval.ErrNotFound) {
		return nil // it was removed meanwhile
	}
	return err
}
