// Package inbox keeps documents that have no folder of their own: those that
// connectors push, and files that people hand over in a chat. It offers them to
// ingestion as a source.
//
// Its one idea: a document and all that is known of it, its access list first,
// is changed in one step. So whatever ends the process leaves all of the old or
// all of the new, never bytes under the access list of others.
//
//	inbox.go   Inbox: what may be put, replaced and taken back
//	keep.go    Keep: where the documents lie
//	folder.go  a Keep in a directory, of one process
//	source.go  the inbox as a source of ingestion
//	guard.go   what the inbox says, in force in the index
//
// A Keep that processes share is package redisinbox. Package inboxtest holds the
// suite that both pass.
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
// Format: in a directory, one file a document, named by the hash of its id, see
// file.go. What cannot be read any more is set aside under the same name with
// .damaged behind.
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
	"slices"
	"strings"
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
	// ErrDamaged says that what is stored of a document cannot be read.
	ErrDamaged = errors.New("the stored document is damaged")
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
	root string
	keep Keep
	o    Options
}

// New makes an inbox of what is kept. root begins the paths of its documents,
// for example "push:".
func New(k Keep, root string, o Options) *Inbox { return &Inbox{root: root, keep: k, o: o.filled()} }

// Open opens the inbox in the directory and makes it if it is absent. One
// process uses the directory at a time.
func Open(dir, root string, o Options) (*Inbox, error) {
	f, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	return open(f, root, o)
}

func open(f folder, root string, o Options) (*Inbox, error) {
	k, err := openFiles(f)
	if err != nil {
		return nil, fmt.Errorf("opening the inbox: %w", err)
	}
	return New(k, root, o), nil
}

// Damaged names what is stored and cannot be read. Whose it was may not be
// known: the sender has to send again.
func (b *Inbox) Damaged() []string { return b.keep.Damaged() }

// Watch calls changed with the path of each document that changes, until ctx
// is done. It is urgent if only who may read it changes, or if it is gone: that
// is quickly done. One Watch at a time is told.
func (b *Inbox) Watch(ctx context.Context, changed func(path string, urgent bool)) error {
	return b.keep.Watch(ctx, func(id string, urgent bool) { changed(b.PathOf(id), urgent) })
}

// Get returns what is known of a document.
func (b *Inbox) Get(ctx context.Context, id string) (Entry, bool, error) {
	found, err := b.keep.Find(ctx, id)
	if err != nil {
		return Entry{}, false, fmt.Errorf("looking into the inbox: %w", err)
	}
	e, held := found[id]
	return e, held, nil
}

