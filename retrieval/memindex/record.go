package memindex

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"footnote/acl"
	"footnote/retrieval"
)

// Heads of the log's records, fields as varints and length-prefixed strings:
//
//	publish     meta list terms chunks vectors   parts: canonical text, then one per chunk (passage), then one per chunk (token states)
//	remove      id
//	set-access  id list
//	archive     meta                             parts: canonical text of a superseded revision
//
// A document with a link has path NUL link in the place of its path.
//
// Terms are those that the log has not named before; they take the next term
// numbers. A chunk is its count of terms and its distinct terms with their
// frequencies, ordered by number, numbers as differences. Vectors are float32,
// little-endian, at the end.
const (
	kindPublish byte = iota + 1
	kindRemove
	kindSetAccess
	kindArchive
)

var errRecord = errors.New("record cannot be decoded")

// saturated is the largest length and frequency that BM25 sees.
const saturated = math.MaxUint16

// meta is what memory keeps of a revision besides its chunks.
type meta struct {
	id       retrieval.DocumentID
	revision retrieval.Revision
	path     string
	link     string
	title    string
	format   string
	language string
	modified time.Time
	runes    int
}

// published is a decoded publish record.
type published struct {
	meta    meta
	access  acl.List
	terms   []string // new ones
	chunks  []chunkTerms
	vectors []byte // chunks × dimensions × 4
}

// chunkTerms is a chunk as the lexical leg sees it.
type chunkTerms struct {
	length int // terms, with repetitions
	terms  []termCount
}

type termCount struct{ term, count uint32 }

// countTerms orders and counts the term numbers of one chunk. It reorders ids.
func countTerms(ids []uint32) chunkTerms {
	c := chunkTerms{length: len(ids)}
	slices.Sort(ids)
	for i, id := range ids {
		if i == 0 || id != ids[i-1] {
			c.terms = append(c.terms, termCount{term: id})
		}
		c.terms[len(c.terms)-1].count++
	}
	return c
}

func (p published) encode() []byte {
	e := encoder{kindPublish}
	e.meta(p.meta)
	e.list(p.access)
	e.strings(p.terms)
	e.int(len(p.chunks))
	for _, c := range p.chunks {
		e.int(c.length)
		e.int(len(c.terms))
		last := uint32(0)
		for _, t := range c.terms {
			e.int(int(t.term - last))
			e.int(int(t.count))
			last = t.term
		}
	}
	return append(e, p.vectors...)
}

// decodePublished reads what encode made, of a generation with dims
// dimensions. vectors is a slice of b.
func decodePublished(b []byte, dims int) (published, error) {
	d := decoder{b: b}
	p := published{meta: d.meta(), access: d.list(), terms: d.strings()}
	p.chunks = make([]chunkTerms, d.count())
	for i := range p.chunks {
		p.chunks[i] = chunkTerms{length: d.int(), terms: make([]termCount, d.count())}
		last := uint32(0)
		for j := range p.chunks[i].terms {
			last += uint32(d.int())
			p.chunks[i].terms[j] = termCount{last, uint32(d.int())}
		}
	}
	p.vectors = d.b
	if d.err == nil && len(p.vectors) != len(p.chunks)*dims*4 {
		d.err = errRecord
	}
	return p, d.err
}

func encodeVectors(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func decodeVector(v []float32, b []byte) {
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// encodePassage makes the part of one chunk. Text mostly ends with Content and
// is then stored as its header alone.
func encodePassage(c retrieval.Chunk) []byte {
	var e encoder
	e.strings(c.Section)
	e.string(c.Kind)
	e.string(c.Locator)
	for _, n := range spanFields(&c.Span) {
		e.int(*n)
	}
	e.string(c.Content)
	if head, ok := cutSuffix(c.Text, c.Content); ok {
		return append(e.flag(1), head...)
	}
	return append(e.flag(0), c.Text...)
}

func decodePassage(b []byte, id retrieval.ChunkID) (retrieval.Chunk, error) {
	d := decoder{b: b}
	c := retrieval.Chunk{ID: id, Section: d.strings(), Kind: d.string(), Locator: d.string()}
	for _, n := range spanFields(&c.Span) {
		*n = d.int()
	}
	c.Content = d.string()
	whole := d.int() == 0
	c.Text = string(d.b)
	if !whole {
		c.Text += c.Content
	}
	return c, d.err
}

func spanFields(s *retrieval.Span) [6]*int {
	return [6]*int{&s.From, &s.To, &s.FromByte, &s.ToByte, &s.SourceFrom, &s.SourceTo}
}

func cutSuffix(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && s[n:] == suffix {
		return s[:n], true
	}
	return s, false
}

// encoder appends fields.
type encoder []byte

func (e *encoder) int(n int)         { *e = binary.AppendUvarint(*e, uint64(n)) }
func (e *encoder) string(s string)   { e.int(len(s)); *e = append(*e, s...) }
func (e encoder) flag(b byte) []byte { return append(e, b) }
func (e *encoder) strings(all []string) {
	e.int(len(all))
	for _, s := range all {
		e.string(s)
	}
}

func (e *encoder) list(l acl.List) {
	ps := l.Principals()
	e.int(len(ps))
	for _, p := range ps {
		e.string(string(p))
	}
}

func (e *encoder) meta(m meta) {
	path := m.path
	if m.link != "" {
		path += "\x00" + m.link
	}
	for _, s := range []string{string(m.id), string(m.revision), path, m.title, m.format, m.language} {
		e.string(s)
	}
	modified := m.modified.UTC()
	if modified.Before(time.Time{}) {
		modified = time.Time{}
	}
	e.int(int(modified.Unix() - zeroUnix))
	e.int(modified.Nanosecond())
	e.int(m.runes)
}

// zeroUnix lets the zero time be 0.
var zeroUnix = time.Time{}.Unix()

// decoder takes fields from b; after an error every field is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) int() int {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > math.MaxInt64 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return int(n)
}

// count is an int that cannot exceed the bytes that are left, so that damaged
// input cannot ask for more memory than it has itself.
func (d *decoder) count() int {
	n := d.int()
	if n > len(d.b) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) string() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) strings() []string {
	n := d.count()
	if n == 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = d.string()
	}
	return all
}

func (d *decoder) list() acl.List {
	var ps []acl.Principal
	for _, s := range d.strings() {
		ps = append(ps, acl.Principal(s))
	}
	return acl.NewList(ps...)
}

func (d *decoder) meta() meta {
	m := meta{
		id: retrieval.DocumentID(d.string()), revision: retrieval.Revision(d.string()),
		path: d.string(), title: d.string(), format: d.string(), language: d.string(),
	}
	m.path, m.link, _ = strings.Cut(m.path, "\x00")
	m.modified = time.Unix(int64(d.int())+zeroUnix, int64(d.int())).UTC()
	m.runes = d.int()
	return m
}

func (d *decoder) fail() { d.b, d.err = nil, errRecord }
