package memindex

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/journal"
)

// document is the visible revision of a document. Its chunks have the
// consecutive ordinals from base on.
type document struct {
	meta
	class    int // of its access list
	base     int
	chunks   int
	length   int // terms of all chunks, each chunk's saturated
	head     journal.Part
	text     journal.Part // canonical
	passages []journal.Part
	states   []journal.Part
	size     int64      // of its record
	past     []revision // superseded ones, oldest first
}

// revision is a superseded revision, of which only the text is kept.
type revision struct {
	meta
	text journal.Part
}

// posting is one chunk of a term's list.
type posting struct {
	ordinal uint32
	count   uint16 // of the term in the chunk, saturated
	length  uint16 // of the chunk, saturated
}

// state is a generation in memory. It changes only by applying records, so
// that opening the log gives the same state.
type state struct {
	dims    int
	version uint64 // counts changes

	numbers map[string]uint32 // term -> number
	terms   []string          // number -> term
	lists   [][]posting       // number -> postings, by ordinal

	docs   map[retrieval.DocumentID]*document
	live   []*document // by base
	owners []*document // by ordinal; also of dead chunks
	dead   int         // ordinals that no live document has
	vecs   vectors

	longest int // chunk, saturated

	classNumbers map[string]int // joined principals -> class
	classes      []acl.List     // only ever grows
}

func newState(dims int) *state {
	return &state{
		dims: dims, vecs: vectors{dims: dims},
		numbers: map[string]uint32{}, docs: map[retrieval.DocumentID]*document{}, classNumbers: map[string]int{},
	}
}

// apply makes the change that a record describes.
func (s *state) apply(r journal.Record, head []byte) error {
	if len(head) == 0 {
		return errRecord
	}
	s.version++
	switch head[0] {
	case kindPublish:
		p, err := decodePublished(head[1:], s.dims)
		if err == nil && len(r.Parts) != 1+2*len(p.chunks) {
			err = errRecord
		}
		if err != nil {
			return err
		}
		return s.publish(r, p)
	case kindArchive:
		d := decoder{b: head[1:]}
		m := d.meta()
		if d.err != nil || len(r.Parts) != 1 {
			return errRecord
		}
		return s.archive(r, m)
	case kindRemove:
		d := decoder{b: head[1:]}
		id := retrieval.DocumentID(d.string())
		s.remove(id)
		return d.err
	case kindSetAccess:
		d := decoder{b: head[1:]}
		doc := s.docs[retrieval.DocumentID(d.string())]
		list := d.list()
		if d.err != nil || doc == nil {
			return errRecord
		}
		doc.class = s.class(list)
		return nil
	}
	return fmt.Errorf("%w: kind %d", errRecord, head[0])
}

func (s *state) publish(r journal.Record, p published) error {
	for _, t := range p.terms {
		s.numbers[t] = uint32(len(s.terms))
		s.terms = append(s.terms, t)
		s.lists = append(s.lists, nil)
	}
	doc := &document{
		meta: p.meta, class: s.class(p.access), base: len(s.owners), chunks: len(p.chunks),
		head: r.Head, text: r.Parts[0], size: r.Size,
		passages: r.Parts[1:][:len(p.chunks)], states: r.Parts[1+len(p.chunks):],
	}
	if old := s.docs[doc.id]; old != nil {
		doc.past = slices.DeleteFunc(append(old.past, revision{old.meta, old.text}), func(r revision) bool {
			return r.revision == doc.revision
		})
		s.bury(old)
	}
	for i, c := range p.chunks {
		length := min(c.length, saturated)
		doc.length += length
		s.longest = max(s.longest, length)
		s.owners = append(s.owners, doc)
		s.vecs.add(p.vectors[i*s.dims*4:][:s.dims*4])
		for _, t := range c.terms {
			if int(t.term) >= len(s.lists) {
				return errRecord
			}
			s.lists[t.term] = append(s.lists[t.term],
				posting{uint32(doc.base + i), uint16(min(t.count, saturated)), uint16(length)})
		}
	}
	s.docs[doc.id] = doc
	s.live = append(s.live, doc)
	return nil
}

// archive adds a superseded revision that compaction kept. It follows the
// record of its document.
func (s *state) archive(r journal.Record, m meta) error {
	doc := s.docs[m.id]
	if doc == nil {
		return errRecord
	}
	doc.past = append(doc.past, revision{m, r.Parts[0]})
	return nil
}

func (s *state) remove(id retrieval.DocumentID) {
	doc := s.docs[id]
	if doc == nil {
		return
	}
	s.bury(doc)
	delete(s.docs, id)
}

// bury takes the document's chunks out of search.
func (s *state) bury(doc *document) {
	i, _ := slices.BinarySearchFunc(s.live, doc.base, func(d *document, base int) int { return cmp.Compare(d.base, base) })
	s.live = slices.Delete(s.live, i, i+1)
	s.dead += doc.chunks
}

// class interns an access list.
func (s *state) class(l acl.List) int {
	var key strings.Builder
	for _, p := range l.Principals() {
		key.WriteString(string(p))
		key.WriteByte(0) // no principal holds it
	}
	n, ok := s.classNumbers[key.String()]
	if !ok {
		n = len(s.classes)
		s.classNumbers[key.String()] = n
		s.classes = append(s.classes, l)
	}
	return n
}

// squeeze drops dead chunks from memory once they are a quarter of all.
func (s *state) squeeze() {
	const worth = 1024 // dead chunks below which memory is not worth the time
	if s.dead < worth || s.dead*4 < len(s.owners) {
		return
	}
	const gone = ^uint32(0)
	moved := slices.Repeat([]uint32{gone}, len(s.owners))
	next := 0
	for _, doc := range s.live {
		for i := range doc.chunks {
			moved[doc.base+i] = uint32(next + i)
			s.vecs.move(next+i, doc.base+i)
			s.owners[next+i] = doc
		}
		doc.base = next
		next += doc.chunks
	}
	for t, list := range s.lists {
		kept := list[:0]
		for _, p := range list {
			if p.ordinal = moved[p.ordinal]; p.ordinal != gone {
				kept = append(kept, p)
			}
		}
		s.lists[t] = slices.Clip(slices.Clone(kept))
	}
	clear(s.owners[next:])
	s.owners, s.dead = s.owners[:next], 0
	s.vecs.truncate(next)
}

// chunkID names the chunk with this ordinal.
func (s *state) chunkID(ordinal uint32) retrieval.ChunkID {
	doc := s.owners[ordinal]
	return retrieval.ChunkID{Document: doc.id, Revision: doc.revision, Ordinal: int(ordinal) - doc.base}
}

// numberer gives numbers to the terms of one record. Those that the state does
// not know get the next ones and are collected in terms.
type numberer struct {
	state *state
	fresh map[string]uint32
	terms []string
}

func (n *numberer) number(t string) uint32 {
	if known, ok := n.state.numbers[t]; ok {
		return known
	}
	next, ok := n.fresh[t]
	if !ok {
		next = uint32(len(n.state.terms) + len(n.terms))
		n.fresh[t] = next
		n.terms = append(n.terms, t)
	}
	return next
}