// List returns at most n documents whose ids begin with prefix and come behind
// after, in the order of their ids.
func (b *Inbox) List(ctx context.Context, prefix, after string, n int) ([]Entry, error) {
	var out []Entry
	err := b.keep.View(ctx, func(t *Table) {
		var ids []string
		for id := range t.entries {
			if strings.HasPrefix(id, prefix) && id > after {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range ids[:min(n, len(ids))] {
			out = append(out, t.entries[id])
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the inbox: %w", err)
	}
	return out, nil
}

// Put takes a document. What is wrong with what was sent is a *Refusal,
// ErrTooLarge, ErrFull or ErrChanged; nothing was changed then. When it returns
// without an error the document is durable.
func (b *Inbox) Put(ctx context.Context, m Meta, content io.Reader, when Condition) (Entry, Change, error) {
	m, err := m.checked()
	if err != nil {
		return Entry{}, Same, err
	}
	if err := b.room(ctx, m.ID); err != nil {
		return Entry{}, Same, err
	}
	d, err := b.keep.Begin(ctx)
	if err != nil {
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	}
	e, change, err := b.put(ctx, d, m, content, when)
	if err != nil || change == Same {
		d.Drop()
	}
	return e, change, err
}

// room reports whether one more document would be too much.
func (b *Inbox) room(ctx context.Context, id string) error {
	var full error
	if err := b.keep.View(ctx, func(t *Table) { full = t.room(b.o, id, 0) }); err != nil {
		return fmt.Errorf("taking a document: %w", err)
	}
	return full
}

func (b *Inbox) put(ctx context.Context, d Draft, m Meta, content io.Reader, when Condition) (Entry, Change, error) {
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(d, sum), io.LimitReader(interruptible{ctx, content}, b.o.MaxBytes+1))
	switch {
	case b.Fits(size) != nil:
		return Entry{}, Same, b.Fits(size)
	case err != nil:
		return Entry{}, Same, fmt.Errorf("taking a document: %w", err)
	case size == 0:
		return Entry{}, Same, &Refusal{"content", "is empty"}
	}
	e := Entry{Meta: m, Size: size, Sum: hex.EncodeToString(sum.Sum(nil)), Received: b.o.Now().UTC().Truncate(time.Millisecond)}
	for sealed := false; ; {
		same, err := b.holds(ctx, e, when)
		if err == nil && !same && !sealed {
			sealed, err = true, d.Seal(ctx, e)
		}
		if err != nil {
			return Entry{}, Same, err
		}
		if kept, change, err := b.place(ctx, e, d, sealed, when); !errors.Is(err, errAgain) {
			return kept, change, err
		}
	}
}

// errAgain says that the inbox held just this, and does not any more.
var errAgain = errors.New("the document was changed meanwhile")

// Fits says that a document of so many bytes is not too large.
func (b *Inbox) Fits(size int64) error {
	if size > b.o.MaxBytes {
		return fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, b.o.MaxBytes)
	}
	return nil
}

// holds reports that the inbox has just this already.
func (b *Inbox) holds(ctx context.Context, e Entry, when Condition) (same bool, err error) {
	looked := b.keep.View(ctx, func(t *Table) {
		old, held := t.Get(e.ID)
		if same = held && old.Tag() == e.Tag(); !when.holds(old.Tag(), held) {
			err = ErrChanged
		}
	})
	if looked != nil {
		return false, fmt.Errorf("taking a document: %w", looked)
	}
	return same, err
}

// place puts a draft in the place of the document, durably. Where that is there
// already, what was there is made durable.
func (b *Inbox) place(ctx context.Context, e Entry, d Draft, sealed bool, when Condition) (kept Entry, change Change, err error) {
	err = b.keep.Change(ctx, func(t *Table) (Step, error) {
		old, held := t.Get(e.ID)
		if !when.holds(old.Tag(), held) {
			return Step{}, ErrChanged
		}
		if held && old.Tag() == e.Tag() {
			kept, change = old, Same
			return Step{}, nil
		}
		if !sealed {
			return Step{}, errAgain
		}
		if kept, change = e, Created; held {
			change = Updated
		}
		return Step{Put: &e, Draft: d}, errors.Join(t.apart(e.Meta), t.room(b.o, e.ID, e.Size))
	})
	if err != nil {
		return Entry{}, Same, err
	}
	return kept, change, nil
}

// Delete drops a document, durably: ErrNotFound if the inbox does not hold it,
// ErrChanged if the condition does not hold.
func (b *Inbox) Delete(ctx context.Context, id string, when Condition) error {
	missing := false
	err := b.keep.Change(ctx, func(t *Table) (Step, error) {
		old, held := t.Get(id)
		if missing = !held; !when.holds(old.Tag(), held) {
			return Step{}, ErrChanged
		}
		if missing {
			return Step{}, nil
		}
		return Step{Drop: id}, nil
	})
	if err == nil && missing {
		return ErrNotFound
	}
	return err
}

// Drop is Delete for whoever does not care whether it was there.
func (b *Inbox) Drop(ctx context.Context, id string) error {
	if err := b.Delete(ctx, id, Condition{}); !errors.Is(err, ErrNotFound) {
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
