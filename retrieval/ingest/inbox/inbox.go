// Package inbox keeps documents that have no folder of their own: those that
// connectors push, and files that people hand over in a chat. It offers them to
// ingestion as a source.
//
// Its one idea: a document and all that is known of it, its access list first,
// is one file, written beside and then renamed into place. So whatever ends the
// process leaves all of the old or all of the new, never bytes under the access
// list of others.
//
// A document has an id that its sender chose, for example "wiki/123". To
// ingestion its path is the root of the inbox, a slash and the id, for example
// "push:/wiki/123"; it is no path of the file system. What a mail or an archive
// holds lies below its path (package unpack), so that no id may.
//
// SECURITY: a document without an access list is not taken. The list bounds
// what the document's own front matter may say. What is taken back is in force
// at once (Enforce), and a run that is under way publishes nothing that the
// inbox holds otherwise by then (Guard).
//
// Format: one file a document, named by the hash of its id, see file.go. What
// cannot be read any more is set aside under the same name with .damaged behind.
//
// It does not read formats, lock its directory, or decide who may send what.
package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	// ErrNotFound says that the inbox does not hold the document.
	ErrNotFound = errors.New("there is no such document")
	// ErrChanged says that a condition does not hold: somebody was faster.
	ErrChanged = errors.New("the document is not as the condition says")
	// ErrTooLarge says that a document is over the limit.
	ErrTooLarge = errors.New("the document is too large")
	// ErrFull says that the inbox takes nothing more.
	ErrFull = errors.New("the inbox is full")
)

// Options of an inbox. Zero values are the defaults.
type Options struct {
	MaxBytes     int64            // of one document: 50 MiB
	MaxDocuments int              // 100,000
	MaxTotal     int64            // bytes of all documents: 20 GiB
	Now          func() time.Time // time.Now
}

func (o Options) filled() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 50 << 20
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 100_000
	}
	if o.MaxTotal == 0 {
		o.MaxTotal = 20 << 30
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Change says what a Put did.
type Change int

// The changes.
const (
	Same    Change = iota // the inbox held just this
	Created               // the id is new
	Updated               // content, access list or description are others
)

// Condition must hold for a change to be made. The zero Condition always does.
type Condition struct {
	Absent bool     // the inbox does not hold the document
	Any    bool     // it does
	Tags   []string // and its tag is one of these; none: whatever its tag
}

func (c Condition) holds(tag string, held bool) bool {
	switch {
	case c.Absent:
		return !held
	case len(c.Tags) > 0:
		return held && slices.Contains(c.Tags, tag)
	}
	return held || !c.Any
}

// Inbox is an open inbox, safe for concurrent use.
type Inbox struct {
	root    string
	folder  folder
	o       Options
	damaged []string
	changed chan struct{} // holds one: notices has something new

	mu      sync.RWMutex // written under: names in the folder, and all below
	entries map[string]Entry
	total   int64
	owing   bool            // a rename or removal may not be on the disk yet
	notices map[string]bool // ids that changed and nobody was told of, and whether that is urgent
}

// Open opens the inbox in the directory and makes it if it is absent. root
// begins the paths of its documents, for example "push:". One process uses the
// directory at a time.
func Open(dir, root string, o Options) (*Inbox, error) {
	f, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	return open(f, root, o)
}

func open(f folder, root string, o Options) (*Inbox, error) {
	b := &Inbox{root: root, folder: f, o: o.filled(), changed: make(chan struct{}, 1), entries: map[string]Entry{}, notices: map[string]bool{}}
	names, err := f.names()
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, unfinished):
			err = f.remove(name)
		case strings.HasSuffix(name, ending):
			err = b.load(name)
		}
		if err != nil {
			return nil, fmt.Errorf("opening the inbox: %w", err)
		}
	}
	// What was found may be a rename that a crash could still undo.
	if err := f.sync(); err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	return b, nil
}

// load takes in what the file says, or sets it aside.
func (b *Inbox) load(name string) error {
	e, err := b.readEntry(name)
	if err == nil && fileOf(e.ID) != name {
		err = errDamaged
	}
	if errors.Is(err, errDamaged) {
		b.damaged = append(b.damaged, name+aside)
		return b.folder.rename(name, name+aside)
	}
	if err != nil {
		return err
	}
	b.entries[e.ID] = e
	b.total += e.Size
	return nil
}

// Damaged names the files that Open set aside. Whose they were is not known:
// the sender has to send again.
func (b *Inbox) Damaged() []string { return slices.Clone(b.damaged) }

// Watch calls changed with the path of each document that changes, until ctx
// is done. It is urgent if only who may read it changes, or if it is gone: that
// is quickly done. One Watch at a time is told.
func (b *Inbox) Watch(ctx context.Context, changed func(path string, urgent bool)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.changed:
		}
		for id, urgent := range b.taken() {
			changed(b.PathOf(id), urgent)
		}
	}
}

// taken takes the notices.
func (b *Inbox) taken() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.notices
	b.notices = map[string]bool{}
	return all
}

