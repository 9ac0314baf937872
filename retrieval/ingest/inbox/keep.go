package inbox

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"footnote/retrieval/extract"
)

// Keep is where the documents of an inbox lie: in a directory of one process,
// or on a server that several share. It is safe for concurrent use.
type Keep interface {
	// View calls look with all that is held now. look keeps and changes nothing
	// of it.
	View(ctx context.Context, look func(*Table)) error
	// Find returns those of the documents that are held now, by id.
	Find(ctx context.Context, ids ...string) (map[string]Entry, error)
	// Known is a document as of the last View. It asks nobody.
	Known(id string) (Entry, bool)
	// Read returns a document whole, list and content together: fs.ErrNotExist if
	// it is not held, ErrDamaged if its bytes cannot be trusted.
	Read(ctx context.Context, id string) (Entry, []byte, error)

	// Begin begins to take content.
	Begin(ctx context.Context) (Draft, error)
	// Change makes one change, in one step for everybody, and returns when that,
	// and all that decide saw, is durable. decide is called with all that is held
	// now, once or more often; what it gives last is done: nothing for the zero
	// Step, and nothing with its error, which Change returns as it is.
	Change(ctx context.Context, decide func(*Table) (Step, error)) error

	// Still calls act with those of the documents that are held. What act
	// changes in an index with the context that it is given comes in force only
	// while they are as it was told. act is called again if they are not.
	Still(ctx context.Context, ids []string, act func(ctx context.Context, held map[string]Entry) error) error
	// Watch tells of each document that changes, whoever changes it, until ctx is
	// done. It is urgent if its revision stays, or if it is gone.
	Watch(ctx context.Context, told func(id string, urgent bool)) error
	// Damaged names what is stored and cannot be read.
	Damaged() []string
}

// Step is a change: a document that is put in place with its sealed draft, or
// the id of one that is dropped.
type Step struct {
	Put   *Entry
	Draft Draft
	Drop  string
}

// Draft is the content of a document that is not in its place. Nobody sees it,
// and it goes by itself if the process ends.
type Draft interface {
	io.Writer
	// Seal says that all of the content was written, and whose it is.
	Seal(ctx context.Context, e Entry) error
	// Drop gives up a draft that was not put in place.
	Drop()
}

// Table is what an inbox holds.
type Table struct {
	entries map[string]Entry
	total   int64 // bytes
}

// NewTable makes an empty one.
func NewTable() *Table { return &Table{entries: map[string]Entry{}} }

// Get is a document that is held.
func (t *Table) Get(id string) (Entry, bool) {
	e, held := t.entries[id]
	return e, held
}

// Put takes a document in, in the place of what its id stood for.
func (t *Table) Put(e Entry) {
	t.Drop(e.ID)
	t.entries[e.ID] = e
	t.total += e.Size
}

// Drop takes a document out.
func (t *Table) Drop(id string) {
	t.total -= t.entries[id].Size
	delete(t.entries, id)
}

// IDs are those of all documents.
func (t *Table) IDs() []string { return slices.Collect(maps.Keys(t.entries)) }

// room says whether one more document, or so many bytes of it, would be too
// much.
func (t *Table) room(o Options, id string, size int64) error {
	old, held := t.entries[id]
	switch {
	case !held && len(t.entries) >= o.MaxDocuments:
		return fmt.Errorf("%w: it holds %d documents", ErrFull, len(t.entries))
	case size > old.Size && t.total+size-old.Size > o.MaxTotal:
		return fmt.Errorf("%w: it holds %d bytes of %d", ErrFull, t.total, o.MaxTotal)
	}
	return nil
}

// apart refuses it where one path would be a document and lie in another.
//
// SECURITY: otherwise what lies in an archive could take the place, and with it
// the readers, of a document that was taken back.
func (t *Table) apart(m Meta) error {
	if e, within := at(t.entries, m.ID); within && e.ID != m.ID {
		return &Refusal{"id", fmt.Sprintf("lies in %s, which is a mail or an archive: what that holds has such paths", e.ID)}
	}
	if !extract.Holds(m.Name) {
		return nil
	}
	for id := range t.entries {
		if strings.HasPrefix(id, m.ID+"/") {
			return &Refusal{"id", "has documents below it, and is a mail or an archive: what that holds has such paths"}
		}
	}
	return nil
}

// at is the document with the id, or the mail or archive in which a path would
// lie that is the id.
func at(held map[string]Entry, id string) (Entry, bool) {
	for _, c := range candidates(id) {
		if e, is := held[c]; is && (c == id || extract.Holds(e.Name)) {
			return e, true
		}
	}
	return Entry{}, false
}

// candidates are the ids of the documents that a path can be of, or lie in.
func candidates(id string) []string {
	var out []string
	if len(id) <= MaxID {
		out = append(out, id)
	}
	for i := range min(len(id), MaxID+1) {
		if id[i] == '/' {
			out = append(out, id[:i])
		}
	}
	return out
}

// Notices are the documents that changed and of which nobody was told. The zero
// value is not usable.
type Notices struct {
	Wake chan struct{} // holds one: there is something new

	mu  sync.Mutex
	all map[string]bool // by id: whether it is urgent
}

// NewNotices makes an empty list.
func NewNotices() *Notices {
	return &Notices{Wake: make(chan struct{}, 1), all: map[string]bool{}}
}

// Changed notes what became of a document; the zero Entry is none.
func (n *Notices) Changed(id string, old, now Entry) {
	urgent := now.ID == "" || old.ID != "" && old.Revision() == now.Revision()
	n.mu.Lock()
	defer n.mu.Unlock()
	if before, known := n.all[id]; known {
		urgent = urgent && before // content has to be taken in as well
	}
	n.all[id] = urgent
	select {
	case n.Wake <- struct{}{}:
	default:
	}
}

// Tell takes all notices and tells them.
func (n *Notices) Tell(told func(id string, urgent bool)) {
	n.mu.Lock()
	all := n.all
	n.all = map[string]bool{}
	n.mu.Unlock()
	for id, urgent := range all {
		told(id, urgent)
	}
}
