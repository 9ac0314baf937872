// Package catalog keeps what is known of each document: where it lies, which
// state it is in and since when, why it failed, and what made it.
//
// Its one idea: the catalog tells the story, the index holds the truth. A
// record says what was attempted and how it ended; whether a document can be
// found is the index's to say, and ingestion corrects the records by it.
//
// A document keeps its id for life: twelve hex digits of the SHA-256 of the
// path at which it was first seen, kept when the file moves and when it is
// removed and comes back.
//
// Format: catalog.log, a retrieval/journal whose record heads are JSON arrays
// of records; the last record of an id counts. Those written together take
// effect together. The log is rewritten at opening when most of it is stale.
//
// Where several processes share one catalog, it is kept elsewhere (New): each
// holds all records in memory, and a Log has the last word on their order.
//
// It does not lock the data directory (the index does) and knows nothing of
// access beyond what records carry.
package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"footnote/models"
	"footnote/retrieval"
	"footnote/retrieval/doctree"
	"footnote/retrieval/journal"
)

// File is the catalog's name in the data directory.
const File = "catalog.log"

// State is where a document stands.
type State string

// The states of a document. Queued to Embedding are passed through; the
// others last until something changes.
const (
	Queued     State = "queued"
	Extracting State = "extracting"
	Chunking   State = "chunking"
	Embedding  State = "embedding"
	Published  State = "published"
	Failed     State = "failed"  // see Reason and Retryable
	Refused    State = "refused" // no access list that can be used
	Removed    State = "removed" // out of the index; the id is kept
)

// Settled reports that nothing is under way.
func (s State) Settled() bool {
	return s == Published || s == Failed || s == Refused || s == Removed
}

// Change is one step in a document's story.
type Change struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}

// maxChanges is how many of the latest steps a record keeps.
const maxChanges = 24

// Stamp names what made a published revision. A record whose stamp differs
// from the program's own is stale.
type Stamp struct {
	Pipeline  string              `json:"pipeline"`
	Extractor string              `json:"extractor"`
	Chunker   string              `json:"chunker"`
	Analysis  string              `json:"analysis"`
	Notes     string              `json:"notes,omitempty"` // recipe of the notes; "" there are none
	Embedder  models.EmbedderInfo `json:"embedder"`
}

// Record is one document.
type Record struct {
	ID        retrieval.DocumentID `json:"id"`
	Path      string               `json:"path"`
	Source    string               `json:"source,omitempty"` // that took it in, by name; "" none of the configured ones
	State     State                `json:"state"`
	Reason    string               `json:"reason,omitempty"`    // of failed and refused
	Retryable bool                 `json:"retryable,omitempty"` // the same bytes may succeed later

	Revision retrieval.Revision `json:"revision,omitempty"` // of the bytes that State speaks of
	Serving  retrieval.Revision `json:"serving,omitempty"`  // in the index; "" none

	Attempts int `json:"attempts,omitempty"` // on these bytes, that failed

	// Rules is the access list that its source's rules gave when Revision was
	// read. Declared is the access list of the document's own front matter, nil if
	// it has none; Access is the list in force.
	Rules    []string `json:"rules,omitempty"`
	Declared []string `json:"declared,omitempty"`
	Access   []string `json:"access,omitempty"`

	// Own is, in every state but Published, whether the revision that is served
	// has an access list in its front matter. Declared speaks of Revision then.
	Own bool `json:"own,omitempty"`

	Stamp      Stamp    `json:"stamp"`
	Bytes      int      `json:"bytes"`      // of the source
	Characters int      `json:"characters"` // code points of the canonical text
	Chunks     int      `json:"chunks"`
	Truncated  int      `json:"truncated"` // chunks cut at the embedder's window
	Warnings   []string `json:"warnings,omitempty"`

	Facts doctree.Facts `json:"facts,omitzero"` // what extraction knows beyond the text: pages read of all, and the like

	Changes []Change `json:"changes"` // oldest first, the latest 24
}

