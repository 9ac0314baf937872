package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// files is a Keep in a folder: a file for each document, written beside and then
// renamed into place.
type files struct {
	folder  folder
	damaged []string
	notices *Notices

	mu    sync.RWMutex // written under: names in the folder, and all below
	table *Table
	owing bool // a rename or removal may not be on the disk yet
}

var _ Keep = (*files)(nil)

func openFiles(f folder) (*files, error) {
	k := &files{folder: f, notices: NewNotices(), table: NewTable()}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, unfinished):
			err = f.remove(name)
		case strings.HasSuffix(name, ending):
			err = k.load(name)
		}
		if err != nil {
			return nil, err
		}
	}
	// What was found may be a rename that a crash could still undo.
	return k, f.sync()
}

// load takes in what the file says, or sets it aside.
func (k *files) load(name string) error {
	e, err := k.readEntry(name)
	if err == nil && fileOf(e.ID) != name {
		err = ErrDamaged
	}
	if errors.Is(err, ErrDamaged) {
		k.damaged = append(k.damaged, name+aside)
		return k.folder.rename(name, name+aside)
	}
	if err != nil {
		return err
	}
	k.table.Put(e)
	return nil
}

// Damaged implements Keep: the files that were set aside at the opening.
func (k *files) Damaged() []string { return slices.Clone(k.damaged) }

// View implements Keep.
func (k *files) View(ctx context.Context, look func(*Table)) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	look(k.table)
	return ctx.Err()
}

// Find implements Keep.
func (k *files) Find(ctx context.Context, ids ...string) (map[string]Entry, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.find(ids), ctx.Err()
}

// find is Find for a caller that holds mu.
func (k *files) find(ids []string) map[string]Entry {
	out := map[string]Entry{}
	for _, id := range ids {
		if e, held := k.table.Get(id); held {
			out[id] = e
		}
	}
	return out
}

// Known implements Keep.
func (k *files) Known(id string) (Entry, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.table.Get(id)
}

// Still implements Keep: nothing changes until act returns.
func (k *files) Still(ctx context.Context, ids []string, act func(context.Context, map[string]Entry) error) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return act(ctx, k.find(ids))
}

// Watch implements Keep.
func (k *files) Watch(ctx context.Context, told func(id string, urgent bool)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.notices.Wake:
		}
		k.notices.Tell(told)
	}
}

// Begin implements Keep.
func (k *files) Begin(context.Context) (Draft, error) {
	t, err := k.folder.create()
	if err != nil {
		return nil, err
	}
	return &draft{t, k.folder}, nil
}

// draft is a file beside the others.
type draft struct {
	temp

	folder folder
}

// Seal implements Draft.
func (d *draft) Seal(_ context.Context, e Entry) error {
	_, err := d.Write(e.encode())
	if err == nil {
		err = d.Sync()
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("taking a document: %w", err)
	}
	return nil
}

// Drop implements Draft. Left-overs are removed at the next opening.
func (d *draft) Drop() {
	_ = d.Close()
	_ = d.folder.remove(d.Name())
}

// Change implements Keep.
func (k *files) Change(_ context.Context, decide func(*Table) (Step, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, err := decide(k.table)
	if err == nil {
		err = k.do(s)
	}
	if err != nil {
		return err
	}
	return k.settle()
}

func (k *files) do(s Step) error {
	id, now := s.Drop, Entry{}
	if s.Put != nil {
		id, now = s.Put.ID, *s.Put
	}
	old, _ := k.table.Get(id)
	switch d, _ := s.Draft.(*draft); {
	case s.Put != nil:
		if err := k.folder.rename(d.Name(), fileOf(id)); err != nil {
			return fmt.Errorf("taking a document: %w", err)
		}
		k.table.Put(now)
	case id != "":
		if err := k.folder.remove(fileOf(id)); err != nil {
			return fmt.Errorf("dropping a document: %w", err)
		}
		k.table.Drop(id)
	default:
		return nil
	}
	k.owing = true
	k.notices.Changed(id, old, now)
	return nil
}

// settle makes names durable. After a failure the next change tries again, so
// that nothing is called done that a crash could undo. The caller holds mu.
func (k *files) settle() error {
	if !k.owing {
		return nil
	}
	if err := k.folder.sync(); err != nil {
		return fmt.Errorf("writing the inbox: %w", err)
	}
	k.owing = false
	return nil
}

func (k *files) readEntry(name string) (Entry, error) {
	f, size, err := k.folder.open(name)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	return decode(f, size)
}

// Read implements Keep: entry and content belong together, whatever takes their
// place meanwhile.
func (k *files) Read(_ context.Context, id string) (Entry, []byte, error) {
	f, size, err := k.folder.open(fileOf(id))
	if err != nil {
		return Entry{}, nil, err
	}
	defer f.Close()
	e, err := decode(f, size)
	if err != nil {
		return Entry{}, nil, err
	}
	data := make([]byte, e.Size)
	if _, err := f.ReadAt(data, 0); err != nil {
		return Entry{}, nil, err
	}
	return e, data, e.Checks(data)
}

// Checks says whether these are the bytes of the entry: ErrDamaged if not.
func (e Entry) Checks(data []byte) error {
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.Sum {
		return ErrDamaged
	}
	return nil
}
