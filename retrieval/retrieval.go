// Package retrieval holds the nouns of search, the two seams behind which
// indexes live, and the Searcher that ranks above them.
//
//	document -> extract -> tree -> chunks -> vectors -> generation (shadow) -> alias
//	question -> grant -> both legs -> token states -> rerank
//
// Its one idea: an index only finds candidates, inside the grant. Fusion,
// reranking and every cut sit above the seam, so that all indexes rank alike.
//
// The seams are Reader (one generation, for asking) and Store (the set of
// generations and the alias, for building). memindex implements them in this
// process, redisindex on a Redis; indextest holds the suite that both pass.
package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"footnote/acl"
	"footnote/models"
)

// Sentinel errors of the seams.
var (
	// ErrNotFound is the one answer for a document that is absent and for one
	// that the grant does not admit.
	ErrNotFound = errors.New("document not available")
	// ErrNoIndex says that no generation has been promoted yet.
	ErrNoIndex = errors.New("there is no index yet")
	// ErrModelMismatch says that a generation was made by another model.
	ErrModelMismatch = errors.New("the index was made by another model")
	// ErrFormat says that a generation was written by another format version.
	ErrFormat = errors.New("the index has another format")
	// ErrCorrupt says that stored bytes do not match their checksum.
	ErrCorrupt = errors.New("the index is damaged")
	// ErrUnfinished says that the build of a generation was begun and not ended.
	ErrUnfinished = errors.New("its build was begun and not finished, so that documents are missing in it: run the ingest again, which finishes it and goes over to it")
	// ErrInUse says that another process holds the data directory.
	ErrInUse = errors.New("the data directory is in use")
	// ErrUnavailable says that the index cannot be reached or cannot answer
	// now: trying again later may help. It never means that nothing was found.
	ErrUnavailable = errors.New("the index is unavailable")
	// ErrFenced says that a writer's work on a document was given to another,
	// or taken back, so that what it brings is not wanted any more.
	ErrFenced = errors.New("the document is another writer's by now")
)

// DocumentID names a document for its whole life, across revisions and moves.
type DocumentID string

// Revision names one content of a document: hex of the SHA-256 of the source
// bytes, first 16 digits.
type Revision string

// ChunkID names one chunk of one revision. Ids order by document, revision
// and ordinal.
type ChunkID struct {
	Document DocumentID `json:"document"`
	Revision Revision   `json:"revision"`
	Ordinal  int        `json:"ordinal"` // 0-based place in the revision
}

// Compare orders ids by document, revision and ordinal.
func (c ChunkID) Compare(o ChunkID) int {
	return cmp.Or(
		cmp.Compare(c.Document, o.Document),
		cmp.Compare(c.Revision, o.Revision),
		cmp.Compare(c.Ordinal, o.Ordinal),
	)
}

// String is "document@revision#ordinal", the ordinal with at least 5 digits,
// so that strings order as the ids do.
func (c ChunkID) String() string {
	return fmt.Sprintf("%s@%s#%05d", c.Document, c.Revision, c.Ordinal)
}

// Span is a half-open range of a document's canonical text, in code points
// and in UTF-8 bytes, and where the source is a text format the range of
// source bytes it came from (SourceTo 0: there is none).
type Span struct {
	From       int `json:"from"`
	To         int `json:"to"`
	FromByte   int `json:"from_byte"`
	ToByte     int `json:"to_byte"`
	SourceFrom int `json:"source_from_byte"`
	SourceTo   int `json:"source_to_byte"`
}

// Chunk is a piece of one revision as it is indexed.
type Chunk struct {
	ID      ChunkID
	Section []string // headings from the outside in, without the title
	Kind    string   // text, table or code: what most of it is
	Locator string   // opens the source at the place, for example "#char=10,90"
	Span    Span
	Content string // canonical[Span.From:Span.To]: quoted, never embedded
	Text    string // a note on it, if there are notes, then header and plain content: embedded and reranked, never quoted
}

// Document is one revision of one document as it is published.
type Document struct {
	ID        DocumentID
	Revision  Revision
	Path      string // where the source lies: file path or URL
	Link      string // opens the original, http or https; "" there is none
	Title     string
	Format    string // markdown, html, text, …
	Language  string // ISO 639-1, "" unknown
	Modified  time.Time
	Canonical string // the whole normalised text, UTF-8
}

// IndexedChunk is a chunk with what the two legs need.
type IndexedChunk struct {
	Chunk  Chunk
	Terms  []string // analysed Text without the note, in order, with repetitions
	Vector []float32
	States []byte // token states of Text in the encoding that the manifest names; nil: none
}

// Publication is one document revision, whole: it becomes visible in one step
// and replaces the document's earlier revision in the same step.
type Publication struct {
	Document Document
	Access   acl.List
	Chunks   []IndexedChunk // at least one
}

// Manifest names everything that made a generation. Two generations are
// comparable only if all but Name, Created and the counts are equal.
type Manifest struct {
	Name      string              `json:"name"`
	Format    string              `json:"format"`
	Extractor string              `json:"extractor"`
	Chunker   string              `json:"chunker"`
	Analysis  string              `json:"analysis"`
	Notes     string              `json:"notes,omitempty"` // recipe of the notes before chunks; "" there are none
	Embedder  models.EmbedderInfo `json:"embedder"`
	Created   time.Time           `json:"created"`
}

// Counts says what lies in a generation now, written from the index itself.
type Counts struct {
	Documents int `json:"documents"`
	Chunks    int `json:"chunks"`
}

