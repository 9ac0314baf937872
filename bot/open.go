package bot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

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

// Surroundings is the text before and after a place, and whether there is more.
type Surroundings struct {
	Before, After       string
	CutBefore, CutAfter bool
}

// Around is up to n code points on either side of the place.
//
// SECURITY: front matter is left out, since it names who else may read.
func (o Opened) Around(n int) Surroundings {
	text := []rune(o.Document.Canonical)
	begin := utf8.RuneCountInString(o.Document.Canonical[:o.text()])
	from, to := max(0, min(o.From, len(text))), max(0, min(o.To, len(text)))
	first, last := max(begin, from-n), min(len(text), to+n)
	return Surroundings{string(text[first:from]), string(text[to:last]), first > begin, last < len(text)}
}

// text is the byte after the front matter, 0 if the place is within it.
func (o Opened) text() int {
	end := afterFront(o.Document.Canonical)
	if utf8.RuneCountInString(o.Document.Canonical[:end]) > o.From {
		return 0
	}
	return end
}

var (
	yamlFront = regexp.MustCompile(`\A\s*---[ \t]*\n(?:(?:#.*|[ \t]*)\n)*["']?[\w.-]+["']?[ \t]*:(?s:.*?)\n(?:---|\.\.\.)[ \t]*(?:\n\s*|\z)`)
	tomlFront = regexp.MustCompile(`\A\s*\+\+\+[ \t]*\n(?s:.*?)\n\+\+\+[ \t]*(?:\n\s*|\z)`)
)

// afterFront is the byte at which the text after front matter begins.
func afterFront(text string) int {
	for _, front := range []*regexp.Regexp{yamlFront, tomlFront} {
		if at := front.FindStringIndex(text); at != nil {
			return at[1]
		}
	}
	return 0
}

func notAvailable(err error) error {
	if errors.Is(err, retrieval.ErrNotFound) {
		return &UserError{Text: "This document is not available to you here.", Err: retrieval.ErrNotFound}
	}
	return fmt.Errorf("opening a document: %w", err)
}
