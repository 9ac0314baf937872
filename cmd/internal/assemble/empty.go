package assemble

import (
	"context"

	"footnote/acl"
	"footnote/retrieval"
)

// empty is the index before the first document is in it: every question is
// refused for want of documents.
type empty struct{ manifest retrieval.Manifest }

var _ retrieval.Reader = empty{}

func (e empty) Manifest() retrieval.Manifest { return e.manifest }

func (empty) Search(context.Context, acl.Grant, retrieval.Query) (retrieval.Candidates, error) {
	return retrieval.Candidates{}, nil
}

func (empty) Passages(context.Context, acl.Grant, []retrieval.ChunkID) ([]retrieval.Passage, error) {
	return nil, nil
}

func (empty) States(_ context.Context, _ acl.Grant, ids []retrieval.ChunkID) ([][]byte, error) {
	return make([][]byte, len(ids)), nil
}

func (empty) Document(context.Context, acl.Grant, retrieval.DocumentID, retrieval.Revision) (retrieval.Document, error) {
	return retrieval.Document{}, retrieval.ErrNotFound
}

func (empty) Documents(context.Context, acl.Grant) ([]retrieval.DocumentInfo, error) {
	return nil, nil
}