// Query is a question as the two legs take it.
type Query struct {
	Terms  []string  // analysed question; none: the lexical leg is empty
	Vector []float32 // of the generation's own embedder; nil: the dense leg is empty
	Depth  int       // hits per leg
	Count  []string  // terms to count, those of the lexical leg or not
}

// LexicalHit is a chunk found by BM25. Ties order by id.
type LexicalHit struct {
	ID    ChunkID
	Score float64
}

// DenseHit is a chunk found by its vector. Ties order by id.
type DenseHit struct {
	ID       ChunkID
	Distance float64 // cosine distance, 0 to 2
}

// Candidates is what both legs found, from one consistent state.
type Candidates struct {
	Lexical []LexicalHit
	Dense   []DenseHit
	Missing []string // query terms that no admitted chunk holds, in query order, no doubles

	// Distances holds the cosine distance of each lexical hit that is not
	// among the dense ones, where the query has a vector. The gate needs one:
	// a hit whose distance is unknown is no evidence.
	Distances map[ChunkID]float64

	// Chunks is the number of admitted chunks, Holding how many of them hold
	// each term of Query.Count that any does.
	Chunks  int
	Holding map[string]int
}

// Passage is a chunk with what a reply says of its document.
type Passage struct {
	Chunk    Chunk
	Title    string
	Path     string
	Link     string // as of Document
	Format   string
	Language string
	Modified time.Time
}

// DocumentInfo is a published document as listings show it.
type DocumentInfo struct {
	ID       DocumentID
	Revision Revision
	Path     string
	Title    string
	Format   string
	Modified time.Time
	Chunks   int
	Runes    int // of the canonical text
	Access   acl.List
}

// Reader reads one generation. Every method takes the grant and shows nothing
// outside it: not in results, counts, scores, order, Missing or Holding. Readers are
// safe for concurrent use beside publications.
type Reader interface {
	// Manifest says what made the generation.
	Manifest() Manifest
	// Search runs both legs inside the grant against one state: all of a
	// document's old revision or all of its new one. Statistics of the
	// lexical leg are those of the admitted chunks. No hits is no error; a
	// vector of the wrong length is.
	Search(ctx context.Context, grant acl.Grant, q Query) (Candidates, error)
	// Passages loads chunks in the order asked, checking access anew. What
	// the grant does not admit, or is no longer there, is left out.
	Passages(ctx context.Context, grant acl.Grant, ids []ChunkID) ([]Passage, error)
	// States loads the token states of chunks, one for each id in the order
	// asked, checking access anew. What the grant does not admit, is no longer
	// there or has none is nil.
	States(ctx context.Context, grant acl.Grant, ids []ChunkID) ([][]byte, error)
	// Document loads one revision ("": the current one) with its canonical
	// text. Superseded revisions stay readable under the document's current
	// access list until compaction. ErrNotFound for absent and forbidden.
	Document(ctx context.Context, grant acl.Grant, id DocumentID, rev Revision) (Document, error)
	// Documents lists what the grant admits, ordered by path.
	Documents(ctx context.Context, grant acl.Grant) ([]DocumentInfo, error)
}

// Writer changes one generation, published or shadow. Each call is atomic for
// readers and durable when it returns: after a crash it has happened or not.
// Calls are safe for concurrent use and take effect one after another.
type Writer interface {
	// Publish makes a revision visible and the document's earlier one
	// invisible in one step. Publishing the same revision again replaces it.
	// It refuses an empty access list, no chunks, and vectors of a wrong
	// length or norm, before anything is written.
	Publish(ctx context.Context, p Publication) error
	// Remove takes the document out of search and reading. Removing what is
	// absent is no error.
	Remove(ctx context.Context, id DocumentID) error
	// SetAccess replaces the access list, in force when it returns; nothing is
	// embedded. ErrNotFound if the document is absent; the empty list is
	// refused.
	SetAccess(ctx context.Context, id DocumentID, list acl.List) error
	// Counts says what lies in the generation now.
	Counts() Counts
}

// Generation is both sides of one generation.
type Generation interface {
	Reader
	Writer
}

// Marks is what has become of generations since they were made. One that was
// made before there were marks has none.
type Marks struct {
	Unfinished map[string]bool // by name: the build has begun and not ended
	ByHand     bool            // a person promoted the current one
}

// Store keeps the generations and the alias that names the current one.
type Store interface {
	// Create makes an empty shadow generation, which is unfinished. Name, Format
	// and Created of the manifest are the store's to fill.
	Create(ctx context.Context, m Manifest) (Generation, error)
	// Open opens a generation by name; "" opens the current one, ErrNoIndex
	// if there is none. ErrFormat, ErrCorrupt say why one cannot be opened.
	Open(ctx context.Context, name string) (Generation, error)
	// Finish says that the build of the generation has ended. Saying so again is
	// no error.
	Finish(ctx context.Context, name string) error
	// Promote points the alias at the generation in one durable step.
	Promote(ctx context.Context, name string) error
	// PromoteByHand is Promote for a person, whose choice stays known until the
	// next promotion. ErrUnfinished: the build of the generation has not ended.
	PromoteByHand(ctx context.Context, name string) error
	// Marks says what has become of the generations.
	Marks(ctx context.Context) (Marks, error)
	// Generations lists the manifests, oldest first, and names the current.
	Generations(ctx context.Context) (all []Manifest, current string, err error)
}
