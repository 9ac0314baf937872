package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"footnote/retrieval/extract"
	"footnote/retrieval/ingest"
)

var _ ingest.Bounding = (*Inbox)(nil)

// Root begins every path.
func (b *Inbox) Root() string { return b.root }

// PathOf is the document's path to ingestion.
func (b *Inbox) PathOf(id string) string { return b.root + "/" + id }

// IDOf is the id that a path of this inbox stands for.
func (b *Inbox) IDOf(path string) (id string, ok bool) { return strings.CutPrefix(path, b.root+"/") }

// NameAt is the name of the document at the path, which says the format; "" if
// the inbox does not hold it.
func (b *Inbox) NameAt(path string) string {
	id, _ := b.IDOf(path)
	e, _ := b.Get(id)
	return e.Name
}

// entryAt is the document at the path, or the mail or archive in which the path
// lies. The caller holds mu.
func (b *Inbox) entryAt(path string) (Entry, bool) {
	id, ok := b.IDOf(path)
	if !ok {
		return Entry{}, false
	}
	if e, held := b.entries[id]; held {
		return e, true
	}
	return b.above(id)
}

// above is the mail or archive in which a path would lie that is the id. The
// caller holds mu.
func (b *Inbox) above(id string) (Entry, bool) {
	for at := range len(id) {
		if id[at] != '/' {
			continue
		}
		if e, held := b.entries[id[:at]]; held && extract.Holds(e.Name) {
			return e, true
		}
	}
	return Entry{}, false
}

// apart refuses it where one path would be a document and lie in another.
//
// SECURITY: otherwise what lies in an archive could take the place, and with it
// the readers, of a document that was taken back. The caller holds mu.
func (b *Inbox) apart(m Meta) error {
	if e, within := b.above(m.ID); within {
		return &Refusal{"id", fmt.Sprintf("lies in %s, which is a mail or an archive: what that holds has such paths", e.ID)}
	}
	if !extract.Holds(m.Name) {
		return nil
	}
	for id := range b.entries {
		if strings.HasPrefix(id, m.ID+"/") {
			return &Refusal{"id", "has documents below it, and is a mail or an archive: what that holds has such paths"}
		}
	}
	return nil
}

// BoundsAccess says that no front matter widens an access list of this source.
func (b *Inbox) BoundsAccess(string) bool { return true }

// Items lists all documents.
func (b *Inbox) Items(ctx context.Context) ([]ingest.Item, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	items := make([]ingest.Item, 0, len(b.entries))
	for id, e := range b.entries {
		items = append(items, ingest.Item{Path: b.PathOf(id), Access: e.List(), Bytes: e.Size, Mark: string(e.Revision())})
	}
	slices.SortFunc(items, func(x, y ingest.Item) int { return strings.Compare(x.Path, y.Path) })
	return items, ctx.Err()
}

// Read loads a document.
func (b *Inbox) Read(ctx context.Context, path string) (ingest.Content, error) {
	id, ok := b.IDOf(path)
	if !ok {
		return ingest.Content{}, &ingest.Fault{Reason: "it is no document of this inbox", Retryable: true}
	}
	e, data, err := b.readAll(fileOf(id))
	switch {
	case ctx.Err() != nil:
		return ingest.Content{}, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return ingest.Content{}, &ingest.Fault{Reason: "it was taken back before it could be read", Retryable: true}
	case errors.Is(err, errDamaged):
		return ingest.Content{}, &ingest.Fault{Reason: "its stored bytes are damaged; send it again", Retryable: true}
	case err != nil:
		return ingest.Content{}, &ingest.Fault{Reason: "its stored bytes could not be read", Retryable: true, Cause: err}
	}
	return ingest.Content{
		Data: data, Modified: e.Modified, Name: e.Name, Title: e.Title, Link: e.Link, Revision: e.Revision(),
	}, nil
}

// Gone reports that the inbox does not hold the document at the path.
func (b *Inbox) Gone(path string) bool {
	id, ok := b.IDOf(path)
	if !ok {
		return false
	}
	_, held := b.Get(id)
	return !held
}