// Since is when the record came into its state.
func (r Record) Since() time.Time {
	if len(r.Changes) == 0 {
		return time.Time{}
	}
	return r.Changes[len(r.Changes)-1].At
}

// Governed reports that the access list of what is served is its own front
// matter's, which the rules of its source do not change.
func (r Record) Governed() bool {
	if r.State == Published {
		return r.Declared != nil
	}
	return r.Own
}

// Enter puts the record into a state; reasons of an earlier state go.
func (r *Record) Enter(s State, at time.Time) {
	r.State, r.Reason, r.Retryable = s, "", false
	r.Changes = append(slices.Clone(r.Changes), Change{s, at.UTC().Truncate(time.Millisecond)})
	if extra := len(r.Changes) - maxChanges; extra > 0 {
		r.Changes = slices.Delete(r.Changes, 0, extra)
	}
}

// Catalog is an open catalog, safe for concurrent use. Records are values:
// what is read stays as it was.
type Catalog struct {
	mu     sync.RWMutex
	log    Log
	byID   map[retrieval.DocumentID]Record
	byPath map[string]retrieval.DocumentID
}

// Log keeps records durably, in one order for everybody who uses it.
type Log interface {
	// Append keeps records, all or none, and has apply called with them, after
	// all that others appended before. text is the records as one JSON array.
	// The catalog is locked meanwhile.
	Append(text []byte, rs []Record, apply Apply) error
	Close() error
}

// Apply takes records into memory. whole: they are all that there are, and what
// else was known is lost.
type Apply func(rs []Record, whole bool)

// New makes a catalog over a log of another kind, with what that holds.
func New(log Log, rs ...Record) *Catalog {
	c := &Catalog{log: log}
	c.apply(rs, true)
	return c
}

// Learn takes records into memory that another process appended. load is
// called while the catalog is locked, so that no Put comes in between.
func (c *Catalog) Learn(load func(Apply) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return load(c.apply)
}

// journaled is the log in a data directory.
type journaled struct{ *journal.Log }

// Append implements Log.
func (j journaled) Append(text []byte, rs []Record, apply Apply) error {
	if _, err := j.Log.Append(text); err != nil {
		return err
	}
	apply(rs, false)
	return nil
}

// Open opens the catalog in the data directory and makes it if it is absent.
func Open(dir string) (*Catalog, error) {
	c := New(nil)
	log, err := journal.Open(filepath.Join(dir, File), func(_ journal.Record, head []byte) error {
		rs, err := decode(head)
		c.apply(rs, false)
		return err
	})
	if err != nil {
		return nil, storage(err)
	}
	c.log = journaled{log}
	if err := c.compact(log); err != nil {
		return nil, errors.Join(fmt.Errorf("compacting the catalog: %w", err), log.Close())
	}
	return c, nil
}

// Close closes the log.
func (c *Catalog) Close() error { return c.log.Close() }

// storage translates errors of the log into those of retrieval.
func storage(err error) error {
	switch {
	case errors.Is(err, journal.ErrCorrupt):
		return fmt.Errorf("%w: the catalog: %w; restore the data directory, or move %s away: the next ingest makes it anew from the index and the sources", retrieval.ErrCorrupt, err, File)
	case errors.Is(err, journal.ErrFormat):
		return fmt.Errorf("%w: the catalog: %w", retrieval.ErrFormat, err)
	}
	return fmt.Errorf("opening the catalog: %w", err)
}

func decode(head []byte) ([]Record, error) {
	var rs []Record
	if err := json.Unmarshal(head, &rs); err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
	}
	for _, r := range rs {
		if r.ID == "" || r.Path == "" {
			return nil, fmt.Errorf("%w: a record without id or path", journal.ErrCorrupt)
		}
	}
	return rs, nil
}