// tell notes a change. The caller holds mu.
func (b *Inbox) tell(id string, urgent bool) {
	if before, known := b.notices[id]; known {
		urgent = urgent && before // content has to be taken in as well
	}
	b.notices[id] = urgent
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Get returns what is known of a document.
func (b *Inbox) Get(id string) (Entry, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.entries[id]
	return e, ok
}

// List returns at most n documents whose ids begin with prefix and come behind
// after, in the order of their ids.
func (b *Inbox) List(prefix, after string, n int) []Entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var ids []string
	for id := range maps.Keys(b.entries) {
		if strings.HasPrefix(id, prefix) && id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	out := make([]Entry, 0, min(n, len(ids)))
	for _, id := range ids[:min(n, len(ids))] {
		out = append(out, b.entries[id])
	}
	return out
}

// Put takes a document. What is wrong with what was sent is a *Refusal,
// ErrTooLarge, ErrFull or ErrChanged; nothing was changed then. When it returns
// without an error the document is durable.
func (b *Inbox) Put(ctx context.Context, m Meta, content io.Reader, when Condition) (Entry, Change, error) {
	m, err := m.checked()
	if err != nil {
		return Entry{}, Same, err
	}
	if err := b.room(m.ID, 0); err != nil {
		return Entry{}, Same, err
	}
	t, err := b.folder.create()
	if err != nil {
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	}
	e, change, err := b.put(ctx, t, m, content, when)
	if err != nil || change == Same {
		// Left-overs are removed at the next opening.
		_ = t.Close()
		_ = b.folder.remove(t.Name())
	}
	return e, change, err
}

func (b *Inbox) put(ctx context.Context, t temp, m Meta, content io.Reader, when Condition) (Entry, Change, error) {
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(t, sum), io.LimitReader(interruptible{ctx, content}, b.o.MaxBytes+1))
	switch {
	case b.Fits(size) != nil:
		return Entry{}, Same, b.Fits(size)
	case err != nil:
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	case size == 0:
		return Entry{}, Same, &Refusal{"content", "is empty"}
	}
	e := Entry{Meta: m, Size: size, Sum: hex.EncodeToString(sum.Sum(nil)), Received: b.o.Now().UTC().Truncate(time.Millisecond)}
	if old, same, err := b.held(e, when); same || err != nil {
		return old, Same, err
	}
	if _, err = t.Write(e.encode()); err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	}
	return b.place(t.Name(), e, when)
}

// Fits says that a document of so many bytes is not too large.
func (b *Inbox) Fits(size int64) error {
	if size > b.o.MaxBytes {
		return fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, b.o.MaxBytes)
	}
	return nil
}

// held reports that the inbox has just this already, durably.
func (b *Inbox) held(e Entry, when Condition) (Entry, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, held := b.entries[e.ID]
	if !when.holds(old.Tag(), held) {
		return Entry{}, false, ErrChanged
	}
	return old, held && old.Tag() == e.Tag(), b.settle()
}

// place puts a finished file in the place of the document.
func (b *Inbox) place(name string, e Entry, when Condition) (Entry, Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, held := b.entries[e.ID]
	if !when.holds(old.Tag(), held) {
		return Entry{}, Same, ErrChanged
	}
	if err := errors.Join(b.apart(e.Meta), b.roomFor(e.ID, e.Size)); err != nil {
		return Entry{}, Same, err
	}
	if err := b.folder.rename(name, fileOf(e.ID)); err != nil {
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	}
	b.entries[e.ID], b.total, b.owing = e, b.total+e.Size-old.Size, true
	b.tell(e.ID, held && old.Revision() == e.Revision())
	change := Created
	if held {
		change = Updated
	}
	return e, change, b.settle()
}

// room reports whether one more document, or so many bytes, would be too much.
func (b *Inbox) room(id string, size int64) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.roomFor(id, size)
}

// roomFor is room for a caller that holds mu.
func (b *Inbox) roomFor(id string, size int64) error {
	old, held := b.entries[id]
	switch {
	case !held && len(b.entries) >= b.o.MaxDocuments:
		return fmt.Errorf("%w: it holds %d documents", ErrFull, len(b.entries))
	case size > old.Size && b.total+size-old.Size > b.o.MaxTotal:
		return fmt.Errorf("%w: it holds %d bytes of %d", ErrFull, b.total, b.o.MaxTotal)
	}
	return nil
}

// settle makes names durable. After a failure the next change tries again, so
// that nothing is called done that a crash could undo. The caller holds mu.
func (b *Inbox) settle() error {
	if !b.owing {
		return nil
	}
	if err := b.folder.sync(); err != nil {
		return fmt.Errorf("writing the inbox: %w", err)
	}
	b.owing = false
	return nil
}

// Delete drops a document, durably: ErrNotFound if the inbox does not hold it,
// ErrChanged if the condition does not hold.
func (b *Inbox) Delete(id string, when Condition) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, held := b.entries[id]
	switch {
	case !when.holds(old.Tag(), held):
		return ErrChanged
	case !held:
		return errors.Join(ErrNotFound, b.settle())
	}
	if err := b.folder.remove(fileOf(id)); err != nil {
		return fmt.Errorf("dropping a document: %w", err)
	}
	delete(b.entries, id)
	b.total, b.owing = b.total-old.Size, true
	b.tell(id, true)
	return b.settle()
}

// Drop is Delete for whoever does not care whether it was there.
func (b *Inbox) Drop(id string) error {
	if err := b.Delete(id, Condition{}); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// interruptible ends reading at the end of ctx.
type interruptible struct {
	ctx context.Context //nolint:containedctx // it lives as long as the one copy
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
