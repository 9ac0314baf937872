package inbox

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

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
// the inbox did not hold it when it was last listed.
func (b *Inbox) NameAt(path string) string {
	id, _ := b.IDOf(path)
	e, _ := b.keep.Known(id)
	return e.Name
}

// BoundsAccess says that no front matter widens an access list of this source.
func (b *Inbox) BoundsAccess(string) bool { return true }

// Items lists all documents.
func (b *Inbox) Items(ctx context.Context) ([]ingest.Item, error) {
	var items []ingest.Item
	err := b.keep.View(ctx, func(t *Table) {
		items = make([]ingest.Item, 0, len(t.entries))
		for id, e := range t.entries {
			items = append(items, ingest.Item{Path: b.PathOf(id), Access: e.List(), Bytes: e.Size, Mark: string(e.Revision())})
		}
	})
	slices.SortFunc(items, func(x, y ingest.Item) int { return strings.Compare(x.Path, y.Path) })
	return items, err
}

// Read loads a document.
func (b *Inbox) Read(ctx context.Context, path string) (ingest.Content, error) {
	id, ok := b.IDOf(path)
	if !ok {
		return ingest.Content{}, &ingest.Fault{Reason: "it is no document of this inbox", Retryable: true}
	}
	e, data, err := b.keep.Read(ctx, id)
	switch {
	case ctx.Err() != nil:
		return ingest.Content{}, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return ingest.Content{}, &ingest.Fault{Reason: "it was taken back before it could be read", Retryable: true}
	case errors.Is(err, ErrDamaged):
		return ingest.Content{}, &ingest.Fault{Reason: "its stored bytes are damaged; send it again", Retryable: true}
	case err != nil:
		return ingest.Content{}, &ingest.Fault{Reason: "its stored bytes could not be read", Retryable: true, Cause: err}
	}
	return ingest.Content{
		Data: data, Modified: e.Modified, Name: e.Name, Title: e.Title, Link: e.Link, Revision: e.Revision(),
	}, nil
}

// gonePatience is how long Gone asks. It is no call that can be given up.
const gonePatience = 5 * time.Second

// Gone reports that the inbox does not hold the document at the path.
func (b *Inbox) Gone(path string) bool {
	id, ok := b.IDOf(path)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), gonePatience)
	defer cancel()
	_, held, err := b.Get(ctx, id)
	return err == nil && !held
}
