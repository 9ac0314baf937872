package bot

import (
	"context"
	"errors"
	"fmt"

	"footnote/acl"
	"footnote/retrieval"
)

// Opened is a cited place as it stands in its revision.
type Opened struct {
	Document   retrieval.Document
	Quote      string // characters from to to of the canonical text
	From, To   int    // code points
	Superseded bool   // the document has a newer revision: Current
	Current    retrieval.Document
}

// Open shows a cited place to a person. rev "" is the current revision. What
// is absent and what may not be read give one and the same *UserError.
//
// SECURITY: access is decided anew, by the same rule as in a search.
func (b *Bot) Open(ctx context.Context, asker acl.Identity, audience acl.Audience, id retrieval.DocumentID, rev retrieval.Revision, from, to int) (Opened, error) {
	reader, err := b.c.Current(ctx)
	if err != nil {
		return Opened{}, fmt.Errorf("opening the index: %w", err)
	}
	grant := acl.NewGrant(asker, audience)
	current, err := reader.Document(ctx, grant, id, "")
	if err != nil {
		return Opened{}, notAvailable(err)
	}
	doc := current
	if rev != "" && rev != current.Revision {
		if doc, err = reader.Document(ctx, grant, id, rev); err != nil {
			return Opened{}, notAvailable(err)
		}
	}
	text := []rune(doc.Canonical)
	if from < 0 || to < from || to > len(text) {
		return Opened{}, &UserError{Text: fmt.Sprintf("The document has %d characters; there is no place %d to %d in it.", len(text), from, to)}
	}
	return Opened{Document: doc, Quote: string(text[from:to]), From: from, To: to, Superseded: doc.Revision != current.Revision, Current: current}, nil
}

func notAvailable(err error) error {
	if errors.Is(err, retrieval.ErrNotFound) {
		return &UserError{Text: "This document is not available to you here.", Err: retrieval.ErrNotFound}
	}
	return fmt.Errorf("opening a document: %w", err)
}
