package ingest

import (
	"context"
	"fmt"
	"time"

	"footnote/acl"
	"footnote/retrieval"
)

// Source offers documents by path. It is safe for concurrent use.
type Source interface {
	// Root names the source. Every path it lists is Root or lies below it.
	Root() string
	// Items lists what is there now, ordered by path, each path once. A fault
	// at a folder's path stands for all below it. An error means that the
	// source as a whole could not be listed: nothing is then ingested or
	// removed.
	Items(ctx context.Context) ([]Item, error)
	// Read loads one document by a path of Items, or of an earlier listing of
	// any source of this kind. A *Fault says why it cannot.
	Read(ctx context.Context, path string) (Content, error)
	// Gone reports that nothing lies at the path any more. Doubt is false.
	Gone(path string) bool
}

// Item is one document of a listing, or the fault that hides it.
type Item struct {
	Path   string   // absolute and clean
	Access acl.List // what the source's rules give; zero: no rule speaks
	Fault  *Fault   // nil: the document can be read
	Bytes  int64    // its size; 0: not known
	// Mark changes whenever the content may have changed, so that what was
	// read under the same mark need not be read again; "": it must be read.
	Mark string

	// takenOver marks a document of the current generation that the source
	// does not list and a new generation must not lose.
	takenOver retrieval.DocumentID
}

// Content is a document as it was read.
type Content struct {
	Data     []byte
	Modified time.Time

	// What only a source knows that got the document from elsewhere.
	Name     string             // its ending names the format; "" the path's
	Title    string             // "" the document's own
	Link     string             // opens the original, "" there is none
	Revision retrieval.Revision // changes with all of the above; "" RevisionOf(Data)
}

func (c Content) revision() retrieval.Revision {
	if c.Revision != "" {
		return c.Revision
	}
	return RevisionOf(c.Data)
}

// Bounding is a Source that knows of documents whose access list bounds what
// their front matter may say: it may name fewer than the list, never others.
type Bounding interface {
	Source
	// BoundsAccess reports that the document at the path is one of them.
	BoundsAccess(path string) bool
}

// Fault says why a document, or a folder and all below it, is not taken in.
type Fault struct {
	Refused   bool   // access is not settled; nothing of it may be shown
	Reason    string // for the operator: what is wrong and what to do
	Retryable bool   // the same bytes may succeed later
	Cause     error  // nil if the reason says all
}

// Error is the reason with its cause.
func (f *Fault) Error() string {
	if f.Cause == nil {
		return f.Reason
	}
	return fmt.Sprintf("%s: %v", f.Reason, f.Cause)
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }
