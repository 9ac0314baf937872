package redisindex

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"footnote/acl"
	"footnote/retrieval"
)

// pubLen is the length of a publication's name. A document's value begins with
// it, so that scripts find it without reading the rest.
const pubLen = 16

func newPublication() string { return strings.ToLower(rand.Text())[:pubLen] }

// newVersion is the token of a version. It is not a count: after a loss of the
// last changes a count would come to the same number with other contents.
func newVersion() string { return rand.Text() }

// saturated is the largest length and frequency that BM25 sees.
const saturated = math.MaxUint16

// meta is what a revision says of itself.
type meta struct {
	Revision retrieval.Revision `json:"revision"`
	Path     string             `json:"path"`
	Title    string             `json:"title"`
	Link     string             `json:"link,omitempty"`
	Format   string             `json:"format"`
	Language string             `json:"language"`
	Modified time.Time          `json:"modified"`
}

// record is a document as hash d keeps it.
type record struct {
	pub string
	meta
	Runes  int    `json:"runes"` // of the canonical text
	Chunks int    `json:"chunks"`
	Length int    `json:"length"` // terms of all chunks, each chunk's saturated
	Access []byte `json:"access"` // packed
	Past   []past `json:"past,omitempty"`

	list acl.List
	raw  string // as it was read
}

// past is a superseded revision whose text is kept.
type past struct {
	Publication string `json:"publication"`
	meta
}

const keptRevisions = 5

func (r *record) share() share { return share{chunks: r.Chunks, length: r.Length} }

func (r *record) encode() (string, error) {
	r.Access = []byte(pack(r.list))
	b, err := json.Marshal(r)
	return r.pub + string(b), err
}

// decodeRecord reads a document's value; "" is none.
func decodeRecord(raw string) (*record, error) {
	if raw == "" {
		return nil, nil
	}
	if len(raw) < pubLen || !isPlain(raw[:pubLen]) {
		return nil, fmt.Errorf("%w: a document's record", retrieval.ErrCorrupt)
	}
	r := &record{pub: raw[:pubLen], raw: raw}
	if err := json.Unmarshal([]byte(raw[pubLen:]), r); err != nil {
		return nil, fmt.Errorf("%w: a document's record: %w", retrieval.ErrCorrupt, err)
	}
	var err error
	if r.list, err = unpack(string(r.Access)); err != nil {
		return nil, fmt.Errorf("%w: a document's access list: %w", retrieval.ErrCorrupt, err)
	}
	return r, nil
}

// passage is a chunk as hash p keeps it. Text mostly ends with Content and is
// then kept as its head alone.
type passage struct {
	Section []string       `json:"section,omitempty"`
	Kind    string         `json:"kind"`
	Locator string         `json:"locator"`
	Span    retrieval.Span `json:"span"`
	Content string         `json:"content"`
	Head    string         `json:"head,omitempty"`
	Text    *string        `json:"text,omitempty"`
}

func encodePassage(c retrieval.Chunk) (string, error) {
	p := passage{Section: c.Section, Kind: c.Kind, Locator: c.Locator, Span: c.Span, Content: c.Content}
	if head, ok := strings.CutSuffix(c.Text, c.Content); ok {
		p.Head = head
	} else {
		p.Text = &c.Text
	}
	b, err := json.Marshal(p)
	return string(b), err
}

func decodePassage(raw string, id retrieval.ChunkID) (retrieval.Chunk, error) {
	var p passage
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return retrieval.Chunk{}, fmt.Errorf("%w: chunk %s: %w", retrieval.ErrCorrupt, id, err)
	}
	c := retrieval.Chunk{ID: id, Section: p.Section, Kind: p.Kind, Locator: p.Locator, Span: p.Span, Content: p.Content, Text: p.Head + p.Content}
	if p.Text != nil {
		c.Text = *p.Text
	}
	return c, nil
}

// checkText refuses text that would not come back as it went in.
func checkText(p retrieval.Publication) error {
	d := p.Document
	texts := []string{string(d.ID), string(d.Revision), d.Path, d.Title, d.Link, d.Format, d.Language, d.Canonical}
	for _, c := range p.Chunks {
		texts = append(texts, c.Chunk.Kind, c.Chunk.Locator, c.Chunk.Text)
		texts = append(texts, c.Chunk.Section...)
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return fmt.Errorf("%.40q is not UTF-8: convert the document or its name", t)
		}
	}
	return nil
}

// pack writes a list as its principals, each after its length; unpack reads
// it. Equal lists have equal packs.
func pack(l acl.List) string {
	var b []byte
	for _, p := range l.Principals() {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return string(b)
}

func unpack(s string) (acl.List, error) {
	var ps []acl.Principal
	for b := []byte(s); len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 || n == 0 || n > uint64(len(b)-size) {
			return acl.List{}, errors.New("the packed list is cut short")
		}
		ps = append(ps, acl.Principal(b[size:size+int(n)]))
		b = b[size+int(n):]
	}
	if len(ps) == 0 {
		return acl.List{}, errors.New("the packed list is empty")
	}
	return acl.NewList(ps...), nil
}

func packVector(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return string(b)
}

func unpackVector(s string, dims int) ([]float32, error) {
	if len(s) != 4*dims {
		return nil, fmt.Errorf("%w: a vector of %d bytes instead of %d", retrieval.ErrCorrupt, len(s), 4*dims)
	}
	v := make([]float32, dims)
	for i := range v {
		v[i] = math.Float32frombits(uint32(s[4*i]) | uint32(s[4*i+1])<<8 | uint32(s[4*i+2])<<16 | uint32(s[4*i+3])<<24)
	}
	return v, nil
}

// encodeContents says what was written of a publication, so that it can be
// deleted: the number of its chunks and its tokens, apart by blanks.
func encodeContents(chunks int, tokens []string) string {
	return strings.Join(append([]string{strconv.Itoa(chunks)}, tokens...), " ")
}

func decodeContents(s string) (chunks int, tokens []string, err error) {
	if s == "" {
		return 0, nil, nil
	}
	all := strings.Split(s, " ")
	chunks, err = strconv.Atoi(all[0])
	if err != nil || chunks < 0 {
		return 0, nil, fmt.Errorf("%w: the contents of a publication", retrieval.ErrCorrupt)
	}
	return chunks, all[1:], nil
}

// place is where a chunk lies, as its key says.
type place struct {
	pub     string
	ordinal int
}

func (k keys) chunk(p place) string { return k.chunks + p.pub + ":" + strconv.Itoa(p.ordinal) }

// placeOf reads a chunk's key.
func (k keys) placeOf(key string) (place, error) {
	rest, ok := strings.CutPrefix(key, k.chunks)
	pub, o, ok2 := strings.Cut(rest, ":")
	ordinal, err := strconv.Atoi(o)
	if p := (place{pub, ordinal}); !ok || !ok2 || err != nil || ordinal < 0 || !isPlain(pub) || k.chunk(p) != key {
		return place{}, fmt.Errorf("%w: the index holds the key %q", retrieval.ErrCorrupt, key)
	}
	return place{pub, ordinal}, nil
}

// keys are the names of a generation's keys.
type keys struct {
	index, version, log, documents, directory, overlay, names, fences, touch string
	chunks, passages, states, texts, contents                                string // followed by a publication
	postings                                                                 string // followed by a token
}

func newKeys(prefix, name string) keys {
	p := prefix + ":{" + name + "}"
	return keys{
		index: p, version: p + ":v", log: p + ":l", documents: p + ":d", directory: p + ":a", overlay: p + ":o", names: p + ":u", fences: p + ":f", touch: p + ":r",
		chunks: p + ":c:", passages: p + ":p:", states: p + ":s:", texts: p + ":t:", contents: p + ":x:", postings: p + ":w:",
	}
}
