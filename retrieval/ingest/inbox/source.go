package inbox

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"footnote/retrieval/ingest"
)

var _ ingest.Bounding = (*Inbox)(nil)

// Root begins every path.
func (b *Inbox) Root() string { return b.root }

// PathOf is the document's path to ingestion.
func (b *Inbox) PathOf(id string) string { return b.root + "/" + id }

// IDOf is the id that a path of this inbox stands for.
func (b *Inbox) IDOf(path string) (id string, ok bool) { return strings.CutPrefix(path, b.root+"/") }

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