// apply is Apply. A path belongs to the document that took it last, but a
// removed one never takes it from another.
func (c *Catalog) apply(rs []Record, whole bool) {
	if whole {
		c.byID, c.byPath = map[retrieval.DocumentID]Record{}, map[string]retrieval.DocumentID{}
	}
	for _, r := range rs {
		if old, ok := c.byID[r.ID]; ok && old.Path != r.Path && c.byPath[old.Path] == r.ID {
			delete(c.byPath, old.Path)
		}
		c.byID[r.ID] = r
		if holder, taken := c.byPath[r.Path]; !taken || r.State != Removed || c.byID[holder].State == Removed {
			c.byPath[r.Path] = r.ID
		}
	}
}

// Put writes records, durably and together. After an error none is written.
func (c *Catalog) Put(rs ...Record) error {
	if len(rs) == 0 {
		return nil
	}
	head, err := json.Marshal(rs)
	if err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	// Reading it back checks it and cuts every tie to the caller's slices.
	own, err := decode(head)
	if err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.log.Append(head, own, c.apply); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	return nil
}

// Get returns the record of a document.
func (c *Catalog) Get(id retrieval.DocumentID) (Record, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.byID[id]
	return r, ok
}

// At returns the record of the document at the path.
func (c *Catalog) At(path string) (Record, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.byID[c.byPath[path]]
	return r, ok
}

// Find returns the one record whose id begins with the prefix or whose path
// is the text given. The error says if there is none or more than one.
func (c *Catalog) Find(idOrPath string) (Record, error) {
	if r, ok := c.At(idOrPath); ok {
		return r, nil
	}
	var found []Record
	for _, r := range c.List() {
		if idOrPath != "" && strings.HasPrefix(string(r.ID), idOrPath) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return Record{}, fmt.Errorf("no document %q: %w", idOrPath, retrieval.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return Record{}, fmt.Errorf("%q begins the ids of %d documents: give more digits", idOrPath, len(found))
}

// List returns all records, ordered by path, then id.
func (c *Catalog) List() []Record {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.byID), func(a, b Record) int {
		if d := strings.Compare(a.Path, b.Path); d != 0 {
			return d
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
}

// Counts counts the records by state.
func (c *Catalog) Counts() map[State]int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := map[State]int{}
	for _, r := range c.byID {
		out[r.State]++
	}
	return out
}

// NewID returns an id for a document first seen at the path, which no other
// document has. It is taken only when its record is put.
func (c *Catalog) NewID(path string) retrieval.DocumentID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for n := 0; ; n++ {
		seed := path
		if n > 0 {
			seed += "\x00" + strconv.Itoa(n)
		}
		sum := sha256.Sum256([]byte(seed))
		id := retrieval.DocumentID(hex.EncodeToString(sum[:6]))
		if _, taken := c.byID[id]; !taken {
			return id
		}
	}
}

const (
	compactBytes = 1 << 20 // smaller logs are left alone
	compactShare = 4       // rewritten when it could be this many times smaller
	compactBatch = 1000    // records written together
)

// compact rewrites the log when most of it is stale.
func (c *Catalog) compact(log *journal.Log) error {
	if log.Size() < compactBytes {
		return nil
	}
	live, err := json.Marshal(slices.Collect(maps.Values(c.byID)))
	if err != nil {
		return err
	}
	if int64(len(live))*compactShare > log.Size() {
		return nil
	}
	w, err := log.Rewrite()
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(c.inOrder(), compactBatch) {
		head, err := json.Marshal(batch)
		if err == nil {
			_, err = w.Append(head)
		}
		if err != nil {
			w.Discard()
			return err
		}
	}
	return w.Commit()
}

// inOrder lists the records so that applying them again gives each path to
// its present holder: holders come last.
func (c *Catalog) inOrder() []Record {
	rs := c.List()
	slices.SortStableFunc(rs, func(a, b Record) int {
		return strings.Compare(strconv.FormatBool(c.byPath[a.Path] == a.ID), strconv.FormatBool(c.byPath[b.Path] == b.ID))
	})
	return rs
}
