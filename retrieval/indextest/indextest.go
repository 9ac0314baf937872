// Package indextest is the conformance suite of retrieval.Store and
// retrieval.Generation: memindex and redisindex pass it, and any other index must.
//
// Its one idea: expectations come from a model of the contract that is written
// down a second time here, as plainly as possible (scan everything, decide
// with acl.Grant.Admits, rank by the formulas), or are computed by hand.
//
// Tests that need more than the seam (crashes, damaged files, second
// processes) belong to the back-end that has files.
package indextest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/models"
	"footnote/retrieval"
)

// Dimensions of the suite's vectors.
const Dimensions = 3

// Run checks that the stores which open makes keep the contract. open returns
// an empty store and cleans up after itself.
func Run(t *testing.T, open func(t *testing.T) retrieval.Store) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s retrieval.Store)
	}{
		{"access matrix", accessMatrix},
		{"Case_P2 identity without groups sees nothing", caseP2},
		{"Case_P5 group names are compared whole and by case", caseP5},
		{"Case_P9 document without access list is refused", caseP9},
		{"Case_P12 revocation is in force at once", caseP12},
		{"Case_S1 removed document is gone from every read", caseS1},
		{"Case_S4 updated document has one revision", caseS4},
		{"Case_Q11 empty index", caseQ11},
		{"Case_Q14 vector of another model", caseQ14},
		{"Case_Q15 refusals destroy nothing", caseQ15},
		{"forbidden documents change nothing", forbiddenChangesNothing},
		{"replacing is atomic for readers", replacingIsAtomic},
		{"BM25 by hand", bm25ByHand},
		{"ranking equals the model", rankingEqualsModel},
		{"ties order by id", tiesOrderByID},
		{"depth bounds each leg", depthBounds},
		{"missing terms", missingTerms},
		{"passages", passages},
		{"token states", tokenStates},
		{"terms are counted inside the grant", countsTerms},
		{"revisions stay readable", revisions},
		{"documents", documents},
		{"publishing the same revision again replaces it", sameRevision},
		{"published values are copied", copied},
		{"cancelled context", cancelled},
		{"generations and the alias", generations},
		{"an unfinished generation is promoted by no person", unfinished},
		{"a person's promotion is known until the next one", byHand},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

// Manifest is a manifest as a caller hands it to Create.
func Manifest() retrieval.Manifest {
	return retrieval.Manifest{Extractor: "extract/1", Chunker: "structure/1", Analysis: "words/1",
		Embedder: models.EmbedderInfo{Name: "fake", Precision: "fp32", SHA256: "00", Dimensions: Dimensions, Window: 512, States: models.StatesEncoding}}
}

// Publication makes a document with one chunk for each text. The terms are the
// text's words, vector and token states depend on the text alone; an empty text
// has no states.
func Publication(id, rev string, list acl.List, texts ...string) retrieval.Publication {
	d := retrieval.Document{ID: retrieval.DocumentID(id), Revision: retrieval.Revision(rev), Path: "docs/" + id + ".md",
		Title: strings.ToUpper(id), Format: "markdown", Language: "en", Canonical: strings.Join(texts, "\n")}
	p := retrieval.Publication{Document: d, Access: list}
	runes, bytes := 0, 0
	for i, text := range texts {
		span := retrieval.Span{From: runes, To: runes + utf8.RuneCountInString(text), FromByte: bytes, ToByte: bytes + len(text)}
		p.Chunks = append(p.Chunks, retrieval.IndexedChunk{
			Chunk: retrieval.Chunk{
				ID:      retrieval.ChunkID{Document: d.ID, Revision: d.Revision, Ordinal: i},
				Section: []string{"Part", fmt.Sprint(i)}, Kind: "text", Locator: fmt.Sprintf("#char=%d,%d", span.From, span.To),
				Span: span, Content: text, Text: "[" + d.Title + "]\n" + text,
			},
			Terms: strings.Fields(text), Vector: Vector(angle(text)), States: States(text),
		})
		runes, bytes = span.To+1, span.ToByte+1
	}
	return p
}

// Vector is the unit vector at an angle in degrees: the cosine distance of two
// of them is 1 − cos of the difference.
func Vector(degrees float64) []float32 {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0}
}

