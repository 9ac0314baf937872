package ingest

import (
	"fmt"
	"slices"
	"strings"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// Event tells how a run goes on. Done of Total documents are settled.
type Event struct {
	ID     retrieval.DocumentID // "" for what is not a document
	Path   string
	State  catalog.State
	Reason string // of failed and refused
	Effect Effect
	Done   int
	Total  int
}

// Effect is what came in force with an event, in every search and in every
// opening of a source at once.
type Effect string

// The effects; "" is none.
const (
	Renewal      Effect = "content" // a revision was published
	AccessChange Effect = "access"  // the access list was replaced
	Removal      Effect = "removal" // the document is gone
)

// Held says that a run did not remove what is missing, because it would have
// been too much at once.
type Held struct {
	Missing int // documents that would have been removed
	Of      int // documents of the source
}

// Trouble is a document that was not taken in.
type Trouble struct {
	ID        retrieval.DocumentID
	Path      string
	Reason    string
	Retryable bool
}

// Report says what a run did.
type Report struct {
	Published     int // new, changed and moved documents
	Moved         int // of Published: known before at another path
	Unchanged     int
	AccessChanged int // of Unchanged: the access list was replaced
	Removed       int
	Failed        []Trouble // ordered by path
	Refused       []Trouble
	Missing       []string // published, but no longer in the source; kept, since the run did not prune, or by Held
	Held          *Held    // nil: nothing was held back

	Chunks    int // of the documents published in this run
	Truncated int // of Chunks: cut at the window
	Window    int // tokens

	Notes     int // requests for notes that were made
	NotesKept int // notes that were there from before
	NoNote    int // chunks of which the chat model said nothing that can be used
	Unnoted   int // documents published without notes, which the next run completes

	Warnings   []string
	Generation string
	Promoted   bool   // Generation is what questions are answered from
	Withheld   string // why it was not promoted
	Replaced   string // the generation that it was promoted in place of, if that was made otherwise
}

// String sums the run up, one fact a line.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d published, %d unchanged, %d failed, %d refused, %d removed\n", r.Published, r.Unchanged, len(r.Failed), len(r.Refused), r.Removed)
	if r.Published > 0 {
		fmt.Fprintf(&b, "%d of %d chunks cut at %d tokens\n", r.Truncated, r.Chunks, r.Window)
	}
	if r.Notes+r.NotesKept+r.Unnoted > 0 {
		fmt.Fprintf(&b, "%d notes asked for, %d kept from before, %d chunks without; %d documents have none yet, which the next run writes\n", r.Notes, r.NotesKept, r.NoNote, r.Unnoted)
	}
	if r.Moved > 0 {
		fmt.Fprintf(&b, "%d of the published had moved\n", r.Moved)
	}
	if r.AccessChanged > 0 {
		fmt.Fprintf(&b, "%d unchanged documents have a new access list\n", r.AccessChanged)
	}
	switch n := len(r.Missing); {
	case r.Held != nil:
		fmt.Fprintf(&b, "%d of %d documents are no longer in the source: too many to remove unasked, so that none was\n", r.Held.Missing, r.Held.Of)
	case n > 0:
		fmt.Fprintf(&b, "%d documents are no longer in the source and were kept; prune to remove them\n", n)
	}
	if r.Withheld != "" {
		fmt.Fprintf(&b, "the new index is not in use yet: %s\n", r.Withheld)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(&b, w)
	}
	return b.String()
}

func (r *Report) sort() {
	byPath := func(a, b Trouble) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(r.Failed, byPath)
	slices.SortFunc(r.Refused, byPath)
}
