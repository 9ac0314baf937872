// Package shelf takes in documents that come from a chat: files that people
// post, and threads of channels that are followed.
//
// Its one idea: a platform knows who posts what and where, and the index knows
// what became of it; between them lies a Keeper, which takes a document with its
// access list and says how it stands. Neither side knows the other.
//
//	Rules     who may add files, which, and how much
//	Asks      whether a text says "add this"
//	Keeper    keeps documents, implemented over the inbox of ingestion
//	Notices   messages in a chat that say how a document stands, kept up to date
//
// SECURITY: nobody may add files unless the configuration names them. A
// document without an access list is not taken.
//
// Format: notices.json in the data directory, a JSON array of Notice, replaced
// whole with each change and made durable; or whatever processes share (Shared).
//
// It does not download anything, post anything or read formats.
package shelf

import (
	"context"
	"fmt"
	"io"
	"time"

	"footnote/acl"
)

// Document is what is known of a document that comes from a chat.
type Document struct {
	ID       string    // of the platform's own ids, in parts between slashes
	Name     string    // of the file: its ending names the format
	Title    string    // "" the document's own
	Link     string    // opens the message
	Author   string    // for operators, never shown to others
	Mark     string    // the platform's note of the version; changes nothing that is shown
	Modified time.Time // zero: not known
	Access   []acl.Principal
}

// Keeper keeps documents durably and hands them to ingestion. It is safe for
// concurrent use.
type Keeper interface {
	// Put takes a document or replaces it; the same again does nothing. What is
	// wrong with it is a *bot.UserError, and nothing was changed then. Whoever a
	// narrower list leaves out finds it no more when Put returns.
	Put(ctx context.Context, d Document, content io.Reader) error
	// Remove takes documents back; those that are not there are no error. If now
	// is set nobody finds them when it returns. Otherwise they go with the next
	// pass of ingestion, which asks the operator if they are too many.
	Remove(ctx context.Context, now bool, ids ...string) error
	// List returns the documents whose ids begin with prefix, ordered by id. An
	// error says that they are not known: never that there are none.
	List(ctx context.Context, prefix string) ([]Document, error)
	// State says how what was put last stands.
	State(id string) State
}

// State is how a document stands. The zero State is under way.
type State struct {
	Settled   bool // nothing is under way
	Published bool
	Chunks    int    // of a published one
	Gone      bool   // taken back
	Reason    string // why it failed or was refused, and what to do
	Retryable bool   // it is tried again without anybody's doing
}

// Taking is what is said of a document before it is settled.
func Taking(name string) string { return "Taking “" + name + "” in…" }

// Failing is what is said of a document that was not taken.
func Failing(name, reason string) string { return "“" + name + "” failed: " + reason }

// Text says how a document stands, in the words of a chat.
func (s State) Text(name string) string {
	switch {
	case !s.Settled:
		return Taking(name)
	case s.Gone:
		return "“" + name + "” was removed again."
	case s.Published && s.Chunks == 1:
		return "“" + name + "” is published: 1 chunk; ask me about it."
	case s.Published:
		return fmt.Sprintf("“%s” is published: %d chunks; ask me about it.", name, s.Chunks)
	case s.Retryable:
		return Failing(name, s.Reason) + "\nI try again by myself."
	}
	return Failing(name, s.Reason) + "\nPost a corrected file to try again."
}