// States are the token states of a text: one for each word.
func States(text string) []byte {
	var rows []float32
	for _, w := range strings.Fields(text) {
		rows = append(rows, Vector(angle(w))...)
	}
	return models.EncodeStates(rows, Dimensions)
}

// angle gives a text one of 36 angles.
func angle(text string) float64 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return float64(h.Sum32()%36) * 10
}

func create(t *testing.T, s retrieval.Store) retrieval.Generation {
	t.Helper()
	g, err := s.Create(t.Context(), Manifest())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func publish(t *testing.T, g retrieval.Generation, ps ...retrieval.Publication) {
	t.Helper()
	for _, p := range ps {
		if err := g.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func search(t *testing.T, g retrieval.Generation, grant acl.Grant, q retrieval.Query) retrieval.Candidates {
	t.Helper()
	c, err := g.Search(t.Context(), grant, q)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask is a query that meets every chunk with this word, and every vector, and
// counts what it asks for.
func ask(words string) retrieval.Query {
	terms := strings.Fields(words)
	return retrieval.Query{Terms: terms, Vector: Vector(30), Depth: 1000, Count: terms}
}

// seen is what one grant can learn of one document, over every read path.
type seen struct {
	Lexical, Dense, Known bool // Known: a word of it alone is not Missing
	Counted, States       bool
	Passage, Text, Listed bool
}

// look tries every read path for a document whose id is a word of its chunk 0.
func look(t *testing.T, g retrieval.Generation, grant acl.Grant, p retrieval.Publication) seen {
	t.Helper()
	id := p.Document.ID
	c := search(t, g, grant, ask(string(id)))
	var s seen
	for _, h := range c.Lexical {
		s.Lexical = s.Lexical || h.ID.Document == id
	}
	for _, h := range c.Dense {
		s.Dense = s.Dense || h.ID.Document == id
	}
	s.Known, s.Counted = len(c.Missing) == 0, c.Holding[string(id)] > 0
	ps, err := g.Passages(t.Context(), grant, []retrieval.ChunkID{p.Chunks[0].Chunk.ID})
	fatal(t, err)
	s.Passage = len(ps) == 1
	states, err := g.States(t.Context(), grant, []retrieval.ChunkID{p.Chunks[0].Chunk.ID})
	fatal(t, err)
	s.States = len(states) == 1 && states[0] != nil
	_, err = g.Document(t.Context(), grant, id, "")
	if err != nil && !errors.Is(err, retrieval.ErrNotFound) {
		t.Fatal(err)
	}
	s.Text = err == nil
	infos, err := g.Documents(t.Context(), grant)
	fatal(t, err)
	for _, i := range infos {
		s.Listed = s.Listed || i.ID == id
	}
	return s
}

// all and none are the two answers that there may be: access is whole.
var (
	all  = seen{true, true, true, true, true, true, true, true}
	none = seen{}
)

func expect(t *testing.T, g retrieval.Generation, grant acl.Grant, p retrieval.Publication, want seen) {
	t.Helper()
	if diff := cmp.Diff(want, look(t, g, grant, p)); diff != "" {
		t.Errorf("reads of %s (-want +got):\n%s", p.Document.ID, diff)
	}
}

func person(name string, holds ...acl.Principal) acl.Grant {
	return acl.NewGrant(acl.NewIdentity(acl.User(name), holds...), acl.AskerOnly())
}

func everyone() acl.List { return acl.NewList(acl.Everyone) }

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func diff(t *testing.T, what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, opts...); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var background = context.Background()
